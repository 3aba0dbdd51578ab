"""A model, the data of clients and a trainer: a task."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._draws import distinct
from fedcohort.training._call_checks import check_parts
from fedcohort.training._client_data import ClientData, is_integer
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Computation, Model, Trainer
from fedcohort.training._task import Evaluation, Task, check_importance, participants
from fedcohort.training.trainers import TRAINERS

_MERGE = 512  # samples: clients with fewer are evaluated together


class LearningTask(Task):
    """A model that clients learn from their samples.

    Parameters
    ----------
    model : Model
        What is learnt.
    data : ClientData
        Who holds which samples, and the test set.
    trainer : Trainer, optional
        How it is computed; by default the first of `fedcohort.training.trainers.TRAINERS` that
        can: in numpy, clients side by side, for dense networks; for any other model a plain
        loop. A torch model chooses by itself, see `fedcohort.training.Network`.
    importance : (n,) floats, optional
        p; by size unless given.

    Examples
    --------
    >>> from fedcohort.training import ClientData, Dense
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> data = ClientData.divide(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2)
    >>> task = LearningTask(Dense((4, 2), start="zero"), data)
    >>> task.evaluate(task.initial(0)[None]).train_loss.round(4)
    array([0.6931])
    >>> task.trainer
    Batched(gram_bytes=268435456)
    """

    def __init__(
        self,
        model: Model,
        data: ClientData,
        trainer: Trainer | None = None,
        importance: ArrayLike | None = None,
    ) -> None:
        check_parts(model, data)
        reason = model.misfit(data)
        if reason is None:
            trainer = trainer or model.trainer(data)
            trainer = trainer or next(each for each in TRAINERS if not each.misfit(model, data))
            reason = trainer.misfit(model, data)
        if reason is not None or trainer is None:
            by = "" if trainer is None else f" by {trainer}"
            raise BadInput(
                f"The model {model.name!r} cannot be trained{by} on these data: {reason}."
            )
        self.name, self.model, self.trainer = model.name, model, trainer
        self.dimension = model.dimension
        self._hold(trainer.bind(model, data))
        self.importance = check_importance(importance, self.sizes, type(self).__name__)

    def _hold(self, computation: Computation) -> None:
        self._computation, data = computation, computation.data
        self.sizes, self.classes = data.sizes, data.classes
        self.label_histograms = data.label_histograms()

    @property
    def data(self) -> ClientData:
        """Who holds which samples; read by a fast trainer, they are in the model's type."""
        return self._computation.data

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each named layer in a flat model, in order."""
        return self.model.layers

    @property
    def statistics(self) -> int:  # type: ignore[override]
        """As the model says."""
        return self.model.statistics

    def initial(self, seed: int) -> Floats:
        """As the model says; see `Task.initial`."""
        return self.model.initial(seed)

    @property
    def measures(self) -> tuple[str, ...]:  # type: ignore[override]
        """Accuracy client by client where test samples are clients' own; perplexity of tokens."""
        data = self.data
        own = () if data.test_starts is None else ("client-accuracy",)
        follows = data.vocabulary is not None and data.vocabulary == data.classes
        return own + (("perplexity",) if follows else ())

    def subset(self, samples: int) -> Self:
        """See `Task.subset`; what clients count for stays as it is."""
        few = copy(self)
        few._hold(self.trainer.bind(self.model, self.data.subset(samples)))
        return few

    def validation(self, share: float = 0.2, seed: int = 0) -> Self:
        """See `Task.validation`; where samples are clients' own in the test set, so they are here.

        Clients that share a sample are told apart by `fedcohort.Problem` only: a fast trainer has
        copied it for each of them.
        """
        data, shorter = self.data, copy(self)
        by_size = np.array_equal(self.importance, self.sizes / data.total)
        shorter._hold(self.trainer.bind(self.model, data.validation(share, seed)))
        if by_size:
            shorter.importance = check_importance(None, shorter.sizes, type(self).__name__)
        return shorter

    def pooled(self) -> Self:
        """The same model and test set, with all samples on one client; nothing is copied."""
        together = copy(self)
        together._hold(self._computation.pooled())
        together.importance = np.ones(1)
        return together

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
        return self._computation.updates(theta, clients, work, rngs, data_rate, drift)

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
        sums = np.zeros((len(clients), self.dimension), dtype=self.model.dtype)
        counts, data = np.zeros(len(clients), dtype=np.int64), self.data
        for position, (client, rng) in enumerate(zip(clients.tolist(), rngs, strict=True)):
            part, size = data.part(client), int(self.sizes[client])
            rows = participants(rng, size, data_rate)
            counts[position] = len(rows)
            if len(rows):
                taken = part if len(rows) == size else part.start + rows
                sums[position] = self._computation.gradient_sum(theta, taken)
        return sums, counts

    # Losses of a given model

    def losses(self, theta: Array, clients: Ints) -> Floats:
        """The mean loss of each client, (k,); see `Task.losses`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        sizes, data = self.sizes[clients], self.data
        sums = np.zeros(len(clients))
        for first, last in _merged(sizes):
            parts = [data.part(client) for client in clients[first:last].tolist()]
            rows = [np.arange(part.start, part.stop) for part in parts]
            joined = parts[0] if len(parts) == 1 else np.concatenate(rows)
            values = self._computation.sample_losses(theta, joined)  # (R,)
            owner = np.repeat(np.arange(last - first), sizes[first:last])
            sums[first:last] = np.bincount(owner, weights=values, minlength=last - first)
        return sums / np.maximum(sizes, 1)

    def sample_losses(self, theta: Array, client: int) -> Array:
        """The loss of each sample of a client, (n_i,)."""
        theta = self._check_models(theta, 1)
        part = self.data.part(int(self._check_clients(np.array([client]))[0]))
        return self._computation.sample_losses(theta, part)

    def batch_losses(
        self, theta: Array, clients: Ints, batch: int, rngs: Sequence[np.random.Generator]
    ) -> Floats:
        """The mean loss over one mini-batch of each client; see `Task.batch_losses`."""
        theta = self._check_models(theta, 1)
        clients = self._check_clients(clients)
        self._check_rngs(clients, rngs, 1.0)
        means, data = np.zeros(len(clients)), self.data
        for position, (client, rng) in enumerate(zip(clients.tolist(), rngs, strict=True)):
            size = int(self.sizes[client])
            if size:
                rows = data.part(client).start + distinct(rng, size, min(batch, size))
                means[position] = self._computation.sample_losses(theta, rows).mean()
        return means

    def client_losses(self, thetas: Array) -> Floats:
        """The mean loss of several models for every client, (T, n)."""
        thetas = self._check_models(thetas, 2)
        sums = np.zeros((len(thetas), len(self.sizes)))
        held, data = np.flatnonzero(self.sizes), self.data
        for some in self._together(len(thetas)):
            values = np.empty((some.stop - some.start, data.total))  # (T', M)
            for part, losses, _ in self._computation.tiles(thetas[some], test=False):
                values[:, part] = losses
            sums[some, held] = np.add.reduceat(values, data.starts[held], axis=1)
        return sums / np.maximum(self.sizes, 1)

    def evaluate(self, thetas: Array) -> Evaluation:
        """Losses and accuracy of several models; see `Task.evaluate`."""
        thetas = self._check_models(thetas, 2)
        train_loss = self.client_losses(thetas) @ self.importance
        count = len(self.data.y_test)
        if count == 0:
            nothing = np.full(len(thetas), np.nan)
            return Evaluation(train_loss, nothing, nothing.copy())
        test_loss, accuracy = np.zeros(len(thetas)), np.zeros(len(thetas))
        own = self.data.test_starts is not None
        hits = np.zeros((len(thetas), count), dtype=np.bool_) if own else None
        for some in self._together(len(thetas)):
            for part, losses, correct in self._computation.tiles(thetas[some], test=True):
                accuracy[some] += np.nan if correct is None else correct.sum(axis=1)
                test_loss[some] += losses.sum(axis=1, dtype=np.float64)
                if hits is not None and correct is not None:
                    hits[some, part] = correct
        shares = None if hits is None or np.isnan(accuracy).any() else self._by_client(hits)
        return Evaluation(train_loss, test_loss / count, accuracy / count, shares)

    def _by_client(self, hits: Array) -> Floats:
        """The share of each client's own test samples that are hit, (T, M') -> (T, n)."""
        data = self.data
        starts = np.asarray(data.test_starts)
        sums = np.zeros((len(hits), int(starts[-1]) + 1), dtype=np.int64)
        np.cumsum(hits[:, data.test_rows], axis=1, out=sums[:, 1:])
        counts = np.diff(starts)
        return np.asarray(np.diff(sums[:, starts], axis=1) / np.where(counts > 0, counts, np.nan))

    def predictions(self, theta: Array) -> Ints:
        """The class that a model gives to each sample of the test set, (M',)."""
        told = self._computation.predictions(self._check_models(theta, 1))
        if told is None:
            raise BadInput(f"The model {self.name!r} does not tell classes.")
        return told

    def feature_histograms(self, clients: Ints, bins: int) -> Ints:
        """How the features of each class are distributed; see `Task.feature_histograms`."""
        clients = self._check_clients(clients)
        if not is_integer(bins) or bins < 1:
            raise BadParameter("bins", type(self).__name__, "an integer of at least 1", bins)
        if self.classes is None:
            return super().feature_histograms(clients, bins)
        counts, data = np.zeros((len(clients), self.classes, bins), dtype=np.int64), self.data
        for client, histograms in zip(clients.tolist(), counts, strict=True):
            x, y = data.samples(data.part(client))
            scaled = x.reshape(len(x), data.features) * np.float32(bins)
            bin_of = np.clip(scaled, 0, bins - 1).astype(np.int64)
            cells = bin_of + bins * y[:, None]  # (n_i, features)
            histograms += np.bincount(cells.ravel(), minlength=counts[0].size).reshape(-1, bins)
        return counts

    def _together(self, models: int) -> Iterator[slice]:
        """Which models are evaluated side by side."""
        most = self._computation.models_at_once
        for start in range(0, models, most):
            yield slice(start, min(start + most, models))


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
