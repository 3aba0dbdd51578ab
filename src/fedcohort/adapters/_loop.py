"""What the carriers of other frameworks share."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning
from fedcohort._internal.parameters import is_real
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._federation import checked_positions
from fedcohort.selection._queries import UPDATE, Ask, put
from fedcohort.server import Aggregator, DropOutRule, Optimiser, Sgd, dropout_rule, optimiser
from fedcohort.server import aggregator as aggregator_by_name
from fedcohort.server._reply_validation import Fault, Form, Gate, Report, Ticket
from fedcohort.server._round import FLOAT_BYTES
from fedcohort.server._selector import Selector
from fedcohort.server._state import NO_STATISTICS, Statistics
from fedcohort.server._transport import (
    CollectUpdates,
    QueryReplies,
    Responses,
    TrainRequest,
    Transport,
    UpdateBlock,
    UpdateSum,
    blocks,
)

BLOCK_BYTES = 2**28
"""Answers are folded in blocks of this size."""
Read = Callable[[Any], Mapping[str, Any]]
"""How the arrays of a report are found in it; whatever goes wrong there is its sender's fault."""


class Loop(Transport):
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
    largest
        The largest change of a single parameter that is believed.
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
        largest: float = 1e6,
    ) -> None:
        if not (is_real(largest) and largest > 0):
            raise BadParameter("largest", self.name, "a number above 0", largest)
        selector.equip(
            type(self),
            optimiser=_optimiser(eta_g, optimiser),
            aggregator=aggregator_by_name(aggregator),
            dropouts=dropout_rule(dropouts),
            quorum=quorum,
        )
        self.selector, self.largest, self.gate = selector, float(largest), Gate()
        self.sizes: dict[str, int] = {}  # of the model, once it is known
        self.updates: dict[int, Array] = {}  # what came back in this round, by client
        self.statistics = NO_STATISTICS  # of the model, once its names are known

    def invite(self, available: ArrayLike | None = None, dimension: int = 0) -> Cohort:
        """The cohort of the round, chosen when it is first wanted."""
        ledger = self.selector.ledger
        ledger.model_bytes = ledger.model_bytes or FLOAT_BYTES * dimension
        if dimension:
            self.sizes = {"parameters": dimension}
        cohort = self.selector.pending
        if cohort is None:
            cohort = self.selector.select(available, self)
        if cohort.data_rate < 1 or cohort.per_sample:  # a scheme that did not declare it
            raise BadInput(
                f"{self.name} cannot have clients train on a share of their samples, which "
                f"{self.selector.scheme.name} wants; use another scheme."
            )
        return cohort

    def step(self, theta: Floats, updates: Mapping[int, Any]) -> Floats:
        """The next model, from the updates (d,) of clients by position.

        An update that is not usable is none; a position that is no client's is refused.
        """
        ids = self.selector.federation.ids
        checked_positions(list(updates), len(ids), "updates")
        named = ((str(ids[client]), update) for client, update in updates.items())
        self.came(named, {UPDATE.name: theta.shape}, lambda update: {UPDATE.name: update})
        return self.finish(theta)

    def came(
        self,
        reports: Iterable[tuple[str, Any]],
        shapes: Mapping[str, tuple[int, ...]],
        read: Read,
        clients: Ints | None = None,
    ) -> None:
        """Keep what clients sent, each under its name, as far as it may be used.

        ``read`` gives the changes of the arrays of the model, which have these ``shapes``;
        ``clients`` were invited, the cohort by default.
        """
        self.statistics = Statistics.of(shapes, Statistics.named(shapes))
        cohort = self.selector.pending or Cohort.empty()
        invited = cohort.clients if clients is None else clients
        form = Form(shapes, -self.largest, self.largest)
        for client, arrays in self.admitted(reports, invited, form, read).items():
            self.updates.setdefault(client, flat(arrays[name] for name in shapes))
        self.tell()

    def finish(self, theta: Floats) -> Floats:
        """The next model, from what came."""
        try:
            after, _ = self.selector.play(self, theta, self.statistics)
        finally:
            self.updates = {}
        return after

    def admitted(
        self, reports: Iterable[tuple[str, Any]], clients: Ints, form: Form, read: Read
    ) -> dict[int, Mapping[str, Array]]:
        """What the gate lets through of the reports of some clients, by client.

        Of two reports of a client the first good one counts.
        """
        round, ids, gate = str(self.selector.round), self.selector.federation.ids, self.gate
        tickets = {
            str(ids[client]): Ticket(client, name=ids[client]) for client in clients.tolist()
        }
        gate.open(round, tickets, form)
        out: dict[int, Mapping[str, Array]] = {}
        for name, report in reports:
            if gate.check(Report(name, None, round, 0)) is None:
                arrays = gate.read(name, partial(_arrays, read, report))
                if arrays is not None:
                    out[gate.client(name)] = arrays
        gate.close()
        return out

    def tell(self) -> None:
        """Warn of reports that were rejected; that nothing came is for the drop-out rule."""
        faults = self.gate.news()
        faults.pop(Fault.MISSING.name.lower(), None)
        if faults:
            warnings.warn(
                f"Reports were rejected, and count as not sent: {faults}.{self.gate.quote()}",
                FedcohortWarning,
                stacklevel=3,
            )

    def ask(self, ask: Ask) -> Array | QueryReplies:
        """By the function that the selector was given."""
        return put(ask, self.selector.ask, self.selector.scheme.name)

    def train(self, train: TrainRequest) -> Responses:
        """Those who were invited have trained already."""
        came = np.array(sorted(self.updates), dtype=np.int64)
        return Responses(np.intersect1d(train.clients, came), models=len(train.clients))

    def answers(self, fold: CollectUpdates) -> Iterator[UpdateBlock | UpdateSum]:
        """The updates of the cohort."""
        clients = fold.cohort.clients
        width = next(iter(self.updates.values())).nbytes
        for some in blocks(clients, width, BLOCK_BYTES):
            yield UpdateBlock(
                clients[some], np.stack([self.updates[c] for c in clients[some].tolist()])
            )


