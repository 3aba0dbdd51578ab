"""Messages out, reports back through the gate."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from flwr.app import ArrayRecord, Message, MetricRecord
from flwr.serverapp import Grid

from fedcohort._internal.types import Array
from fedcohort.flower import wire
from fedcohort.flower.arrivals import Arrivals, answered, is_from
from fedcohort.server._reply_validation import Fault, Form, Gate, Report, Ticket, expected

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
    """Send messages and wait for all answers; see `fedcohort.flower.arrivals`."""
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
        except wire.Malformed as error:
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
    report = Report(ticket, metadata.src_node_id, metadata.group_id, wire.weight_of(reply.content))
    if gate.check(report) is not None:
        return None
    content = reply.content
    found = [name for name in records if isinstance(content.get(name), ArrayRecord)]
    strange = [
        name
        for name, record in content.items()
        if name not in (*found, wire.ANSWER, wire.CONFIG, wire.PAYLOADS)
        and not isinstance(record, MetricRecord)
    ]
    if len(found) != bool(records) or strange:
        wanted = " or ".join(repr(name) for name in records) or "no arrays"
        gate.reject(ticket, Fault.WRONG_KEYS, f"record {expected([wanted], content)}")
        return None
    arrays = wire.from_record(content.array_records[found[0]]) if found else {}
    if gate.content(ticket, arrays) is not None:
        return None
    return Admitted(gate.client(ticket), arrays, reply, found[0] if found else "")


def _words(reason: str) -> str:
    """What a client said, without what Flower's simulation puts around it."""
    _, frame, words = reason.rpartition(FRAME)
    return words.removesuffix("'>") if frame else reason
