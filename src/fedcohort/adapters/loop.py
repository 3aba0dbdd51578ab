"""What the carriers of other frameworks share."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask, put
from fedcohort.core.errors import BadInput, FedcohortWarning
from fedcohort.core.types import Array, Floats
from fedcohort.selector import Selector
from fedcohort.server import Aggregator, DropOutRule, Optimiser, Sgd, dropout_rule, optimiser
from fedcohort.server import aggregator as aggregator_by_name
from fedcohort.server.carrier import Answers, Arrived, Block, Carrier, Fold, Sum, Train, blocks
from fedcohort.server.rounds import FLOAT_BYTES

BLOCK_BYTES = 2**28
"""Answers are folded in blocks of this size."""


class Loop(Carrier):
    """The rounds of a selector in a loop that another framework owns.

    Such a loop has two places for us: where it samples clients (`invite`), and where it updates
    its model (`step`). In between, the selection waits in the selector; the rest of the round is
    carried once the answers are there.

    Parameters
    ----------
    selector
        Scheme, clients and seed; its rounds and its ledger go on with those of the loop.
    eta_g
        The step of the server, unless there is an optimiser.
    optimiser, aggregator, dropouts
        What the server does with the answers, from `fedcohort.server`, or its name.
    quorum
        The share of the draws that must be answered; below it the round is void.
    """

    payloads: ClassVar[bool] = False
    subsampling: ClassVar[bool] = False

    def __init__(
        self,
        selector: Selector,
        eta_g: float = 1.0,
        optimiser: Optimiser | str | None = None,
        aggregator: Aggregator | str | None = None,
        dropouts: DropOutRule | str = "none",
        quorum: float = 0.0,
    ) -> None:
        selector.equip(
            type(self),
            optimiser=_optimiser(eta_g, optimiser),
            aggregator=aggregator_by_name(aggregator),
            dropouts=dropout_rule(dropouts),
            quorum=quorum,
        )
        self.selector = selector
        self.updates: dict[int, Array] = {}  # what came back in this round, by client

    def invite(self, available: ArrayLike | None = None, dimension: int = 0) -> Cohort:
        """The cohort of the round, chosen when it is first wanted."""
        ledger = self.selector.ledger
        ledger.model_bytes = ledger.model_bytes or FLOAT_BYTES * dimension
        cohort = self.selector.pending
        if cohort is None:
            cohort = self.selector.select(available, self)
        if cohort.data_rate < 1 or cohort.per_sample:  # a scheme that did not declare it
            raise BadInput(
                f"{self.name} cannot have clients train on a share of their samples, which "
                f"{self.selector.scheme.name} wants; use another scheme."
            )
        return cohort

    def step(self, theta: Floats, updates: Mapping[int, Array]) -> Floats:
        """The next model, from the updates (d,) of clients; one that is not usable is none."""
        self.updates = {}
        self.came(updates, len(theta))
        after, _ = self.selector.play(self, theta)
        self.updates = {}
        return after

    def came(self, updates: Mapping[int, Array], dimension: int) -> None:
        """Keep what clients sent; of two answers of a client the first counts."""
        for client, update in updates.items():
            if update.shape == (dimension,) and np.isfinite(update).all():
                self.updates.setdefault(client, update)
            else:
                warnings.warn(
                    f"The update of client {self.selector.federation.ids[client]!r} has another "
                    "size than the model or is not finite: it counts as not sent.",
                    FedcohortWarning,
                    stacklevel=3,
                )

    def ask(self, ask: Ask) -> Array | Answers:
        """By the function that the selector was given."""
        return put(ask, self.selector.ask, self.selector.scheme.name)

    def train(self, train: Train) -> Arrived:
        """Those who were invited have trained already."""
        came = np.array(sorted(self.updates), dtype=np.int64)
        return Arrived(np.intersect1d(train.clients, came), models=len(train.clients))

    def answers(self, fold: Fold) -> Iterator[Block | Sum]:
        """The updates of the cohort."""
        clients = fold.cohort.clients
        width = next(iter(self.updates.values())).nbytes
        for some in blocks(clients, width, BLOCK_BYTES):
            yield Block(clients[some], np.stack([self.updates[c] for c in clients[some].tolist()]))


def _optimiser(eta_g: float, which: Optimiser | str | None) -> Optimiser:
    if which is None:
        return Sgd(eta_g)
    if eta_g != 1.0:
        raise BadInput(
            f"'eta_g' is the step of the plain optimiser; got {eta_g} beside an optimiser. Write "
            "it there, as in 'adam:eta_g=0.1'."
        )
    return optimiser(which)


def flat(arrays: Iterable[Any]) -> Floats:
    """(d,) the parameters of a model, one after another."""
    parts = [_numbers(array).astype(np.float64).ravel() for array in arrays]
    return np.concatenate(parts) if parts else np.empty(0)


def shaped(theta: Floats, like: Mapping[str, Any]) -> dict[str, Any]:
    """A model (d,) as named arrays or tensors, in the shapes and types of others."""
    out, start = {}, 0
    for name, old in like.items():
        shape, dtype = np.shape(old), _numbers(old).dtype
        stop = start + int(np.prod(shape))
        part = theta[start:stop].reshape(shape)
        part = (np.rint(part) if dtype.kind in "iu" else part).astype(dtype)
        out[name] = old.new_tensor(part) if hasattr(old, "new_tensor") else part
        start = stop
    return out


def _numbers(array: Any) -> Array:
    """An array or a tensor, wherever it is, as an array."""
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)
