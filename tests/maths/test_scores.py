from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from fedcohort.maths._statistics import f1_by_class, macro_f1, worst_share


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


def test_the_worst_share_of_a_row_is_at_least_one_value_and_counts_no_nan() -> None:
    row = [0.4, 0.1, 0.3, 0.2, 0.5]
    rows = [row, [*row[:4], np.nan], [np.nan] * 5, [0.7, np.nan, np.nan, np.nan, np.nan]]
    for share, wanted in [
        (0.1, [0.1, 0.1, np.nan, 0.7]),
        (0.2, [0.1, 0.1, np.nan, 0.7]),  # a fifth of five is one, whatever the last bit says
        (0.3, [0.15, 0.15, np.nan, 0.7]),
        (0.6, [0.2, 0.2, np.nan, 0.7]),
        (1.0, [0.3, 0.25, np.nan, 0.7]),
    ]:
        np.testing.assert_allclose(worst_share(rows, share), wanted)
    assert worst_share([np.arange(10.0)], 3 * 0.1).tolist() == [1.0]  # 0.30000000000000004
