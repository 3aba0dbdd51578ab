"""Who is there: stable keys of clients, whatever their node ids.

Flower numbers its nodes at random, anew in every simulation. Clients are therefore asked for a
key of their own (the partition, a name), and everything else (federation, cohorts, weights,
checkpoints) speaks of keys. The same seed then gives the same cohorts on every run.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcohort.core.errors import BadInput, TooFewClients
from fedcohort.core.federation import Federation
from fedcohort.core.types import Floats, Ints
from fedcohort.flower import wire
from fedcohort.flower.exchange import Admitted, Outgoing, received
from fedcohort.flower.limits import Limits
from fedcohort.ledger import Ledger
from fedcohort.server.gate import Fault, Form, Gate

log = logging.getLogger("flwr.fedcohort")
Importance = str | Mapping[Any, float]
"""``"size"``, ``"equal"``, or a number for every key."""
ATTEMPTS = 2
"""How often a node is asked who it is before it is left alone."""
GIVE_UP = 3
"""How often in a row every node may raise an error before the wait is over."""
LONGEST_REST = 30.0
"""Seconds between two questions to nodes that fail, at most."""


@dataclass
class Population:
    """The nodes of a grid by their keys.

    Parameters
    ----------
    gate
        Where bad answers are counted.
    limits
        How long to wait.
    importance
        ``"size"``: clients are asked for their number of samples, once; ``"equal"``: nothing is
        asked; a mapping from key to importance: nothing is asked, and others may not take part.
    identity
        ``"asked"``: clients say who they are; ``"name"``: the name under which a node was
        registered (``flwr supernode register --name``), which it cannot choose itself.
    algorithm
        The local algorithm that clients must be able to run; "" for plain SGD.
    """

    gate: Gate
    limits: Limits
    importance: Importance = "size"
    identity: str = "asked"
    algorithm: str = ""
    ledger: Ledger = field(default_factory=Ledger)
    nodes: dict[Hashable, int] = field(default_factory=dict)
    sizes: dict[Hashable, int] = field(default_factory=dict)
    offers: dict[Hashable, frozenset[str]] = field(default_factory=dict)
    """What clients have said that they can tell; those of another make say nothing."""
    key_type: type | None = None
    """Of the keys of this run: that of most of the first who came."""
    _strangers: dict[int, int] = field(default_factory=dict)  # node: how often it failed to answer

    def wait(self, grid: Grid, expected: int, pause: Callable[[float], None] = time.sleep) -> None:
        """Return when ``expected`` clients have said who they are; never wait for ever.

        New nodes are asked at once, nodes that failed after a rest that doubles.
        """
        end, due = time.monotonic() + self.limits.population, 0.0
        rest, failures, asked = self.limits.poll, 0, False
        while True:
            found = set(grid.get_node_ids())
            if len(found) >= expected:
                everyone, asked = time.monotonic() >= due, True
                if everyone:
                    self._strangers.clear()  # whoever did not answer is asked again
                self.refresh(grid, self.limits.first, attempts=1)
                if len(self.nodes) >= expected:
                    return
                if everyone:
                    failures = self._noted(failures, len(found))
                    due, rest = time.monotonic() + rest, min(2 * rest, LONGEST_REST)
            left = end - time.monotonic()
            if left <= 0:
                raise TooFewClients(self._too_few(expected, len(found), asked))
            pause(min(self.limits.poll, left))

    def _noted(self, failures: int, present: int) -> int:
        """How often in a row every node has raised an error; too often is the end."""
        errors = len(self.gate.errors)
        if errors:
            log.warning("\t├──> %d of %d nodes failed.%s", errors, present, self.gate.quote())
        if self.nodes or errors < present:
            return 0
        if failures + 1 < GIVE_UP:
            return failures + 1
        raise TooFewClients(
            f"All {present} nodes raised an error when they were asked {self._question}, "
            f"{GIVE_UP} times in a row.{self.gate.quote()} {self._remedy}"
        )

    @property
    def _question(self) -> str:
        return "who they are" + (" and for their size" if self.importance == "size" else "")

    @property
    def _remedy(self) -> str:
        size = ", with a 'size' (or choose importance='equal')" if self.importance == "size" else ""
        return f"Correct the client app: it must be made by fedcohort.flower.client_app{size}."

    def _too_few(self, expected: int, found: int, asked: bool) -> str:
        sentence = f"{expected} clients were expected, {found} nodes came"
        if asked:
            sentence += f" and {len(self.nodes)} said who they are"
        faults = self.gate.summary()
        why = f" (rejected: {faults})" if faults else ""
        remedy = "Start more clients, lower 'clients', or raise the limit 'population'."
        if asked and self.gate.errors:
            remedy = f"{self._remedy} Or lower 'clients'."
        within = f" within {self.limits.population:g} s"
        return f"{sentence}{within}{why}.{self.gate.quote() if asked else ''} {remedy}"

    def refresh(self, grid: Grid, limit: float, attempts: int = ATTEMPTS) -> None:
        """Learn who came, who left and who is back under another node id."""
        present = set(grid.get_node_ids())
        self.nodes = {key: node for key, node in self.nodes.items() if node in present}
        known = set(self.nodes.values())
        new = sorted(node for node in present - known if self._strangers.get(node, 0) < attempts)
        if new:
            self._greet(grid, new, limit)

    def _greet(self, grid: Grid, new: list[int], limit: float) -> None:
        names = self._names(grid) if self.identity == "name" else {}
        wants_size = self.importance == "size"
        if self.identity == "name" and not wants_size:
            for node in new:
                self._enter(names.get(node, ""), node)
            return
        local = {wire.ALGORITHM: self.algorithm} if self.algorithm else {}
        config = ConfigRecord({wire.SIGNAL: wire.HELLO, wire.WANTS_SIZE: wants_size, **local})
        letters = [
            Outgoing(
                number,
                Message(RecordDict({wire.CONFIG: config}), node, wire.QUERY, group_id=wire.HELLO),
            )
            for number, node in enumerate(new)
        ]
        replies = grid.send_and_receive([letter.message for letter in letters], timeout=limit)
        form = Form({"size": ()} if wants_size else {}, lowest=0.0, highest=2.0**62)
        heard = received(self.gate, letters, replies, wire.HELLO, form, [wire.ANSWER])
        up = sum(wire.weight_of(report.message.content) for report in heard)
        self.ledger.greeted(len(new), len(heard), up, wants_size)
        answered = {new[report.client] for report in heard}
        for node in set(new) - answered:
            self._strangers[node] = self._strangers.get(node, 0) + 1
        own = {r.client: _key(r) for r in heard}
        keys = {c: names.get(new[c], "") if self.identity == "name" else own[c] for c in own}
        if self.key_type is None and keys:
            kinds = Counter(type(key) for key in keys.values() if key not in ("", None))
            self.key_type = kinds.most_common(1)[0][0] if kinds else None
        for report in heard:
            node, key = new[report.client], keys[report.client]
            if wants_size and report.arrays["size"].dtype.kind not in "iu":
                self.gate.counts[Fault.WRONG_TYPE] += 1
            elif self._enter(key, node):
                told = wire.config_of(report.message).get(wire.OFFERS)
                if isinstance(told, list):
                    self.offers[key] = frozenset(map(str, told))
                if wants_size:
                    self.sizes[key] = int(report.arrays["size"])

    def _names(self, grid: Grid) -> dict[int, str]:
        return {info.node_id: info.name for info in grid.get_nodes()}

    def _enter(self, key: Hashable, node: int) -> bool:
        """Note a client; of two nodes with one key the one that came first is kept."""
        closed = isinstance(self.importance, Mapping) and key not in self.importance
        alien = self.key_type is not None and type(key) is not self.key_type
        if key in ("", None) or closed or alien or key in self.nodes:
            self.gate.counts[Fault.TWICE if key in self.nodes else Fault.OUT_OF_RANGE] += 1
            self._strangers[node] = ATTEMPTS
            return False
        self.nodes[key] = node
        return True

    def federation(self, keys: Iterable[Hashable]) -> Federation:
        """The clients as a scheme sees them, in the order of their keys."""
        ids = sorted(keys)  # type: ignore[type-var]
        if self.importance == "size":
            return Federation(sizes=[self.sizes[key] for key in ids], ids=ids)
        return Federation(importance=self._shares(ids), ids=ids)

    def _shares(self, ids: list[Any]) -> Floats:
        if not isinstance(self.importance, Mapping):
            return np.full(len(ids), 1.0 / len(ids))
        values = np.array([float(self.importance[key]) for key in ids])
        if not np.all(np.isfinite(values)) or np.any(values < 0) or not values.sum() > 0:
            raise BadInput("'importance' must be a finite number of at least 0 for every key.")
        return np.asarray(values / values.sum())

    def present(self, federation: Federation) -> Ints | None:
        """Positions of those who are there; None for all of them."""
        here = [i for i, key in enumerate(federation.ids) if key in self.nodes]
        return None if len(here) == len(federation) else np.array(here, dtype=np.int64)


def _key(report: Admitted) -> Hashable:
    """The key in an answer, or "" where there is none that could be one."""
    record = report.message.content.get(wire.CONFIG)
    key = record.get(wire.KEY, "") if isinstance(record, ConfigRecord) else ""
    return key if isinstance(key, int | str) and not isinstance(key, bool) else ""
