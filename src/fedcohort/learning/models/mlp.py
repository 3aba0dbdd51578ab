"""A multilayer perceptron with one hidden layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import Whole
from fedcohort.core.types import Array, Ints
from fedcohort.learning.data import ClientData, Dataset, Partition, is_integer, unpack
from fedcohort.learning.dense import Dense
from fedcohort.learning.learning_task import LearningTask
from fedcohort.learning.model import Model
from fedcohort.learning.trainers.batched import GRAM_BYTES, Batched


@Model.register  # by its name: `from_partition` makes the task
class MLP(LearningTask):
    """A fully connected network with one hidden layer of ReLUs.

    Parameters
    ----------
    x_train, y_train, x_test, y_test, clients, classes, importance, dtype, gram_bytes,
    test_clients, unit
        As for `Softmax`.
    hidden : int
        The hidden units, 50 as in the experiments of Fraboni et al. Weights and biases start
        uniform on ``+-1 / sqrt(inputs)``, as torch's ``Linear``; see `Dense`.

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
        hidden: Annotated[int, Whole(1)] = 50,
        importance: ArrayLike | None = None,
        dtype: DTypeLike = np.float32,
        gram_bytes: int = GRAM_BYTES,
        test_clients: Sequence[Array] | None = None,
        unit: float = 1.0,
    ) -> None:
        if not is_integer(hidden) or hidden < 1:
            raise BadParameter("hidden", "MLP", "an integer of at least 1", hidden)
        data = ClientData.divide(
            x_train, y_train, x_test, y_test, clients, classes, test_clients, unit
        )
        model = Dense((data.features, int(hidden), classes), np.dtype(dtype), "uniform", self.name)
        super().__init__(model, data, Batched(gram_bytes), importance)

    @classmethod
    def from_partition(cls, dataset: Dataset, partition: Partition, **options: Any) -> Self:
        """The task for a data set and who holds which of its samples; options as above."""
        arrays, besides = unpack(dataset, partition)
        besides.pop("vocabulary", None)  # tokens are numbers to it
        return cls(*arrays, **{**besides, **options})
