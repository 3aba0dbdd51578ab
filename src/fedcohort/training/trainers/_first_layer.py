"""The first linear layer during local training, for a group of clients at once.

Local SGD on a small network spends nearly all of its time in the first layer, so that is
where the speed is. Two forms give the same numbers up to rounding:

`Direct` keeps the weights ``W_i`` of each client, as everyone does. A step on a batch of B
samples costs ``4 B d h`` operations (forward and back), for d inputs and h outputs.

`Gram` never touches the weights between the first step and the last. A step of SGD adds
multiples of samples to ``W``, so that after any number of steps ``W = s W_0 + a^T X_i``,
with one row of ``a`` per sample. With ``K = X_i X_i^T`` (the Gram matrix, once per client)::

    forward:   z = X_b W^T = s (X_b W_0^T) + K[b, :] a
    a step:    a <- rho a,   a[b] <- a[b] - lr dz,   s <- rho s + lr mu,   rho = 1 - lr (decay + mu)

A step now costs ``2 B n_i h``: less than half while n_i < d. Weight decay and the proximal
term only scale. A drift D_i that is added to every gradient is a third term, ``r lr D_i`` with
``r <- rho r - 1``, and ``X_b D_i^T`` joins the forward pass as ``X_b W_0^T`` does. Momentum is a
second set of the same three, and the length of a gradient, for clipping, is ``e^T K[b, b] e``.
The bias is a column of ones in X, hence a 1 in every entry of K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fedcohort._internal.types import Array, Ints
from fedcohort.training._local import LocalWork
from fedcohort.training.trainers._samples import Samples

_GATHER_BYTES = 1 << 20  # samples copied at a time: what stays in a core's cache


@dataclass(frozen=True)
class Plan:
    """Who trains on which rows, for T steps of k clients on at most B rows each.

    Clients with more steps come first, so that those at work in a step are a prefix.
    """

    clients: Ints  # (k,)
    rows: Ints  # (T, k, B) positions in the client's data; 0 where padded
    weights: Array  # (T, k, B) one over the length of the batch; 0 where padded
    active: Ints  # (T,) how many clients, of the first, make step t


class Layer(Protocol):
    """The weights of the first layer, one copy per client of a plan."""

    def forward(self, step: int) -> Array:
        """What the layer makes of the batches of a step, (active, B, h)."""

    def descend(self, step: int, error: Array) -> None:
        """Take a step against ``error``: lr times the gradient at the outputs, (active, B, h)."""

    def squares(self, step: int, error: Array) -> Array:
        """The squared length of ``lr`` times the gradient of the layer, (active,)."""

    def change(self) -> Array:
        """How far the weights are from where they started, (k, h, d + 1)."""


class Direct:
    """One matrix of weights per client."""

    def __init__(
        self, samples: Samples, plan: Plan, start: Array, work: LocalWork, push: Array | None
    ) -> None:
        _, k, batch = plan.rows.shape
        self._plan, self._x, self._start, self._work = plan, samples.x, start, work
        self._push = push  # (k, h, d + 1) lr times the drift
        self._rows = plan.rows + samples.starts[plan.clients][:, None]
        self._weights = np.repeat(start[None], k, axis=0)  # (k, h, d + 1)
        self._gradients = np.empty_like(self._weights)
        self._velocity = np.zeros_like(self._weights) if work.momentum else None
        step_bytes = k * batch * start.shape[1] * start.itemsize
        self._chunk = max(1, _GATHER_BYTES // max(step_bytes, 1))
        self._gathered = np.empty(0)

    def forward(self, step: int) -> Array:
        """See `Layer.forward`."""
        active, at = self._plan.active[step], step % self._chunk
        if at == 0:  # fetch the samples of several steps at once
            rows = self._rows[step : step + self._chunk, :active]
            self._gathered = self._x.take(rows, axis=0)  # (chunk, active, B, d + 1)
        self._samples = self._gathered[at, :active]
        return np.asarray(self._samples @ self._weights[:active].swapaxes(1, 2))

    def descend(self, step: int, error: Array) -> None:
        """See `Layer.descend`."""
        active = self._plan.active[step]
        weights, gradients = self._weights[:active], self._gradients[:active]
        np.matmul(error.swapaxes(1, 2), self._samples, out=gradients)
        descend(weights, gradients, self._start, self._work, self._push, self._velocity)

    def squares(self, step: int, error: Array) -> Array:
        """See `Layer.squares`."""
        gradients = self._gradients[: self._plan.active[step]]
        np.matmul(error.swapaxes(1, 2), self._samples, out=gradients)
        return squares(gradients)

    def change(self) -> Array:
        """See `Layer.change`."""
        self._weights -= self._start
        return self._weights


class Gram:
    """Multiples of samples: the weights in terms of the client's own data."""

    def __init__(
        self,
        samples: Samples,
        plan: Plan,
        start: Array,
        work: LocalWork,
        push: Array | None,
        grams: list[Array],
    ) -> None:
        self._plan, self._start, self._work = plan, start, work
        self._push = push  # (k, h, d + 1) lr times the drift
        self._x = [samples.x[samples.held.part(int(client))] for client in plan.clients]
        _, k, batch = plan.rows.shape
        sizes = [len(x) for x in self._x]
        self._firsts = np.concatenate([[0], np.cumsum(sizes)])
        total, outputs = int(self._firsts[-1]), len(start)
        # One row more than there are samples: the padding of short batches goes there.
        self._given = np.zeros((total + 1, outputs), dtype=start.dtype)  # X W_0^T
        self._shares = np.ones((k, 1, 1), dtype=start.dtype)  # s
        self._multiples = np.zeros_like(self._given)  # a
        self._pushed = None if push is None else np.zeros_like(self._given)  # lr X D^T
        self._pushes = np.zeros_like(self._shares)  # r
        if work.momentum:
            self._velocity = [
                np.zeros_like(each) for each in (self._multiples, self._shares, self._pushes)
            ]
        places = plan.rows + self._firsts[:-1][:, None]
        self._places = np.where(plan.weights > 0, places, total)  # (T, k, B)
        self._outputs = np.empty((k, batch, outputs), dtype=start.dtype)
        # All clients share the memory that rows of K are copied to, so that it stays in cache.
        memory = np.empty(batch * max(sizes), dtype=start.dtype)
        self._views = []
        for i, (x, size) in enumerate(zip(self._x, sizes, strict=True)):
            part = slice(self._firsts[i], self._firsts[i + 1])
            np.matmul(x, start.T, out=self._given[part])
            if push is not None and self._pushed is not None:
                np.matmul(x, push[i].T, out=self._pushed[part])
            gathered = memory[: batch * size].reshape(batch, size)
            self._views.append((grams[i], gathered, self._multiples[part], self._outputs[i]))

    def forward(self, step: int) -> Array:
        """See `Layer.forward`."""
        active = self._plan.active[step]
        rows = self._plan.rows[step, :active]
        # mode="clip" only spares numpy a copy: all rows are in range.
        for chosen, (gram, gathered, multiples, output) in zip(rows, self._views, strict=False):
            gram.take(chosen, axis=0, out=gathered, mode="clip")
            np.matmul(gathered, multiples, out=output)
        given = self._given.take(self._places[step, :active], axis=0)
        if self._work.decay or self._work.mu:
            given *= self._shares[:active]
        outputs = self._outputs[:active]
        outputs += given
        if self._pushed is not None:
            pushed = self._pushed.take(self._places[step, :active], axis=0)
            outputs += self._pushes[:active] * pushed
        return outputs

    def descend(self, step: int, error: Array) -> None:
        """See `Layer.descend`."""
        active, work = self._plan.active[step], self._work
        if work.momentum:
            self._roll(step, error)
            return
        if work.decay or work.mu:
            keep = 1 - work.lr * (work.decay + work.mu)
            self._multiples[: self._firsts[active]] *= keep
            self._shares[:active] = keep * self._shares[:active] + work.lr * work.mu
            self._pushes[:active] *= keep
        if self._push is not None:
            self._pushes[:active] -= 1
        places = self._places[step, :active]
        self._multiples[places] = self._multiples.take(places, axis=0) - error

    def _roll(self, step: int, error: Array) -> None:
        """A step with momentum."""
        active, work = self._plan.active[step], self._work
        held, places = self._firsts[active], self._places[step, :active]
        multiples, shares, pushes = self._velocity
        for velocity in (multiples[:held], shares[:active], pushes[:active]):
            velocity *= work.momentum
        if work.decay or work.mu:
            shrink = work.lr * (work.decay + work.mu)
            multiples[:held] += shrink * self._multiples[:held]
            shares[:active] += shrink * self._shares[:active] - work.lr * work.mu
            pushes[:active] += shrink * self._pushes[:active]
        if self._push is not None:
            pushes[:active] += 1
        multiples[places] = multiples.take(places, axis=0) + error
        self._multiples[:held] -= multiples[:held]
        self._shares[:active] -= shares[:active]
        self._pushes[:active] -= pushes[:active]

    def squares(self, step: int, error: Array) -> Array:
        """See `Layer.squares`."""
        rows = self._plan.rows[step, : self._plan.active[step]]
        return np.array(
            [
                np.vdot(own, gram[np.ix_(chosen, chosen)] @ own)
                for own, chosen, (gram, _, _, _) in zip(error, rows, self._views, strict=False)
            ]
        )

    def change(self) -> Array:
        """See `Layer.change`."""
        change = np.empty((len(self._x), *self._start.shape), dtype=self._start.dtype)
        for x, (_, _, multiples, _), out in zip(self._x, self._views, change, strict=True):
            np.matmul(multiples.T, x, out=out)
        if self._work.decay or self._work.mu:
            change += (self._shares - 1) * self._start
        if self._push is not None:
            change += self._pushes * self._push
        return change


