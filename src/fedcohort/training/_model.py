"""The base classes of models and trainers, and models by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.fingerprint import Digest
from fedcohort._internal.parameters import validate
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.training._client_data import ClientData, Dataset, Partition, Rows
from fedcohort.training._local import LocalWork

if TYPE_CHECKING:
    from fedcohort.training._learning_task import LearningTask

# What a model is: named layers in one flat vector, and what it makes of samples.


class Model(ABC):
    """A model for a `LearningTask`: a small object of settings, without data or weights.

    To add a model, write a frozen dataclass with these methods, in one file; settings that may
    be given by name (``mine:depth=3``) are keyword-only fields, with ranges as a scheme's.
    Trainers that know its kind are
    fast; any model is trained by the plain loop, which asks for no more than this.

    Attributes
    ----------
    name : str
        What a report calls it.
    dtype : numpy dtype
        What is computed in.
    """

    name: str
    dtype: np.dtype[Any] = np.dtype(np.float64)

    def __post_init__(self) -> None:
        validate(self, self.name)  # the ranges that a dataclass declares

    @property
    @abstractmethod
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """The shape of each named part of a flat model, in order."""

    @property
    def dimension(self) -> int:
        """The length of a flat model."""
        return sum(math.prod(shape) for shape in self.layers.values())

    @property
    def statistics(self) -> int:
        """How many of its numbers are no weights but statistics of the data, as BatchNorm's."""
        return 0

    @abstractmethod
    def initial(self, seed: int) -> Floats:
        """The model to start from, (d,); the same for the same seed."""

    @abstractmethod
    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """The loss of each sample, (S,)."""

    @abstractmethod
    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """The gradient of the *mean* loss of at least one sample, (d,)."""

    def predictions(self, theta: Array, x: Array) -> Ints | None:
        """The class that is given to each sample, (S,); None if the model gives none."""
        return None

    def misfit(self, data: ClientData) -> str | None:
        """Why the model cannot learn from these data, in words; None if it can."""
        return None

    def trainer(self, data: ClientData) -> Trainer | None:
        """How it is trained unless the task is told; None for the first trainer that can."""
        return None

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Self:
        """The model of the size that the data need."""
        return cls(**settings)

    @classmethod
    def from_partition(
        cls,
        dataset: Dataset,
        partition: Partition,
        *,
        importance: ArrayLike | None = None,
        **settings: Any,
    ) -> LearningTask:
        """The task of learning a data set, by who holds which of its samples."""
        from fedcohort.training._learning_task import LearningTask  # which needs this class

        data = ClientData.from_partition(dataset, partition)
        return LearningTask(cls.for_data(data, **settings), data, importance=importance)


def cut(flat: Array, layers: Mapping[str, tuple[int, ...]]) -> dict[str, Array]:
    """A flat model, update or gradient (..., d) by layers; what is given out are views.

    >>> {name: part.tolist() for name, part in cut(np.arange(6), {"w": (2, 2), "b": (2,)}).items()}
    {'w': [[0, 1], [2, 3]], 'b': [4, 5]}
    """
    parts, at = {}, 0
    for name, shape in layers.items():
        end = at + math.prod(shape)
        parts[name] = flat[..., at:end].reshape(*flat.shape[:-1], *shape)
        at = end
    return parts


# Fully connected networks, written as plainly as they can be.
#
# Read these functions to learn what the fast trainers compute; the tests hold them to it.

_SINGLE = np.dtype(np.float32)


