"""Whether a torch module, its loss and the data go together: tried out before the first round."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array

if TYPE_CHECKING:
    from fedcohort.learning.data import ClientData
    from fedcohort.learning.network import Network, Weights

_BLOCK = 4096  # samples that are looked at together
_MODULE, _LOSS, _TRAINING = "module", "loss", "training"
_ALONE = (
    "the loss of a sample must be its own, and here it depends on the other samples of its batch; "
    "compare outputs and targets sample by sample, and normalise each sample by itself"
)
_REMEMBERS = (
    "its module remembers what it was given before, so that clients would depend on who was "
    "chosen with them; begin every call anew"
)
_NO_STATISTICS = (
    "its BatchNorm keeps no running statistics, so that what it makes of a sample depends on the "
    "other samples of a batch; leave track_running_stats=True, or take nn.GroupNorm"
)


class Tryout:
    """A model on two samples of the data: told apart, together, and in steps of training."""

    def __init__(self, model: Network, data: ClientData) -> None:
        self.model, self.data = model, data
        self.who, self.given = _MODULE, list[Tensor]()
        self.x, self.y = data.samples(np.unique([0, data.total - 1]))

    def misfit(self) -> str | None:
        """What is wrong, in words; None if nothing is."""
        try:
            with self.model.at_work() as weights, warnings.catch_warnings():
                warnings.filterwarnings("error", "Using a target size")  # outputs of other shapes
                return self._questions(weights) or self._steps(weights)
        except (RuntimeError, ValueError, TypeError, IndexError, UserWarning) as error:
            if isinstance(error, BadInput):
                raise
            shapes = " and ".join(
                f"{str(each.dtype)[6:]} of shape {tuple(each.shape)}" for each in self.given
            )
            return f"given {shapes}, its {self.who} says: {first_line(error)}{self._hint(error)}"

    @torch.no_grad()
    def _questions(self, weights: Weights) -> str | None:
        """As in evaluation."""
        if any(part.running_mean is None for part in weights.normalisers):
            return _NO_STATISTICS
        weights.module.eval()
        scores = self._scores(weights, self.x)
        if not isinstance(scores, Tensor):
            return _no_tensor(scores, "")
        classes = self.data.classes
        if classes is not None and scores.ndim < 3:
            told = max(2, scores.shape[1]) if scores.ndim == 2 else 2
            if told < classes:
                return f"it tells {told} classes, and the data have {classes}"
        losses = self._losses(scores, self.y)
        if losses.shape != self.y.shape[:1]:
            return (
                f"its loss must give one number per sample, {len(self.y)} of {len(self.y)}, and "
                f"gives the shape {tuple(losses.shape)}; write it without taking the mean"
            )
        if not _same(self._scores(weights, self.x), scores):
            return _REMEMBERS
        if _same(self._scores(weights, self.x, seed=1), scores):  # else it is random: no matter
            for one in range(len(self.y)):
                part = slice(one, one + 1)
                alone = self._losses(self._scores(weights, self.x[part]), self.y[part])
                if not _same(alone, losses[part], scores):
                    return _ALONE
        if self.x.dtype.kind != "f" and self.data.vocabulary is None:  # too small an embedding
            for extreme in self._tokens():
                self._scores(weights, extreme)
        return None

    def _steps(self, weights: Weights) -> str | None:
        """As in training, twice; no step is made."""
        start = weights.read()
        weights.module.eval()
        with torch.no_grad():
            before = self._scores(weights, self.x)
        parameters = list(weights.parameters.values())
        for _ in range(2):
            weights.train(len(self.y))
            scores = self._scores(weights, self.x)
            if not isinstance(scores, Tensor):
                return _no_tensor(scores, "in training ")
            loss = self._losses(scores, self.y).mean()
            self.who = _TRAINING
            torch.autograd.grad(loss, parameters, materialize_grads=True)
        weights.load(start)
        weights.module.eval()
        with torch.no_grad():
            return None if _same(self._scores(weights, self.x), before) else _REMEMBERS

    def _scores(self, weights: Weights, x: Array, seed: int = 0) -> Tensor:
        torch.manual_seed(seed)
        inputs = self.model.batch(x).clone()
        self.who, self.given = _MODULE, [inputs]
        scores: Tensor = weights.module(inputs)
        return scores

    def _losses(self, scores: Tensor, y: Array) -> Tensor:
        targets = self.model.tensor(y)
        self.who, self.given = _LOSS, [scores, targets]
        return self.model.loss_of(scores, targets)

    def _tokens(self) -> tuple[Array, Array]:
        """The samples with the lowest and with the highest token."""
        data, lowest, highest = self.data, self.x, self.x
        trained = (data.samples(part)[0] for part in _parts(data.total))
        tested = (data.tested(part)[0] for part in _parts(len(data.y_test)))
        for x in chain(trained, tested):
            rows = x.reshape(len(x), -1)
            low, high = rows.min(axis=1).argmin(), rows.max(axis=1).argmax()
            lowest = min(lowest, x[low : low + 1], key=np.min)
            highest = max(highest, x[high : high + 1], key=np.max)
        return lowest, highest

    def _hint(self, error: BaseException) -> str:
        """What to write instead, where that can be guessed."""
        said, x = str(error), self.x
        if self.who == _TRAINING:
            if "second time" in said:
                return f"; {_REMEMBERS}"
            if "does not require grad" in said:
                return "; leave out detach() and no_grad(), so that a gradient can be taken"
            return ""
        if self.who == _LOSS:
            if isinstance(error, TypeError):
                return "; a loss is a function of outputs and targets"
            scores, targets = self.given
            if scores.ndim > 2 and scores.shape[:-1] == targets.shape:
                return "; torch has classes second: return scores.movedim(-1, 1)"
            return "; give both one shape" if "target size" in said else ""
        if isinstance(error, TypeError) and "argument" in said:
            return "; it is given one tensor, so put several into one array and part them there"
        if x.dtype.kind != "f":
            if isinstance(error, IndexError):
                lowest, highest = self._tokens()
                return f"; the tokens of these data go from {lowest.min()} to {highest.max()}"
            return (
                "; integers are given as tokens, so write x.astype(np.float32) for numbers, and "
                "divide images by 255, as ClientData.divide(..., unit=255) does"
            )
        return _channels(self.model.channels, x.shape)


def _parts(samples: int) -> Iterator[slice]:
    """All samples, some at a time: they may be in a file."""
    return (slice(start, start + _BLOCK) for start in range(0, samples, _BLOCK))


def _channels(wanted: int | None, shape: tuple[int, ...]) -> str:
    """What to do with images that have their channels elsewhere."""
    if len(shape) == 4 and wanted == shape[3] != shape[1]:
        return "; torch has channels first: write np.moveaxis(x, -1, 1)"
    if len(shape) == 3 and wanted == 1:
        return "; images need an axis for their channel: write x[:, None]"
    return ""


def _no_tensor(scores: object, when: str) -> str:
    return (
        f"its module must return a tensor of scores alone, and {when}returns a "
        f"{type(scores).__name__}; put it into one that returns its scores"
    )


def _same(one: Tensor, other: Tensor, scores: Tensor | None = None) -> bool:
    """Up to the rounding of scores: other shapes of a batch are summed in another order."""
    scale = float((other if scores is None else scores).abs().nan_to_num().max())
    return torch.allclose(one, other, rtol=1e-2, atol=1e-3 * scale, equal_nan=True)


def channels_of(module: nn.Module) -> int | None:
    """How many channels the first convolution of a module takes."""
    found = [part.in_channels for part in module.modules() if isinstance(part, nn.Conv2d)]
    return found[0] if found else None


def first_line(error: BaseException) -> str:
    """What somebody else's error says, in a line."""
    return str(error).strip().split("\n")[0][:200].rstrip(".")
