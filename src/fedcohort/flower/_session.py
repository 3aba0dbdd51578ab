"""The session of a strategy: its rounds and its checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcohort._internal import store
from fedcohort._internal.environment import versions
from fedcohort._internal.errors import BadInput, CannotSave, InUse, TooFewClients, brief
from fedcohort._internal.files import exclusive
from fedcohort._internal.random import checked_seed, key_of
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.flower import _wire
from fedcohort.flower._exchange import Limits, Outgoing
from fedcohort.flower._population import Population
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import missing
from fedcohort.selection._scheme import Scheme
from fedcohort.server import _history
from fedcohort.server._checkpoint import pack_selection, pack_state, unpack_selection, unpack_state
from fedcohort.server._history import LOCK, History
from fedcohort.server._ledger import Entry, Ledger
from fedcohort.server._membership import admit_clients, replay_selection
from fedcohort.server._noise_budget import Budget, calibrated, promised
from fedcohort.server._records import Record
from fedcohort.server._reply_validation import Gate
from fedcohort.server._round import Queries
from fedcohort.server._state import Selection, Setup, State, Statistics
from fedcohort.training._algorithms import shifted

# What survives a crash of the server.
#
# ``state-<round>.npz`` is written when a round is over, ``selection.npz`` when a cohort has been
# chosen, *before* anybody is invited. The newest state is the valid one, and each file is replaced
# in one step: whatever the moment of a crash, a server that comes back has the state of a round
# and, if one was chosen, that round's own cohort. ``history.jsonl`` holds a record of every round,
# for reports; see `fedcohort.server._history`.

STATE, SELECTION = "flower-state", "flower-selection"
PATIENCE = 5.0
"""Seconds to wait for another server to let go of the folder."""


class Told(NamedTuple):
    """Which run a folder holds."""

    scheme: str
    parameters: dict[str, Any]
    seed: int
    facts: dict[str, Any]


@dataclass(frozen=True)
class Folder:
    """The checkpoints of one run."""

    path: Path

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep a second server away for as long as this one runs."""
        with contextlib.ExitStack() as stack:
            try:
                self.path.mkdir(parents=True, exist_ok=True)
                stack.enter_context(exclusive(self.path / LOCK, PATIENCE))
            except InUse:
                raise InUse(
                    f"Another server runs on the folder '{self.path}': end it, or use another one."
                ) from None
            except OSError as error:
                raise CannotSave(
                    f"The folder '{self.path}' cannot be used for checkpoints "
                    f"({error.strerror}): choose one that can be written to."
                ) from None
            yield

    def _states(self) -> list[Path]:
        found = self.path.glob("state-*.npz")
        return sorted(found, key=lambda path: (len(path.name), path.name))  # by number

    @property
    def holds_run(self) -> bool:
        """Whether there is something to go on with."""
        return bool(self._states())

    def chosen(self, selection: Selection, entries: Sequence[Entry]) -> None:
        """Write down a cohort before it is invited, and what choosing it has cost."""
        header, arrays = pack_selection(selection)
        header |= {"kind": SELECTION, "entries": [list(entry) for entry in entries]}
        store.save(self.path / "selection.npz", header, arrays)

    def finished(
        self, setup: Setup, state: State, facts: Mapping[str, Any], entries: Sequence[Entry] = ()
    ) -> None:
        """Write down a state; two are kept.

        ``facts`` must be the same when the run goes on, ``entries`` are what the coming round has
        cost so far.
        """
        header, arrays = pack_state(setup, state)
        header |= {"kind": STATE, "facts": dict(facts), "entries": [list(each) for each in entries]}
        store.save(self.path / f"state-{state.round:06d}.npz", header, arrays)
        for old in self._states()[:-2]:
            old.unlink()

    def told(self) -> Told:
        """Which run this is, as the newest state has it."""
        path = self._states()[-1]
        header, _ = store.load(path, STATE)
        with store.whole(path, "run"):
            for name, kind in (
                ("scheme", str),
                ("parameters", dict),
                ("seed", str),
                ("facts", dict),
            ):
                store.check(name, header[name], kind, {})
            seed = checked_seed(int(header["seed"]), "the run")
            return Told(header["scheme"], header["parameters"], seed, header["facts"])

    def load(self, setup: Setup) -> tuple[State, Selection | None, list[Entry]]:
        """The newest state, and the cohort that was chosen on it, if one was."""
        path = self._states()[-1]
        header, arrays = store.load(path, STATE)
        with store.whole(path, "run"):
            state = unpack_state(setup, header, arrays)
            spent = [Entry.checked(entry) for entry in header["entries"]]
        path = self.path / "selection.npz"
        if not path.is_file():
            return state, None, spent
        header, arrays = store.load(path, SELECTION)
        with store.whole(path, "cohort"):
            if header["round"] != state.round:
                return state, None, spent
            selection = unpack_selection(setup, len(state.federation), header, arrays)
            entries = [Entry.checked(entry) for entry in header["entries"]]
            return state, replay_selection(setup, state, selection), entries


