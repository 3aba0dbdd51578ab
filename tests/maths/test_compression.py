from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths import group_coordinates
from fedcohort.maths._compression import (
    compress,
    compressed_length,
    group_means,
    shared_groups,
    shared_signs,
    signed_sums,
    sketch,
    sorted_centres,
)

RNG_SEED = 0


def test_length():
    assert compressed_length(10, 1.0) == 10
    assert compressed_length(1000, 0.05) == 50
    assert compressed_length(3, 0.01) == 1
    for rate in (0, -0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="rate must be in"):
            compressed_length(10, rate)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.data())
def test_quantile_groups_are_equal_and_ordered(values, data):
    k = data.draw(st.integers(1, len(values)))
    groups = group_coordinates(values, k)
    counts = np.bincount(groups, minlength=k)
    assert counts.min() >= len(values) // k
    assert counts.max() <= -(-len(values) // k)
    by_value = groups[np.argsort(values, kind="stable")]
    assert np.all(np.diff(by_value) >= 0)


def test_a_reference_of_zeros_gives_blocks_of_neighbours():
    np.testing.assert_array_equal(group_coordinates(np.zeros(6), 3), [0, 0, 1, 1, 2, 2])
    assert set(group_coordinates(np.zeros(6), 3, "kmeans")) <= {0, 1, 2}


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=40), st.data())
def test_kmeans_groups_hold_the_values_nearest_to_their_centre(values, data):
    k = data.draw(st.integers(1, len(values)))
    groups = group_coordinates(values, k, "kmeans")
    centres = sorted_centres([values], k)[0]
    assert np.all(np.diff(centres) >= 0)
    nearest = np.abs(np.array(values)[:, None] - centres).min(axis=1)
    np.testing.assert_allclose(np.abs(values - centres[groups]), nearest, atol=1e-9)


def test_centres_are_the_means_of_their_groups():
    """Also of a group of which a single value is left."""
    for seed in range(250):
        values = np.random.default_rng(seed).standard_cauchy(12)
        centres = sorted_centres([values], 6)[0]
        nearest = np.abs(values[:, None] - centres).argmin(axis=1)
        for group in set(nearest.tolist()):
            assert centres[group] == pytest.approx(values[nearest == group].mean())


def optimal_squares(values, k):
    """Exact one-dimensional k-means by dynamic programming over sorted values."""
    x = np.sort(values)
    d = len(x)
    s, q = np.concatenate([[0], np.cumsum(x)]), np.concatenate([[0], np.cumsum(x**2)])

    def cost(i, j):
        return q[j] - q[i] - (s[j] - s[i]) ** 2 / (j - i)

    best = np.array([0.0] + [np.inf] * d)
    for _ in range(k):
        best = np.array(
            [np.inf] + [min(best[i] + cost(i, j) for i in range(j)) for j in range(1, d + 1)]
        )
    return best[d]


@pytest.mark.parametrize("law", ["normal", "laplace", "clumps"])
@pytest.mark.parametrize("k", [2, 5, 12])
def test_centres_are_near_the_optimum(law, k):
    rng = np.random.default_rng(RNG_SEED)
    values = {
        "normal": rng.normal(size=120),
        "laplace": rng.laplace(size=120),
        "clumps": rng.integers(0, k, 120) * 10 + rng.normal(size=120),
    }[law]
    centres = sorted_centres([values], k)[0]
    squares = (np.abs(values[:, None] - centres).min(axis=1) ** 2).sum()
    best = optimal_squares(values, k)
    assert best * (1 - 1e-9) <= squares <= 1.5 * best


def test_separated_values_are_found_exactly():
    np.testing.assert_allclose(
        sorted_centres([[3.0, -1, 3, 10, -1, 10]], 3), [[-1, 3, 10]], atol=1e-12
    )
    np.testing.assert_allclose(sorted_centres(np.ones((1, 5)), 3), [[1, 1, 1]])


def test_sorted_centres_are_blind_to_permutations_and_the_others_are_not():
    rng = np.random.default_rng(RNG_SEED)
    update = rng.normal(size=400)
    shuffled = rng.permutation(update)
    both = np.stack([update, shuffled])
    centres = sorted_centres(both, 20)
    np.testing.assert_array_equal(centres[0], centres[1])
    groups = group_coordinates(update + 0.1 * rng.normal(size=400), 20)
    means = group_means(both, groups, 20)
    assert np.abs(means[0] - means[1]).max() > 1
    small = sketch(both, 20, seed=0)
    assert np.linalg.norm(small[0] - small[1]) > 0.3 * np.linalg.norm(update - shuffled)


def test_group_means_are_blind_inside_groups():
    rng = np.random.default_rng(RNG_SEED)
    groups = group_coordinates(rng.normal(size=60), 6)
    update = rng.normal(size=60)
    inside = update.copy()
    for g in range(6):
        inside[groups == g] = rng.permutation(inside[groups == g])
    assert not np.array_equal(inside, update)
    np.testing.assert_allclose(*(group_means([x], groups, 6) for x in (update, inside)))


