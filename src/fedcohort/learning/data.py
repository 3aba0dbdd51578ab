"""The samples of a federation, checked once and laid out for speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral

import numpy as np
from numpy.typing import DTypeLike

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.types import Array, Ints
from fedcohort.learning.task import Dataset, Partition

_BLOCK = 4096  # rows that are converted and checked at a time


@dataclass(frozen=True)
class Samples:
    """Labelled samples, those of a client side by side.

    A feature that is 1 for every sample stands behind the others, so that a bias is one
    more column of weights and needs no code of its own.
    """

    x: Array  # (M, features + 1)
    y: Ints  # (M,)
    starts: Ints  # (n + 1,) client i holds the rows starts[i] to starts[i + 1]
    x_test: Array  # (M', features + 1)
    y_test: Ints  # (M',)
    classes: int

    @property
    def features(self) -> int:
        """The features of a sample, without the constant one."""
        return int(self.x.shape[1]) - 1

    @property
    def sizes(self) -> Ints:
        """The samples of each client, (n,)."""
        return np.diff(self.starts)

    def of(self, client: int) -> slice:
        """The rows of a client."""
        return slice(int(self.starts[client]), int(self.starts[client + 1]))

    def label_histograms(self) -> Ints:
        """How many samples of each class each client holds, (n, classes)."""
        n = len(self.starts) - 1
        owner = np.repeat(np.arange(n), self.sizes)
        counts = np.bincount(owner * self.classes + self.y, minlength=n * self.classes)
        return counts.reshape(n, self.classes)


def collect(
    x_train: Array,
    y_train: Array,
    x_test: Array | None,
    y_test: Array | None,
    clients: Sequence[Array],
    classes: int,
    dtype: DTypeLike,
) -> Samples:
    """Check the data and bring the samples of each client together."""
    if not is_integer(classes) or classes < 2:
        raise BadParameter("classes", "a task", "an integer of at least 2", classes)
    if len(clients) == 0:
        raise BadParameter("clients", "a task", "at least one array of sample positions", clients)
    x_train, y_train = np.asarray(x_train), _labels(y_train, classes, "y_train")
    if x_train.ndim < 2 or len(x_train) != len(y_train):
        raise BadInput(
            f"'x_train' must have one row per label, {len(y_train)} in all. Got shape "
            f"{x_train.shape} instead."
        )
    held = [_positions(rows, len(y_train), client) for client, rows in enumerate(clients)]
    rows = np.concatenate(held)
    if x_test is None or y_test is None:
        x_test, y_test = x_train[:0], np.zeros(0, dtype=np.int64)
    x_test, y_test = np.asarray(x_test), _labels(y_test, classes, "y_test")
    if x_test.shape[1:] != x_train.shape[1:] or len(x_test) != len(y_test):
        raise BadInput(
            f"'x_test' must have shape {(len(y_test), *x_train.shape[1:])}. Got {x_test.shape} "
            "instead."
        )
    return Samples(
        x=_rows_with_one(x_train, rows, dtype, "x_train"),
        y=y_train[rows],
        starts=np.concatenate([[0], np.cumsum([len(part) for part in held])]).astype(np.int64),
        x_test=_rows_with_one(x_test, np.arange(len(x_test)), dtype, "x_test"),
        y_test=y_test,
        classes=int(classes),
    )


def is_integer(value: object) -> bool:
    """Whether a parameter is an integer, which True is not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def unpack(
    dataset: Dataset, partition: Partition
) -> tuple[Array, Array, Array | None, Array | None, Sequence[Array], int]:
    """The first six arguments of `Softmax` and `MLP`."""
    train = dataset.x_train, dataset.y_train
    return *train, dataset.x_test, dataset.y_test, partition.clients, dataset.classes


def _labels(y: Array, classes: int, name: str) -> Ints:
    y = np.asarray(y)
    if y.ndim != 1 or (y.size and y.dtype.kind not in "iu"):
        raise BadInput(
            f"'{name}' must be a vector of integers. Got {y.dtype} of shape {y.shape} instead."
        )
    if y.size and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise BadInput(
            f"'{name}' must be labels in [0, {classes}). Got {int(y.min())} to {int(y.max())} "
            "instead."
        )
    return y.astype(np.int64)


def _positions(rows: Array, count: int, client: int) -> Ints:
    rows = np.asarray(rows)
    if rows.size == 0:
        return np.zeros(0, dtype=np.int64)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise BadInput(
            f"The samples of client {client} must be a vector of positions. Got {rows.dtype} of "
            f"shape {rows.shape} instead."
        )
    if not 0 <= int(rows.min()) <= int(rows.max()) < count:
        raise BadInput(
            f"The samples of client {client} must be positions in [0, {count}). Got "
            f"{int(rows.min())} to {int(rows.max())} instead."
        )
    return rows.astype(np.int64)


def _rows_with_one(x: Array, rows: Ints, dtype: DTypeLike, name: str) -> Array:
    """The chosen rows, flattened, converted and with a last column of ones, block by block."""
    features = int(np.prod(x.shape[1:]))
    if x.dtype.kind not in "iufb" or features == 0:
        raise BadInput(f"'{name}' must hold numbers. Got {x.dtype} of shape {x.shape} instead.")
    out = np.ones((len(rows), features + 1), dtype=dtype)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        with np.errstate(over="ignore"):  # what overflows the type is caught below
            out[block, :-1] = x[rows[block]].reshape(-1, features)
        if not np.isfinite(out[block]).all():
            raise BadInput(
                f"'{name}' must be finite. Got NaN or infinity instead: remove or impute those "
                "samples."
            )
    return out
