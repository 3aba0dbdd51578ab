from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from fedcohort.maths import _distances as module
from fedcohort.maths._distances import distances, sketch


def pairs_at(theta, count, d, rng):
    """Pairs of random directions at the angle theta. # (count, d) twice."""
    u = rng.normal(size=(count, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    v = rng.normal(size=(count, d))
    v -= np.einsum("ij,ij->i", u, v)[:, None] * u
    v /= np.linalg.norm(v, axis=1, keepdims=True)
    return u, np.cos(theta) * u + np.sin(theta) * v


def angle_errors(theta, k, d=4000, count=50, seeds=12, project=sketch):
    u, v = pairs_at(theta, count, d, np.random.default_rng(0))
    both = np.concatenate([u, v])
    errors = []
    for seed in range(seeds):
        small = project(both, k, seed)
        errors.append(np.diagonal(distances(small)[:count, count:]) - theta)
    return np.concatenate(errors)


@pytest.mark.parametrize("k", [64, 256, 1024])
@pytest.mark.parametrize("theta", [np.pi / 2, np.pi / 6])
def test_angle_error_is_as_documented(k, theta):
    """Standard deviation sin(theta) / sqrt(k) to 15 %, a few sigma of 600 errors."""
    errors = angle_errors(theta, k)
    promised = np.sin(theta) / np.sqrt(k)
    assert errors.std() == pytest.approx(promised, rel=0.15)
    assert abs(errors.mean()) < 0.3 * promised
    assert np.abs(errors).max() < 6 * promised


def test_angle_test_notices_half_the_coordinates():
    """The planted defect: a projection that fills only half of its k sums."""

    def half(updates, k, seed):
        return np.pad(sketch(updates, k // 2, seed), ((0, 0), (0, k - k // 2)))

    errors = angle_errors(np.pi / 2, 256, project=half)
    assert errors.std() > 1.15 / np.sqrt(256)


def test_inner_products_are_unbiased():
    """Mean over 1,000 seeds within 5 standard errors (level 6e-7)."""
    rng = np.random.default_rng(1)
    u, v = rng.normal(size=(2, 40))
    products = []
    for seed in range(1000):
        a, b = sketch(np.stack([u, v]), 8, seed)
        products.append((a @ b, a @ a))
    found, error = np.mean(products, axis=0), np.std(products, axis=0) / 1000**0.5
    assert np.all(np.abs(found - [u @ v, u @ u]) < 5 * error)


def test_linear_and_exact_for_parallel_rows():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 3, 500))
    np.testing.assert_allclose(sketch(2 * x - y, 50, 3), 2 * sketch(x, 50, 3) - sketch(y, 50, 3))
    small = sketch(np.concatenate([x, 2.5 * x, -x, np.zeros((1, 500))]), 50, 3)
    angles = distances(small, zero="apart")
    i = np.arange(3)
    np.testing.assert_array_equal(angles[i, 3 + i], 0)
    np.testing.assert_array_equal(angles[i, 6 + i], np.pi)
    assert not np.any(small[9])


def test_the_seed_names_the_map():
    rows = np.random.default_rng(3).normal(size=(4, 300))
    np.testing.assert_array_equal(sketch(rows, 20, 7), sketch(rows, 20, 7))
    np.testing.assert_allclose(sketch(rows[2:], 20, 7), sketch(rows, 20, 7)[2:])  # row by row
    assert not np.allclose(sketch(rows, 20, 7), sketch(rows, 20, 8))
    sketch(rows, 20, 2**64 - 1)


def test_the_map_is_frozen():
    # Saved sketches are compared with new ones, so the map must not change between versions.
    first = sketch(np.eye(6), 5, seed=0)
    np.testing.assert_array_equal(np.count_nonzero(first, axis=1), 4)
    np.testing.assert_array_equal(np.abs(first[first != 0]), 0.5)
    assert (2 * first).astype(int).tolist() == [
        [1, 1, -1, 1, 0],
        [-1, -1, 1, 0, -1],
        [1, 1, -1, 0, -1],
        [-1, -1, -1, 0, -1],
        [1, -1, -1, 0, 1],
        [1, 1, -1, 0, 1],
    ]


def test_pieces_are_independent(monkeypatch):
    monkeypatch.setattr(module, "PIECE", 16)
    columns = sketch(np.eye(64), 32, seed=5)
    assert not np.array_equal(columns[:16], columns[16:32])
    np.testing.assert_allclose(np.linalg.norm(columns, axis=1), 1)


def test_every_sum_is_used_alike():
    """Chi-square of the places of 40,000 coordinates over 101 sums, level 1e-6."""
    k, d = 101, 40_000
    used = np.zeros(k)
    for _, projection in module._pieces(d, k, seed=9):
        used += np.asarray(abs(projection).sum(axis=1)).ravel() * 2
    borders = np.arange(5) * k // 4
    expected = np.repeat(d / np.diff(borders), np.diff(borders))
    statistic = ((used - expected) ** 2 / expected).sum()
    assert chi2.sf(statistic, k - 4) > 1e-6
    assert chi2.sf(((used * 1.05 - expected) ** 2 / expected).sum(), k - 4) < 1e-6


def test_one_kept_coordinate_and_float32():
    rows = np.ones((2, 3), dtype=np.float32)
    assert sketch(rows, 1, 0).shape == (2, 1)


@pytest.mark.parametrize(
    ("rows", "k", "seed", "message"),
    [
        (np.ones(5), 2, 0, "one row per client"),
        (np.ones((2, 5)), 5, 0, r"k must be in \[1, 5\)"),
        (np.ones((2, 5)), 0, 0, r"k must be in \[1, 5\)"),
        (np.ones((2, 5)), 2, -1, "seed must be"),
        (np.ones((2, 5)), 2, 2**64, "seed must be"),
        (np.full((2, 5), np.nan), 2, 0, "updates must be finite"),
    ],
)
def test_bad_arguments(rows, k, seed, message):
    with pytest.raises(ValueError, match=message):
        sketch(rows, k, seed)