def descend(
    weights: Array,
    gradients: Array,
    start: Array,
    work: LocalWork,
    push: Array | None,
    velocity: Array | None,
) -> None:
    """One step of some clients, in place; ``gradients`` are lr times them, and are used up."""
    if velocity is None:
        regularise(weights, start, work, push)
        weights -= gradients
        return
    rolling = velocity[: len(weights)]
    gradients += (work.lr * (work.decay + work.mu)) * weights
    gradients -= (work.lr * work.mu) * start
    if push is not None:
        gradients += push[: len(weights)]
    rolling *= work.momentum
    rolling += gradients
    weights -= rolling


def squares(gradients: Array) -> Array:
    """The squared length of what each client has, (k, ...) -> (k,)."""
    flat = gradients.reshape(len(gradients), -1)
    return np.asarray(np.einsum("ij,ij->i", flat, flat))


def regularise(weights: Array, start: Array, work: LocalWork, push: Array | None) -> None:
    """The part of a step that decay, proximal term and drift make, in place."""
    if work.decay or work.mu:
        weights *= 1 - work.lr * (work.decay + work.mu)
        weights += (work.lr * work.mu) * start
    if push is not None:
        weights -= push[: len(weights)]


def gram_pays(size: int, rows: int, inputs: int) -> bool:
    """Whether `Gram` is less work than `Direct` for a client that visits ``rows`` samples in all.

    Operations per output: 2 n d to start and to end and rows * n between, against
    2 rows * d; a quarter is taken off for the copying of rows of K.
    """
    return size * (2 * inputs + rows) < 0.75 * 2 * rows * inputs


class GramMatrices:
    """``K = X_i X_i^T`` of each client, computed when first needed and kept.

    Which clients may have one is settled by the sizes alone (the smallest first, until
    the limit on memory is reached), so that results do not depend on what was asked before.
    """

    def __init__(self, samples: Samples, most_bytes: int) -> None:
        self._samples = samples
        self._kept: dict[int, Array] = {}
        sizes = samples.held.sizes.astype(np.float64)  # squares of large sizes overflow integers
        order = np.argsort(sizes, kind="stable")
        needed = np.cumsum(sizes[order] ** 2 * samples.x.itemsize)
        self._fits = np.zeros(len(sizes), dtype=bool)
        self._fits[order] = needed <= most_bytes

    def fits(self, client: int) -> bool:
        """Whether there is room for the matrix of a client."""
        return bool(self._fits[client])

    def of(self, client: int) -> Array:
        """The matrix of a client, (n_i, n_i)."""
        if client not in self._kept:
            x = self._samples.x[self._samples.held.part(client)]
            self._kept[client] = x @ x.T
        return self._kept[client]
