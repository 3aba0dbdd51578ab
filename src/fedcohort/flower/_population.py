"""The nodes that are connected, and how they introduce themselves."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcohort._internal.errors import BadInput, TooFewClients
from fedcohort._internal.types import Floats, Ints
from fedcohort.flower import _wire
from fedcohort.flower._exchange import Admitted, Limits, Node, Outgoing, exchanged, received
from fedcohort.selection._federation import Federation
from fedcohort.server._guards import LARGEST_SIZE, cap_sizes
from fedcohort.server._ledger import Ledger
from fedcohort.server._reply_validation import Fault, Form, Gate

# The first question: which client a node is, what it offers, and its size if that is wanted.

LONGEST_KEY = 200
"""Characters of a key."""
LARGEST = 2.0**62
"""A size that can be one."""


class Claim(NamedTuple):
    """What a node says of itself."""

    key: Hashable
    """ "" where it says nothing that could be a key."""
    size: int | None = None
    offers: frozenset[str] | None = None
    """What it can tell; a client of another make says nothing."""


def greeted(
    grid: Grid,
    nodes: Sequence[int],
    limit: float,
    gate: Gate,
    ledger: Ledger,
    *,
    wants_size: bool,
    algorithm: str = "",
) -> dict[int, Claim]:
    """What nodes say of themselves, by node; ``algorithm`` is what they must be able to run."""
    local = {_wire.ALGORITHM: algorithm} if algorithm else {}
    config = ConfigRecord({_wire.SIGNAL: _wire.HELLO, _wire.WANTS_SIZE: wants_size, **local})
    letters = [
        Outgoing(
            number,
            Message(RecordDict({_wire.CONFIG: config}), node, _wire.QUERY, group_id=_wire.HELLO),
            Node(node),
        )
        for number, node in enumerate(nodes)
    ]
    replies = exchanged(grid, [letter.message for letter in letters], limit)
    form = Form({"size": ()} if wants_size else {}, lowest=0.0, highest=LARGEST, whole=True)
    claims = {}

    def look(report: Admitted) -> tuple[Fault, str] | None:
        if wants_size and report.arrays["size"].dtype.kind not in "iu":
            return Fault.WRONG_TYPE, "'size' must be an integer"
        claims[nodes[report.client]] = _claim(report)
        return None

    heard = received(gate, letters, replies, _wire.HELLO, form, [_wire.ANSWER], look)
    up = sum(_wire.weight_of(report.message.content) for report in heard)
    ledger.greeted(len(nodes), len(heard), up, wants_size)
    return claims


def _claim(report: Admitted) -> Claim:
    config = _wire.config_of(report.message)
    key, offers, size = (
        config.get(_wire.KEY, ""),
        config.get(_wire.OFFERS),
        report.arrays.get("size"),
    )
    fits = isinstance(key, int) or (isinstance(key, str) and key.isprintable())
    if not fits or isinstance(key, bool) or len(str(key)) > LONGEST_KEY:
        key = ""
    told = frozenset(map(str, offers)) if isinstance(offers, list) else None
    return Claim(key, None if size is None else int(size), told)


# Who is there: stable keys of clients, whatever their node ids.
#
# Flower numbers its nodes at random, anew in every simulation. Clients are therefore asked for a
# key of their own (the partition, a name), and everything else (federation, cohorts, weights,
# checkpoints) speaks of keys. The same seed then gives the same cohorts on every run.

log = logging.getLogger("flwr.fedcohort")
Importance = str | Mapping[Any, float]
"""``"size"``, ``"equal"``, or a number for every key."""
GIVE_UP = 3
"""How often in a row every node may raise an error before the wait is over."""
LONGEST_REST = 30.0
"""Seconds between two questions to nodes that fail, at most, while the first round waits."""
LONGEST_LATER = 3600.0
"""The same for nodes that fail while rounds are played."""
LOG_EVERY = 10.0
"""Seconds between two lines of the log that say how many clients are connected."""
NO_KEY = {
    "asked": "no key that could be one",
    "name": "no name: `flwr supernode register --name` gives one, a simulation none",
}
"""What is said of a node without a key, by what its identity is."""


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
    introduced
        Whether clients must say what they offer although neither key nor size is asked for:
        then a client that does not fit is told before the first round.
    largest_size
        How many times the median size a client is believed to have; None for any.
    refuses_liars
        Whether a client that claims more than that is refused instead.
    """

    gate: Gate
    limits: Limits
    importance: Importance = "size"
    identity: str = "asked"
    algorithm: str = ""
    introduced: bool = False
    largest_size: float | None = LARGEST_SIZE
    refuses_liars: bool = False
    ledger: Ledger = field(default_factory=Ledger)
    nodes: dict[Hashable, int] = field(default_factory=dict)
    sizes: dict[Hashable, int] = field(default_factory=dict)
    """As clients told them."""
    believed: dict[Hashable, int] = field(default_factory=dict)
    """As they count: what counted once stays, whoever comes later."""
    offers: dict[Hashable, frozenset[str]] = field(default_factory=dict)
    """What clients have said that they can tell; those of another make say nothing."""
    key_type: type | None = None
    """Of the keys of this run; None until the first clients have come."""
    _strangers: dict[int, tuple[int, float]] = field(default_factory=dict)
    # node: how often it has failed to say who it is, and when it is asked again
    _contested: dict[Hashable, set[int]] = field(
        default_factory=dict
    )  # nodes by the key they claim

    _settled: bool = False  # whether the type of the keys is

    def __post_init__(self) -> None:
        if self.identity == "name":
            self.key_type, self._settled = str, True
        elif isinstance(self.importance, Mapping):
            self.key_type, self._settled = _most_common(self.importance), True

    def knew(self, federation: Federation) -> None:
        """Go on with the clients of an earlier session."""
        self.key_type, self._settled = type(federation.ids[0]), True
        if federation.sizes is not None:
            sizes = dict(zip(federation.ids, federation.sizes.tolist(), strict=True))
            self.sizes |= sizes
            self.believed |= sizes

    def wait(self, grid: Grid, expected: int, pause: Callable[[float], None] = time.sleep) -> None:
        """Return when ``expected`` clients have said who they are; never wait for ever.

        New nodes are asked at once, nodes that failed after a rest that doubles.
        """
        end, due = time.monotonic() + self.limits.population, 0.0
        next_line = 0.0  # of the log
        rest, failures, asked = self.limits.poll, 0, False
        while True:
            found = set(grid.get_node_ids())
            if len(found) >= expected:
                everyone, asked = time.monotonic() >= due, True
                if everyone:
                    self._strangers.clear()  # whoever did not answer is asked again
                self.refresh(grid, self.limits.first, again=False)
                if self.nodes and len(self.nodes.keys() | self._contested.keys()) >= expected:
                    self._settled = True
                    self._refuse_liars()
                    return
                if everyone:
                    failures = self._noted(failures, len(found))
                    due, rest = time.monotonic() + rest, min(2 * rest, LONGEST_REST)
            now = time.monotonic()
            if now >= next_line:
                said = f", {len(self.nodes)} said who they are" if asked else ""
                log.info("\t├──> %d clients expected, %d connected%s", expected, len(found), said)
                next_line = now + LOG_EVERY
            left = end - now
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

    def refresh(self, grid: Grid, limit: float, again: bool = True) -> None:
        """Learn who came, who left and who is back under another node id.

        A node that fails to say who it is, or claims a key that is taken, is asked ``again``
        after a rest that doubles, so that asking takes half of the time at most.
        """
        present, now = set(grid.get_node_ids()), time.monotonic()
        self.nodes = {key: node for key, node in self.nodes.items() if node in present}
        self._contested = {key: nodes & present for key, nodes in self._contested.items()}
        for key in [key for key, nodes in self._contested.items() if len(nodes) < 2]:
            for node in self._contested.pop(key):
                self._strangers.pop(node, None)  # the only one now: it is asked at once
        resting = {node for node, (_, due) in self._strangers.items() if due > now or not again}
        new = sorted(present - set(self.nodes.values()) - resting)
        if new:
            self._greet(grid, new, limit)
        if self._settled:
            self._refuse_liars()

    def _greet(self, grid: Grid, new: list[int], limit: float) -> None:
        began = time.monotonic()
        claims = self._claims(grid, new, limit)
        if not self._settled:
            self._settle_type(claim.key for claim in claims.values())
        times = Counter(claim.key for claim in claims.values())
        cost = max(self.limits.poll, time.monotonic() - began)
        for node in new:
            claim = claims.get(node)
            if claim is None or not self._enter(claim, node, times[claim.key]):
                failures = self._strangers.get(node, (0, 0.0))[0] + 1
                rest = min(cost * 2.0 ** min(failures, 30), LONGEST_LATER)
                self._strangers[node] = failures, time.monotonic() + rest

    def _claims(self, grid: Grid, new: list[int], limit: float) -> dict[int, Claim]:
        """Who nodes are, by themselves or by the list of the server."""
        wants_size, named = self.importance == "size", self.identity == "name"
        names = {info.node_id: info.name for info in grid.get_nodes()} if named else {}
        if named and not (wants_size or self.introduced):
            return {node: Claim(names.get(node, "")) for node in new}
        found = greeted(
            *(grid, new, limit, self.gate, self.ledger),
            wants_size=wants_size,
            algorithm=self.algorithm,
        )
        if not named:
            return found
        return {node: claim._replace(key=names.get(node, "")) for node, claim in found.items()}

    def _settle_type(self, claimed: Iterable[Hashable]) -> None:
        """The type of the keys, where nobody but the clients can tell it: that of most of them."""
        self.key_type = _most_common((*self.nodes, *claimed))
        for key in [key for key in self.nodes if type(key) is not self.key_type]:
            self._refuse(Node(self.nodes.pop(key)), Fault.OUT_OF_RANGE, "another type of key")

    def _refuse_liars(self) -> None:
        """Turn those away who claim more than a size that is believed, where that is wanted."""
        if not self.refuses_liars or self.importance != "size":
            return
        for key in self._capped(list(self.nodes))[1]:
            why = f"{self.sizes[key]:,} samples are more than {self.largest_size:g} medians"
            self.gate.refuse(key, Fault.OUT_OF_RANGE, why)
            log.error("\t├──> client %r is refused: %s", key, why)
            self._strangers[self.nodes.pop(key)] = 1, time.monotonic() + LONGEST_LATER

    def _enter(self, claim: Claim, node: int, times: int) -> bool:
        """Note a client, unless its key is none, or taken, or claimed by several nodes at once.

        Of several nodes nobody can say which one is the client, so none takes part: whoever
        claims the key of another may keep it away, but does not become it.
        """
        key, who = claim.key, Node(node)
        if key == "":
            return self._refuse(who, Fault.OUT_OF_RANGE, NO_KEY[self.identity])
        if self.key_type is not None and type(key) is not self.key_type:
            wanted = f"the keys of this run are of type {self.key_type.__name__}"
            return self._refuse(who, Fault.OUT_OF_RANGE, f"{wanted}, not {key!r}")
        if isinstance(self.importance, Mapping) and key not in self.importance:
            return self._refuse(who, Fault.OUT_OF_RANGE, f"'importance' has no key {key!r}")
        if key in self.nodes:
            return self._refuse(who, Fault.TAKEN, f"the key {key!r} is taken")
        if times > 1 or key in self._contested:
            self._contested.setdefault(key, set()).add(node)
            return self._refuse(who, Fault.TAKEN, f"the key {key!r} is claimed by several nodes")
        self.nodes[key] = node
        self._strangers.pop(node, None)
        if claim.offers is not None:
            self.offers[key] = claim.offers
        if claim.size is not None:
            self.sizes[key] = claim.size
        return True

    def _refuse(self, who: Node, fault: Fault, note: str) -> bool:
        self.gate.refuse(who, fault, note)
        if who.number not in self._strangers:
            log.warning("\t├──> %r is refused: %s", who, note)
        return False

    def federation(self, keys: Iterable[Hashable]) -> Federation:
        """The clients as a scheme sees them, in the order of their keys."""
        ids = sorted(keys)  # type: ignore[type-var]
        if self.importance == "size":
            return Federation(sizes=self._believed(ids), ids=ids)
        return Federation(importance=self._shares(ids), ids=ids)

    def _capped(self, ids: list[Any]) -> tuple[list[int], list[Any]]:
        """Sizes held against the median, and those of the clients, of new ones, that are above."""
        told = [self.believed.get(key, self.sizes[key]) for key in ids]
        capped, who = cap_sizes(told, self.largest_size)
        return capped, [ids[i] for i in who if ids[i] not in self.believed]

    def _believed(self, ids: list[Any]) -> list[int]:
        """The sizes that count: what counted once, and new claims as far as they are believed."""
        capped, large = self._capped(ids)
        if large:
            shown = ", ".join(f"{key!r} ({self.sizes[key]:,})" for key in large[:3])
            log.warning(
                "\t├──> %d clients claim more than %g times the median size, and count as if they "
                "had that: %s%s. If it is true, raise largest_size= or set it to None.",
                len(large),
                self.largest_size,
                shown,
                ", ..." if len(large) > 3 else "",
            )
        for key, size in zip(ids, capped, strict=True):
            self.believed.setdefault(key, size)
        return [self.believed[key] for key in ids]

    def _shares(self, ids: list[Any]) -> Floats:
        if not isinstance(self.importance, Mapping):
            return np.full(len(ids), 1.0 / len(ids))
        values = np.array([float(self.importance[key]) for key in ids])
        if not np.all(np.isfinite(values)) or np.any(values < 0) or not values.sum() > 0:
            raise BadInput("'importance' must be a finite number of at least 0 for every key.")
        return np.asarray(values / values.sum())

    def reachable(self, key: Hashable) -> bool:
        """Whether a client is there."""
        return key in self.nodes

    def present(self, federation: Federation) -> Ints | None:
        """Positions of those who are there; None for all of them."""
        here = [i for i, key in enumerate(federation.ids) if key in self.nodes]
        return None if len(here) == len(federation) else np.array(here, dtype=np.int64)


def _most_common(keys: Iterable[Hashable]) -> type | None:
    """The type that most keys have; of two, the one that is no text."""
    kinds = Counter(type(key) for key in keys if key != "")
    return max(kinds, key=lambda kind: (kinds[kind], kind is not str), default=None)
