"""SCAFFOLD: local SGD, corrected by control variates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort._internal.parameters import Whole
from fedcohort._internal.types import Array, Ints
from fedcohort.algorithms.base import Algorithm, LocalRule, Payload, Rows, Vectors
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation


@dataclass(frozen=True)
class Scaffold(Algorithm):
    """Control variates against the drift of clients: every local gradient has c - c_i added.

    The problem: after several local steps a client is on its way to its own minimum, and the
    mean of all stops elsewhere than at the minimum of the mean. Client i keeps c_i, about its own
    gradient, the server c, about everybody's::

        y <- y - lr (g_i(y) - c_i + c)           local steps, from the model x of the server
        c_i <- g_i(x)                            option 1: the gradient at x, on all local data
        c_i <- c_i - c + (x - y) / (K lr)        option 2: the mean of the local gradients
        c   <- c + sum_i p_i (change of c_i)     on the server, over those who answered

    Karimireddy et al., "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
    ICML 2020, Algorithm 1; their options I and II. There clients count alike: 1/N of the change
    is added; here by importance p, so that c = sum_i p_i c_i holds exactly, whoever was drawn and
    whatever the weights (by omega it would not). The server's learning rate is the optimiser's:
    ``--optimiser sgd:eta_g=0.5``. With local momentum, K is the number of plain steps that lead as
    far, so that option 2 is a mean of gradients still.

    Parameters
    ----------
    option
        1 costs a pass over the local data and no memory of the path; 2 is free.

    >>> Scaffold().spec
    'scaffold:option=2'
    """

    option: Annotated[int, Whole(1, 2)] = 2

    name: ClassVar[str] = "scaffold"
    paper: ClassVar[Citation | None] = Citation(
        "Sai Praneeth Karimireddy, Satyen Kale, Mehryar Mohri, Sashank J. Reddi, "
        "Sebastian U. Stich, Ananda Theertha Suresh",
        "SCAFFOLD: Stochastic Controlled Averaging for Federated Learning",
        "ICML",
        2020,
        "Algorithm 1",
    )
    keeps_server: ClassVar[tuple[str, ...]] = ("c",)
    corrects_steps: ClassVar[bool] = True
    keeps_client: ClassVar[tuple[str, ...]] = ("c_i",)
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("c", "tally", of="c_i"),)

    @property
    def needs(self) -> tuple[str, ...]:
        return ("gradient",) if self.option == 1 else ()

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(work, server["c"] - kept["c_i"])

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        if self.option == 1:
            own = kept["gradient"]
        else:
            own = kept["c_i"] - server["c"] - updates / (work.lr * work.plain_steps(steps)[:, None])
        return {"c": own - kept["c_i"]}, {"c_i": own}
