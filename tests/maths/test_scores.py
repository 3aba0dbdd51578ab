from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from fedcohort.maths.scores import f1_by_class, macro_f1


def test_f1_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        classes = int(rng.integers(2, 12))
        outputs = classes + int(rng.integers(0, 3))  # a model may tell more than there are
        truth, guess = rng.integers(0, classes, 80), rng.integers(0, outputs, 80)
        expected = f1_score(truth, guess, labels=range(classes), average=None, zero_division=0)
        assert np.allclose(f1_by_class(truth, guess, classes), expected)
        met = np.union1d(truth, guess)
        expected = f1_score(truth, guess, labels=met[met < classes], average="macro")
        assert macro_f1(truth, guess, classes) == pytest.approx(expected)


def test_one_prediction_per_label() -> None:
    with pytest.raises(ValueError, match="one prediction per label"):
        f1_by_class([0, 1], [0], 2)
