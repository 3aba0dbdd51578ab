"""Models that torch computes: a module, its weights as one flat vector, a loss for each sample."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Whole
from fedcohort._internal.random import key_of
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.learning.allocator import keep_freed_memory
from fedcohort.learning.data import ClientData
from fedcohort.learning.model import Model
from fedcohort.learning.trainer import Trainer
from fedcohort.learning.tryout import Tryout, channels_of, first_line

_TILE = 512  # samples that go through a module at a time outside of training
_DTYPES: dict[torch.dtype, np.dtype[Any]] = {
    torch.float32: np.dtype(np.float32),
    torch.float64: np.dtype(np.float64),
}
_AT_WORK = threading.RLock()  # torch's generator and number of threads are the process's


class Weights:
    """A module whose trainable parameters and running statistics are one flat vector.

    Parameters come first, in the order of ``module.named_parameters()``, then the buffers that
    hold floating numbers and belong to the state of the module, such as the running means of
    BatchNorm. Frozen parameters and other buffers are as the module has them: `load` puts back
    what training counted there.
    """

    def __init__(self, module: nn.Module, device: str) -> None:
        self.convolves = any(isinstance(part, nn.Conv2d) for part in module.modules())
        layout = {"memory_format": torch.channels_last} if self.convolves else {}
        self.module = module.to(device, **layout)  # type: ignore[call-overload]
        state = self.module.state_dict(keep_vars=True)
        named = dict(self.module.named_buffers())
        self.parameters = {
            name: each for name, each in self.module.named_parameters() if each.requires_grad
        }
        self.buffers = {
            name: each for name, each in named.items() if name in state and each.is_floating_point()
        }
        self.rest = {
            name: (each, each.detach().clone())
            for name, each in named.items()
            if name not in self.buffers
        }
        self.normalisers = [
            part
            for part in self.module.modules()
            if isinstance(part, nn.modules.batchnorm._BatchNorm)
        ]

    @property
    def all(self) -> dict[str, Tensor]:
        """What a flat vector consists of, by name."""
        return {**self.parameters, **self.buffers}

    @torch.no_grad()
    def load(self, flat: Tensor) -> None:
        """Put a flat vector in."""
        for each, part in zip(self.all.values(), self.cut(flat), strict=True):
            each.copy_(part)
        for name, each in self.buffers.items():
            if name.endswith("running_var"):  # IFCA spreads its first models
                each.clamp_(min=0)
        for each, first in self.rest.values():
            each.copy_(first)

    def cut(self, flat: Tensor) -> list[Tensor]:
        """A flat vector in parts, parameters first."""
        shapes = [each.shape for each in self.all.values()]
        parts = torch.split(flat, [shape.numel() for shape in shapes])
        return [part.view(shape) for part, shape in zip(parts, shapes, strict=True)]

    def read(self) -> Tensor:
        """What the module holds, as a flat vector; a copy."""
        return torch.cat([each.detach().reshape(-1) for each in self.all.values()])

    def train(self, samples: int) -> None:
        """Ready for a step on so many samples; one alone has no spread to normalise by."""
        self.module.train()
        if samples == 1:
            for part in self.normalisers:
                part.eval()


@dataclass(frozen=True, eq=False, kw_only=True)
class Network(Model):
    """A model whose scores are computed by a torch module.

    To add one by name, derive a frozen dataclass with a ``name`` and `module`; fields that are
    not keyword-only are what `for_data` finds in the data. Questions (losses, gradients,
    predictions) are answered in evaluation mode: without dropout, and with the running statistics
    of BatchNorm.

    Parameters
    ----------
    device
        Where torch computes: ``"cpu"``, ``"cuda"``, ``"mps"``.
    threads
        Of one process; several processes with one thread each are the faster way to use several
        cores, and `fedcohort.compare` starts them.
    """

    device: str = "cpu"
    threads: Annotated[int, Whole(1)] = 1

    @abstractmethod
    def module(self) -> nn.Module:
        """A new module, with weights as torch draws them."""

    def inputs(self, x: Array) -> Tensor:
        """Samples as the module is given them: floating numbers in its type, others as int64."""
        return self.tensor(x)

    def loss_of(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The loss of each sample, (S,); the cross-entropy of scores, unless overridden."""
        return functional.cross_entropy(outputs, y, reduction="none")

    def classes_of(self, scores: Tensor) -> Ints:
        """The class with the highest score; of one score alone, whether it is positive."""
        one = scores.ndim == 1 or scores.shape[1] == 1
        told = scores.reshape(-1) > 0 if one else scores.argmax(dim=1)
        return told.long().cpu().numpy()

    # A flat model

    @cached_property
    def _weights(self) -> Weights:
        """A module to compute with; every use puts its own weights in."""
        try:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                return Weights(self.module(), self.device)
        except (RuntimeError, AssertionError) as error:  # such as: not compiled with CUDA
            raise BadInput(
                f"The model {self.name!r} cannot be put on the device {self.device!r}: "
                f"{first_line(error)}"
            ) from error

    @cached_property
    def dtype(self) -> np.dtype[Any]:  # type: ignore[override]
        """That of the parameters."""
        kinds = {each.dtype for each in self._weights.all.values()}
        if len(kinds) != 1 or not kinds <= _DTYPES.keys():
            raise BadInput(
                f"The model {self.name!r} must have parameters to train, all float32 or all "
                f"float64. Got {', '.join(sorted(map(str, kinds))) or 'none'} instead"
                f"{': write net.float()' if kinds else ''}."
            )
        return _DTYPES[kinds.pop()]

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """Parameters and running statistics by the names that the module gives them."""
        return {name: tuple(each.shape) for name, each in self._weights.all.items()}

    @property
    def statistics(self) -> int:
        """The running statistics, which no gradient moves."""
        return sum(each.numel() for each in self._weights.buffers.values())

    def initial(self, seed: int) -> Floats:
        """The weights of a module that is made with this seed."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int.from_bytes(key_of(seed, "first model")[:8], "little"))
            made = Weights(self.module(), "cpu")
        return made.read().numpy().astype(np.float64)

    @contextmanager
    def at_work(self) -> Iterator[Weights]:
        """A module to compute with, in bounded threads; torch's generator is as before after it."""
        keep_freed_memory()
        kind = torch.device(self.device)
        devices = [kind.index or 0] if kind.type == "cuda" else []
        with _AT_WORK, torch.random.fork_rng(devices=devices):
            threads = torch.get_num_threads()
            torch.set_num_threads(self.threads)
            torch.manual_seed(0)  # a module that draws in evaluation, too, draws the same
            try:
                yield self._weights
            finally:
                torch.set_num_threads(threads)

    def batch(self, x: Array) -> Tensor:
        """Samples on the device, images in the order in which convolutions are fast."""
        inputs = self.inputs(x)
        if self._weights.convolves and inputs.ndim == 4:
            return inputs.contiguous(memory_format=torch.channels_last)
        return inputs

    def tensor(self, values: Array) -> Tensor:
        """Numbers on the device: floating ones in the type of the parameters, others as int64."""
        dtype = self.dtype if values.dtype.kind == "f" else np.dtype(np.int64)
        return torch.from_numpy(np.require(values, dtype, ["C", "W"])).to(self.device)

    # What it makes of samples

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """See `Model.sample_losses`."""
        losses = np.zeros(len(y), self.dtype)
        for part, scores in self._scores(theta, x):
            losses[part] = self._losses(scores, y[part])
        return losses

    def told(self, theta: Array, x: Array, y: Array) -> tuple[Array, Ints]:
        """The loss of each sample and the class that it is given, (S,) each."""
        losses, classes = np.zeros(len(y), self.dtype), np.zeros(len(y), np.int64)
        for part, scores in self._scores(theta, x):
            losses[part], classes[part] = self._losses(scores, y[part]), self.classes_of(scores)
        return losses, classes

    def predictions(self, theta: Array, x: Array) -> Ints:
        """The class that each sample is given, (S,)."""
        classes = np.zeros(len(x), np.int64)
        for part, scores in self._scores(theta, x):
            classes[part] = self.classes_of(scores)
        return classes

    def _scores(self, theta: Array, x: Array) -> Iterator[tuple[slice, Tensor]]:
        """What the module makes of consecutive samples."""
        with self.at_work() as weights, torch.no_grad():
            weights.load(self.tensor(theta))
            weights.module.eval()
            for start in range(0, len(x), _TILE):
                part = slice(start, min(start + _TILE, len(x)))
                yield part, weights.module(self.batch(x[part]).clone())  # it may change its input

    def _losses(self, scores: Tensor, y: Array) -> Array:
        return self.loss_of(scores, self.tensor(y)).cpu().numpy()

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """See `Model.gradient`; running statistics have none."""
        with self.at_work() as weights:
            weights.load(self.tensor(theta))
            weights.module.eval()
            parameters = list(weights.parameters.values())
            total = [torch.zeros_like(each) for each in weights.all.values()]
            for start in range(0, len(y), _TILE):
                part = slice(start, start + _TILE)
                inputs, targets = self.batch(x[part]).clone(), self.tensor(y[part])
                loss = self.loss_of(weights.module(inputs), targets).sum() / len(y)
                found = torch.autograd.grad(loss, parameters, materialize_grads=True)
                for each, more in zip(total, found, strict=False):
                    each += more
            return torch.cat([each.reshape(-1) for each in total]).cpu().numpy()

    def misfit(self, data: ClientData) -> str | None:
        """See `Model.misfit`; two samples are tried."""
        return Tryout(self, data).misfit()

    @property
    def channels(self) -> int | None:
        """How many channels of an image the module takes, if it convolves."""
        return channels_of(self._weights.module)

    def trainer(self, data: ClientData) -> Trainer:
        """Clients side by side where that is faster, else one after another."""
        from fedcohort.learning.trainers._torch import (
            TorchCohort,  # which need this class
            TorchLoop,
        )

        together = TorchCohort()
        return together if together.misfit(self, data) is None else TorchLoop()

    def __getstate__(self) -> dict[str, Any]:
        """The settings; a module to compute with is made where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_weights"}
