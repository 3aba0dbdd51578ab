from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from fedcohort.maths.scores import f1_by_class


def test_f1_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        classes = int(rng.integers(2, 12))
        truth, guess = rng.integers(0, classes, (2, 80))
        expected = f1_score(truth, guess, labels=range(classes), average=None, zero_division=0)
        assert np.allclose(f1_by_class(truth, guess, classes), expected)


def test_one_prediction_per_label() -> None:
    with pytest.raises(ValueError, match="one prediction per label"):
        f1_by_class([0, 1], [0], 2)
