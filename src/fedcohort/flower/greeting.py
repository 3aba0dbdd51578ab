"""The first question: which client a node is, what it offers, and its size if that is wanted."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from flwr.app import ConfigRecord, Message, RecordDict
from flwr.serverapp import Grid

from fedcohort.flower import wire
from fedcohort.flower.exchange import Admitted, Node, Outgoing, exchanged, received
from fedcohort.server._ledger import Ledger
from fedcohort.server._reply_validation import Fault, Form, Gate

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
    local = {wire.ALGORITHM: algorithm} if algorithm else {}
    config = ConfigRecord({wire.SIGNAL: wire.HELLO, wire.WANTS_SIZE: wants_size, **local})
    letters = [
        Outgoing(
            number,
            Message(RecordDict({wire.CONFIG: config}), node, wire.QUERY, group_id=wire.HELLO),
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

    heard = received(gate, letters, replies, wire.HELLO, form, [wire.ANSWER], look)
    up = sum(wire.weight_of(report.message.content) for report in heard)
    ledger.greeted(len(nodes), len(heard), up, wants_size)
    return claims


def _claim(report: Admitted) -> Claim:
    config = wire.config_of(report.message)
    key, offers, size = config.get(wire.KEY, ""), config.get(wire.OFFERS), report.arrays.get("size")
    fits = isinstance(key, int) or (isinstance(key, str) and key.isprintable())
    if not fits or isinstance(key, bool) or len(str(key)) > LONGEST_KEY:
        key = ""
    told = frozenset(map(str, offers)) if isinstance(offers, list) else None
    return Claim(key, None if size is None else int(size), told)
