"""Local SGD for a whole cohort: clients side by side, step after step.

A step of one client of a small model is a handful of tiny array operations, each of which
costs more in calling than in computing. So the clients of a cohort are trained together:
their batches are stacked, and each operation serves all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import DTypeLike

from fedcohort.core.types import Array, Ints
from fedcohort.learning.trainers.layers import Layer, Plan, descend, squares
from fedcohort.learning.trainers.samples import Samples
from fedcohort.learning.work import LocalWork

Drawn = tuple[int, Ints, Ints]
"""Position in the cohort, rows (steps, batch) and lengths (steps,); see `batches`."""


def groups(drawn: Sequence[Drawn], most: Callable[[int, int], int]) -> Iterator[list[Drawn]]:
    """Clients that are well trained together: with batches of a like width, and not too many.

    Batches are padded to the widest of a group, hence at most by a half;
    ``most(steps, width)`` is the largest group. Sorted by steps, the most first.
    """
    by_width = sorted(drawn, key=lambda item: -item[1].shape[1])
    group: list[Drawn] = []
    steps = width = 0  # the most in the group
    for item in by_width:
        rows = item[1]
        steps = max(steps, len(rows))
        if group and (len(group) >= most(steps, width) or 3 * rows.shape[1] < 2 * width):
            yield sorted(group, key=lambda member: -len(member[1]))
            group = []
        if not group:
            steps, width = rows.shape
        group.append(item)
    if group:
        yield sorted(group, key=lambda member: -len(member[1]))


def make_plan(group: list[Drawn], cohort: Ints, dtype: DTypeLike) -> Plan:
    """Stack the batches of a group of clients (those with the most steps first)."""
    steps = np.array([len(rows) for _, rows, _ in group])
    width = max(rows.shape[1] for _, rows, _ in group)
    stacked = np.zeros((steps[0], len(group), width), dtype=np.int64)  # (T, k, B)
    weights = np.zeros(stacked.shape, dtype=dtype)
    for i, (_, rows, lengths) in enumerate(group):
        real = np.arange(rows.shape[1]) < lengths[:, None]  # (steps, batch)
        stacked[: len(rows), i, : rows.shape[1]] = np.where(real, rows, 0)
        weights[: len(rows), i, : rows.shape[1]] = real / lengths[:, None]
    active = (steps > np.arange(steps[0])[:, None]).sum(axis=1)
    clients = np.array([cohort[position] for position, _, _ in group])
    return Plan(clients=clients, rows=stacked, weights=weights, active=active)


def train(
    layer: Layer,
    heads: Sequence[Array],
    samples: Samples,
    plan: Plan,
    work: LocalWork,
    pushes: Sequence[Array] | None,
) -> list[Array]:
    """Make all steps of a plan; the layer keeps its change, those of the heads are returned.

    ``heads`` (outputs, inputs + 1) are the layers that follow, each behind ReLUs; ``pushes``
    (k, outputs, inputs + 1) are lr times their drifts.
    """
    labels = samples.y[plan.rows + samples.starts[plan.clients][:, None]]  # (T, k, B)
    scale = (work.lr * plan.weights).astype(plan.weights.dtype)  # lr / length of the batch
    if not heads:
        _train_linear(layer, samples.held.classes or 0, labels, scale, plan.active, work)
        return []
    return _train_hidden(layer, heads, labels, scale, plan.active, work, pushes)


def _train_linear(
    layer: Layer, classes: int, labels: Ints, scale: Array, active: Ints, work: LocalWork
) -> None:
    for step, k in enumerate(active.tolist()):
        outputs = layer.forward(step)  # (k, B, classes)
        scores = outputs.reshape(-1, classes).T.copy()  # (classes, k B), for the sake of speed
        softmax_error(scores, scale[step, :k].reshape(-1), labels[step, :k].reshape(-1))
        error = scores.reshape(classes, k, -1).transpose(1, 2, 0)
        if work.clip is not None:
            error = error * _factors(layer.squares(step, error), work)
        layer.descend(step, error)


def _train_hidden(
    layer: Layer,
    heads: Sequence[Array],
    labels: Ints,
    scale: Array,
    active: Ints,
    work: LocalWork,
    pushes: Sequence[Array] | None,
) -> list[Array]:
    _, most, batch = labels.shape
    weights = [np.repeat(head[None], most, axis=0) for head in heads]  # (most, outputs, inputs + 1)
    velocity = [np.zeros_like(each) if work.momentum else None for each in weights]
    push = [None] * len(heads) if pushes is None else pushes
    given = [  # the last one feeds the bias
        np.ones((most, batch, head.shape[1]), dtype=head.dtype) for head in heads
    ]
    classes, last = len(heads[-1]), len(heads) - 1
    for step, k in enumerate(active.tolist()):
        z, on = layer.forward(step), list[Array]()  # (k, B, h)
        now, inputs = [each[:k] for each in weights], [each[:k] for each in given]
        for place in range(last + 1):
            on.append((z > 0).astype(z.dtype))
            np.multiply(z, on[-1], out=inputs[place][:, :, :-1])
            if place < last:
                z = inputs[place] @ now[place].swapaxes(1, 2)
        scores = np.empty((classes, k, batch), dtype=z.dtype)
        np.matmul(now[last], inputs[last].swapaxes(1, 2), out=scores.transpose(1, 0, 2))
        softmax_error(
            scores.reshape(classes, -1), scale[step, :k].reshape(-1), labels[step, :k].reshape(-1)
        )
        error = scores.transpose(1, 2, 0)  # (k, B, outputs), lr times the gradient there
        gradients: list[Array] = []
        for place in range(last, -1, -1):
            gradients.insert(0, np.matmul(error.swapaxes(1, 2), inputs[place]))
            error = np.matmul(error, now[place][:, :, :-1])
            error *= on[place]
        if work.clip is not None:
            total = sum((squares(each) for each in gradients), layer.squares(step, error))
            factors = _factors(total, work)
            error *= factors
            gradients = [each * factors for each in gradients]
        for place, gradient in enumerate(gradients):
            descend(now[place], gradient, heads[place], work, push[place], velocity[place])
        layer.descend(step, error)
    for each, head in zip(weights, heads, strict=True):
        each -= head
    return weights


def _factors(squares: Array, work: LocalWork) -> Array:
    """What shortens gradients to ``clip``, (k, 1, 1), from the squares of lr times them."""
    lengths = np.sqrt(squares)
    long = lengths > work.lr * (work.clip or 0)
    factors = np.ones_like(lengths)
    np.divide(work.lr * (work.clip or 0), lengths, out=factors, where=long)
    return factors[:, None, None]


def softmax_error(scores: Array, scale: Array, labels: Ints) -> None:
    """Turn scores (classes, S) into ``scale`` (S,) times the gradient of the cross-entropy.

    In place, and with the samples along the last axis: reductions over a short last axis
    are slow. The plain methods of ufuncs spare a detour through Python.
    """
    scores -= np.maximum.reduce(scores, axis=0)
    np.exp(scores, out=scores)
    scores *= scale / np.add.reduce(scores, axis=0)
    samples = len(labels)
    flat = scores.reshape(-1)  # a view: the scores are contiguous
    flat[labels * samples + np.arange(samples)] -= scale
