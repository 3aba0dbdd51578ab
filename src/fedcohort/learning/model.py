"""What a model is: named layers in one flat vector, and what it makes of samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.parameters import validate
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.learning.data import ClientData, Dataset, Partition

if TYPE_CHECKING:
    from fedcohort.learning.learning_task import LearningTask
    from fedcohort.learning.trainer import Trainer


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
        from fedcohort.learning.learning_task import LearningTask  # which needs this class

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
