from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcohort.maths import _distances as similarity
from fedcohort.maths._distances import between, distances, pairwise, refresh

METRICS = ["arccos", "l2", "l1"]
ZEROS = ["alike", "apart"]


@pytest.fixture
def small_tiles(monkeypatch):
    """Tiles and slices so small that a dozen rows need several of each."""
    monkeypatch.setattr(similarity, "TILE", 5)
    monkeypatch.setattr(similarity, "SLICE", 3)


def some_updates(n, d, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    updates = rng.normal(size=(n, d))
    updates[rng.random(n) < 0.2] = 0
    updates[-1] = -3 * updates[1]
    updates[-2] = 0.1 * updates[2]
    return updates.astype(dtype)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("zero", ZEROS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-7), (np.float32, 1e-6)])
def test_equals_the_pairwise_twin(small_tiles, metric, zero, dtype, tolerance):
    updates = some_updates(13, 10, dtype=dtype)
    matrix = distances(updates, metric, zero)
    assert matrix.dtype == dtype
    np.testing.assert_allclose(matrix, pairwise(updates, metric, zero), atol=tolerance)
    np.testing.assert_array_equal(matrix, matrix.T)
    assert not np.any(np.diag(matrix))


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("zero", ZEROS)
def test_refresh_equals_computing_everything_again(small_tiles, metric, zero):
    updates = some_updates(17, 8)
    before = distances(updates, metric, zero)
    changed = [3, 16, 4, 9, 0, 11, 3]
    updates[changed] = some_updates(17, 8, seed=1)[changed]
    updates[9] = 0
    after = before.copy()
    refresh(after, updates, changed, metric, zero)
    np.testing.assert_allclose(after, distances(updates, metric, zero), rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(after, after.T)
    assert np.any(before != after)


def test_refresh_of_nothing_changes_nothing():
    updates = some_updates(6, 4)
    matrix = distances(updates)
    before = matrix.copy()
    refresh(matrix, updates, [])
    np.testing.assert_array_equal(matrix, before)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 50, 5000])
def test_parallel_rows_are_exactly_parallel(dtype, d):
    rng = np.random.default_rng(d)
    base = rng.normal(size=(20, d)).astype(dtype)
    factors = (rng.random(20) * 10).astype(dtype) + dtype(0.1)
    parallel = base * factors[:, None]
    matrix = distances(np.concatenate([base, parallel, -parallel]))
    pairs = np.arange(20)
    np.testing.assert_array_equal(matrix[pairs, 20 + pairs], 0)
    np.testing.assert_array_equal(matrix[pairs, 40 + pairs], dtype(np.pi))


def test_an_unclipped_arccos_would_be_nan():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(200, 10)).astype(np.float32)
    other = base * np.float32(1.7)
    cosines = np.einsum("ij,ij->i", base, other) / (
        np.linalg.norm(base, axis=1) * np.linalg.norm(other, axis=1)
    )
    assert np.any(cosines > 1)  # what the authors hand to arccos
    assert np.all(np.isfinite(distances(np.concatenate([base, other]))))


def test_small_angles_survive_in_float32():
    # Sums in float32 cannot tell an angle of 1e-4 from 0.
    angle = 1e-4
    turned = np.array([[1, 0], [np.cos(angle), np.sin(angle)]], dtype=np.float32)
    assert distances(turned)[0, 1] == pytest.approx(angle, rel=1e-3)


def test_golden_angles():
    degrees = np.radians([0, 5, 90, 95, 180, 178])
    updates = np.zeros((8, 2))
    updates[:6] = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    first = [0.0, 0.08726646259971634, 1.5707963267948966, 1.6580627893946132]
    first += [3.141592653589793, 3.1066860685499074, 0.0, 0.0]
    fourth = [1.6580627893946132, 1.5707963267948968, 0.08726646259971634, 0.0]
    fourth += [1.48352986419518, 1.4486232791552933, 0.0, 0.0]
    matrix = distances(updates, "arccos", "alike")
    np.testing.assert_allclose(matrix[0], first, atol=1e-12)
    np.testing.assert_allclose(matrix[3], fourth, atol=1e-12)
    np.testing.assert_array_equal(matrix[6], 0)
    apart = distances(updates, "arccos", "apart")
    np.testing.assert_array_equal(apart[6], [np.pi / 2] * 6 + [0, 0])


@pytest.mark.parametrize("metric", METRICS)
@given(
    updates=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=5),
        elements=st.floats(-1e250, 1e250),
    )
)
def test_finite_for_any_finite_updates(metric, updates):
    matrix = distances(updates, metric)
    assert np.all(np.isfinite(matrix))
    assert np.all(matrix >= 0)
    if metric == "arccos":
        assert np.all(matrix <= np.pi)


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e200])
def test_tiny_and_huge_updates_have_the_same_angles(scale):
    updates = some_updates(9, 5)
    np.testing.assert_allclose(distances(updates * scale), distances(updates), atol=1e-7)
    np.testing.assert_allclose(
        distances(updates * scale, "l2") / scale, distances(updates, "l2"), rtol=1e-9, atol=1e-7
    )


def test_integers_are_taken_as_floats():
    assert distances(np.eye(3, dtype=np.int64)).dtype == np.float64


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_not_finite_is_refused_by_row(value):
    updates = np.ones((4, 3))
    updates[2, 1] = value
    with pytest.raises(ValueError, match="row 2 holds NaN or infinity"):
        distances(updates)


def test_bad_arguments():
    updates = np.ones((3, 2))
    with pytest.raises(ValueError, match="metric must be one of"):
        distances(updates, "cosine")
    with pytest.raises(ValueError, match="zero must be one of"):
        distances(updates, zero="nowhere")
    with pytest.raises(ValueError, match="one row per client"):
        distances(updates[0])
    with pytest.raises(ValueError, match="matrix must be 3 x 3"):
        refresh(np.zeros((2, 2)), updates, [0])
    with pytest.raises(ValueError, match=r"rows in \[0, 3\)"):
        refresh(np.zeros((3, 3)), updates, [-1])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("zero", ZEROS)
def test_distances_between_rows_stored_apart_are_those_of_the_whole(
    metric, zero, small_tiles
) -> None:
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((40, 30)).astype(np.float32)
    rows[[3, 30]] = 0
    whole = distances(rows, metric, zero)
    apart = between(rows[:9], rows[9:], metric, zero)
    np.testing.assert_allclose(apart, whole[:9, 9:], rtol=1e-6)


def test_rows_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="of one length, got 2 and 3"):
        between(np.ones((1, 2)), np.ones((1, 3)))
