"""Small dense torch models, the clients of a cohort side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from fedcohort._internal.types import Array, Ints
from fedcohort.training._client_data import ClientData
from fedcohort.training._local import LocalWork
from fedcohort.training._model import Model, Trainer
from fedcohort.training._task import batches
from fedcohort.training._torch_model import Network, Weights
from fedcohort.training.trainers._batched import Drawn, groups, make_plan
from fedcohort.training.trainers._first_layer import Plan
from fedcohort.training.trainers._plain import PlainComputation

# One step of local SGD on tensors, as `LocalWork` says.


Tensors = list[Tensor] | tuple[Tensor, ...]


class Descent:
    """Steps from where a client, or a group of clients side by side, starts.

    Parameters
    ----------
    work
        Step size and all else that `LocalWork` adds to a gradient.
    start
        The parameters that the server sent, one tensor each.
    drift
        What is added to every gradient, tensors like the parameters, or None.
    together
        Whether parameters have a first axis for clients; those at work are the first of them.
    """

    def __init__(
        self, work: LocalWork, start: Tensors, drift: Tensors | None, together: bool = False
    ) -> None:
        self.work, self.start, self.drift, self.together = work, start, drift, together
        self.velocity: Tensors | None = None

    @torch.no_grad()
    def step(self, parameters: Tensors, gradients: Tensors) -> None:
        """Change the parameters, in place."""
        work, along = self.work, gradients
        if work.clip is not None:
            along = self._clipped(along, work.clip)
        if work.decay:
            along = torch._foreach_add(along, parameters, alpha=work.decay)
        if work.mu:
            away = torch._foreach_sub(parameters, self.start)
            along = torch._foreach_add(along, away, alpha=work.mu)
        if self.drift is not None:
            along = torch._foreach_add(along, self._at_work(self.drift, parameters))
        if work.momentum:
            if self.velocity is None:
                self.velocity = [torch.zeros_like(each) for each in parameters]
            velocity = self._at_work(self.velocity, parameters)
            torch._foreach_mul_(velocity, work.momentum)
            torch._foreach_add_(velocity, along)
            along = velocity
        torch._foreach_add_(parameters, along, alpha=-work.lr)

    def _at_work(self, tensors: Tensors, parameters: Tensors) -> Tensors:
        return [each[: len(parameters[0])] for each in tensors] if self.together else tensors

    def _clipped(self, gradients: Tensors, most: float) -> Tensors:
        """Each client's gradient, all tensors of it together, at most so long."""
        first = int(self.together)
        squares = torch.stack([each.flatten(first).square().sum(-1) for each in gradients]).sum(0)
        factors = (most / squares.sqrt()).clamp(max=1)  # (k,), or a number
        shapes = [(-1, *(1,) * (each.ndim - 1)) if self.together else () for each in gradients]
        return [each * factors.view(shape) for each, shape in zip(gradients, shapes, strict=True)]


# Torch models, one client after another: the fast way for convolutions and recurrent layers.


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


_TRAIN_BYTES = 64 << 20  # what a group of clients that train together may hold
_PARAMETERS = 1 << 16  # of larger networks, a step of one client alone is no longer all overhead
_LAYERS = (
    nn.Linear,
    nn.Flatten,
    nn.Unflatten,
    nn.Identity,
    nn.LayerNorm,
    nn.ReLU,
    nn.LeakyReLU,
    nn.ELU,
    nn.GELU,
    nn.SiLU,
    nn.Tanh,
    nn.Sigmoid,
    nn.Softplus,
)


