"""Grids that weigh what is sent for training, and clients with folders of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.types import Floats
from fedcohort.privacy import ClientPolicy
from fedcohort.training import Algorithm

pytest.importorskip("flwr")
from fedcohort import flower
from fedcohort.flower import _wire as wire
from fedcohort.flower._client_values import Memory


def numbers(message: Any) -> int:
    """The bytes of the arrays of a message, without their headers."""
    records = message.content.array_records.values()
    return sum(array.numpy().nbytes for record in records for array in record.values())


class Weighing(flower.InProcessGrid):
    """Weighs invitations to train and the answers to them."""

    down = up = 0

    def deliver(self, message: Any) -> Any:
        reply = super().deliver(message)
        if message.metadata.message_type == wire.TRAIN:
            self.down += numbers(message)
            self.up += numbers(reply)
        return reply


def with_folders(folder: Path) -> ClientPolicy:
    """Every client remembers in a folder that is called as its partition."""
    return ClientPolicy(folder=lambda context: folder / str(context.node_config["partition-id"]))


def remembered(strategy: Any, folder: Path, built: Algorithm, name: str) -> Floats:
    """(n, d) what every client has on its disk."""
    state = strategy.session.state
    size = state.models(strategy.session.setup).shape[1]
    rows = [
        Memory.of(folder / str(i), "fedcohort").kept(built, int(state.counted[i]), size)[name]
        for i in range(len(state.federation))
    ]
    return np.stack(rows)


def imbalance(strategy: Any, sum: str, kept: Floats) -> float:
    """|sum - sum p_i kept_i| beside the largest kept_i: server against clients."""
    state = strategy.session.state
    gap = state.algorithm[sum] - state.federation.importance @ kept
    return float(np.abs(gap).max() / np.abs(kept).max())
