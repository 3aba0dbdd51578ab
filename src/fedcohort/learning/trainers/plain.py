"""The obvious way to train: one client, one step after another, nothing clever.

It trains any `Model`, and is the slow twin of the other trainers and of `Quadratic`: it uses
the same mini-batches, and the tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fedcohort.core.types import Array, Ints
from fedcohort.learning.batches import batches, participants
from fedcohort.learning.data import ClientData, Rows
from fedcohort.learning.model import Model
from fedcohort.learning.trainer import Computation, Trainer
from fedcohort.learning.work import LocalWork

_TILE = 4096  # samples that are evaluated at a time


def update(
    model: Model,
    theta: Array,
    x: Array,
    y: Array,
    work: LocalWork,
    rng: np.random.Generator,
    data_rate: float = 1.0,
    drift: Array | float = 0.0,
) -> Array:
    """What local training adds to the model of one client with the samples ``x``, ``y``."""
    local = theta.copy()
    rows, lengths = batches(rng, len(y), work, data_rate)
    for chosen, length in zip(rows, lengths, strict=True):
        batch = chosen[:length]
        step = model.gradient(local, x[batch], y[batch])
        step = step + work.decay * local + work.mu * (local - theta) + drift
        local = local - work.lr * step
    return local - theta


def quadratic_update(
    theta: Array,
    minimum: Array,
    noise: float,
    size: int,
    work: LocalWork,
    rng: np.random.Generator,
    data_rate: float = 1.0,
    drift: Array | float = 0.0,
) -> Array:
    """The twin of `Quadratic.updates`, for one client."""
    local = theta.copy()
    for _ in range(work.steps_for(len(participants(rng, size, data_rate)))):
        step = local - minimum + work.decay * local + work.mu * (local - theta) + drift
        if noise:
            step = step + noise * rng.standard_normal(len(theta))
        local = local - work.lr * step
    return local - theta


@dataclass(frozen=True)
class PlainLoop(Trainer):
    """One client after another, whatever the model; data are read as they are needed."""

    def misfit(self, model: Model, data: ClientData) -> str | None:
        """Nothing is."""
        return None

    def bind(self, model: Model, data: ClientData) -> PlainComputation:
        """See `Trainer.bind`."""
        return PlainComputation(model, data)


class PlainComputation(Computation):
    """See `Computation`."""

    def __init__(self, model: Model, data: ClientData) -> None:
        self.model, self._data = model, data

    @property
    def data(self) -> ClientData:
        """As they were given."""
        return self._data

    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float,
        drift: Array | None,
    ) -> Array:
        """See `Computation.updates`."""
        theta = theta.astype(self.model.dtype, copy=False)
        pushes = np.zeros(len(clients)) if drift is None else drift
        rows = np.zeros((len(clients), len(theta)), dtype=self.model.dtype)
        # A diverged row is the server's case, and does not stop the others.
        with np.errstate(over="ignore", invalid="ignore"):
            for row, client, rng, push in zip(rows, clients, rngs, pushes, strict=True):
                x, y = self.data.samples(self.data.part(client))
                row[:] = update(self.model, theta, x, y, work, rng, data_rate, push)
        return rows

    def gradient_sum(self, theta: Array, rows: Rows) -> Array:
        """See `Computation.gradient_sum`."""
        x, y = self.data.samples(rows)
        return len(y) * self.model.gradient(theta.astype(self.model.dtype, copy=False), x, y)

    def sample_losses(self, theta: Array, rows: Rows) -> Array:
        """See `Computation.sample_losses`."""
        return self._losses(theta, *self.data.samples(rows))

    def tiles(self, thetas: Array, test: bool) -> Iterator[tuple[slice, Array, Array | None]]:
        """See `Computation.tiles`."""
        for start in range(0, len(self.data.y_test) if test else self.data.total, _TILE):
            part = slice(start, start + _TILE)
            x, y = self.data.tested(part) if test else self.data.samples(part)
            part = slice(start, start + len(y))
            losses = np.stack([self._losses(theta, x, y) for theta in thetas])
            told = [self.model.predictions(theta, x) for theta in thetas] if test else [None]
            correct = None if told[0] is None else np.stack([guess == y for guess in told])
            yield part, losses, correct

    def _losses(self, theta: Array, x: Array, y: Array) -> Array:
        with np.errstate(over="ignore", invalid="ignore"):
            theta = theta.astype(self.model.dtype, copy=False)
            losses = np.asarray(self.model.sample_losses(theta, x, y))
        return np.where(np.isnan(losses), np.inf, losses)

    def predictions(self, theta: Array) -> Ints | None:
        """See `Computation.predictions`."""
        return self.model.predictions(theta, self.data.tested(slice(None))[0])

    def pooled(self) -> PlainComputation:
        """See `Computation.pooled`."""
        return PlainComputation(self.model, self.data.pooled())
