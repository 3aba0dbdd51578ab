"""What a client may send instead of what it was asked for, and a grid on which one does."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.flower_play import N, app

Lie = Callable[[Message, Message], Message | None]
LIAR = 2


class Lying(flower.InProcessGrid):
    """The client of one partition lies, or several do: in some exchanges, honest in the others.

    ``kinds`` are types of messages ("train", "evaluate") and names of questions.
    """

    def __init__(
        self,
        lie: Lie,
        kinds: Iterable[str] = ("train",),
        liars: Iterable[int] = (LIAR,),
        client: ClientApp | None = None,
        nodes: int = N,
        **options: Any,
    ) -> None:
        super().__init__(client or app(), nodes, **options)
        self.lie, self.kinds, self.liars = lie, frozenset(kinds), frozenset(liars)

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        kind = wire.config_of(message).get(wire.SIGNAL, message.metadata.message_type)
        mine = self.partition[message.metadata.dst_node_id] in self.liars
        return self.lie(message, reply) if mine and kind in self.kinds and reply else reply


def silent(message: Message, reply: Message) -> None:
    """No answer at all."""


def raises(message: Message, reply: Message) -> Message:
    return Message(Error(2, "oh"), reply_to=message)


def gone(message: Message, reply: Message) -> Message:
    out = Message(Error(5, "node unavailable"), reply_to=message)
    out.metadata.__dict__["_src_node_id"] = 1  # the SuperLink signs for a dead node
    return out


def update(**arrays: Array | np.ndarray) -> Lie:
    """Other arrays in a reply to training."""

    def lie(message: Message, reply: Message) -> Message:
        record = {k: v if isinstance(v, Array) else Array(np.asarray(v)) for k, v in arrays.items()}
        reply.content[wire.CHANGE] = ArrayRecord(record)
        return reply

    return lie


def answer(name: str, row: np.ndarray) -> Lie:
    """Another answer to a question, or to what the scheme listens to."""

    def lie(message: Message, reply: Message) -> Message:
        reply.content[wire.ANSWER] = wire.to_record({name: row})
        return reply

    return lie


def key(value: Any) -> Lie:
    """Another name for itself."""

    def lie(message: Message, reply: Message) -> Message:
        reply.content[wire.CONFIG] = ConfigRecord({wire.KEY: value, wire.OFFERS: ["update"]})
        return reply

    return lie


def metrics(**told: Any) -> Lie:
    def lie(message: Message, reply: Message) -> Message:
        reply.content["metrics"] = MetricRecord(told)
        return reply

    return lie


def config(**told: Any) -> Lie:
    def lie(message: Message, reply: Message) -> Message:
        old = reply.content.get(wire.CONFIG, {})
        reply.content[wire.CONFIG] = ConfigRecord({**old, **told})
        return reply

    return lie


def records(**more: RecordDict | None) -> Lie:
    """Other records, None for the record that says what was learnt."""

    def lie(message: Message, reply: Message) -> Message:
        for name, record in more.items():
            reply.content[name] = reply.content[wire.CHANGE] if record is None else record
        return reply

    return lie


def nothing(message: Message, reply: Message) -> Message:
    return Message(RecordDict(), reply_to=message)


def metadata(**told: Any) -> Lie:
    def lie(message: Message, reply: Message) -> Message:
        for name, value in told.items():
            reply.metadata.__dict__[f"_{name}"] = value
        return reply

    return lie


def reading(error: BaseException) -> Lie:
    """Content on which whoever looks at it fails."""

    class Poison(RecordDict):
        def items(self) -> Any:
            raise error

    def lie(message: Message, reply: Message) -> Message:
        reply.__dict__["_content"] = Poison()
        return reply

    return lie


class Killed(BaseException):
    """The process of the server ends here, and nothing is cleaned up."""


unreadable = reading(IndexError("tuple index out of range"))
kills = reading(Killed())


def npy(header: str) -> Array:
    """Sixteen bytes with a header of one's own."""
    text = header.encode()
    data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 16
    return Array("<f8", (2,), "numpy.ndarray", data)


BOMB = Array(
    "float64",
    (10**9,),
    "numpy.ndarray",
    Array(np.zeros(2)).data.replace(b"(2,), }", b"(9999999,)}"),
)
"""Says that it has more numbers than bytes."""


class Twice(flower.InProcessGrid):
    """Every answer comes twice, and once more in the next exchange."""

    last: Iterable[Message] = ()

    def pull_messages(self, message_ids):
        replies = list(super().pull_messages(message_ids))
        out = [*replies, *copy.deepcopy(replies), *self.last]
        self.last = copy.deepcopy(replies)
        return out


class Jammed(flower.InProcessGrid):
    """Flower itself fails on the answer of one client, where that is among those it reads."""

    def pull_messages(self, message_ids):
        names = list(message_ids)
        if any(self.bad(self._replies[name]) for name in names if name in self._replies):
            raise ValueError("Object not found")
        return super().pull_messages(names)

    def bad(self, reply: Message) -> bool:
        train = reply.metadata.message_type == "train"
        return train and self.partition[reply.metadata.src_node_id] == LIAR
