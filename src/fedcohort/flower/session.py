"""The server's side of a run: model, clients, selector, and what survives a crash."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcohort.core import store
from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Answer
from fedcohort.core.errors import BadInput
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import Scheme
from fedcohort.core.streams import key_of
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.flower import wire
from fedcohort.flower.checkpoint import Folder
from fedcohort.flower.limits import Limits
from fedcohort.flower.population import Population
from fedcohort.flower.post import Letter
from fedcohort.ledger import Ledger
from fedcohort.selector import Selector
from fedcohort.server import Estimator, Optimiser
from fedcohort.server.dropouts import Attendance
from fedcohort.server.gate import Gate
from fedcohort.server.optimisers import Inertia

log = logging.getLogger("flwr.fedcohort")


class Session:
    """The moving parts of a run on the server.

    The model is kept as one flat vector in 64 bits; what is sent has the types of the model that
    the run began with, and changes are relative to what was sent.
    """

    selector: Selector
    layout: wire.Layout
    theta: Floats  # (d,)
    sent: ArrayRecord
    grid: Grid
    attendance: Attendance
    inertia: Inertia

    def __init__(
        self,
        scheme: Scheme[Any],
        population: Population,
        gate: Gate,
        limits: Limits,
        *,
        seed: int,
        repeatable: bool,
        server: Optimiser,
        estimator: Estimator,
        folder: Folder | None,
        task: str,
        newcomers: bool,
    ) -> None:
        self.scheme, self.population, self.gate, self.limits = scheme, population, gate, limits
        self.seed, self.repeatable = seed, repeatable
        self.server, self.estimator = server, estimator
        self.folder, self.task, self.newcomers = folder, task, newcomers
        self.ledger = Ledger()
        self.memory: Any = None
        self.left_out: set[Any] = set()  # keys of clients that could not answer what they must
        self._coming: Federation | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a selector."""
        return hasattr(self, "selector")

    # -- the model ---------------------------------------------------------------------------

    def take(self, arrays: ArrayRecord) -> None:
        """Keep a model, unless it is the one that was sent last (and known more precisely)."""
        if hasattr(self, "sent") and arrays is self.sent:
            return
        found = wire.from_record(arrays)
        if not hasattr(self, "layout"):
            self.layout = wire.Layout.of(found)
            self.ledger.model_bytes = self.layout.nbytes
        self.theta, self.sent = self.layout.flat(found).astype(np.float64), arrays

    def change(self, arrays: dict[str, Array], record: str) -> Array:
        """(d,) by how much a client changed the model that was sent."""
        flat = self.layout.flat(arrays)
        if record == wire.CHANGE:
            return flat
        sent = self.layout.flat(wire.from_record(self.sent))
        return flat.astype(np.float64) - sent.astype(np.float64)

    def step(self, cohort: Cohort, updates: Array, void: bool = False) -> ArrayRecord | None:
        """One step: theta + eta_g * sum_i omega_i delta_i, or what the optimiser makes of it.

        None where the model stays: in a void round, of which only the answers are remembered,
        and if nobody was available. That nobody was drawn is a step like any other.
        """
        if self.deserted:
            return None
        there = self.selector.available  # when the cohort was chosen; who is there now may differ
        here = self.federation.among(there)
        direction, self.memory = self.estimator.direction(
            self.memory,
            cohort,
            cohort.clients,
            updates,
            None if there is None else here.importance,
        )
        if void:
            return None
        theta, inertia = self.server.step(self.theta, direction, self.inertia)
        arrays = self.layout.arrays(theta)
        if not all(np.isfinite(a).all() for a in arrays.values() if a.dtype.kind == "f"):
            log.warning("\t├──> the step leaves the range of numbers: the model stays")
            return None
        self.theta, self.inertia = theta, inertia
        self.sent = wire.to_record(arrays)
        return self.sent

    # -- the clients -------------------------------------------------------------------------

    def look(self, grid: Grid, expected: int, pause: Callable[[float], None] = time.sleep) -> None:
        """See who is there; the first time, wait for all that are expected, later for anybody."""
        if not hasattr(self, "grid"):
            self.population.wait(grid, expected, pause)
            if not self.begun:
                self.found(self.population.nodes)
            self.grid = grid
            return
        self.grid = grid
        end = time.monotonic() + self.limits.population
        self.population.refresh(grid, self.limits.query)
        if not self._anybody:
            log.warning("\t├──> nobody is there: waits %g s", self.limits.population)
        while not self._anybody and (left := end - time.monotonic()) > 0:
            pause(min(self.limits.poll, left))
            self.population.refresh(grid, self.limits.query)

    @property
    def _anybody(self) -> bool:
        here = self.available
        return here is None or len(here) > 0 or (self.newcomers and bool(self.newly_come()))

    @property
    def deserted(self) -> bool:
        """Whether nobody was there when the cohort was chosen: not a draw of nobody."""
        there = self.selector.available
        return there is not None and len(there) == 0

    def found(self, keys: Any) -> None:
        """Begin with these clients."""
        federation = self.population.federation(keys)
        self.selector = Selector(self.scheme, federation, self.seed, ledger=self.ledger)
        self._fresh()
        if self.folder is not None:
            self.folder.finished(self.selector, self._parts())

    def _fresh(self) -> None:
        importance, dimension = self.selector.federation.importance, self.layout.dimension
        self.inertia = self.server.start(dimension)
        self.memory = self.estimator.start(importance, dimension)
        self.attendance = Attendance.of(len(importance))

    def newly_come(self) -> list[Any]:
        """Keys of clients that are there and not yet part of the federation."""
        known = {*self.selector.federation.ids, *self.left_out}
        return sorted(set(self.population.nodes) - known)

    def admit(self, new: list[Any], ask: Answer) -> None:
        """Let new clients take part from this round on, once the scheme knows what it must."""
        old = self.selector.federation
        federation = self.population.federation([*old.ids, *new])
        came_from = _came_from(old.ids, federation.ids)
        self._coming = federation
        try:
            self.selector.update(federation, ask)
        finally:
            self._coming = None
        self.attendance = self.attendance.moved(came_from)
        self.memory = self.estimator.moved(
            self.memory, federation.importance, came_from, self.selector.latest()
        )
        log.info("\t├──> %d new clients take part: %s", len(new), new[:5])

    @property
    def federation(self) -> Federation:
        """Whom positions refer to: the clients, or those who are just being let in."""
        return self._coming or self.selector.federation

    @property
    def available(self) -> Ints | None:
        """Positions of those who are there; None for everyone."""
        return self.population.present(self.federation)

    # -- messages ----------------------------------------------------------------------------

    @property
    def round_name(self) -> str:
        """What the messages of this round are filed under."""
        return str(self.selector.round + 1)

    def context(self) -> dict[str, Any]:
        """What every message says: the round, and the task that private answers belong to."""
        return {wire.ROUND: self.selector.round, wire.TASK: self.task}

    def streams(self, client: int, draw: int = 0) -> dict[str, bytes]:
        """Keys of a client's generators, where the run is meant to be repeated."""
        if not self.repeatable:
            return {}
        more = f":{draw}" if draw else ""
        return {
            wire.STREAM + purpose: key_of(self.seed, purpose + more, self.selector.round, client)
            for purpose in wire.PURPOSES
        }

    def letters(
        self, clients: Ints, content: Callable[[int], RecordDict], message_type: str
    ) -> list[Letter]:
        """Messages to those of the clients that are there."""
        ids, nodes = self.federation.ids, self.population.nodes
        return [
            Letter(
                client,
                Message(
                    content(client), nodes[ids[client]], message_type, group_id=self.round_name
                ),
            )
            for client in clients.tolist()
            if ids[client] in nodes
        ]

    # -- what survives -----------------------------------------------------------------------

    def chosen(self) -> None:
        """Write the cohort down before anybody is invited."""
        if self.folder is not None:
            self.folder.chosen(self.selector)

    def finished(self) -> None:
        """The end of a round: one table where scheme and estimator keep the same; write it down."""
        self.memory = self.estimator.shared(self.memory, self.selector.latest())
        if self.folder is not None:
            self.folder.finished(self.selector, self._parts())

    def _parts(self) -> dict[str, Any]:
        lean = self.estimator.lean(self.memory, self.selector.latest())
        return {"theta": self.theta, **self._memories(), "memory": lean}

    def _memories(self) -> dict[str, Any]:
        return {
            "inertia": self.inertia,
            "memory": self.memory,
            "attendance": self.attendance,
        }

    def _meet(self, before: list[Any]) -> None:
        """What was remembered of clients, for the clients of now.

        Others may have been let in after it was written down: then a cohort was chosen among
        them, and with it the selector was saved.
        """
        federation, latest = self.selector.federation, self.selector.latest()
        came_from = _came_from(before, federation.ids)
        if np.array_equal(came_from, np.arange(len(before))):
            self.memory = self.estimator.shared(self.memory, latest)
            return
        self.attendance = self.attendance.moved(came_from)
        self.memory = self.estimator.moved(self.memory, federation.importance, came_from, latest)

    def resumed(self, initial: ArrayRecord) -> ArrayRecord:
        """The model to go on with: that of the folder, if it holds a run."""
        self.take(initial)
        if self.folder is None or not self.folder.holds_run:
            return initial
        selector, header, arrays = self.folder.load(type(self.scheme))
        if str(selector.scheme) != str(self.scheme):
            raise BadInput(
                f"'{self.folder.path}' holds a run of {selector.scheme}; this is {self.scheme}. "
                "Use another folder."
            )
        if arrays["theta"].shape != (self.layout.dimension,):
            raise BadInput(
                f"'{self.folder.path}' holds a run of another model; use another folder."
            )
        selector.ledger = self.ledger
        self.selector, self.seed, self.theta = selector, selector.seed, arrays["theta"]
        self._fresh()
        for name, part in self._memories().items():
            if part is not None:
                setattr(self, name, store.unpack(type(part), header[name], arrays, f"{name}."))
        self._meet(header["ids"])
        if selector.federation.sizes is not None:
            sizes = selector.federation.sizes.tolist()
            self.population.sizes.update(zip(selector.federation.ids, sizes, strict=True))
        self.sent = wire.to_record(self.layout.arrays(self.theta))
        log.info("\t├──> goes on after round %d of '%s'", selector.round, self.folder.path)
        return self.sent


def _came_from(before: Sequence[Any], now: Sequence[Any]) -> Ints:
    """(n,) the old position of each client of now; -1 for one that is new."""
    where = {key: i for i, key in enumerate(before)}
    return np.array([where.get(key, -1) for key in now], dtype=np.int64)
