"""A simulated task as Flower clients: the same clients on a real deployment."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context

from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.work import Work
from fedcohort.learning import Task
from fedcohort.learning.work import LocalWork

THETA = "theta"


@dataclass(frozen=True)
class TaskClient:
    """One client of a task, as `fedcohort.flower.client_app` wants it."""

    task: Task
    position: int
    work: LocalWork

    @property
    def alone(self) -> Ints:
        """A list of clients: the one."""
        return np.array([self.position])

    @property
    def size(self) -> int:
        """The number of samples."""
        return int(self.task.sizes[self.position])

    @property
    def label_counts(self) -> Ints:
        """How many samples of each class."""
        if self.task.label_histograms is None:
            raise AttributeError(f"The task {self.task.name!r} has no labels to count.")
        row: Ints = self.task.label_histograms[self.position]
        return row

    def loss(self, model: dict[str, Array], batch: int | None = None, rng: Any = None) -> float:
        """Of a model, over all local data or over one mini-batch of it."""
        if batch is None:
            return float(self.task.losses(model[THETA], self.alone)[0])
        return float(self.task.batch_losses(model[THETA], self.alone, batch, [rng])[0])

    def update(self, model: dict[str, Array], work: Work) -> dict[str, Array]:
        """Local training on the share of the data that the server asks for."""
        rows = self.task.updates(
            model[THETA], self.alone, self.work, [work.rng("train")], work.data_rate
        )
        return {THETA: rows[0]}

    def gradient(self, model: dict[str, Array], work: Work) -> dict[str, Array]:
        """Of the local objective."""
        rngs = [work.rng("gradient")]
        sums, numbers = self.task.gradient_sums(model[THETA], self.alone, rngs)
        return {THETA: sums[0] / max(1, int(numbers[0]))}

    def feature_counts(self, bins: int) -> Ints:
        """(classes, bins) how often the features of each class take which values."""
        row: Ints = self.task.feature_histograms(self.alone, bins)[0]
        return row


def task_client(task: Task, work: LocalWork) -> Callable[[Context], TaskClient]:
    """Clients of a task: node with ``partition-id`` i is client i."""

    def local(context: Context) -> TaskClient:
        return TaskClient(task, int(context.node_config["partition-id"]), work)

    return local


def first_model(task: Task, seed: int) -> ArrayRecord:
    """The model a simulation of the task begins with, for ``start(initial_arrays=...)``."""
    return wire.to_record({THETA: np.asarray(task.initial(seed), dtype=np.float64)})
