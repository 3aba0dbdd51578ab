"""How a model is trained on the data of clients: the port that trainers implement."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from fedcohort._internal.fingerprint import Digest
from fedcohort._internal.types import Array, Ints
from fedcohort.learning._local import LocalWork
from fedcohort.learning.data import ClientData, Rows
from fedcohort.learning.model import Model


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
        """Local training of a cohort, (k, d); see `fedcohort.learning.Task.updates`."""

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
