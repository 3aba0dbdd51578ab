"""What data without a test set of its own has in common: every n-th sample is for testing."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from fedcohort._internal.environment import check_fits
from fedcohort._internal.types import Array, Bools, Floats, Ints


def every_nth(*keys: Array, n: int) -> Bools:
    """Every n-th of the rows that have the same keys, (N,): the same test set for everybody.

    >>> every_nth(np.array([7, 7, 8, 7, 8, 8]), n=3).tolist()
    [False, False, False, True, False, True]
    """
    _, which = np.unique(np.stack([np.asarray(key) for key in keys]), axis=1, return_inverse=True)
    which = which.ravel()
    order = np.argsort(which, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(which))[:-1]])
    rank = np.empty(len(which), dtype=np.int64)
    rank[order] = np.arange(len(which)) - starts[which[order]]
    return np.asarray(rank % n == n - 1)


Parts: TypeAlias = dict[str, Array]
"""Arrays for training and for testing, under ``_train`` and ``_test``."""


def with_test_set(
    x: Array, y: Ints, groups: Array | None, n: int = 5
) -> tuple[Parts, Parts, Parts]:
    """Samples, labels and groups, divided: every n-th of a group, in the order of its labels.

    So every group with n samples or more is tested, and labels are spread evenly over both parts.
    """
    check_fits(x.nbytes, "A copy of the samples, for training and testing,")
    of = np.zeros(len(y), np.int64) if groups is None else np.unique(groups, return_inverse=True)[1]
    order = np.argsort(y, kind="stable")
    test = np.empty(len(y), dtype=np.bool_)
    test[order] = every_nth(of[order], n=n)
    if not test.any():  # so few of everything
        test[order[-1]] = True
    rows = {"_train": np.flatnonzero(~test), "_test": np.flatnonzero(test)}
    of_x, of_y = ({part: array[some] for part, some in rows.items()} for array in (x, y))
    return of_x, of_y, {} if groups is None else {part: groups[s] for part, s in rows.items()}


def standardised(x: Array, train: Bools) -> Floats:
    """Every column with mean 0 and variance 1 over the training rows, in float32."""
    mean, spread = x[train].mean(axis=0), x[train].std(axis=0)
    return np.asarray((x - mean) / np.where(spread > 0, spread, 1.0), dtype=np.float32)
