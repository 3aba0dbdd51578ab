"""What softmax regression and the multilayer perceptron share: all but their depth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core.errors import BadParameter
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning.batches import batches, participants
from fedcohort.learning.data import Samples, is_integer
from fedcohort.learning.task import Evaluation, Task, check_importance
from fedcohort.learning.trainers.cohort import Drawn, groups, make_plan, softmax_error, train
from fedcohort.learning.trainers.layers import Direct, Gram, GramMatrices, Plan, gram_pays
from fedcohort.learning.work import LocalWork
from fedcohort.maths.draws import distinct

GRAM_BYTES = 256 << 20  # the default limit on what Gram matrices may hold

_TRAIN_BYTES = 16 << 20  # what a group of clients that train together may hold
_PLAN_BYTES = 32  # per row of a batch: its place, its weight and its label
_WIDE = 1024  # columns of one product in an evaluation: models side by side
_TILE = 1 << 20  # entries of such a product: rows times columns
_MERGE = 512  # samples: clients with fewer are evaluated together


class Classifier(Task):
    """A network with one or no hidden layer of ReLUs, trained by the cross-entropy.

    A flat model holds, layer by layer, the weights (outputs, inputs) and then the biases:
    the order of torch's ``parameters_to_vector(Sequential(Linear, ReLU, Linear).parameters())``.
    `widths` are the inputs, [the hidden units,] and the classes.
    """

    caches = ("_grams",)

    def __init__(
        self,
        samples: Samples,
        hidden: int | None,
        importance: ArrayLike | None = None,
        gram_bytes: int = GRAM_BYTES,
    ) -> None:
        owner = type(self).__name__
        for name, value, least in (("hidden", hidden, 1), ("gram_bytes", gram_bytes, 0)):
            if value is not None and (not is_integer(value) or value < least):
                raise BadParameter(name, owner, f"an integer of at least {least}", value)
        self.samples = samples
        self.sizes = samples.sizes
        self.classes = samples.classes
        self.importance = check_importance(importance, self.sizes, owner)
        self.label_histograms: Ints = samples.label_histograms()
        middle = () if hidden is None else (int(hidden),)
        self.widths: tuple[int, ...] = (samples.features, *middle, samples.classes)
        self._shapes = [(outputs, inputs + 1) for inputs, outputs in pairwise(self.widths)]
        self.dimension = sum(outputs * inputs for outputs, inputs in self._shapes)
        self.gram_bytes = int(gram_bytes)  # which form a client takes decides the last digits
        self._grams = GramMatrices(samples, self.gram_bytes)

    # Training

    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
        drift: Array | None = None,
    ) -> Array:
        """Local training of a cohort; see `Task.updates`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, data_rate)
        self._check_drift(clients, drift)
        layers = [layer[0] for layer in self._layers(theta[None])]
        updates = np.zeros((len(clients), self.dimension), dtype=self.samples.x.dtype)
        by_form: dict[bool, list[Drawn]] = {False: [], True: []}
        for position, (client, rng) in enumerate(zip(clients.tolist(), rngs, strict=True)):
            size = int(self.sizes[client])
            rows, lengths = batches(rng, size, work, data_rate)
            if len(rows):
                pays = gram_pays(size, rows.size, self._shapes[0][1])
                by_form[pays and self._grams.fits(client)].append((position, rows, lengths))
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
            matrices = [self._grams.of(int(client)) for client in plan.clients]
            first: Gram | Direct = Gram(self.samples, plan, layers[0], work, push, matrices)
        else:
            first = Direct(self.samples, plan, layers[0], work, push)
        head = layers[1] if len(layers) > 1 else None
        push = pushes[-1] if pushes is not None else None
        change = train(first, head, self.samples, plan, work, push)
        return [first.change()] if change is None else [first.change(), change]

    def pooled(self) -> Self:
        """The same model and test set, with all samples on one client; nothing is copied."""
        ends = np.array([0, len(self.samples.y)])
        together = copy(self)
        together.samples = replace(self.samples, starts=ends)
        together.sizes = together.samples.sizes
        together.importance = np.ones(1)
        together.label_histograms = together.samples.label_histograms()
        together._grams = GramMatrices(together.samples, 0)  # one matrix of everything never pays
        return together

    # Losses and gradients of a given model

    def losses(self, theta: Array, clients: Ints) -> Floats:
        """Mean cross-entropy of each client, (k,); see `Task.losses`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        layers = self._layers(theta[None])
        sums = np.zeros(len(clients))
        for first, last in _merged(self.sizes[clients]):
            slices = [self.samples.of(int(client)) for client in clients[first:last]]
            x, y = _joined(self.samples.x, slices), _joined(self.samples.y, slices)
            values = _cross_entropy(_scores(layers, x), y)[0]  # (R,)
            owner = np.repeat(np.arange(last - first), self.sizes[clients[first:last]])
            sums[first:last] = np.bincount(owner, weights=values, minlength=last - first)
        return sums / np.maximum(self.sizes[clients], 1)

    def sample_losses(self, theta: Array, client: int) -> Array:
        """The cross-entropy of each sample of a client, (n_i,)."""
        layers = self._layers(self._check_models(theta, 1)[None])
        part = self.samples.of(int(self._check_clients(np.array([client]))[0]))
        values = _cross_entropy(_scores(layers, self.samples.x[part]), self.samples.y[part])
        return np.asarray(values[0])

    def batch_losses(
        self, theta: Array, clients: Ints, batch: int, rngs: Sequence[np.random.Generator]
    ) -> Floats:
        """Mean cross-entropy over one mini-batch of each client; see `Task.batch_losses`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, 1.0)
        layers = self._layers(theta[None])
        means = np.zeros(len(clients))
        for position, (client, rng) in enumerate(zip(clients.tolist(), rngs, strict=True)):
            size = int(self.sizes[client])
            if size:
                rows = int(self.samples.starts[client]) + distinct(rng, size, min(batch, size))
                scores = _scores(layers, self.samples.x[rows])
                means[position] = _cross_entropy(scores, self.samples.y[rows])[0].mean()
        return means

    def feature_histograms(self, clients: Ints, bins: int) -> Ints:
        """How the features of each class are distributed; see `Task.feature_histograms`."""
        clients = self._check_clients(clients)
        if not is_integer(bins) or bins < 1:
            raise BadParameter("bins", type(self).__name__, "an integer of at least 1", bins)
        counts = np.zeros((len(clients), self.classes, bins), dtype=np.int64)
        for client, histograms in zip(clients.tolist(), counts, strict=True):
            part = self.samples.of(client)
            bin_of = np.clip(self.samples.x[part, :-1] * bins, 0, bins - 1).astype(np.int64)
            cells = bin_of + bins * self.samples.y[part, None]  # (n_i, features)
            histograms += np.bincount(cells.ravel(), minlength=counts[0].size).reshape(-1, bins)
        return counts

    def predictions(self, theta: Array) -> Ints:
        """The class that a model gives to each sample of the test set, (M',)."""
        layers = self._layers(self._check_models(theta, 1)[None])
        tiles = [scores[0].argmax(axis=0) for _, scores in self._tiles(layers, self.samples.x_test)]
        return np.concatenate([np.zeros(0, dtype=np.int64), *tiles])

    def gradient_sums(
        self,
        theta: Array,
        clients: Ints,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
    ) -> tuple[Array, Ints]:
        """Sums of the gradients of the samples that take part; see `Task.gradient_sums`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, data_rate)
        layers = [layer[0] for layer in self._layers(theta[None])]
        sums = np.zeros((len(clients), self.dimension), dtype=self.samples.x.dtype)
        counts = np.zeros(len(clients), dtype=np.int64)
        for position, (client, rng) in enumerate(zip(clients.tolist(), rngs, strict=True)):
            part = self.samples.of(client)
            rows = participants(rng, int(self.sizes[client]), data_rate)
            counts[position] = len(rows)
            if len(rows) == 0:
                continue
            x, y = self.samples.x[part], self.samples.y[part]
            if len(rows) < len(y):
                x, y = x[rows], y[rows]
            gradients = _gradient_sum(layers, x, y)
            self._flatten([layer[None] for layer in gradients], sums, [position])
        return sums, counts

    def client_losses(self, thetas: Array) -> Floats:
        """Mean cross-entropy of several models for every client, (T, n)."""
        thetas = self._check_models(thetas, 2)
        sums = np.zeros((len(thetas), len(self.sizes)))
        held = np.flatnonzero(self.sizes)
        for some in self._together(len(thetas)):
            values = np.empty((some.stop - some.start, len(self.samples.y)))  # (T', M)
            layers = self._layers(thetas[some])
            for part, scores in self._tiles(layers, self.samples.x):
                values[:, part] = _cross_entropy(scores, self.samples.y[part])
            sums[some, held] = np.add.reduceat(values, self.samples.starts[held], axis=1)
        return sums / np.maximum(self.sizes, 1)

    def evaluate(self, thetas: Array) -> Evaluation:
        """Losses and accuracy of several models, in wide products; see `Task.evaluate`."""
        thetas = self._check_models(thetas, 2)
        train_loss = self.client_losses(thetas) @ self.importance
        x, y = self.samples.x_test, self.samples.y_test
        if len(y) == 0:
            nothing = np.full(len(thetas), np.nan)
            return Evaluation(train_loss, nothing, nothing.copy())
        test_loss, accuracy = np.zeros(len(thetas)), np.zeros(len(thetas))
        for some in self._together(len(thetas)):
            for part, scores in self._tiles(self._layers(thetas[some]), x):
                accuracy[some] += _correct(scores, y[part]).sum(axis=1)
                test_loss[some] += _cross_entropy(scores, y[part]).sum(axis=1, dtype=np.float64)
        return Evaluation(train_loss, test_loss / len(y), accuracy / len(y))

    def _together(self, models: int) -> Iterator[slice]:
        """Which models are evaluated side by side."""
        most = max(1, _WIDE // self._shapes[0][0])
        for start in range(0, models, most):
            yield slice(start, min(start + most, models))

    def _tiles(self, layers: list[Array], x: Array) -> Iterator[tuple[slice, Array]]:
        """Scores (T, classes, rows) of consecutive rows of ``x``, in bounded memory."""
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


def _merged(sizes: Ints) -> Iterator[tuple[int, int]]:
    """Runs [first, last) of clients with few samples each, or one with many."""
    first, samples = 0, 0
    for position, size in enumerate(sizes.tolist()):
        samples += size
        if samples >= _MERGE:
            yield first, position + 1
            first, samples = position + 1, 0
    if samples:
        yield first, len(sizes)


def _joined(array: Array, slices: list[slice]) -> Array:
    return array[slices[0]] if len(slices) == 1 else np.concatenate([array[s] for s in slices])


def _scores(layers: list[Array], x: Array) -> Array:
    """The scores of T models: layers (T, outputs, inputs + 1), ``x`` (R, d + 1) -> (T, C, R)."""
    models, outputs, inputs = layers[0].shape
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.matmul(layers[0].reshape(-1, inputs), x.T).reshape(models, outputs, len(x))
        if len(layers) == 1:
            return np.asarray(z)
        np.maximum(z, 0, out=z)
        scores = np.matmul(layers[1][:, :, :-1], z)
        scores += layers[1][:, :, -1:]
        return np.asarray(scores)


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
        given = np.concatenate([np.maximum(z, 0), ones])  # (h + 1, R)
        scores = z if len(layers) == 1 else layers[1] @ given  # (C, R)
        softmax_error(scores, ones[0], y)
        if len(layers) == 1:
            return [scores @ x]
        error = (layers[1][:, :-1].T @ scores) * (z > 0)
        return [error @ x, scores @ given.T]
