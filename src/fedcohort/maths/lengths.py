"""How long the features of clients are, and what chances follow from that.

Features are what clients say, and some may lie: a length far beyond the others would have its
client drawn in every round. So lengths are capped.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Rows = NDArray[Any]  # float32 or float64


def lengths(rows: Rows) -> Floats:
    """The Euclidean length of each row, in float64. # (k, d) -> (k,)."""
    squares: Floats = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return np.sqrt(squares)


def capped(rows: Rows, cap: float | None) -> Rows:
    """Rows longer than ``cap`` times the median cut to that length. # (k, d) -> (k, d).

    The median is over rows that are not zero; None cuts nothing.

    >>> capped(np.array([[0.0, 1.0], [3.0, 4.0], [0.0, 900.0], [0.0, 0.0]]), 10.0)
    array([[ 0.,  1.],
           [ 3.,  4.],
           [ 0., 50.],
           [ 0.,  0.]])
    """
    norms = lengths(rows)
    some = norms[norms > 0]
    if cap is None or some.size == 0:
        return rows
    longest = cap * float(np.median(some))
    if norms.max() <= longest:
        return rows
    return (rows * shortening(norms, longest)[:, None]).astype(rows.dtype)


def shortening(norms: Floats, longest: float) -> Floats:
    """What rows of these lengths are multiplied with so that none is longer. # (k,) -> (k,).

    >>> shortening(np.array([1.0, 0.0, 4.0]), 2.0)
    array([1. , 1. , 0.5])
    """
    return np.asarray(longest / np.maximum(norms, longest))


def guessed_lengths(rows: Rows, known: Bools) -> Floats:
    """The length of each row; for a row that is not known, the mean of the others. # -> (k,).

    1 if none is known.
    """
    norms = lengths(rows)
    guess = float(norms[known].mean()) if known.any() else 1.0
    return np.where(known, norms, guess)


def relative(parts: ArrayLike) -> Floats:
    """Positive numbers divided by their mean; exactly 1 where all are the same. # (k,) -> (k,).

    >>> relative([3, 1, 2])
    array([1.5, 0.5, 1. ])
    """
    values = np.asarray(parts, dtype=np.float64)
    values = values / values.max()
    scaled: Floats = values / values.mean()
    return scaled


def chances_by_length(norms: Floats, floor: float) -> Floats:
    """Chances in proportion to lengths, but for a part that is shared equally. # (k,) -> (k,).

    All lengths zero: equal chances.

    >>> chances_by_length(np.array([3.0, 1.0]), 0.2)
    array([0.7, 0.3])
    """
    total = float(norms.sum())
    equal = np.full(len(norms), 1.0 / len(norms))
    return equal if total == 0 else floor * equal + (1 - floor) * norms / total