@dataclass(frozen=True)
class TorchCohort(Trainer):
    """The clients of a cohort in one batched product, for small dense networks.

    For modules on the CPU of at most 65,536 parameters, all in linear layers and layer
    normalisation: a step of one client is then mostly the calling of operations, and one call
    serves all clients. Convolutions and recurrent layers are slower side by side than one after
    another (see docs/models.md for what was measured), and dropout and BatchNorm must not depend
    on who else was chosen, so those are left to `TorchLoop`.
    """

    def misfit(self, model: Model, data: ClientData) -> str | None:
        """See `Trainer.misfit`; the module is tried on two clients."""
        if not isinstance(model, Network):
            return "it trains models of torch"
        with model.at_work() as weights:
            leaves = [part for part in weights.module.modules() if not any(part.children())]
            if not all(type(part) in _LAYERS for part in leaves) or weights.buffers:
                return "it trains dense networks without dropout and running statistics"
            if model.dimension > _PARAMETERS:
                return f"it trains networks of at most {_PARAMETERS} parameters"
            x, y = data.samples(np.zeros(4, dtype=np.int64))
            inputs, targets = (
                each.view(2, 2, *each.shape[1:]) for each in (model.batch(x), model.tensor(y))
            )
            weights.module.train()
            stacked = {name: torch.stack([p, p]) for name, p in weights.parameters.items()}
            try:
                _losses(model, weights, stacked, inputs, targets)
            except Exception:  # whatever it is that cannot be computed side by side
                return "its module cannot be computed for several clients at once"
        return None

    def bind(self, model: Model, data: ClientData) -> TorchCohortComputation:
        """Nothing is copied: samples are read as they are needed."""
        assert isinstance(model, Network)  # noqa: S101  # by `misfit`
        return TorchCohortComputation(model, data)


class TorchCohortComputation(TorchComputation):
    """See `Computation`."""

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
        rows = np.zeros((len(clients), len(theta)), dtype=self.model.dtype)
        drawn: list[Drawn] = []
        sizes = self.data.sizes[clients].tolist()
        for position, (size, rng) in enumerate(zip(sizes, rngs, strict=True)):
            taken, lengths = batches(rng, size, work, data_rate)
            if len(taken):
                drawn.append((position, taken, lengths))
        with self.model.at_work() as weights:
            for group in groups(drawn, self._most):
                plan = make_plan(group, clients, rows.dtype)
                places = [position for position, _, _ in group]
                push = None if drift is None else drift[places]
                rows[places] = self._train_together(weights, theta, plan, work, push)
        return rows

    def _most(self, steps: int, width: int) -> int:
        """The clients that train together on batches of a width."""
        floats = 4 * self.model.dimension + 2 * width * self.data.features
        return max(1, _TRAIN_BYTES // (floats * self.model.dtype.itemsize))

    def _train_together(
        self, weights: Weights, theta: Array, plan: Plan, work: LocalWork, push: Array | None
    ) -> Array:
        """What training adds to the model of each client of a plan, (k, d)."""
        start = self.model.tensor(theta)
        first = weights.cut(start)
        count = len(plan.clients)
        held = [part.expand(count, *part.shape).clone() for part in first]
        drift = None
        if push is not None:
            each = [weights.cut(self.model.tensor(row)) for row in push]
            drift = [torch.stack(parts) for parts in zip(*each, strict=True)]
        descent = Descent(work, first, drift, together=True)
        starts = self.data.starts[plan.clients][:, None]
        weights.module.train()
        for rows, shares, active in zip(plan.rows, plan.weights, plan.active, strict=True):
            now = [part[:active].detach().requires_grad_() for part in held]
            places = (rows + starts)[:active]  # (k, B)
            x, y = self.data.samples(places.ravel())
            inputs, targets = self.model.batch(x), self.model.tensor(y)
            shape = places.shape
            losses = _losses(
                self.model,
                weights,
                dict(zip(weights.parameters, now, strict=True)),
                inputs.view(*shape, *inputs.shape[1:]),
                targets.view(*shape, *targets.shape[1:]),
            )
            total = (losses * self.model.tensor(shares[:active])).sum()
            gradients = torch.autograd.grad(total, now, materialize_grads=True)
            descent.step(now, gradients)
        changes = [
            (part - begin).reshape(count, -1) for part, begin in zip(held, first, strict=True)
        ]
        return torch.cat(changes, dim=1).cpu().numpy()


def _losses(
    model: Network, weights: Weights, stacked: dict[str, Tensor], inputs: Tensor, targets: Tensor
) -> Tensor:
    """The losses (k, B) of the samples of clients with parameters of their own."""

    def alone(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return model.loss_of(functional_call(weights.module, parameters, (x,)), y)

    return vmap(alone)(stacked, inputs, targets)
