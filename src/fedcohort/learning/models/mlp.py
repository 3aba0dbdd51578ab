"""A multilayer perceptron with one hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fedcohort.core.types import Array, Floats
from fedcohort.learning.classifier import GRAM_BYTES, Classifier
from fedcohort.learning.data import collect, unpack
from fedcohort.learning.task import Dataset, Partition


class MLP(Classifier):
    """A fully connected network with one hidden layer of ReLUs.

    Parameters
    ----------
    x_train, y_train, x_test, y_test, clients, classes, importance, dtype, gram_bytes
        As for `Softmax`.
    hidden : int
        The hidden units, 50 as in the experiments of Fraboni et al.

    Examples
    --------
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> task = MLP(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2, hidden=8)
    >>> task.dimension
    58
    >>> bool(np.abs(task.initial(seed=0)[:40]).max() <= 1 / np.sqrt(4))
    True

    References
    ----------
    Fraboni, Vidal, Kameni and Lorenzi, "Clustered Sampling: Low-Variance and Improved
    Representativity for Clients Selection in Federated Learning", ICML 2021, section 5.
    """

    name = "mlp"

    def __init__(
        self,
        x_train: Array,
        y_train: Array,
        x_test: Array | None,
        y_test: Array | None,
        clients: Sequence[Array],
        classes: int,
        *,
        hidden: int = 50,
        importance: ArrayLike | None = None,
        dtype: DTypeLike = np.float32,
        gram_bytes: int = GRAM_BYTES,
    ) -> None:
        samples = collect(x_train, y_train, x_test, y_test, clients, classes, dtype)
        super().__init__(samples, hidden, importance, gram_bytes)

    @classmethod
    def from_partition(cls, dataset: Dataset, partition: Partition, **options: Any) -> Self:
        """The task for a data set and who holds which of its samples; options as above."""
        return cls(*unpack(dataset, partition), **options)

    def initial(self, seed: int) -> Floats:
        """Uniform on ``+-1 / sqrt(inputs)``, weights and biases alike, as torch's ``Linear``.

        The law is torch's; the numbers are not, for the generator is another.
        """
        rng = np.random.Generator(np.random.Philox(seed))
        parts = []
        for outputs, inputs in self._shapes:
            words = rng.bit_generator.random_raw(outputs * inputs)
            uniforms = (words >> np.uint64(11)) * 2.0**-53  # in [0, 1)
            parts.append((2 * uniforms - 1) / np.sqrt(inputs - 1))
        return np.concatenate(parts)
