"""The samples of clients, laid out for speed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import DTypeLike

from fedcohort._internal.types import Array, Ints
from fedcohort.training._client_data import ClientData, check_features

_BLOCK = 4096  # rows that are converted at a time


@dataclass(frozen=True)
class Samples:
    """Labelled samples, flattened, those of a client side by side.

    A feature that is 1 for every sample stands behind the others, so that a bias is one
    more column of weights and needs no code of its own.
    """

    x: Array  # (M, features + 1)
    y: Ints  # (M,)
    x_test: Array  # (M', features + 1)
    held: ClientData  # who holds which of them; without the samples themselves

    @classmethod
    def of_data(cls, data: ClientData, dtype: DTypeLike) -> Self:
        """Copy the samples of clients to be side by side."""
        rows = np.arange(data.total) if data.rows is None else data.rows
        test = np.arange(len(data.y_test))
        nothing = np.empty((0, *data.x_train.shape[1:]), dtype)
        return cls(
            x=_with_ones(data.x_train, rows, dtype, data.unit, "x_train"),
            y=data.y_train[rows],
            x_test=_with_ones(data.x_test, test, dtype, data.unit, "x_test"),
            held=replace(
                data, x_train=nothing, y_train=nothing, x_test=nothing, rows=None, unit=1.0
            ),
        )

    @property
    def starts(self) -> Ints:
        """(n + 1,) client i holds the rows starts[i] to starts[i + 1]."""
        return self.held.starts

    @property
    def y_test(self) -> Ints:
        """The labels of the test set, (M',)."""
        return self.held.y_test

    def seen(self) -> ClientData:
        """The data as views of the samples."""
        shape = self.held.x_train.shape[1:]
        x, x_test = (each[:, :-1].reshape(-1, *shape) for each in (self.x, self.x_test))
        return replace(self.held, x_train=x, y_train=self.y, x_test=x_test)

    def pooled(self) -> Self:
        """The same with all samples on one client; nothing is copied."""
        return replace(self, held=self.held.pooled())


def _with_ones(x: Array, rows: Ints, dtype: DTypeLike, unit: float, name: str) -> Array:
    """The chosen rows, flattened, converted and with a last column of ones, block by block."""
    features = int(np.prod(x.shape[1:]))
    out = np.ones((len(rows), features + 1), dtype=dtype)
    for start in range(0, len(rows), _BLOCK):
        block = slice(start, start + _BLOCK)
        with np.errstate(over="ignore"):  # what overflows the type is caught below
            out[block, :-1] = x[rows[block]].reshape(-1, features)
            if unit != 1:
                out[block, :-1] /= unit
    if not np.can_cast(x.dtype, out.dtype):
        check_features(out, np.arange(len(out)), name)
    return out
