"""How good a classifier is, class by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


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