def _optimiser(eta_g: float, which: Optimiser | str | None) -> Optimiser:
    if which is None:
        return Sgd(eta_g)
    if eta_g != 1.0:
        raise BadInput(
            f"'eta_g' is the step of the plain optimiser; got {eta_g} beside an optimiser. Write "
            "it there, as in 'adam:eta_g=0.1'."
        )
    return optimiser(which)


def changed(sent: Any, old: Any) -> Array:
    """By how much an array changed; what cannot be subtracted stays, and the gate rejects it."""
    new, before = numbers(sent), numbers(old)
    alike = new.shape == before.shape and new.dtype.kind in "iuf"
    return new.astype(np.float64) - before if alike else new


def _arrays(read: Read, report: Any) -> dict[str, Array]:
    return {name: numbers(array) for name, array in read(report).items()}


def flat(arrays: Iterable[Any]) -> Floats:
    """(d,) the parameters of a model, one after another."""
    parts = [numbers(array).astype(np.float64).ravel() for array in arrays]
    return np.concatenate(parts) if parts else np.empty(0)


def shaped(theta: Floats, like: Mapping[str, Any]) -> dict[str, Any]:
    """A model (d,) as named arrays or tensors, in the shapes and types of others."""
    out, start = {}, 0
    for name, old in like.items():
        shape, dtype = np.shape(old), numbers(old).dtype
        stop = start + int(np.prod(shape))
        part = theta[start:stop].reshape(shape)
        part = (np.rint(part) if dtype.kind in "iu" else part).astype(dtype)
        out[name] = old.new_tensor(part) if hasattr(old, "new_tensor") else part
        start = stop
    return out


def numbers(array: Any) -> Array:
    """An array or a tensor, wherever it is, as an array."""
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)