def test_group_means_are_means():
    rng = np.random.default_rng(RNG_SEED)
    updates, groups = rng.normal(size=(7, 30)), rng.integers(0, 5, 30)
    expected = np.stack([updates[:, groups == g].mean(axis=1) for g in range(5)], axis=1)
    np.testing.assert_allclose(group_means(updates, groups, 5), expected)
    np.testing.assert_array_equal(group_means(updates, groups, 6)[:, 5], 0)  # an empty group
    weights = rng.random(7)
    np.testing.assert_allclose(
        group_means([weights @ updates], groups, 5)[0], weights @ group_means(updates, groups, 5)
    )


def angle(a, b):
    return np.arccos(np.clip(a @ b / np.linalg.norm(a) / np.linalg.norm(b), -1, 1))


@pytest.mark.parametrize("mean", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("method", ["groups", "projection"])
def test_a_mean_that_all_coordinates_share_is_not_amplified(mean, method):
    updates = np.random.default_rng(RNG_SEED).normal(mean, 1.0, (2, 10_000))
    features = compress(updates, 0.1, method)
    error = 5 / np.sqrt(1000)  # five standard deviations: a level of 1e-6
    assert abs(angle(*features) - angle(*updates)) < error
    if mean == 1.0:  # what the signs are for: 60 degrees become 25
        plain = group_means(updates, shared_groups(10_000, 1000), 1000)
        assert angle(*updates) - angle(*plain) > 0.5 > error


def test_every_method_is_the_function_of_its_name():
    updates = np.random.default_rng(RNG_SEED).normal(size=(3, 12))
    np.testing.assert_array_equal(compress(updates, 0.5, "groups", 7), signed_sums(updates, 6, 7))
    np.testing.assert_array_equal(compress(updates, 0.5, "projection", 7), sketch(updates, 6, 7))
    np.testing.assert_array_equal(compress(updates, 0.5, "centres"), sorted_centres(updates, 6))


def test_signed_sums_by_hand_and_for_all_signs():
    rng = np.random.default_rng(RNG_SEED)
    updates = rng.normal(size=(3, 12))
    groups, signs = shared_groups(12, 4, 7), shared_signs(12, 7)
    expected = [[(x * signs)[groups == g].sum() for g in range(4)] for x in updates]
    np.testing.assert_allclose(signed_sums(updates, 4, 7), expected)
    # The mean over all signs of the inner products is exact, whatever the groups.
    every = np.array(list(product([-1, 1], repeat=6)))  # (64, 6)
    a, b = updates[0, :6], updates[1, :6]
    sums = [[(x * every)[:, g].sum(axis=1) for g in ([0, 1, 2], [3, 4, 5])] for x in (a, b)]
    assert (np.array(sums[0]) * np.array(sums[1])).sum(axis=0).mean() == pytest.approx(a @ b)


def test_signs_are_even_fixed_and_not_those_of_another_seed():
    signs = shared_signs(10_000, 3)
    assert set(signs.tolist()) == {-1, 1}
    assert abs(signs.sum()) < 5 * 100  # five standard deviations: a level of 1e-6
    np.testing.assert_array_equal(signs[:50], shared_signs(50, 3))
    assert abs(int(signs.astype(int) @ shared_signs(10_000, 4))) < 5 * 100
    with pytest.raises(ValueError, match="read-only"):
        signs[0] = 1


@pytest.mark.parametrize("method", ["groups", "projection"])
def test_features_are_linear_and_at_full_rate_the_update(method):
    updates = np.random.default_rng(RNG_SEED).normal(size=(2, 60))
    features = compress(updates, 0.2, method)
    np.testing.assert_allclose(
        compress([updates.sum(axis=0)], 0.2, method)[0], features.sum(axis=0)
    )
    np.testing.assert_array_equal(compress(updates, 1.0, method), updates)


def test_full_rate_keeps_everything():
    rng = np.random.default_rng(RNG_SEED)
    updates = rng.normal(size=(3, 9))
    groups = group_coordinates(updates[0], 9)
    means = group_means(updates, groups, 9)
    np.testing.assert_allclose(means[:, groups], updates)
    np.testing.assert_allclose(sorted_centres(updates, 9), np.sort(updates, axis=1))


def test_float32_updates():
    updates = np.random.default_rng(RNG_SEED).normal(size=(2, 50)).astype(np.float32)
    assert sorted_centres(updates, 4).dtype == np.float64
    assert group_means(updates, np.zeros(50, dtype=int), 1).dtype == np.float64


def test_bad_arguments():
    rows = np.ones((2, 4))
    with pytest.raises(ValueError, match="reference must be finite"):
        group_coordinates([1.0, np.nan], 1)
    with pytest.raises(ValueError, match="updates must be finite"):
        sorted_centres([[1.0, np.inf]], 1)
    with pytest.raises(ValueError, match="2 dimension"):
        sorted_centres([1.0, 2.0], 1)
    for k in (0, 5):
        with pytest.raises(ValueError, match=r"k must be in \[1, 4\]"):
            sorted_centres(rows, k)
        with pytest.raises(ValueError, match=r"k must be in \[1, 4\]"):
            group_coordinates(rows[0], k)
        with pytest.raises(ValueError, match=r"k must be in \[1, 4\]"):
            signed_sums(rows, k)
    with pytest.raises(ValueError, match="method must be one of"):
        group_coordinates(rows[0], 2, "random")
    with pytest.raises(ValueError, match="groups must be 4 integers"):
        group_means(rows, [0, 1], 2)
    with pytest.raises(ValueError, match=r"groups must be in \[0, 2\)"):
        group_means(rows, [0, 1, 2, 0], 2)
