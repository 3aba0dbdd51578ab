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
from fedcohort.simulation.tasks.layers import Layer, Plan, regularise
from fedcohort.simulation.tasks.samples import Samples
from fedcohort.simulation.work import LocalWork

Drawn = tuple[int, Ints, Ints]
"""Position in the cohort, rows (steps, batch) and lengths (steps,); see `batches`."""


def groups(drawn: Sequence[Drawn], most: Callable[[int], int]) -> Iterator[list[Drawn]]:
    """Clients that are well trained together: with batches of a like width, and not too many.

    Batches are padded to the widest of a group, hence at most by a half;
    ``most(width)`` is the largest group for that width. Sorted by steps, the most first.
    """
    by_width = sorted(drawn, key=lambda item: -item[1].shape[1])
    group: list[Drawn] = []
    for item in by_width:
        width = group[0][1].shape[1] if group else 0
        if group and (len(group) >= most(width) or 3 * item[1].shape[1] < 2 * width):
            yield sorted(group, key=lambda member: -len(member[1]))
            group = []
        group.append(item)
    if group:
        yield sorted(group, key=lambda member: -len(member[1]))


def make_plan(group: list[Drawn], cohort: Ints, dtype: DTypeLike) -> Plan:
    """Stack the batches of a group of clients (those with the most steps first)."""
    steps = np.array([len(rows) for _, rows, _ in group])
    width = max(rows.shape[1] for _, rows, _ in group)
    stacked = np.zeros((len(group), steps[0], width), dtype=np.int64)
    weights = np.zeros(stacked.shape, dtype=dtype)
    for i, (_, rows, lengths) in enumerate(group):
        real = np.arange(rows.shape[1]) < lengths[:, None]  # (steps, batch)
        stacked[i, : len(rows), : rows.shape[1]] = np.where(real, rows, 0)
        weights[i, : len(rows), : rows.shape[1]] = real / lengths[:, None]
    active = (steps > np.arange(steps[0])[:, None]).sum(axis=1)
    clients = np.array([cohort[position] for position, _, _ in group])
    return Plan(clients=clients, rows=stacked, weights=weights, active=active)


def train(
    layer: Layer, head: Array | None, samples: Samples, plan: Plan, work: LocalWork
) -> Array | None:
    """Make all steps of a plan; the layer keeps its weights, those of the head are returned.

    ``head`` (classes, h + 1) is the second layer, behind a ReLU; None if there is none.
    """
    labels = samples.y[plan.rows + samples.starts[plan.clients][:, None, None]]  # (k, T, B)
    scale = (work.lr * plan.weights).astype(plan.weights.dtype)  # lr / length of the batch
    if head is None:
        _train_linear(layer, samples.classes, labels, scale, plan)
        return None
    return _train_hidden(layer, head, labels, scale, plan, work)


def _train_linear(layer: Layer, classes: int, labels: Ints, scale: Array, plan: Plan) -> None:
    k, _, batch = plan.rows.shape
    # Where the score of the right class is, in the flat (k, B, classes) array of scores.
    right = np.arange(k * batch).reshape(k, 1, batch) * classes + labels
    for step, active in enumerate(plan.active):
        scores = layer.forward(step)  # (active, B, classes)
        softmax_error(scores, 2, scale[:active, step], right[:active, step])
        layer.descend(step, scores)


def _train_hidden(
    layer: Layer, head: Array, labels: Ints, scale: Array, plan: Plan, work: LocalWork
) -> Array:
    k, _, batch = plan.rows.shape
    classes, hidden = head.shape[0], head.shape[1] - 1
    # Where the score of the right class is, in the flat (k, classes, B) array of scores.
    right = (np.arange(k)[:, None, None] * classes + labels) * batch + np.arange(batch)
    heads = np.repeat(head[None], k, axis=0)  # (k, classes, h + 1)
    outputs = np.ones((k, batch, hidden + 1), dtype=head.dtype)  # the last one feeds the bias
    for step, active in enumerate(plan.active):
        z = layer.forward(step)  # (active, B, h)
        now, given = heads[:active], outputs[:active]
        np.maximum(z, 0, out=given[:, :, :-1])
        scores = np.matmul(now, given.swapaxes(1, 2))  # (active, classes, B)
        softmax_error(scores, 1, scale[:active, step], right[:active, step])
        error = np.matmul(scores.swapaxes(1, 2), now[:, :, :-1])  # (active, B, h)
        error *= z > 0
        regularise(now, head, work)
        now -= np.matmul(scores, given)
        layer.descend(step, error)
    heads -= head
    return heads


def softmax_error(scores: Array, axis: int, scale: Array, right: Ints) -> None:
    """Turn scores into ``scale`` times the gradient of the cross-entropy, in place.

    ``axis`` is that of the classes; ``scale`` has the shape of the others, and ``right``
    are the places of the right classes in the flat array.
    """
    scores -= scores.max(axis=axis, keepdims=True)
    np.exp(scores, out=scores)
    scores *= np.expand_dims(scale / scores.sum(axis=axis), axis)
    flat = scores.reshape(-1)  # a view: scores are contiguous
    flat[right] -= scale
