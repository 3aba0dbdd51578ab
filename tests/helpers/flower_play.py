"""A small federation on an in-process grid: what the tests of the strategy play on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest

from fedcohort.simulation import LocalWork, Quadratic

pytest.importorskip("flwr")
from flwr.app import (
    Message,
)
from flwr.clientapp import ClientApp

from fedcohort import flower

N, ROUNDS = 8, 4
WORK = LocalWork(steps=1, lr=0.5, batch=None)
X = np.linspace(-1.0, 2.0, N)
QUICK = flower.Limits(population=0.2, poll=0.01)


def task() -> Quadratic:
    return Quadratic(np.stack([X, X**2], axis=1), sizes=np.arange(1, N + 1) * 10)


def app() -> ClientApp:
    return flower.client_app(flower.task_client(task(), WORK), simulated=True)


def play(grid, scheme="full", rounds: int = ROUNDS, **options):
    settings = {"clients": N, "seed": 3, "limits": QUICK, **options}
    strategy = flower.CohortStrategy(scheme, **settings)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=rounds)
    return strategy, result.arrays["theta"].numpy()


class Hostile(flower.InProcessGrid):
    """The client of one partition answers training as it likes."""

    def __init__(self, lie: Callable[[Message, Message], Message | None], liar: int = 2) -> None:
        super().__init__(app(), N)
        self.lie, self.liar = lie, liar

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        mine = self.partition[message.metadata.dst_node_id] == self.liar
        if not mine or reply is None or message.metadata.message_type != "train":
            return reply
        return self.lie(message, reply)


class Counting(flower.InProcessGrid):
    """Notes to whom messages go."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.seen: list[tuple[str, int]] = []

    def deliver(self, message: Message) -> Message | None:
        kind = message.metadata.message_type
        self.seen.append((kind, self.partition[message.metadata.dst_node_id]))
        return super().deliver(message)


class Coming(flower.InProcessGrid):
    """Nodes that are hidden in some rounds."""

    hidden: set[int] = frozenset()  # type: ignore[assignment]

    def get_node_ids(self) -> Iterable[int]:
        return {n for n in super().get_node_ids() if self.partition[n] not in self.hidden}


def silent(*partitions: int):
    class Silent(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            away = self.partition[message.metadata.dst_node_id] in partitions
            if away and message.metadata.message_type == "train":
                return None
            return super().deliver(message)

    return Silent(app(), N)
