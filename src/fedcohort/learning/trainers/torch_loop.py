"""Torch models, one client after another: the fast way for convolutions and recurrent layers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from fedcohort.core.types import Array, Ints
from fedcohort.learning.batches import batches
from fedcohort.learning.data import ClientData
from fedcohort.learning.model import Model
from fedcohort.learning.network import Network, Weights
from fedcohort.learning.trainer import Trainer
from fedcohort.learning.trainers.plain import PlainComputation
from fedcohort.learning.trainers.torch_steps import Descent
from fedcohort.learning.work import LocalWork

_TILE = 512  # samples that are evaluated at a time


@dataclass(frozen=True)
class TorchLoop(Trainer):
    """One client after another, in channels-last where the module convolves images."""

    def misfit(self, model: Model, data: ClientData) -> str | None:
        """See `Trainer.misfit`."""
        return None if isinstance(model, Network) else "it trains models of torch"

    def bind(self, model: Model, data: ClientData) -> TorchComputation:
        """Nothing is copied: samples are read as they are needed."""
        assert isinstance(model, Network)  # noqa: S101  # by `misfit`
        return TorchComputation(model, data)


class TorchComputation(PlainComputation):
    """See `Computation`; questions are answered in evaluation mode."""

    model: Network
    models_at_once = 16  # samples are read once for all of them

    def __init__(self, model: Network, data: ClientData) -> None:
        super().__init__(model, data)

    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float,
        drift: Array | None,
    ) -> Array:
        """See `Computation.updates`; dropout follows from the client's generator, too."""
        rows = np.zeros((len(clients), len(theta)), dtype=self.model.dtype)
        pushes: Sequence[Array | None] = [None] * len(clients) if drift is None else list(drift)
        with self.model.at_work() as weights:
            for row, client, rng, push in zip(rows, clients, rngs, pushes, strict=True):
                part = self.data.part(int(client))
                taken, lengths = batches(rng, part.stop - part.start, work, data_rate)
                if len(taken):
                    steps = [part.start + some[:n] for some, n in zip(taken, lengths, strict=True)]
                    torch.manual_seed(rng.bit_generator.random_raw())
                    row[:] = self._train(weights, theta, steps, work, push)
        return rows

    def _train(
        self, weights: Weights, theta: Array, steps: list[Ints], work: LocalWork, push: Array | None
    ) -> Array:
        """What the steps on these samples add to a model."""
        start = self.model.tensor(theta)
        weights.load(start)
        parameters = list(weights.parameters.values())
        drift = None if push is None else weights.cut(self.model.tensor(push))[: len(parameters)]
        descent = Descent(work, weights.cut(start)[: len(parameters)], drift)
        for rows in steps:
            x, y = self.data.samples(rows)
            inputs, targets = self.model.batch(x), self.model.tensor(y)
            weights.train(len(rows))
            loss = self.model.loss_of(weights.module(inputs), targets).mean()
            gradients = torch.autograd.grad(loss, parameters, materialize_grads=True)
            descent.step(parameters, gradients)
        return (weights.read() - start).cpu().numpy()

    def tiles(self, thetas: Array, test: bool) -> Iterator[tuple[slice, Array, Array | None]]:
        """See `Computation.tiles`."""
        data = self.data
        for start in range(0, len(data.y_test) if test else data.total, _TILE):
            part = slice(start, start + _TILE)
            x, y = data.tested(part) if test else data.samples(part)
            part = slice(start, start + len(y))
            correct = None
            if test and data.classes is not None:
                told = [self.model.told(theta, x, y) for theta in thetas]
                losses = np.stack([each for each, _ in told])
                correct = np.stack([classes == y for _, classes in told])
            else:
                losses = np.stack([self.model.sample_losses(theta, x, y) for theta in thetas])
            yield part, np.where(np.isnan(losses), np.inf, losses), correct

    def predictions(self, theta: Array) -> Ints | None:
        """See `Computation.predictions`."""
        return None if self.data.classes is None else super().predictions(theta)

    def pooled(self) -> TorchComputation:
        """See `Computation.pooled`."""
        return type(self)(self.model, self.data.pooled())
