"""Send messages and collect replies, within limits."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from flwr.app import ArrayRecord, Error, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort._internal.parameters import Checked, Maybe, Real
from fedcohort._internal.types import Array
from fedcohort.flower import _wire
from fedcohort.server._reply_validation import Fault, Form, Gate, Report, Ticket, expected, one_line
from fedcohort.server._stragglers import StragglerRule, Wait

# Answers as they come, and when each of them was there.

log = logging.getLogger("flwr.fedcohort")
SUPERLINK = 1
"""Flower's node id of the SuperLink, which sends errors for nodes that are gone."""
UNREAD = 0
"""Flower's code for an error of no kind of its own."""
SOON, PULL = 0.02, 1.0
"""Seconds between two looks for answers, at least and at most."""
PRECISE = 0.05
"""How precisely times are measured, relative to themselves; Flower's own loop looks every 3 s."""


class Arrivals:
    """The replies to messages, which go out at once.

    Replies come one after another, so that each can be judged before it is clear whether the
    next one is needed: only good replies end a round early. Looking through them a second time
    gives the same replies. Times are those of the server's clock, from when all messages were
    handed over to when a reply was there.

    Parameters
    ----------
    grid
        The transport of messages. A grid whose clients reply while it delivers (``at_once``)
        gives the seconds of each reply itself (``took``).
    messages
        What goes out.
    timeout
        Seconds to wait at most.
    rule
        When to stop waiting before; by default when all have answered.
    """

    def __init__(
        self,
        grid: Grid,
        messages: Sequence[Message],
        timeout: float,
        rule: StragglerRule | None = None,
    ) -> None:
        rule = Wait() if rule is None else rule
        self.counted = 0
        """How many of the answers so far are good; whoever looks at them says so."""
        self.seconds: dict[str, float] = {}
        """When the answer to a message was there, by the name of the message."""
        self.ended: float | None = None
        """When nobody was waited for any longer though some were missing; None: nobody was."""
        self.early = bool(rule.withdraws)
        """Whether the round may end before all have answered."""
        self._grid = grid
        self._enough, self._limit = rule.enough(len(messages)), min(timeout, rule.deadline)
        self._waiting: dict[str, Message] = {}
        self._read = self._unread = 0
        self._began = time.monotonic()
        if messages:
            pushed = grid.push_messages(messages)
            names = [name for name in pushed if name]  # None: Flower did not take it
            sent = {message.metadata.message_id: message for message in messages}
            self._waiting = {name: sent[name] for name in names if name in sent}
        self._came: list[Message] = []
        self._coming = self._as_they_come()

    def __iter__(self) -> Iterator[Message]:
        yield from list(self._came)
        for reply in self._coming:
            self._came.append(reply)
            yield reply

    @property
    def _done(self) -> bool:
        return self.early and self.counted >= self._enough

    def _as_they_come(self) -> Iterator[Message]:
        at_once = getattr(self._grid, "at_once", False)
        took = getattr(self._grid, "took", {}) if at_once else {}
        while self._waiting:
            replies = self._pulled()
            now = time.monotonic() - self._began
            came = [(took.get(answered(reply), now), reply) for reply in replies]
            if at_once and self.early:  # as if all had begun together
                came.sort(key=lambda pair: pair[0])
            for seconds, reply in came:
                if at_once and self.early and seconds > self._limit:
                    now = seconds
                    break
                name = answered(reply)
                asked = self._waiting.get(name)
                if asked is not None and is_from(reply, asked.metadata.dst_node_id):
                    del self._waiting[name]
                    self.seconds[name] = seconds
                yield reply
                if self._done:
                    now = seconds
                    break
            if self._done or now >= self._limit:
                self.ended = min(now, self._limit) if self._waiting else None
                return
            if at_once:
                return
            pause = min(max(SOON, PRECISE * now), PULL)
            time.sleep(max(0.0, min(pause, self._limit - now)))

    def _pulled(self) -> list[Message]:
        """The answers that are there.

        Flower reads all answers that are there at once, and fails on all where it fails on one of
        them. Then they are looked for one by one, and what cannot be read is lost alone.
        """
        try:
            came = list(self._grid.pull_messages(list(self._waiting)))
        except Exception as error:
            return self._one_by_one(error)
        self._read += len(came)
        return came

    def _one_by_one(self, error: Exception) -> list[Message]:
        """The answers that can be read, and an error for each that cannot.

        Where nothing can be read at all the trouble is not with a client, and the error goes on.
        """
        log.warning("\t├──> answers are read one by one: %s", one_line(repr(error)))
        out: list[Message] = []
        for name, message in list(self._waiting.items()):
            try:
                came = list(self._grid.pull_messages([name]))
                self._read += len(came)
            except Exception as own:
                came = [Message(Error(UNREAD, f"(unreadable) {own!r}"), reply_to=message)]
                self._unread += 1
            out += came
        if self._unread == len(self._waiting) + len(self.seconds) and not self._read:
            raise error
        return out


def is_from(reply: Message, node: object) -> bool:
    """Return whether a node sent a reply; of an error the SuperLink may be the sender, too."""
    try:
        sender = reply.metadata.src_node_id
        return sender == node or (sender == SUPERLINK and reply.has_error())
    except Exception:
        return False


