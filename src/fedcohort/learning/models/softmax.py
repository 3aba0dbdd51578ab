"""Softmax regression: the convex classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fedcohort._internal.types import Array, Ints
from fedcohort.learning.data import ClientData, Dataset, Partition, unpack
from fedcohort.learning.dense import Dense
from fedcohort.learning.learning_task import LearningTask
from fedcohort.learning.model import Model
from fedcohort.learning.trainers._batched import GRAM_BYTES, Batched


@Model.register  # by its name: `from_partition` makes the task
class Softmax(LearningTask):
    """Multinomial logistic regression with a bias, on data that is spread over clients.

    It starts at zero: the problem is convex, and zero favours no class.

    Parameters
    ----------
    x_train, y_train : arrays
        Samples (of any shape, they are flattened) and labels in ``range(classes)``.
    x_test, y_test : arrays or None
        The test set; without one, test loss and accuracy are nan.
    clients : sequence of integer arrays
        The positions in ``x_train`` of the samples of each client.
    classes : int
        The number of classes.
    importance : (n,) floats, optional
        p; by size unless given.
    dtype : float32 or float64
        What is computed in; float64 is for checks.
    gram_bytes : int
        How much memory the Gram matrices may take; 0 turns the Gram form off.
    test_clients : sequence of integer arrays, optional
        The positions in ``x_test`` of each client's own test samples.
    unit : float
        What samples are divided by; 255 for images in bytes.

    Examples
    --------
    >>> from fedcohort.learning._local import LocalWork
    >>> x, y = np.eye(4), np.array([0, 1, 0, 1])
    >>> task = Softmax(x, y, x, y, clients=[[0, 1], [2, 3]], classes=2)
    >>> theta = task.initial(seed=0)
    >>> task.evaluate(theta[None]).train_loss.round(4)
    array([0.6931])
    >>> rngs = [np.random.Generator(np.random.Philox(i)) for i in range(2)]
    >>> moves = task.updates(theta, np.arange(2), LocalWork(steps=20, lr=1.0), rngs)
    >>> task.evaluate((theta + moves.mean(axis=0))[None]).accuracy
    array([1.])
    """

    name = "softmax"
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
        importance: ArrayLike | None = None,
        dtype: DTypeLike = np.float32,
        gram_bytes: int = GRAM_BYTES,
        test_clients: Sequence[Array] | None = None,
        unit: float = 1.0,
    ) -> None:
        data = ClientData.divide(
            x_train, y_train, x_test, y_test, clients, classes, test_clients, unit
        )
        model = Dense((data.features, classes), np.dtype(dtype), "zero", self.name)
        super().__init__(model, data, Batched(gram_bytes), importance)

    @classmethod
    def from_partition(cls, dataset: Dataset, partition: Partition, **options: Any) -> Self:
        """The task for a data set and who holds which of its samples; options as above."""
        arrays, besides = unpack(dataset, partition)
        besides.pop("vocabulary", None)  # tokens are numbers to it
        return cls(*arrays, **{**besides, **options})
