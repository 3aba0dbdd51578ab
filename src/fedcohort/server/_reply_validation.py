"""The gate: every report passes it, or is rejected and counted; the round goes on.

Whatever a client sends is data from a stranger. The gate knows whom it asked, in which round, and
what a good report looks like; it says *why* it rejects one, counts per reason and per client,
and never raises because of what a client sent. It knows nothing of any framework: a transport
hands it tickets (one per message sent) and reports.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from fedcohort._internal.types import Array, Ints
from fedcohort.selection._client_rows import LARGEST, fits
from fedcohort.selection._queries import Signal

KILOBYTE = 1024
SPARE = 64 * KILOBYTE
"""What a report may weigh beyond its arrays: names, metrics, headers."""
SHOWN, SHOWN_NAMES = 30, 5
"""How much of a stranger's names is shown: letters of each, names of each report."""
QUOTED = 300
"""How many characters of a client's error are kept."""
REMEMBERED = 100_000
"""Tickets of past exchanges that are still recognised as late ones."""


class Fault(Enum):
    """Why a report is not used."""

    FAILED = "the client raised an error or is gone"
    MISSING = "no answer within the time limit"
    TWICE = "this question was answered already"
    LATE = "the exchange was over"
    OTHER_ROUND = "the report belongs to another round"
    NOT_ASKED = "the sender was not asked"
    TOO_LARGE = "more bytes than such a report can have"
    WRONG_KEYS = "other parts than were asked for"
    WRONG_SHAPE = "an array of another shape"
    WRONG_TYPE = "not numbers"
    UNREADABLE = "what came cannot be read"
    NOT_FINITE = "NaN or infinity"
    OUT_OF_RANGE = "a number outside the allowed range"
    TAKEN = "a key that another node has, or claims, too"


@dataclass(frozen=True)
class Form:
    """What a good report looks like.

    Parameters
    ----------
    shapes
        The arrays it must have, and their shapes; None for a shape that is not known (then the
        most common one of the exchange is the right one, see `Gate.alike`).
    lowest, highest, whole
        What every number must lie between, and whether it must be whole.
    limit
        The most bytes a report may have.
    adds_up
        Whether the numbers of an array must add up to something that can be reckoned with.
    """

    shapes: Mapping[str, tuple[int, ...] | None]
    lowest: float = -np.inf
    highest: float = np.inf
    limit: int = SPARE
    whole: bool = False
    adds_up: bool = False

    @classmethod
    def of(cls, signal: Signal, sizes: Mapping[str, Any], limit: int = SPARE) -> Form:
        """What an answer must be: as the signal declares it, and nothing huge."""
        lowest, highest = max(signal.lowest, -LARGEST), min(signal.highest, LARGEST)
        shapes = {signal.name: signal.row_shape(sizes)}
        return cls(shapes, lowest, highest, limit, signal.whole, adds_up=True)

    def fault(self, arrays: Mapping[str, Array]) -> Fault | None:
        """What is wrong with the arrays of a report; None if nothing."""
        wrong = self.wrong(arrays)
        return None if wrong is None else wrong[0]

    def wrong(self, arrays: Mapping[str, Array]) -> tuple[Fault, str] | None:
        """What is wrong with the arrays of a report, also in words; None if nothing."""
        if set(arrays) != set(self.shapes):
            return Fault.WRONG_KEYS, expected(self.shapes, arrays)
        for name, shape in self.shapes.items():
            array = arrays[name]
            if array.dtype.kind not in "iuf":
                return Fault.WRONG_TYPE, f"{name!r} must be real numbers, not {array.dtype.name}"
            if shape is not None and array.shape != shape:
                return Fault.WRONG_SHAPE, f"{name!r} must have the shape {shape}, not {array.shape}"
            if not np.isfinite(array).all():
                return Fault.NOT_FINITE, f"{name!r} has NaN or infinity"
            if array.size and not self.lowest <= array.min() <= array.max() <= self.highest:
                allowed = f"[{self.lowest:g}, {self.highest:g}]"
                return Fault.OUT_OF_RANGE, f"{name!r} must be in {allowed}"
            if self.whole and not np.array_equal(array, np.rint(array)):
                return Fault.OUT_OF_RANGE, f"{name!r} must be whole numbers"
            if self.adds_up and not fits(array[None]).all():
                return Fault.OUT_OF_RANGE, f"the numbers add up to more than {LARGEST:g}"
        return None


