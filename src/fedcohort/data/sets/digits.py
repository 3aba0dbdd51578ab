"""Handwritten digits of 8 x 8 pixels; they come with scikit-learn and are always there."""

from __future__ import annotations

import numpy as np

from fedcohort.data.dataset import Dataset
from fedcohort.data.sets.base import Request


def digits(request: Request) -> Dataset:
    """8 x 8 digits of scikit-learn; every fifth sample of each digit is for testing."""
    from sklearn.datasets import load_digits  # slow to import

    x, y = load_digits(return_X_y=True)
    x, y = (x / 16).astype(np.float32), y.astype(np.int64)
    rank = np.zeros(len(y), dtype=np.int64)  # 0, 1, 2, ... among the samples of the same digit
    for digit in range(10):
        rank[y == digit] = np.arange((y == digit).sum())
    test = rank % 5 == 4
    return Dataset("digits", x[~test], y[~test], x[test], y[test], classes=10)
