"""Any torch module as a model, and a trial run of it with clear errors."""

from __future__ import annotations

import ctypes
import inspect
import os
import sys
import threading
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import chain
from typing import Annotated, Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort._internal.errors import BadInput
from fedcohort._internal.fingerprint import Digest
from fedcohort._internal.parameters import Whole
from fedcohort._internal.random import key_of
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.training._client_data import ClientData
from fedcohort.training._model import Model, Trainer

# Memory that torch frees in one step of training is kept for the next.

KEPT = 256 << 20  # bytes at the end of the heap that are not given back; the peak is as before
_LARGE = 32 << 20  # larger pieces come from the system one by one; glibc takes no more than this
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # what malloc.h calls them


@cache
def keep_freed_memory() -> bool:
    """Tell the allocator of this process, once, not to give back what a step frees; whether it did.

    A step of a recurrent network takes some 40 MB and frees them all. glibc then returns the end
    of the heap to the system, and the next step gets it again page by page, each zeroed by the
    kernel: a third of the time of an LSTM. Other allocators are left alone, and so is one that
    the environment has settings for.
    """
    settings = "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "GLIBC_TUNABLES"
    if sys.platform != "linux" or any(name in os.environ for name in settings):
        return False
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is None:
        return False
    return bool(set_option(_MMAP_THRESHOLD, _LARGE) and set_option(_TRIM_THRESHOLD, KEPT))


# Whether a torch module, its loss and the data go together: tried out before the first round.

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


# Models that torch computes: a module, its weights as one flat vector, a loss for each sample.

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
        from fedcohort.training.trainers._torch import TorchCohort, TorchLoop

        together = TorchCohort()
        return together if together.misfit(self, data) is None else TorchLoop()

    def __getstate__(self) -> dict[str, Any]:
        """The settings; a module to compute with is made where it is needed."""
        return {name: value for name, value in vars(self).items() if name != "_weights"}


# Any torch module as a model.

Loss = Callable[[Tensor, Tensor], Tensor]
_SUMS = ("sum", "batchmean")


