"""How unequal non-negative numbers are."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike


def gini(values: ArrayLike) -> float:
    """Gini coefficient: half the mean difference of two values over their mean.

    0 if all are equal (or all zero), (n - 1)/n if one has everything.

    >>> gini([1, 1, 1, 1]), gini([0, 0, 0, 4])
    (0.0, 0.75)
    """
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    n, total = len(ordered), ordered.sum()
    if total == 0:
        return 0.0
    return max(0.0, float((2 * np.arange(1, n + 1) - n - 1) @ ordered / (n * total)))


def jain(values: ArrayLike) -> float:
    """Jain's index: 1 if all are equal (or all zero), 1/n if one has everything.

    >>> jain([1, 1, 1, 1]), jain([0, 0, 0, 4])
    (1.0, 0.25)
    """
    x = np.asarray(values, dtype=np.float64)
    squares = float(x @ x)
    return float(x.sum() ** 2 / (len(x) * squares)) if squares else 1.0
