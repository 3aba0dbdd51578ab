from __future__ import annotations

import numpy as np
import pytest

from fedcohort.core.errors import BadInput
from fedcohort.data import Dataset

X, Y = np.zeros((3, 2), np.float32), np.array([0, 1, 1])


def test_a_data_set_is_read_only_and_leaves_the_arrays_given_alone():
    x = X.copy()
    dataset = Dataset("toy", x, Y, x, Y, classes=2, groups_train=np.array([4, 4, 5]))
    with pytest.raises(ValueError, match="read-only"):
        dataset.x_train[0, 0] = 1
    x[0, 0] = 1
    assert dataset.features == 2
    assert repr(dataset) == "<Dataset toy: 3 train + 3 test, 2 features, 2 classes, 2 groups>"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_train": X.astype(np.float64)}, "x_train of the data set 'toy' must be float32"),
        ({"x_test": X + 2}, r"x_test .* must lie in \[0, 1\]"),
        ({"x_test": X * np.float32(np.nan)}, r"x_test .* must lie in \[0, 1\]"),
        ({"y_train": Y.astype(np.uint8)}, "y_train .* must be int64"),
        ({"y_test": Y + 1}, r"y_test .* labels in 0\.\.1"),
        ({"y_test": Y - 1}, r"y_test .* labels in 0\.\.1"),
        ({"y_train": Y[:2]}, "got 3 and 2 rows"),
        ({"x_test": X[:, :1]}, "the same features; got 2 and 1"),
        ({"groups_train": Y[:2]}, "one id per training sample"),
    ],
)
def test_malformed_arrays_are_refused(change, message):
    arrays = {"x_train": X, "y_train": Y, "x_test": X, "y_test": Y}
    with pytest.raises(BadInput, match=message):
        Dataset("toy", **{**arrays, **change}, classes=2)