@dataclass(frozen=True, eq=False)
class TorchModel(Network):
    """A torch module with a loss, for `LearningTask`.

    Parameters
    ----------
    net
        The module: it is copied, and every run starts from its weights. Or a function without
        arguments that makes one, such as its class: then each seed draws weights of its own.
    loss
        What torch has (``torch.nn.MSELoss()``, ``torch.nn.functional.cross_entropy``), or a
        function of outputs and targets that gives *one loss per sample*. Clients minimise the
        mean over samples, whatever torch's is set to; one that sums does so over one sample.
    name
        What a report calls it.
    device, threads
        See `fedcohort.training.Network`.

    Examples
    --------
    >>> import numpy as np
    >>> from fedcohort.training import ClientData, LearningTask
    >>> x, y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
    >>> data = ClientData.divide(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2)
    >>> task = LearningTask(TorchModel(nn.Linear(4, 2)), data)
    >>> dict(task.layers)
    {'weight': (2, 4), 'bias': (2,)}
    """

    net: nn.Module | Callable[[], nn.Module]
    loss: Loss = functional.cross_entropy
    name: str = "torch"

    def __post_init__(self) -> None:
        super().__post_init__()
        loss: object = self.loss
        if inspect.isclass(loss) or not callable(loss):
            got = type(loss).__name__
            if inspect.isclass(loss):
                got = f"the class {loss.__name__}: call it, {loss.__name__}(),"
            raise BadInput(
                "The 'loss' of TorchModel must be a function of outputs and targets, as "
                f"torch.nn.functional.cross_entropy is. Got {got} instead."
            )
        if isinstance(loss, nn.Module) and any(each.requires_grad for each in loss.parameters()):
            raise BadInput(
                "The 'loss' of TorchModel must have no parameters to train: nobody would send "
                f"them. Got {type(loss).__name__}, which has: move them to the module."
            )
        made = self.module()
        if any(nn.parameter.is_lazy(each) for each in made.parameters()):
            raise BadInput(
                "The 'net' of TorchModel must know its shapes. Got lazy layers: run the module on "
                "a sample once before."
            )
        self.dtype  # noqa: B018  # it says which parameters cannot be trained

    def module(self) -> nn.Module:
        """A copy of the module, or a new one."""
        if isinstance(self.net, nn.Module):
            return deepcopy(self.net)
        make: Any = self.net
        try:
            made = make() if callable(make) else make
        except TypeError as error:
            raise BadInput(
                "The 'net' of TorchModel must be a module, or a function without arguments that "
                f"makes one. Called, it says: {first_line(error)}; write lambda: Net(...), with "
                "your arguments."
            ) from error
        if not isinstance(made, nn.Module):
            raise BadInput(
                "The 'net' of TorchModel must be a torch.nn.Module, or a function that makes one. "
                f"Got {type(made).__name__} instead."
            )
        return made

    def loss_of(self, outputs: Tensor, y: Tensor) -> Tensor:
        """The mean over all of a sample but its first axis, as torch's losses have it."""
        if outputs.shape == (*y.shape, 1) and (self._reduces or y.is_floating_point()):
            outputs = outputs[..., 0]
        if self._reduces and outputs.shape == y.shape and not self._takes_integers:
            y = y.to(outputs.dtype)  # torch's losses of numbers take no integers
        losses = self._loss(outputs, y)
        if not isinstance(losses, Tensor):
            raise TypeError(f"it must give a tensor, and gives a {type(losses).__name__}")
        if losses.ndim < 2:
            return losses
        each = losses.flatten(1)
        return each.sum(dim=1) if self._reduces in _SUMS else each.mean(dim=1)

    def classes_of(self, scores: Tensor) -> Ints:
        """As every network does; one score alone may be a probability."""
        return super().classes_of(scores - 0.5 if self._probability else scores)

    @cached_property
    def _reduces(self) -> str:
        """How the loss makes one number of many, if it is one of torch's; else nothing."""
        loss: Any = self.loss
        if isinstance(loss, nn.Module):
            return str(getattr(loss, "reduction", ""))
        try:
            given = inspect.signature(loss).parameters.get("reduction")
        except ValueError:  # a function without Python
            given = None
        return "" if given is None else str(given.default)

    @property
    def _takes_integers(self) -> bool:
        """Whether its targets are numbers of classes, also where there are several of them."""
        return _is(self.loss, nn.MultiLabelMarginLoss, functional.multilabel_margin_loss)

    @property
    def _probability(self) -> bool:
        """Whether one score alone is a probability."""
        return _is(self.loss, nn.BCELoss, functional.binary_cross_entropy)

    @cached_property
    def _loss(self) -> Loss:
        """The loss of each sample."""
        loss: Any = self.loss
        if isinstance(loss, nn.Module):
            kind = next(iter(self._weights.parameters.values())).dtype
            loss = deepcopy(loss).to(self.device, kind)
            if self._reduces:
                loss.reduction = "none"
        elif self._reduces:
            loss = partial(loss, reduction="none")
        return cast("Loss", loss)

    def fingerprint(self) -> str:
        """A digest of architecture, weights, loss and settings."""
        digest = Digest(f"the model {self.name!r}")
        digest.add("class", type(self))
        digest.add("settings", (self.name, self.device, self.threads))
        add_module(digest, "net", self.net)
        add_module(digest, "loss", self.loss)
        return digest.hex()


def add_module(digest: Digest, name: str, module: object) -> None:
    """Read a module to its last part: classes, settings, weights; or a function."""
    if not isinstance(module, nn.Module):
        digest.add(name, module)
        return
    for path, part in module.named_modules():
        where = f"{name}.{path}" if path else name
        digest.add(f"{where} class", type(part))
        held = {key: value for key, value in vars(part).items() if key not in _KEPT}
        digest.add(where, _plain(held))
        digest.add(f"{where} own", _plain({**part._parameters, **part._buffers}))


def _is(loss: object, kind: type[nn.Module], function: Callable[..., Tensor]) -> bool:
    """Whether it is one of torch's losses, as a module or as a function."""
    if isinstance(loss, partial):
        loss = loss.func
    return isinstance(loss, kind) or loss is function


_KEPT = {"_parameters", "_buffers", "_modules", "training"}


def _plain(value: Any) -> Any:
    """Tensors as arrays, and torch's own kinds of values by their names."""
    if isinstance(value, Tensor):
        told = value.detach().cpu()
        return (bool(value.requires_grad), str(told.dtype), told.numpy())
    if isinstance(value, torch.dtype | torch.device | torch.layout):
        return str(value)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value