def answered(reply: Message) -> str:
    """The name of the message that a reply answers; "" where not even that can be read."""
    try:
        return str(reply.metadata.reply_to_message_id)
    except Exception:
        return ""


# Messages out, reports back through the gate.

FRAME = "Exception ClientAppException occurred. Message: "
"""What Flower's simulation puts between a long traceback and the words of a client."""


class Node(NamedTuple):
    """A node that has not said yet which client it is."""

    number: int

    def __repr__(self) -> str:
        return f"node {self.number}"


@dataclass(frozen=True)
class Outgoing:
    """A message to a client, by its position, and what the client is called."""

    client: int
    message: Message
    name: Hashable = None


@dataclass(frozen=True)
class Admitted:
    """A report that passed the gate."""

    client: int
    arrays: Mapping[str, Array]
    message: Message
    record: str
    """The record the arrays came in; "" for a report without arrays."""


Look = Callable[[Admitted], tuple[Fault, str] | None]


def exchanged(grid: Grid, messages: Sequence[Message], timeout: float) -> list[Message]:
    """Send messages and wait for all answers; see `fedcohort.flower._exchange`."""
    return list(Arrivals(grid, messages, timeout))


def received(
    gate: Gate,
    sent: Sequence[Outgoing],
    replies: Iterable[Message],
    round: str,
    form: Form,
    records: Sequence[str],
    look: Look = lambda report: None,
) -> list[Admitted]:
    """The reports of an exchange that may be used, in the order of the clients.

    A report must have exactly one of the ``records``, of the given ``form``, or no array at all
    where there are none; it may have metrics and, beside its main record, what a scheme listens
    to. ``look`` says what else is wrong with it. Errors of the SuperLink count against the
    client that was asked: it sends them for nodes that died. A reply that names the message of
    another client is no reply of that client. Whatever goes wrong in reading a report is the
    fault of its sender.
    """
    tickets = {
        letter.message.metadata.message_id or f"never sent {number}": Ticket(
            letter.client, letter.message.metadata.dst_node_id, letter.name
        )
        for number, letter in enumerate(sent)
    }
    gate.open(round, tickets, form)
    admitted = []
    for reply in replies:
        ticket = answered(reply)
        asked = tickets.get(ticket)
        if asked is not None and not is_from(reply, asked.receiver):
            gate.reject("", Fault.NOT_ASKED)  # it is not the fault of the client that was asked
            continue
        try:
            report = _admitted(gate, reply, ticket, records)
            wrong = None if report is None else look(report)
        except _wire.Malformed as error:
            gate.reject(ticket, Fault.WRONG_TYPE, str(error))
            continue
        except Exception as error:
            gate.reject(ticket, Fault.UNREADABLE, repr(error))
            continue
        if report is not None and wrong is not None:
            gate.found(report.client, *wrong)
        elif report is not None:
            admitted.append(report)
    gate.close()
    return sorted(admitted, key=lambda report: report.client)


def _admitted(gate: Gate, reply: Message, ticket: str, records: Sequence[str]) -> Admitted | None:
    metadata = reply.metadata
    if reply.has_error():
        gate.failed(ticket, _words(str(reply.error.reason or "")))
        return None
    report = Report(ticket, metadata.src_node_id, metadata.group_id, _wire.weight_of(reply.content))
    if gate.check(report) is not None:
        return None
    content = reply.content
    found = [name for name in records if isinstance(content.get(name), ArrayRecord)]
    strange = [
        name
        for name, record in content.items()
        if name not in (*found, _wire.ANSWER, _wire.CONFIG, _wire.PAYLOADS)
        and not isinstance(record, MetricRecord)
    ]
    if len(found) != bool(records) or strange:
        wanted = " or ".join(repr(name) for name in records) or "no arrays"
        gate.reject(ticket, Fault.WRONG_KEYS, f"record {expected([wanted], content)}")
        return None
    arrays = _wire.from_record(content.array_records[found[0]]) if found else {}
    if gate.content(ticket, arrays) is not None:
        return None
    return Admitted(gate.client(ticket), arrays, reply, found[0] if found else "")


def _words(reason: str) -> str:
    """What a client said, without what Flower's simulation puts around it."""
    _, frame, words = reason.rpartition(FRAME)
    return words.removesuffix("'>") if frame else reason


# How long the server waits for whom.


@dataclass(frozen=True)
class Limits(Checked):
    """Time limits in seconds.

    Parameters
    ----------
    population
        For the expected number of clients to come; then an error. Later, for anybody to come
        back when all have gone; then the round is void.
    first
        For the first question, which includes the start of simulation engines (10-40 s).
    query
        For every other question.
    train, evaluate
        For training and for evaluation; None for what ``start(timeout=)`` says.
    poll
        How often to look for new clients.
    """

    population: Annotated[float, Real(0)] = 300.0
    first: Annotated[float, Real(0, open_low=True)] = 180.0
    query: Annotated[float, Real(0, open_low=True)] = 120.0
    train: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    evaluate: Annotated[float | None, Maybe(Real(0, open_low=True))] = None
    poll: Annotated[float, Real(0, open_low=True)] = 1.0

    name = "limits"
