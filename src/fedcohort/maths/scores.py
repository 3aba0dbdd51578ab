"""How good a classifier is, class by class."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def f1_by_class(truth: ArrayLike, predicted: ArrayLike, classes: int) -> NDArray[np.float64]:
    """F1 = 2 TP / (2 TP + FP + FN) of each class, (classes,); 0 for one that is nowhere.

    The harmonic mean of precision and recall: 0 as soon as a class is never recognised, however
    high the accuracy over all.

    >>> f1_by_class([0, 0, 1, 1], [0, 1, 1, 1], 3)
    array([0.66666667, 0.8       , 0.        ])
    """
    right, guess = np.asarray(truth), np.asarray(predicted)
    if right.shape != guess.shape or right.ndim != 1:
        raise ValueError(
            f"There must be one prediction per label. Got shapes {right.shape} and {guess.shape}."
        )
    hits = np.bincount(right[right == guess], minlength=classes)
    both = np.bincount(right, minlength=classes) + np.bincount(guess, minlength=classes)
    out: NDArray[np.float64] = 2 * hits / np.maximum(both, 1)
    return out
