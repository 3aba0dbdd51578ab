"""Scores of a classifier by class, rounds to a target, and inequality among clients."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


def f1_by_class(truth: ArrayLike, predicted: ArrayLike, classes: int) -> NDArray[np.float64]:
    """F1 = 2 TP / (2 TP + FP + FN) of each class, (classes,); 0 for one that is nowhere.

    The harmonic mean of precision and recall: 0 as soon as a class is never recognised, however
    high the accuracy over all. A model may have more outputs than there are classes: to name one
    of those is a miss.

    >>> f1_by_class([0, 0, 1, 1], [0, 1, 1, 1], 3)
    array([0.66666667, 0.8       , 0.        ])
    """
    right, guess = np.asarray(truth), np.asarray(predicted)
    if right.shape != guess.shape or right.ndim != 1:
        raise ValueError(
            f"There must be one prediction per label. Got shapes {right.shape} and {guess.shape}."
        )
    hits = np.bincount(right[right == guess], minlength=classes)
    told = np.bincount(guess[guess < classes], minlength=classes)
    both = np.bincount(right, minlength=classes) + told
    out: NDArray[np.float64] = 2 * hits / np.maximum(both, 1)
    return out


def macro_f1(truth: ArrayLike, predicted: ArrayLike, classes: int) -> float:
    """The mean F1 over the classes that are there or are told, as scikit-learn has it.

    >>> round(macro_f1([0, 0, 1, 1], [0, 1, 1, 1], 3), 4)
    0.7333
    """
    met = np.union1d(np.asarray(truth), np.asarray(predicted)).astype(np.int64)
    return float(f1_by_class(truth, predicted, classes)[met[met < classes]].mean())


def worst_share(values: ArrayLike, share: float) -> NDArray[np.float64]:
    """The mean over the lowest share of each row (at least one value), without its NaN.

    >>> worst_share([[0.5, 0.1, np.nan, 0.9], [1.0, 1.0, 1.0, 1.0]], 0.5)
    array([0.3, 1. ])
    """
    rows = np.sort(np.asarray(values, dtype=np.float64), axis=-1)  # NaN last
    count = np.isfinite(rows).sum(axis=-1)
    taken = np.maximum(1, np.ceil(share * count - 1e-9)).astype(np.int64)
    means = [row[:k].mean() if n else np.nan for row, k, n in zip(rows, taken, count, strict=True)]
    return np.array(means)


# Noisy curves: rolling means, and when one is above a level to stay.


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


# How unequal non-negative numbers are.


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
