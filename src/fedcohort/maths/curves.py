"""Noisy curves: rolling means, and when one is above a level to stay."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def window(evaluations: int) -> int:
    """How many evaluations a rolling mean covers: a twentieth of them, at least 1."""
    return max(1, round(evaluations / 20))


def rolling(curves: Floats, width: int) -> Floats:
    """The mean of the last ``width`` values; of those there are, at the beginning.

    >>> rolling(np.array([1.0, 2.0, 6.0]), 2).tolist()
    [1.0, 1.5, 4.0]
    """
    length = curves.shape[-1]
    zero = np.zeros((*curves.shape[:-1], 1))
    sums = np.concatenate([zero, np.cumsum(curves, axis=-1)], axis=-1)
    ends = np.arange(1, length + 1)
    starts = np.maximum(0, ends - width)
    out: Floats = (sums[..., ends] - sums[..., starts]) / (ends - starts)
    return out


def first_at(curve: Floats, level: float) -> int | None:
    """Where a curve (E,) is at a level for the first time; a noisy one is there early.

    >>> first_at(np.array([0.1, 0.6, 0.2, 0.5, 0.7]), 0.5)
    1
    """
    there = np.flatnonzero(curve >= level)
    return int(there[0]) if len(there) else None


def sustained_at(curve: Floats, level: float) -> int | None:
    """From where on a curve (E,), as a rolling mean over `window`, is at a level to the end.

    >>> sustained_at(np.array([0.1, 0.6, 0.2, 0.5, 0.7]), 0.5)
    3
    >>> sustained_at(np.array([0.1, 0.6, 0.2]), 0.5) is None
    True
    """
    below = np.flatnonzero(rolling(curve, window(len(curve))) < level - SLACK)
    start = int(below[-1]) + 1 if len(below) else 0
    return start if start < len(curve) else None


SLACK = 1e-12
"""Sums of the same numbers in another order differ by rounding."""
