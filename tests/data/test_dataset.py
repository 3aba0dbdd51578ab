from __future__ import annotations

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort.data import Dataset, partition
from fedcohort.training import Softmax

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


STANDARDISED = np.random.default_rng(0).normal(size=(3, 2))
KINDS = {
    "images": np.arange(3 * 28 * 28, dtype=np.uint8).reshape(3, 28, 28),
    "tokens": np.array([[30_000, 1, 4], [1, 5, 9], [2, 6, 5]]),
    "standardised": STANDARDISED,
}


@pytest.mark.parametrize("x", KINDS.values(), ids=KINDS.keys())
def test_samples_of_any_type_and_shape(x):
    dataset = Dataset("mine", x, Y, x[:1], Y[:1], classes=2, scaled=False)
    assert dataset.x_train.dtype == x.dtype
    assert np.shares_memory(dataset.x_train, x)
    assert dataset.features == x[0].size
    assert f"{x[0].size} features" in repr(dataset)
    with pytest.raises(ValueError, match="read-only"):
        dataset.x_train[0] = 1
    with pytest.raises(BadInput, match="pass scaled=False"):
        Dataset("mine", x, Y, x[:1], Y[:1], classes=2)
    clients = partition.iid(Y, 2, np.random.default_rng(0))
    task = Softmax.from_partition(dataset, clients)  # and it can be learnt
    assert np.isfinite(task.evaluate(task.initial(0)[None]).train_loss).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x_test": STANDARDISED * np.nan}, "x_test of the data set 'toy' must be finite"),
        ({"x_train": STANDARDISED.astype(str)}, "x_train .* must be numbers, a row per sample"),
        ({"x_train": STANDARDISED.astype(object)}, "x_train .* must be numbers"),
        ({"x_train": STANDARDISED[:, 0]}, "x_train .* must be numbers, a row per sample"),
        ({"x_test": STANDARDISED[:, :1]}, "the same features; got 2 and 1"),
        ({"x_test": STANDARDISED[:, :, None]}, r"the same features; got \(2,\) and \(2, 1\)"),
        ({"y_test": Y + 1}, r"y_test .* labels in 0\.\.1"),
    ],
)
def test_malformed_arrays_of_any_shape_are_refused(change, message):
    arrays = {"x_train": STANDARDISED, "y_train": Y, "x_test": STANDARDISED, "y_test": Y}
    with pytest.raises(BadInput, match=message):
        Dataset("toy", **{**arrays, **change}, classes=2, scaled=False)
