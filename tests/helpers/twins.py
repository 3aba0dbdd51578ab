"""What a task computes for many clients at once, computed for one as plainly as possible."""

from __future__ import annotations

import numpy as np

from fedcohort._internal.types import Array, Ints
from fedcohort.training import LearningTask, Model
from fedcohort.training._task import participants


def samples_of(task: LearningTask, client: int) -> tuple[Array, Ints]:
    """The samples of a client, flattened, and their labels."""
    x, y = task.data.samples(task.data.part(client))
    return x.reshape(len(x), task.data.features), y


def mean_loss(model: Model, theta: Array, x: Array, y: Ints) -> float:
    return float(model.sample_losses(theta, x, y).mean())


def gradient_sum(
    model: Model,
    theta: Array,
    x: Array,
    y: Ints,
    rng: np.random.Generator,
    data_rate: float = 1.0,
) -> tuple[Array, int]:
    """The sum of the gradients of the samples that take part, one by one, and their number."""
    total = np.zeros_like(theta)
    rows = participants(rng, len(y), data_rate)
    for row in rows:
        total += model.gradient(theta, x[[row]], y[[row]])
    return total, len(rows)
