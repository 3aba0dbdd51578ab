"""Softmax regression, logistic regression and multilayer perceptrons, in numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.training._client_data import ClientData, Dataset, Partition, is_integer, unpack
from fedcohort.training._learning_task import LearningTask
from fedcohort.training._model import Dense, Model
from fedcohort.training.trainers._batched import GRAM_BYTES, Batched

# Logistic regression: yes or no from a row of a table.


@dataclass(frozen=True)
class Logistic(Model):
    """One weight per feature and an offset; the probability of class 1 is their logistic sum.

    For tables with two classes: half the parameters of softmax, so that each weight is the log
    odds ratio of its feature. It starts at zero, and is computed in 64 bits.

    >>> model = Logistic(1)
    >>> model.sample_losses(np.array([2.0, 0.0]), np.array([[1.0]]), np.array([1])).round(4)
    array([0.1269])
    """

    features: int
    name = "logistic"

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        """The weights, and the offset."""
        return {"weight": (self.features,), "offset": (1,)}

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Self:
        """One weight per feature."""
        return cls(data.features, **settings)

    def misfit(self, data: ClientData) -> str | None:
        """See `Model.misfit`."""
        if data.classes != 2:
            return f"it tells two classes, and the data have {data.classes or 'none'}; try softmax"
        return None

    def initial(self, seed: int) -> Floats:
        """Zero, which favours no class."""
        return np.zeros(self.dimension)

    def scores(self, theta: Array, x: Array) -> Array:
        """The log odds of class 1, (S,)."""
        return np.asarray(x.reshape(len(x), self.features) @ theta[:-1] + theta[-1])

    def predictions(self, theta: Array, x: Array) -> Ints:
        """Class 1 where its odds are above even."""
        return (self.scores(theta, x) > 0).astype(np.int64)

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        """The cross-entropy of each sample."""
        scores = self.scores(theta, x)
        return np.asarray(np.logaddexp(0, scores) - y * scores)

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        """See `Model.gradient`."""
        error = np.exp(-np.logaddexp(0, -self.scores(theta, x))) - y
        flat = x.reshape(len(x), self.features)
        return np.append(error @ flat, error.sum()) / len(y)


# A multilayer perceptron.


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


# Softmax regression: the convex classifier.


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
    >>> from fedcohort.training._local import LocalWork
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
