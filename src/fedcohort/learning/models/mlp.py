"""A multilayer perceptron."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.types import Array, Ints
from fedcohort.learning.checks import is_integer
from fedcohort.learning.data import ClientData, Dataset, Partition, unpack
from fedcohort.learning.dense import Dense
from fedcohort.learning.learning_task import LearningTask
from fedcohort.learning.model import Model
from fedcohort.learning.trainers._batched import GRAM_BYTES, Batched


@dataclass(frozen=True)
class Widths:
    """The units of a hidden layer, or of several: 50, (64, 30), and in a word 64-30."""

    def __str__(self) -> str:
        return "an int of at least 1, or a tuple of them"

    def accepts(self, value: object) -> bool:
        """Whether it is one."""
        each = value if isinstance(value, tuple) else (value,)
        return len(each) > 0 and all(is_integer(units) and units >= 1 for units in each)

    def parse(self, text: str) -> object:
        """What a word says."""
        parts = text.replace(",", "-").strip("-").split("-")
        return int(text) if parts == [text] else tuple(int(part) for part in parts)

    def bad_examples(self) -> Sequence[object]:
        """What is none."""
        return [0, (), (64, 0), (64, 1.5), True, None, "64-30"]


@Model.register  # by its name: `from_partition` makes the task
class MLP(LearningTask):
    """A fully connected network with hidden layers of ReLUs.

    Parameters
    ----------
    x_train, y_train, x_test, y_test, clients, classes, importance, dtype, gram_bytes,
    test_clients, unit
        As for `Softmax`.
    hidden : int or tuple of int
        The hidden units, 50 as in the experiments of Fraboni et al.; of several layers one after
        another, ``(64, 30)`` or in a word ``mlp:hidden=64-30``, as Cho et al. have it. Weights and
        biases start uniform on ``+-1 / sqrt(inputs)``, as torch's ``Linear``; see `Dense`.

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
    label_histograms: Ints

    def __init__(
        self,
        x_train: Array,
        y_train: Array,
        x_test: Array | None,
        y_test: Array | None,
        clients: Sequence[Array],
        classes: int,
        *,
        hidden: Annotated[int | tuple[int, ...], Widths()] = 50,
        importance: ArrayLike | None = None,
        dtype: DTypeLike = np.float32,
        gram_bytes: int = GRAM_BYTES,
        test_clients: Sequence[Array] | None = None,
        unit: float = 1.0,
    ) -> None:
        if not Widths().accepts(hidden):
            raise BadParameter("hidden", "MLP", str(Widths()), hidden)
        units = tuple(map(int, hidden if isinstance(hidden, tuple) else (hidden,)))
        data = ClientData.divide(
            x_train, y_train, x_test, y_test, clients, classes, test_clients, unit
        )
        model = Dense((data.features, *units, classes), np.dtype(dtype), "uniform", self.name)
        super().__init__(model, data, Batched(gram_bytes), importance)

    @classmethod
    def from_partition(cls, dataset: Dataset, partition: Partition, **options: Any) -> Self:
        """The task for a data set and who holds which of its samples; options as above."""
        arrays, besides = unpack(dataset, partition)
        besides.pop("vocabulary", None)  # tokens are numbers to it
        return cls(*arrays, **{**besides, **options})
