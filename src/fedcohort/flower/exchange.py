"""Messages out, reports back through the gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from flwr.app import ArrayRecord, Message, MetricRecord

from fedcohort.core.types import Array
from fedcohort.flower import wire
from fedcohort.server.gate import Fault, Form, Gate, Report, Ticket

FRAME = "Exception ClientAppException occurred. Message: "
"""What Flower's simulation puts between a long traceback and the words of a client."""


@dataclass(frozen=True)
class Outgoing:
    """A message to a client, by its position."""

    client: int
    message: Message


@dataclass(frozen=True)
class Admitted:
    """A report that passed the gate."""

    client: int
    arrays: Mapping[str, Array]
    message: Message
    record: str
    """The record the arrays came in."""


def received(
    gate: Gate,
    sent: Sequence[Outgoing],
    replies: Iterable[Message],
    round: str,
    form: Form,
    records: Sequence[str],
) -> list[Admitted]:
    """The reports of an exchange that may be used, in the order of the clients.

    A report must have exactly one of the ``records``, of the given ``form``; it may have metrics
    and, beside its main record, what a scheme listens to. Errors that Flower reports count
    against the client that was asked, whoever signs them: of a node that died, it is the server.
    """
    tickets = {
        letter.message.metadata.message_id or f"never sent {number}": Ticket(
            letter.client, letter.message.metadata.dst_node_id
        )
        for number, letter in enumerate(sent)
    }
    gate.open(round, tickets, form)
    admitted = [
        report for reply in replies if (report := _admitted(gate, reply, records)) is not None
    ]
    gate.close()
    return sorted(admitted, key=lambda report: report.client)


def _admitted(gate: Gate, reply: Message, records: Sequence[str]) -> Admitted | None:
    metadata = reply.metadata
    ticket = metadata.reply_to_message_id
    if reply.has_error():
        gate.reject(ticket, Fault.FAILED, _words(str(reply.error.reason or "")))
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
    if len(found) != 1 or strange:
        gate.reject(ticket, Fault.WRONG_KEYS)
        return None
    try:
        arrays = wire.from_record(content.array_records[found[0]])
    except wire.Malformed:
        gate.reject(ticket, Fault.WRONG_TYPE)
        return None
    if gate.content(ticket, arrays) is not None:
        return None
    return Admitted(gate.client(ticket), arrays, reply, found[0])


def _words(reason: str) -> str:
    """What a client said, without what Flower's simulation puts around it."""
    _, frame, words = reason.rpartition(FRAME)
    return words.removesuffix("'>") if frame else reason