# The server's side of a run: model, clients, state, and what survives a crash.

log = logging.getLogger("flwr.fedcohort")


class Session:
    """The moving parts of a run on the server.

    The model is kept as one flat vector in 64 bits; what is sent has the types of the model that
    the run began with, and changes are relative to what was sent.
    """

    state: State
    layout: _wire.Layout
    sent: ArrayRecord
    grid: Grid

    def __init__(
        self,
        setup: Setup,
        population: Population,
        gate: Gate,
        limits: Limits,
        *,
        repeatable: bool,
        folder: Folder | None,
        task: str,
        newcomers: bool,
        statistics: Collection[str] = (),
    ) -> None:
        self.setup, self.population, self.gate, self.limits = setup, population, gate, limits
        self.repeatable = repeatable
        self.folder, self.task, self.newcomers = folder, task, newcomers
        self.history = None if folder is None else History(folder.path)
        self.facts: dict[str, Any] = {}  # what else the history is told of the run
        self.ledger: Ledger = population.ledger
        self.selection: Selection | None = None  # of a round that was not over
        self.records: list[Record] = []
        """The rounds that are over, with what was measured after them."""
        self.left_out: set[Any] = set()  # keys of clients that could not answer what they must
        self.budget = Budget()
        self._asked = setup.aggregator.spec  # as it was before the clients were known
        self._statistics = frozenset(statistics)  # names of arrays, as the user gives them
        self._theta = np.empty(0)
        self._flat: Floats | None = None  # the model that was sent, once it is needed
        self._booked = 0  # entries of the ledger that are in a record
        self._coming: Federation | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a state."""
        return hasattr(self, "state")

    # -- the model ---------------------------------------------------------------------------

    def take(self, arrays: ArrayRecord) -> None:
        """Keep a model, unless it is the one that was sent last (and known more precisely)."""
        if hasattr(self, "sent") and arrays is self.sent:
            return
        found = _wire.from_record(arrays)
        if not hasattr(self, "layout"):
            self.layout = _wire.Layout.of(found)
            self.setup = self.setup.for_model(self._running())
            self.ledger.model_bytes = self.layout.nbytes
            down = len(self.setup.algorithm.vectors) * self.layout.dimension
            self.ledger.number_bytes = self.layout.precision.itemsize
            self.ledger.with_model = down * self.ledger.number_bytes
        self._theta, self.sent = self.layout.flat(found).astype(np.float64), arrays
        self._name, self._flat = "", None
        if self.begun:
            self.state = replace(self.state, theta=self._theta)

    def _running(self) -> Statistics:
        """Return the positions of the running statistics of the model.

        They are the arrays that the user names, arrays with torch's names for running statistics,
        and arrays of whole numbers.
        """
        shapes, dtypes = self.layout.shapes, self.layout.dtypes
        missing = sorted(self._statistics - set(shapes))
        if missing:
            raise BadInput(
                "The 'statistics' of CohortStrategy must name arrays of the model. Got "
                f"{brief(', '.join(missing))}; the model has {brief(', '.join(shapes))}."
            )
        whole = {name for name, dtype in dtypes.items() if dtype.kind in "iub"}
        return Statistics.of(shapes, self._statistics | Statistics.named(shapes) | whole)

    def vectors(self) -> dict[str, ArrayRecord]:
        """What goes down with the model for the local algorithm, as precise as the model."""
        names, precision = self.setup.algorithm.vectors, self.layout.precision
        most = np.finfo(precision).max  # what clients sent may add up to more
        kept = {
            name: np.clip(self.state.algorithm[name], -most, most).astype(precision)
            for name in names
        }
        return {_wire.VECTORS: _wire.to_record(kept)} if kept else {}

    @property
    def model_name(self) -> str:
        """What the model that is sent is called: the same for the same numbers."""
        if not self._name:
            theta = self.state.theta
            self._name = hashlib.blake2b(theta.tobytes(), digest_size=16).hexdigest()
        return self._name

    def change(self, arrays: dict[str, Array], record: str) -> Array:
        """(d,) by how much a client changed the model that was sent."""
        flat = self.layout.flat(arrays)
        if record == _wire.CHANGE:
            return flat
        if self._flat is None:
            self._flat = self.layout.flat(_wire.from_record(self.sent)).astype(np.float64)
        return flat.astype(np.float64) - self._flat

    def finished(self, after: State, record: Record) -> ArrayRecord | None:
        """The end of a round, written down; the new model, None where it stays."""
        before, new = self.state, None
        if not record.void:
            arrays, others = self.layout.arrays(after.theta), self.setup.algorithm.others
            numbers = [*arrays.values(), *(after.algorithm[name] for name in others)]
            if all(np.isfinite(a).all() for a in numbers if a.dtype.kind == "f"):
                new = self.sent = _wire.to_record(arrays)
                self._name, self._flat = "", None
            else:
                log.warning("\t├──> the step leaves the range of numbers: the model stays")
                models = {name: before.algorithm[name] for name in others}
                after = replace(
                    after,
                    theta=before.theta,
                    optimiser=before.optimiser,
                    algorithm={**after.algorithm, **models},
                )
        self.state, self.selection = after, None
        record = replace(record, entries=self.ledger.since(self._booked))
        self._booked = len(self.ledger.entries)
        self.records.append(record)
        if self.folder is not None and self.history is not None:
            self.history.append(record)
            self.history.settings(self.promised())
            self.folder.finished(self.setup, after, self._agreed)
        return new

    def promised(self) -> dict[str, Any]:
        """What noise on the sums has cost so far; {} for a run without."""
        told = promised(self.setup, self.state)
        if told:
            self.ledger.sums = told["privacy"]["epsilon"]
        return told

    def afford(self) -> None:
        """Return if the privacy budget has another round; refuse otherwise."""
        self.budget.require(self.setup, self.state, self.available is None)

    # -- the clients -------------------------------------------------------------------------

    def look(self, grid: Grid, expected: int, pause: Callable[[float], None] = time.sleep) -> None:
        """See who is there; the first time, wait for all that are expected, later for anybody."""
        if not hasattr(self, "grid"):
            self.population.wait(grid, expected, pause)
            self._compare_offers()
            if not self.begun:
                self.found(self.population.nodes)
            self._warn_of_unequal_work()
            self.grid = grid
            return
        self.grid = grid
        end = time.monotonic() + self.limits.population
        self.population.refresh(grid, self.limits.query)
        if self._anybody():
            return
        log.warning("\t├──> nobody is there: waits %g s", self.limits.population)
        while not self._anybody() and (left := end - time.monotonic()) > 0:
            pause(min(self.limits.poll, left))
            self.population.refresh(grid, self.limits.query)

    def _compare_offers(self) -> None:
        """Say before the first round if clients cannot tell what the scheme wants to know."""
        scheme, told = self.setup.scheme, self.population.offers
        own = [key for key in self.population.nodes if _wire.COINS not in told.get(key, ())]
        if self.repeatable and own:
            log.warning(
                "\t├──> the seed repeats cohorts, not training: %d of %d clients toss coins of "
                "their own, as in a deployment they must. Simulated ones take the server's by "
                "client_app(simulated=True).",
                len(own),
                len(self.population.nodes),
            )
        for signal in sorted({*self.setup.asks, *scheme.listens}, key=lambda each: each.name):
            said = [line for offers in told.values() if (line := missing([signal], offers))]
            if not said:
                continue
            asker = scheme if signal in {*scheme.asks, *scheme.listens} else self.setup.aggregator
            what = f"{asker.name} asks for '{signal.name}' ({signal.discloses})"
            if len(said) == len(self.population.nodes):
                raise TooFewClients(f"{what}, and no client can tell it. {said[0]}")
            log.warning("\t├──> %s: %d of %d cannot. %s", what, len(said), len(told), said[0])

    def _warn_of_unequal_work(self) -> None:
        """Warn before the first round if clients may make unequal numbers of local steps."""
        offers, federation = self.population.offers, self.federation
        steps = {
            tuple(sorted(offer for offer in offers.get(key, ()) if offer.startswith(_wire.STEPS)))
            for key in federation.ids
        }
        if self.setup.algorithm.corrects_steps or (len(steps) == 1 and () not in steps):
            return
        sizes = federation.sizes if self.population.importance == "size" else None
        if sizes is not None and sizes.min() == sizes.max():
            return
        shift = "A run then minimizes another objective than the one with their importance."
        if sizes is not None:
            amounts = np.maximum(sizes, 1)
            shift = shifted(federation.importance, amounts, federation.ids)
            shift = f"The shares for epochs: {shift}"
        log.warning(
            "\t├──> clients may make unequal numbers of local steps, for instance if they train "
            "for epochs. %s Give all clients the same number of steps, or use algorithm="
            "'fednova' or 'scaffold'.",
            shift,
        )

    def _anybody(self) -> bool:
        here = self.available
        return here is None or len(here) > 0 or (self.newcomers and bool(self.newly_come()))

    def found(self, keys: Any) -> None:
        """Begin with these clients."""
        federation = self.setup.admitted(self.population.federation(keys))
        self.setup = calibrated(self.setup, federation)
        self.begins(State.first(self.setup, federation, self._theta, self.layout.shapes))

    def begins(self, state: State) -> None:
        """Go on with a state in which a round begins, once it is written down."""
        if self.begun and state is self.state:
            return
        if self.folder is not None and self.history is not None:
            self.history.settings(self._facts(state.federation))
            self.folder.finished(self.setup, state, self._agreed, self.ledger.since(self._booked))
        self.state = state

    def _facts(self, federation: Federation) -> Mapping[str, Any]:
        """What the history is told: all that decides the run, and who takes part."""
        setup = self.setup
        return {
            "scheme": setup.scheme.name,
            "parameters": dict(setup.scheme.parameters),
            "seed": setup.seed,
            "task": self.task,
            "optimiser": {"name": setup.optimiser.name, **setup.optimiser.parameters},
            "aggregator": setup.aggregator.spec,
            "algorithm": {"name": setup.algorithm.name, **setup.algorithm.parameters},
            "dropouts": str(setup.dropouts),
            "quorum": setup.quorum,
            "dimension": self.layout.dimension,
            "layers": {name: list(shape) for name, shape in self.layout.shapes.items()},
            "versions": versions(),
            **setup.hardening(),
            **({"stragglers": setup.stragglers.spec} if setup.stragglers.withdraws else {}),
            "ids": list(federation.ids),
            "sizes": federation.sizes,
            "importance": federation.importance,
            **self.facts,
        }

    @property
    def _agreed(self) -> dict[str, Any]:
        """What must be the same when a run goes on."""
        setup, importance = self.setup, self.population.importance
        return {
            "the optimiser": setup.optimiser.spec,
            "the aggregator": self._asked,
            "the local algorithm": setup.algorithm.spec,
            "guards": setup.hardening().get("hardened"),
            "the rule for stragglers": setup.stragglers.spec
            if setup.stragglers.withdraws
            else None,
            "importance": importance if isinstance(importance, str) else "given",
            "a seed that was": "given" if self.repeatable else "drawn",
        }

    def newly_come(self) -> list[Any]:
        """Keys of clients that are there and not yet part of the federation."""
        known = {*self.state.federation.ids, *self.left_out}
        return sorted(set(self.population.nodes) - known)

    def admit(self, new: list[Any]) -> Queries[State]:
        """Let new clients take part from this round on, once the scheme knows what it must."""
        self._coming = self.population.federation([*self.state.federation.ids, *new])
        try:
            return (yield from admit_clients(self.setup, self.state, self._coming, self.ledger))
        finally:
            self._coming = None

    @property
    def federation(self) -> Federation:
        """Whom positions refer to: the clients, or those who are just being let in."""
        return self._coming or self.state.federation

    @property
    def available(self) -> Ints | None:
        """Positions of those who are there; None for everyone."""
        return self.population.present(self.federation)

    # -- messages ----------------------------------------------------------------------------

    @property
    def round_name(self) -> str:
        """What the messages of this round are filed under."""
        return str(self.state.round + 1)

    def context(self) -> dict[str, Any]:
        """What every message says: the round, and the task that private answers belong to."""
        return {_wire.ROUND: self.state.round, _wire.TASK: self.task}

    def counted(self, client: int) -> int:
        """The last round in which an answer of a client counted; -1 for none."""
        ids, known = self.federation.ids, self.state.federation.ids
        if ids is not known:  # clients are just being let in
            return int(self.state.counted[known.index(ids[client])]) if ids[client] in known else -1
        return int(self.state.counted[client])

    def streams(self, client: int, draw: int = 0) -> dict[str, Any]:
        """Keys of a simulated client's generators; others toss coins, for every draw their own."""
        offered = self.population.offers.get(self.federation.ids[client], ())
        if not self.repeatable or _wire.COINS not in offered:
            return {_wire.DRAW: draw} if draw else {}
        more = f":{draw}" if draw else ""
        return {
            _wire.STREAM + purpose: key_of(
                self.setup.seed, purpose + more, self.state.round, client
            )
            for purpose in _wire.PURPOSES
        }

    def letters(
        self, clients: Ints, content: Callable[[int], RecordDict], message_type: str
    ) -> list[Outgoing]:
        """Messages to those of the clients that are there."""
        ids, nodes = self.federation.ids, self.population.nodes
        return [
            Outgoing(
                client,
                Message(
                    content(client), nodes[ids[client]], message_type, group_id=self.round_name
                ),
                ids[client],
            )
            for client in clients.tolist()
            if self.population.reachable(ids[client])
        ]

    # -- what survives -----------------------------------------------------------------------

    def chosen(self, selection: Selection) -> None:
        """Write the cohort down before anybody is invited."""
        self.selection = selection
        if self.folder is not None:
            self.folder.chosen(selection, self.ledger.since(self._booked))

    def resumed(self, initial: ArrayRecord) -> ArrayRecord:
        """The model to go on with: that of the folder, if it holds a run."""
        self.take(initial)
        if self.folder is None or not self.folder.holds_run:
            return initial
        path, told = self.folder.path, self.folder.told()
        scheme: Scheme[Any] = self.setup.scheme
        if (told.scheme, told.parameters) != (scheme.name, _wire.plain(scheme.parameters)):
            raise BadInput(
                f"'{path}' holds a run of {described(told)}; this is {scheme}. Use another folder."
            )
        for what, now in self._agreed.items():
            if told.facts.get(what) != now:
                raise BadInput(
                    f"'{path}' holds a run with {what} {brief(told.facts.get(what))}; this is "
                    f"{now}. Use another folder."
                )
        if self.repeatable and told.seed != self.setup.seed:
            raise BadInput(
                f"'{path}' holds a run with the seed {brief(told.seed)}; this is "
                f"{brief(self.setup.seed)}. Use another folder, or leave out the seed."
            )
        self.setup = replace(self.setup, seed=told.seed)
        state, self.selection, entries = self.folder.load(self.setup)
        if state.theta.shape != (self.layout.dimension,):
            raise BadInput(f"'{path}' holds a run of another model; use another folder.")
        self.state, self.setup = state, calibrated(self.setup, state.federation)
        self.population.knew(state.federation)
        if _history.is_history(path):
            for record in _history.read(path)[1]:
                self.ledger.entries += record.entries if record.round < state.round else ()
        self._booked = len(self.ledger.entries)
        self.ledger.entries += entries
        if self.history is not None:
            self.history.settings(self._facts(state.federation))  # there may be more rounds now
        self.sent = _wire.to_record(self.layout.arrays(state.theta))
        self._name, self._flat = "", None
        log.info("\t├──> goes on after round %d of '%s'", state.round, path)
        return self.sent


def described(told: Told) -> str:
    """A scheme as it is written in a checkpoint, as `Scheme` prints it, on a line."""
    settings = ", ".join(f"{name}={value!r}" for name, value in told.parameters.items())
    return brief(f"{told.scheme}({settings})")