def expected(wanted: Iterable[str], found: Iterable[str]) -> str:
    """Which names a report must have, and which it had; of a stranger's names a few letters."""
    some = sorted(name if len(name) <= SHOWN else f"{name[:SHOWN]}..." for name in found)
    more = f" and {len(some) - SHOWN_NAMES} more" if len(some) > SHOWN_NAMES else ""
    return f"must have exactly {sorted(wanted)}, not {some[:SHOWN_NAMES]}{more}"


@dataclass(frozen=True)
class Report:
    """What came back, as a transport sees it before anything was unpacked.

    ``ticket`` is the name of the message it answers, ``sender`` who sent it (in the transport's
    words, None where that is not known), ``round`` the round it names.
    """

    ticket: str
    sender: object
    round: str
    nbytes: int


@dataclass(frozen=True)
class Ticket:
    """One message that was sent: to which client, under which name of the transport.

    ``name`` is what the client is called where positions may change; its position by default.
    """

    client: int
    receiver: object = None
    name: Hashable = None

    @property
    def who(self) -> Hashable:
        """What faults of this client are filed under."""
        return self.client if self.name is None else self.name


@dataclass
class Gate:
    """Admits reports of one exchange at a time.

    >>> gate = Gate()
    >>> gate.open("7", {"a": Ticket(client=3)}, Form({"loss": ()}))
    >>> gate.check(Report("a", None, "7", 8)), gate.content("a", {"loss": np.array(np.nan)})
    (None, <Fault.NOT_FINITE: 'NaN or infinity'>)
    >>> gate.close()                        # nobody else is missing: client 3 did answer
    array([], dtype=int64)
    >>> gate.counts[Fault.NOT_FINITE]
    1
    """

    counts: Counter[Fault] = field(default_factory=Counter)
    by_client: Counter[tuple[Hashable, Fault]] = field(default_factory=Counter)
    errors: dict[int, str] = field(default_factory=dict)
    """What clients that failed said of it, in the last exchange that sent anything."""
    notes: dict[Hashable, str] = field(default_factory=dict)
    """What was wrong with reports since `news` was asked for, by client, in a line each; until
    there are newer ones, those from before."""
    _round: str = ""
    _form: Form = field(default_factory=lambda: Form({}))
    _open: dict[str, Ticket] = field(default_factory=dict)
    _heard: set[str] = field(default_factory=set)  # something came, good or bad
    _admitted: set[str] = field(default_factory=set)  # of two answers the first good one counts
    _names: dict[int, Hashable] = field(default_factory=dict)  # of the last exchange
    _past: deque[str] = field(default_factory=lambda: deque(maxlen=REMEMBERED))
    _said: str = ""  # by the last client that failed, kept as long as the notes
    _told: Counter[Fault] = field(default_factory=Counter)  # the counts of the last `news`

    def open(self, round: str, tickets: Mapping[str, Ticket], form: Form) -> None:
        """Begin an exchange: these messages went out, such reports are wanted."""
        self._round, self._form = round, form
        self._open, self._heard, self._admitted = dict(tickets), set(), set()
        if tickets:
            self._names = {ticket.client: ticket.who for ticket in tickets.values()}
            self.errors = {}

    def check(self, report: Report) -> Fault | None:
        """Whether a report may be unpacked: asked for, of this round, the first, not too large."""
        ticket = self._open.get(report.ticket)
        if ticket is None:
            late = report.ticket in self._past
            return self._reject(None, Fault.LATE if late else Fault.NOT_ASKED)
        if report.sender is not None and report.sender != ticket.receiver:
            return self._reject(None, Fault.NOT_ASKED)  # whoever it was, not the one we asked
        self._heard.add(report.ticket)
        if report.ticket in self._admitted:
            return self._reject(ticket.client, Fault.TWICE)
        if report.round != self._round:
            return self._reject(ticket.client, Fault.OTHER_ROUND)
        if report.nbytes > self._form.limit:
            return self._reject(ticket.client, Fault.TOO_LARGE)
        return None

    def content(self, ticket: str, arrays: Mapping[str, Array]) -> Fault | None:
        """Whether the unpacked arrays are what was asked for; if so, the question is answered."""
        wrong = self._form.wrong(arrays)
        if wrong is not None:
            return self.reject(ticket, *wrong)
        self._admitted.add(ticket)
        return None

    def read(
        self, ticket: str, reader: Callable[[], Mapping[str, Array]]
    ) -> Mapping[str, Array] | None:
        """The arrays of a report that may be used; None where they may not.

        Whatever goes wrong in reading is the fault of the sender.
        """
        try:
            arrays = reader()
            return arrays if self.content(ticket, arrays) is None else None
        except Exception as error:
            self.reject(ticket, Fault.UNREADABLE, repr(error))
            return None

    def failed(self, ticket: str, said: str) -> Fault:
        """A client sent an error instead of a report, in its own words."""
        known = self._open.get(ticket)
        self._heard.add(ticket)
        fault = self._reject(None if known is None else known.client, Fault.FAILED)
        if known is not None and said:
            self._said = self.errors[known.client] = one_line(said)
        return fault

    def reject(self, ticket: str, fault: Fault, note: str = "") -> Fault:
        """Reject a report for a reason that the transport found."""
        known = self._open.get(ticket)
        self._heard.add(ticket)
        return self._reject(None if known is None else known.client, fault, note)

    def found(self, client: int, fault: Fault, note: str = "") -> Fault:
        """Reject an admitted report of a client after a second look."""
        return self._reject(client, fault, note)

    def refuse(self, who: Hashable, fault: Fault, note: str) -> None:
        """Count a fault under a name, with a line about it."""
        self._count(fault)
        self.by_client[who, fault] += 1
        if fault not in (Fault.FAILED, Fault.MISSING):
            self.notes.pop(who, None)  # the last one is the last to have come
            self.notes[who] = one_line(f"{fault.name.lower()}: {note}")

    def _count(self, fault: Fault) -> None:
        if self.counts == self._told:  # the first since then
            self.notes, self._said = {}, ""
        self.counts[fault] += 1

    def client(self, ticket: str) -> int:
        """Whose answer a ticket stands for."""
        return self._open[ticket].client

    def _reject(self, client: int | None, fault: Fault, note: str = "") -> Fault:
        if client is None:
            self._count(fault)
        else:
            self.refuse(self._names.get(client, client), fault, note or fault.value)
        return fault

    def close(self) -> Ints:
        """End the exchange; (k,) the clients that did not answer at all are counted."""
        missing = [t.client for name, t in self._open.items() if name not in self._heard]
        for client in missing:
            self._reject(client, Fault.MISSING)
        self._past.extend(self._open)
        self._open = {}
        return np.unique(np.array(missing, dtype=np.int64))

    def alike(self, rows: Mapping[int, Array]) -> dict[int, Array]:
        """The answers that have the most common shape; the others are rejected."""
        shapes = Counter(row.shape for row in rows.values())
        if len(shapes) <= 1:
            return dict(rows)
        most = max(shapes.values())
        right = min(shape for shape, times in shapes.items() if times == most)
        for client, row in rows.items():
            if row.shape != right:
                self._reject(client, Fault.WRONG_SHAPE, f"most have {right}, not {row.shape}")
        return {client: row for client, row in rows.items() if row.shape == right}

    def summary(self) -> dict[str, int]:
        """How many reports were rejected for which reason."""
        return _named(self.counts)

    def news(self) -> dict[str, int]:
        """The same, of those that were rejected since this was asked last; `quote` is of them."""
        new, self._told = self.counts - self._told, Counter(self.counts)
        return _named(new)

    def quote(self) -> str:
        """Sentences with the last error of a client and the last report that was rejected.

        They are to be put behind another; "" where there is none.
        """
        error = f" The last client that failed said '{self._said}'." if self._said else ""
        if not self.notes:
            return error
        who, note = list(self.notes.items())[-1]
        return f"{error} The last report that was rejected, of {who!r}: {note}."


def _named(counts: Mapping[Fault, int]) -> dict[str, int]:
    return {fault.name.lower(): counts[fault] for fault in Fault if counts.get(fault)}


def one_line(said: str) -> str:
    """The words of a stranger, fit for a log: one short line without control characters.

    Of a long text the end is kept: there a traceback says what is wrong.
    """
    line = " ".join(said[-10 * QUOTED :].split())
    line = "".join(character for character in line if character.isprintable())
    return line if len(line) <= QUOTED else f"... {line[-QUOTED:]}"
