"""FedDyn: a regulariser of each client's own, whose sum the server takes out again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.parameters import Real
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.algorithms.base import Algorithm, LocalRule, Payload, Rows, Vectors
from fedcohort.learning._local import LocalWork
from fedcohort.selection._citation import Citation


@dataclass(frozen=True)
class FedDyn(Algorithm):
    """Dynamic regularisation: where clients stand still, their mean is at the minimum.

    Client i keeps g_i, about its own gradient, and minimises, from the model x of the server,

        F_i(y) - <g_i, y> + alpha/2 ||y - x||^2

    by as many local steps as the work says; then::

        g_i <- g_i - alpha (y_i - x)
        h   <- h - alpha sum_i p_i (y_i - x)         on the server: h = sum_i p_i g_i
        x   <- x + sum_i omega_i (y_i - x) - h / alpha

    A point that nobody leaves has F_i'(x) = g_i for all and h = 0: it is a minimum of
    sum_i p_i F_i, also where local steps are few.

    Acar et al., "Federated Learning Based on Dynamic Regularization", ICLR 2021, Algorithm 1.
    There h counts clients alike, 1/m each, and the model is the mean of those who answered; here
    they count by importance and by their weights. What goes to the optimiser is the whole step of
    x: with ``sgd:eta_g=1`` it is the paper's. Nothing travels but the model: the server finds
    alpha (y_i - x) from the update, so it must see the update of each client. Guards that shorten
    updates do not reach h: it is what clients remember.

    Parameters
    ----------
    alpha
        How strongly clients are held back, in place of the work's own ``mu``; 0.1 or 0.01 there.
        Small values take large steps -h/alpha, and want many local steps.

    >>> FedDyn(alpha=0.5).rule(LocalWork(), {}, {"g_i": np.zeros((1, 2))}).work.mu
    0.5
    """

    alpha: Annotated[float, Real(0, open_low=True)] = 0.1

    name: ClassVar[str] = "feddyn"
    paper: ClassVar[Citation | None] = Citation(
        "Durmus Alp Emre Acar, Yue Zhao, Ramon Matas~Navarro, Matthew Mattina, Paul N. Whatmough, "
        "Venkatesh Saligrama",
        "Federated Learning Based on Dynamic Regularization",
        "ICLR",
        2021,
        "Algorithm 1",
    )
    keeps_server: ClassVar[tuple[str, ...]] = ("h",)
    sends: ClassVar[tuple[str, ...] | None] = ()
    keeps_client: ClassVar[tuple[str, ...]] = ("g_i",)
    payloads: ClassVar[tuple[Payload, ...]] = (Payload("h", "tally", sent=False),)
    needs_rows: ClassVar[bool] = True
    corrects_steps: ClassVar[bool] = True
    weights_only: ClassVar[bool] = True

    def rule(self, work: LocalWork, server: Vectors, kept: Rows) -> LocalRule:
        return LocalRule(replace(work, mu=self.alpha), -kept["g_i"])

    def report(
        self, work: LocalWork, server: Vectors, kept: Rows, updates: Array, steps: Ints
    ) -> tuple[Rows, Rows]:
        return {}, {"g_i": kept["g_i"] - self.alpha * updates.astype(np.float64)}

    def summed(self, updates: Array, payloads: Rows) -> Rows:
        return {"h": -self.alpha * updates.astype(np.float64)}

    def direct(self, direction: Floats, server: Vectors) -> Floats:
        return direction - server["h"] / self.alpha
