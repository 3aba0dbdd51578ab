"""The obvious way to train: one client, one step after another, nothing clever.

It trains any `Model`, and is the slow twin of the other trainers and of `Quadratic`: it uses
the same mini-batches, and the tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from fedcohort._internal.types import Array, Ints
from fedcohort.training._client_data import ClientData, Rows
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Computation, Model, Trainer
from fedcohort.training._task import batches, participants

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
    rows, lengths = batches(rng, len(y), work, data_rate)
    taken = [chosen[:length] for chosen, length in zip(rows, lengths, strict=True)]
    return _descent(theta, work, drift, (partial(_mean, model, x[b], y[b]) for b in taken))


def _mean(model: Model, x: Array, y: Array, theta: Array) -> Array:
    return model.gradient(theta, x, y)


def _descent(
    theta: Array,
    work: LocalWork,
    drift: Array | float,
    gradients: Iterable[Callable[[Array], Array]],
) -> Array:
    """What steps by these gradients add to a model, as `LocalWork` says."""
    local, velocity = theta.copy(), np.zeros_like(theta)
    for gradient in gradients:
        step = gradient(local)
        if work.clip is not None:
            length = np.linalg.norm(step)
            step = step * (work.clip / length) if length > work.clip else step
        step = step + work.decay * local + work.mu * (local - theta) + drift
        velocity = work.momentum * velocity + step if work.momentum else step
        local = local - work.lr * velocity
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

    def gradient(local: Array) -> Array:
        shock = noise * rng.standard_normal(len(theta)) if noise else 0.0
        return np.asarray(local - minimum + shock)

    steps = work.steps_for(len(participants(rng, size, data_rate)))
    return _descent(theta, work, drift, [gradient] * steps)


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