@dataclass(frozen=True)
class Dense(Model):
    """Linear layers with ReLUs in between, trained by the cross-entropy.

    A flat model holds, layer by layer, the weights (outputs, inputs) and then the biases:
    the order of torch's ``parameters_to_vector(Sequential(Linear, ReLU, Linear).parameters())``.

    Parameters
    ----------
    widths
        The inputs, the units of each hidden layer, and the classes.
    dtype
        What is computed in.
    start
        ``"zero"``, or ``"uniform"`` on ``+-1 / sqrt(inputs)``, weights and biases alike, as
        torch's ``Linear``: the law is torch's, the numbers are not.
    name
        What a report calls it.

    Examples
    --------
    >>> Dense((4, 8, 2)).layers["output.weight"]
    (2, 8)
    """

    widths: tuple[int, ...]
    dtype: np.dtype[Any] = _SINGLE
    start: Literal["zero", "uniform"] = "uniform"
    name: str = "dense"

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """``hidden1.weight``, ``hidden1.bias`` and so on, ``output.weight``, ``output.bias``."""
        names = [*(f"hidden{i}" for i in range(1, len(self.widths) - 1)), "output"]
        shapes: dict[str, tuple[int, ...]] = {}
        for name, (inputs, outputs) in zip(names, pairwise(self.widths), strict=True):
            shapes |= {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}
        return shapes

    def initial(self, seed: int) -> Floats:
        """See `Model.initial`."""
        if self.start == "zero":
            return np.zeros(self.dimension)
        rng = np.random.Generator(np.random.Philox(seed))
        parts = []
        for inputs, outputs in pairwise(self.widths):
            words = rng.bit_generator.random_raw(outputs * (inputs + 1))
            uniforms = (words >> np.uint64(11)) * 2.0**-53  # in [0, 1)
            parts.append((2 * uniforms - 1) / np.sqrt(inputs))
        return np.concatenate(parts)

    def misfit(self, data: ClientData) -> str | None:
        """See `Model.misfit`."""
        if data.classes is None:
            return "it tells classes, and the data have none"
        if (data.features, data.classes) != (self.widths[0], self.widths[-1]):
            return (
                f"it takes {self.widths[0]} features and tells {self.widths[-1]} classes, and the "
                f"data have {data.features} and {data.classes}"
            )
        return None

    def scores(self, theta: Array, x: Array) -> Array:
        """How much speaks for each class, (S, classes)."""
        return self._forward(theta, x)[-1]

    def predictions(self, theta: Array, x: Array) -> Ints:
        """The first class with the highest score."""
        return np.asarray(self.scores(theta, x).argmax(axis=1))

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """The cross-entropy of each sample."""
        scores = self.scores(theta, x)
        highest = scores.max(axis=1, keepdims=True)
        normaliser = highest[:, 0] + np.log(np.exp(scores - highest).sum(axis=1))
        return np.asarray(normaliser - scores[np.arange(len(y)), y])

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """The gradient of the mean cross-entropy, by back-propagation."""
        *inputs, scores = self._forward(theta, x)
        shares = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = shares / shares.sum(axis=1, keepdims=True)
        error[np.arange(len(y)), y] -= 1
        error /= len(y)
        parts: list[Array] = []
        for weights, given in zip(self._weights(theta)[::-1], inputs[::-1], strict=True):
            parts = [(error.T @ given).ravel(), error.sum(axis=0), *parts]
            error = (error @ weights) * (given > 0)  # the ReLU before; unused for the first layer
        return np.concatenate(parts)

    def _weights(self, theta: Array) -> list[Array]:
        return list(cut(theta, self.layers).values())[::2]

    def _forward(self, theta: Array, x: Array) -> list[Array]:
        """What each layer is given, and the scores."""
        parts = list(cut(theta, self.layers).values())
        given = [x.reshape(len(x), self.widths[0]).astype(theta.dtype, copy=False)]
        for weights, biases in zip(parts[:-2:2], parts[1:-2:2], strict=True):
            given.append(np.maximum(given[-1] @ weights.T + biases, 0))
        return [*given, given[-1] @ parts[-2].T + parts[-1]]


# How a model is trained on the data of clients: the port that trainers implement.


class Computation(ABC):
    """A model on the data of clients, made ready by a `Trainer`.

    ``rows`` are positions in the order of the clients: those of client i are
    ``data.part(i)``. What a method is given has been checked by the task.
    """

    model: Model
    models_at_once: int = 1  # how many models `tiles` is best given

    @property
    @abstractmethod
    def data(self) -> ClientData:
        """The data, as they are computed with."""

    def fingerprint(self) -> str:
        """A digest of the data: the rest is computed from them."""
        digest = Digest("the data of a task")
        digest.add("data", self.data)
        return digest.hex()

    @abstractmethod
    def updates(
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float,
        drift: Array | None,
    ) -> Array:
        """Local training of a cohort, (k, d); see `fedcohort.training.Task.updates`."""

    @abstractmethod
    def gradient_sum(self, theta: Array, rows: Rows) -> Array:
        """The sum of the gradients of some samples (at least one), (d,)."""

    @abstractmethod
    def sample_losses(self, theta: Array, rows: Rows) -> Array:
        """The loss of some samples, (S,)."""

    @abstractmethod
    def tiles(self, thetas: Array, test: bool) -> Iterator[tuple[slice, Array, Array | None]]:
        """Losses (T, S) of all samples, or of the test set, some at a time.

        Which they are, their losses and, of the test set, whether their class is told right.
        """

    @abstractmethod
    def predictions(self, theta: Array) -> Ints | None:
        """The class that is given to each sample of the test set, (M',)."""

    @abstractmethod
    def pooled(self) -> Self:
        """The same with all samples on one client; nothing is copied."""


class Trainer(ABC):
    """A way to train, a frozen dataclass of its settings."""

    @abstractmethod
    def misfit(self, model: Model, data: ClientData) -> str | None:
        """Why it cannot train this model on these data, in words; None if it can."""

    @abstractmethod
    def bind(self, model: Model, data: ClientData) -> Computation:
        """Make ready what all rounds share: layout, Gram matrices."""


# Models by name; other packages add theirs as ``fedcohort.models``.
#
# A file defines a `fedcohort.training.Model` with a ``name``; its keyword-only fields are settings.

_GIVEN = ("importance", "test_clients", "unit")
_REMEDY = (
    "a torch module is returned by the method module() of a class that derives from "
    "fedcohort.training.Network, see docs/models.md"
)
MODELS: Kind[Any] = Kind(
    "model",
    ("fedcohort.training._models_dense", "fedcohort.training._models_torch"),
    Model,
    given=_GIVEN,
    make="from_partition",
    remedy=_REMEDY,
)
