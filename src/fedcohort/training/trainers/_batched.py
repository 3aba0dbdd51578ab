"""Dense networks in numpy, clients and models side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import DTypeLike

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.types import Array, Ints
from fedcohort.training._client_data import ClientData, Rows, is_integer
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Computation, Dense, Model, Trainer
from fedcohort.training._task import batches
from fedcohort.training.trainers._first_layer import (
    Direct,
    Gram,
    GramMatrices,
    Layer,
    Plan,
    descend,
    gram_pays,
    squares,
)
from fedcohort.training.trainers._samples import Samples

# Local SGD for a whole cohort: clients side by side, step after step.
#
# A step of one client of a small model is a handful of tiny array operations, each of which
# costs more in calling than in computing. So the clients of a cohort are trained together:
# their batches are stacked, and each operation serves all of them.


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


GRAM_BYTES = 256 << 20  # the default limit on what Gram matrices may hold

_TRAIN_BYTES = 16 << 20  # what a group of clients that train together may hold
_PLAN_BYTES = 32  # per row of a batch: its place, its weight and its label
_WIDE = 1024  # columns of one product in an evaluation: models side by side
_TILE = 1 << 20  # entries of such a product: rows times columns


@dataclass(frozen=True)
class Batched(Trainer):
    """The clients of a cohort train together, each in the form that is less work for it.

    Which of the two forms of the first layer a client trains in depends on
    its own samples and on the local work, never on who else was chosen: the Gram form where it
    saves operations and the matrix of the client, with those of all smaller ones, fits into
    ``gram_bytes``; else the direct form.

    Parameters
    ----------
    gram_bytes
        How much memory the Gram matrices may take; 0 turns the Gram form off.
    """

    gram_bytes: int = GRAM_BYTES

    def __post_init__(self) -> None:
        if not is_integer(self.gram_bytes) or self.gram_bytes < 0:
            must = "an integer of at least 0"
            raise BadParameter("gram_bytes", "Batched", must, self.gram_bytes)

    def misfit(self, model: Model, data: ClientData) -> str | None:
        """See `Trainer.misfit`."""
        return None if isinstance(model, Dense) else "it trains dense networks"

    def bind(self, model: Model, data: ClientData) -> BatchedComputation:
        """Samples are copied once, to be side by side; the task keeps that copy only."""
        return BatchedComputation(model, Samples.of_data(data, model.dtype), self.gram_bytes)


class BatchedComputation(Computation):
    """See `Computation`."""

    def __init__(self, model: Model, samples: Samples, gram_bytes: int) -> None:
        self.model, self.samples = model, samples
        weights = list(model.layers.values())[::2]
        self._shapes = [(outputs, inputs + 1) for outputs, inputs in weights]
        self.models_at_once = max(1, _WIDE // self._shapes[0][0])
        self.grams = GramMatrices(samples, gram_bytes)

    @property
    def data(self) -> ClientData:
        """Views of the samples, so that there is one copy only, also in another process."""
        return self.samples.seen()

    # Training

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
        layers = [layer[0] for layer in self._layers(theta[None])]
        updates = np.zeros((len(clients), len(theta)), dtype=self.samples.x.dtype)
        by_form: dict[bool, list[Drawn]] = {False: [], True: []}
        starts = self.samples.starts
        sizes = starts[clients + 1] - starts[clients]
        for position, (client, size, rng) in enumerate(
            zip(clients.tolist(), sizes.tolist(), rngs, strict=True)
        ):
            rows, lengths = batches(rng, size, work, data_rate)
            if len(rows):
                pays = gram_pays(size, rows.size, self._shapes[0][1])
                by_form[pays and self.grams.fits(client)].append((position, rows, lengths))
        # A diverged row is the server's case, and does not stop the others.
        with np.errstate(over="ignore", invalid="ignore"):
            for gram, drawn in by_form.items():
                for group in groups(drawn, partial(self._most, gram=gram)):
                    plan = make_plan(group, clients, updates.dtype)
                    positions = [position for position, _, _ in group]
                    pushes = None if drift is None else self._layers(work.lr * drift[positions])
                    changes = self._train(plan, layers, work, pushes, gram)
                    self._flatten(changes, updates, positions)
        return updates

    def _most(self, steps: int, width: int, gram: bool) -> int:
        """The clients that train together on so many batches of a width."""
        outputs, inputs = self._shapes[0]
        entries = 2 * width * outputs if gram else width * inputs + 2 * outputs * inputs
        plan = _PLAN_BYTES * steps * width
        return max(1, _TRAIN_BYTES // (entries * self.samples.x.itemsize + plan))

    def _train(
        self,
        plan: Plan,
        layers: list[Array],
        work: LocalWork,
        pushes: list[Array] | None,
        gram: bool,
    ) -> list[Array]:
        """The change of each layer, (k, outputs, inputs + 1), of the clients of a plan."""
        push = None if pushes is None else pushes[0]
        if gram:
            matrices = [self.grams.of(int(client)) for client in plan.clients]
            first: Gram | Direct = Gram(self.samples, plan, layers[0], work, push, matrices)
        else:
            first = Direct(self.samples, plan, layers[0], work, push)
        rest = None if pushes is None else pushes[1:]
        changes = train(first, layers[1:], self.samples, plan, work, rest)
        return [first.change(), *changes]

    def pooled(self) -> BatchedComputation:
        """See `Computation.pooled`; one Gram matrix of everything never pays."""
        return BatchedComputation(self.model, self.samples.pooled(), 0)

    # Losses and gradients of a given model

    def gradient_sum(self, theta: Array, rows: Rows) -> Array:
        """See `Computation.gradient_sum`."""
        layers = [layer[0] for layer in self._layers(theta[None])]
        gradients = _gradient_sum(layers, self.samples.x[rows], self.samples.y[rows])
        flat = np.empty((1, len(theta)), dtype=self.samples.x.dtype)
        self._flatten([layer[None] for layer in gradients], flat, [0])
        return np.asarray(flat[0])

    def sample_losses(self, theta: Array, rows: Rows) -> Array:
        """See `Computation.sample_losses`."""
        scores = _scores(self._layers(theta[None]), self.samples.x[rows])
        return np.asarray(_cross_entropy(scores, self.samples.y[rows])[0])

    def tiles(self, thetas: Array, test: bool) -> Iterator[tuple[slice, Array, Array | None]]:
        """See `Computation.tiles`; in wide products, and in bounded memory."""
        samples = self.samples
        x, y = (samples.x_test, samples.y_test) if test else (samples.x, samples.y)
        for part, scores in self._scores(thetas, x):
            correct = _correct(scores, y[part]) if test else None
            yield part, _cross_entropy(scores, y[part]), correct

    def predictions(self, theta: Array) -> Ints:
        """See `Computation.predictions`."""
        scored = self._scores(theta[None], self.samples.x_test)
        tiles = [scores[0].argmax(axis=0) for _, scores in scored]
        return np.concatenate([np.zeros(0, dtype=np.int64), *tiles])

    def _scores(self, thetas: Array, x: Array) -> Iterator[tuple[slice, Array]]:
        """Scores (T, classes, rows) of consecutive rows of ``x``."""
        layers = self._layers(thetas)
        rows = max(64, _TILE // (layers[0].shape[0] * layers[0].shape[1]))
        for start in range(0, len(x), rows):
            part = slice(start, min(start + rows, len(x)))
            yield part, _scores(layers, x[part])

    # Between flat models and layers

    def _layers(self, thetas: Array) -> list[Array]:
        """Flat models (T, d) as layers (T, outputs, inputs + 1), biases last."""
        layers, at = [], 0
        for outputs, inputs in self._shapes:
            layer = np.empty((len(thetas), outputs, inputs), dtype=self.samples.x.dtype)
            end = at + outputs * (inputs - 1)
            weights = thetas[:, at:end].reshape(len(thetas), outputs, inputs - 1)
            with np.errstate(over="ignore"):  # to infinity, and so is the loss
                layer[:, :, :-1], layer[:, :, -1] = weights, thetas[:, end : end + outputs]
            at = end + outputs
            layers.append(layer)
        return layers

    def _flatten(self, layers: list[Array], out: Array, positions: list[int]) -> None:
        """Write layers (k, outputs, inputs + 1) to rows of flat models (., d)."""
        at = 0
        for (outputs, inputs), layer in zip(self._shapes, layers, strict=True):
            end = at + outputs * (inputs - 1)
            for position, matrix in zip(positions, layer, strict=True):
                out[position, at:end].reshape(outputs, inputs - 1)[...] = matrix[:, :-1]
                out[position, end : end + outputs] = matrix[:, -1]
            at = end + outputs


def _scores(layers: list[Array], x: Array) -> Array:
    """The scores of T models: layers (T, outputs, inputs + 1), ``x`` (R, d + 1) -> (T, C, R)."""
    models, outputs, inputs = layers[0].shape
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.matmul(layers[0].reshape(-1, inputs), x.T).reshape(models, outputs, len(x))
        for layer in layers[1:]:
            np.maximum(z, 0, out=z)
            z = np.matmul(layer[:, :, :-1], z)
            z += layer[:, :, -1:]
        return np.asarray(z)


def _right(scores: Array, y: Ints) -> Array:
    """The score of the right class of each sample, (T, C, R) -> (T, R)."""
    flat = scores.reshape(len(scores), -1)
    return flat.take(y * len(y) + np.arange(len(y)), axis=1)


def _correct(scores: Array, y: Ints) -> Array:
    """Whether the right class is the first with the highest score, (T, C, R) -> (T, R).

    That is ``scores.argmax(axis=1) == y``, which numpy does slowly along such an axis.
    """
    highest = scores.max(axis=1)
    correct = _right(scores, y) == highest
    for label in range(scores.shape[1] - 1):
        correct &= (scores[:, label] < highest) | (y <= label)
    return np.asarray(correct)


def _cross_entropy(scores: Array, y: Ints) -> Array:
    """The loss of each sample, (T, C, R) -> (T, R), infinite where it overflows.

    The scores are used up.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scores -= scores.max(axis=1, keepdims=True)
        right = _right(scores, y)
        np.exp(scores, out=scores)
        values = np.log(scores.sum(axis=1)) - right
    np.copyto(values, np.inf, where=np.isnan(values))
    return np.asarray(values)


def _gradient_sum(layers: list[Array], x: Array, y: Ints) -> list[Array]:
    """The sum over samples of the gradients of the cross-entropy, layer by layer."""
    ones = np.ones((1, len(y)), dtype=x.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        z = layers[0] @ x.T  # (h, R)
        given = [x.T]
        for layer in layers[1:]:
            given.append(np.concatenate([np.maximum(z, 0), ones]))  # (h + 1, R)
            z = layer @ given[-1]
        softmax_error(z, ones[0], y)  # (C, R)
        gradients, error = list[Array](), z
        for layer, inputs in zip(layers[::-1], given[::-1], strict=True):
            gradients.insert(0, error @ inputs.T)
            error = (layer[:, :-1].T @ error) * (inputs[:-1] > 0)  # unused for the first layer
        return gradients
