from __future__ import annotations

import tracemalloc
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from fedcohort.maths import _groups as strata
from fedcohort.maths._groups import (
    join_copies,
    kmeans,
    merge_strata,
    stratum_means,
    stratum_variances,
)


def generator(seed=0):
    return np.random.Generator(np.random.Philox(seed))


def inertia(features, labels):
    return sum(
        ((features[labels == h] - features[labels == h].mean(axis=0)) ** 2).sum()
        for h in np.unique(labels)
    )


def blobs(n, d, k, seed=0, spread=0.1):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % k
    return rng.normal(size=(k, d))[truth] * 5 + spread * rng.normal(size=(n, d)), truth


def same_partition(a, b):
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a)) == len(set(b))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_finds_separated_groups(dtype, seed):
    features, truth = blobs(200, 8, 6, seed)
    labels, centres = kmeans(features.astype(dtype), 6, generator(seed))
    assert same_partition(labels, truth)
    np.testing.assert_allclose(centres, stratum_means(features, labels, 6), atol=1e-5)


def small_cases():
    rng = np.random.default_rng(1)
    for _ in range(6):
        features = rng.normal(size=(7, 2))
        partitions = (np.array(p) for p in product(range(3), repeat=7) if len(set(p)) == 3)
        yield features, min(partitions, key=lambda labels: inertia(features, labels))


def test_the_optimum_is_a_fixed_point():
    for features, best in small_cases():
        labels, _ = kmeans(features, 3, generator(), start=stratum_means(features, best, 3))
        np.testing.assert_array_equal(labels, best)


def test_some_start_is_as_good_as_the_best_of_all_starts():
    # Not the optimum: there are cases where no three of the points lead to it.
    everywhere, seeded = [], []
    for features, best in small_cases():
        triples = [features[list(t)] for t in combinations(range(7), 3)]
        starts = [kmeans(features, 3, generator(), start=t)[0] for t in triples]
        found = [kmeans(features, 3, generator(seed))[0] for seed in range(40)]
        reached, ours = ([inertia(features, x) for x in group] for group in (starts, found))
        assert inertia(features, best) * (1 - 1e-9) <= min(ours)
        assert min(ours) == pytest.approx(min(reached))
        everywhere.append(np.mean(reached) / min(reached))
        seeded.append(np.mean(ours) / min(reached))
    assert np.mean(seeded) < 1.2 < np.mean(everywhere)  # what the spreading of centres is for


def test_as_good_as_scikit_learn():
    from sklearn.cluster import KMeans

    features, _ = blobs(500, 10, 12, spread=3.0)
    theirs = KMeans(8, n_init=5, random_state=0).fit(features).inertia_
    ours = min(inertia(features, kmeans(features, 8, generator(s))[0]) for s in range(5))
    assert ours < 1.03 * theirs


def test_a_fixed_point():
    features, _ = blobs(300, 5, 4, spread=2.0)
    labels, centres = kmeans(features, 4, generator())
    gaps = ((features[:, None] - centres) ** 2).sum(axis=2)
    np.testing.assert_array_equal(labels, gaps.argmin(axis=1))


def test_below_a_thousand_clients_it_goes_on_until_nobody_moves():
    features = np.random.default_rng(0).normal(size=(900, 2))
    for seed in range(5):
        labels, centres = kmeans(features, 3, generator(seed), steps=1000)
        gaps = ((features[:, None] - centres) ** 2).sum(axis=2)
        np.testing.assert_array_equal(labels, gaps.argmin(axis=1))


@pytest.mark.parametrize(
    ("settled", "labels"), [(0.2, [0, 0, 1, 1, 1]), (0.19, [0, 0, 0, 1, 1]), (0.0, [0, 0, 0, 1, 1])]
)
def test_it_stops_when_at_most_that_share_moves(settled, labels):
    """From 0 and 1 one of five moves in the first step, another in the second."""
    rows, start = np.array([[0.0], [1.0], [2.0], [3.0], [6.0]]), [[0.0], [1.0]]
    assert kmeans(rows, 2, generator(), start, settled=settled)[0].tolist() == labels


def test_the_unit_of_the_features_does_not_matter():
    features, _ = blobs(200, 5, 4, spread=2.0)
    for seed in range(5):
        labels, _ = kmeans(features, 7, generator(seed), steps=0)
        small, _ = kmeans(features * 2.0**-20, 7, generator(seed), steps=0)
        np.testing.assert_array_equal(labels, small)


@pytest.mark.parametrize("far", [0, 5, 10])
def test_whoever_is_far_from_all_has_a_centre_from_the_start(far):
    features = np.arange(11.0)[:, None]
    features[far] = 1e9
    for seed in range(20):
        labels, _ = kmeans(features, 2, generator(seed), steps=0)
        assert np.flatnonzero(labels == labels[far]).tolist() == [far]


def test_squares_that_nearly_vanish_are_drawn_by():
    """Then rounding may put a point at the very end of the line."""
    for seed in range(20):
        labels, _ = kmeans([[0.0], [3e-162]], 2, generator(seed))
        assert sorted(labels.tolist()) == [0, 1]


def test_deterministic_for_a_seed():
    features, _ = blobs(300, 5, 4, spread=2.0)
    first, second = (kmeans(features, 7, generator(3)) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_a_warm_start_keeps_the_numbers_and_needs_no_chance():
    features, _ = blobs(300, 5, 4, spread=1.0)
    labels, centres = kmeans(features, 4, generator())
    rng = generator(9)
    before = rng.bit_generator.state["state"]["counter"].copy()
    moved = features + 0.01 * np.random.default_rng(0).normal(size=features.shape)
    again, _ = kmeans(moved, 4, rng, start=centres)
    np.testing.assert_array_equal(rng.bit_generator.state["state"]["counter"], before)
    assert np.mean(again == labels) > 0.98


def test_blocks_do_not_matter(monkeypatch):
    features, _ = blobs(300, 5, 4, spread=2.0)
    whole = kmeans(features, 6, generator())[0]
    monkeypatch.setattr(strata, "BLOCK", 7)
    np.testing.assert_array_equal(kmeans(features, 6, generator())[0], whole)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(1, 9), st.integers(1, 3)),
        elements=st.sampled_from([0.0, 1.0, -2.5, 1e8]),
    ),
    st.data(),
)
def test_no_stratum_is_empty(features, data):
    k = data.draw(st.integers(1, len(features)))
    start = None
    if data.draw(st.booleans()):
        start = np.full((k, features.shape[1]), 7.0)  # all on one point, far from everybody
    labels, centres = kmeans(features, k, generator(), start)
    assert set(labels.tolist()) == set(range(k))
    np.testing.assert_allclose(centres, stratum_means(features, labels, k))


def test_whole_numbers_are_as_good_as_floats():
    """Their squares do not overflow, whatever their type."""
    whole = np.random.default_rng(0).integers(-100, 100, (60, 3)).astype(np.int8)
    first, second = (kmeans(features, 5, generator()) for features in (whole, whole.astype(float)))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1], second[1])


def test_short_floats_are_not_copied_into_longer_ones():
    assert strata._checked_rows(rows := np.ones((4, 2), np.float32)) is rows


def test_equal_features_and_one_stratum_each():
    labels, _ = kmeans(np.zeros((5, 2)), 3, generator())
    assert set(labels.tolist()) == {0, 1, 2}
    labels, _ = kmeans(np.arange(5.0)[:, None], 5, generator())
    assert set(labels.tolist()) == set(range(5))
    assert kmeans(np.ones((4, 2)), 1, generator())[0].tolist() == [0] * 4


def test_means_and_variances():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(50, 4)), rng.integers(0, 4, 50)
    labels[labels == 2] = 1
    labels[labels == 3] = 0
    labels[[3, 4]] = 3
    labels[7] = 2  # one client alone, and a pair; stratum 4 is empty
    found = stratum_variances(features, labels, 5)
    for h in (0, 1, 3):
        own = features[labels == h]
        assert found[h] == pytest.approx(own.var(axis=0, ddof=1).sum())
        np.testing.assert_allclose(stratum_means(features, labels, 5)[h], own.mean(axis=0))
    assert found[2] == found[4] == 0


def test_merging_follows_wards_rule():
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 3))
    labels, centres = kmeans(features, 8, generator())
    assert same_partition(merge_strata(labels, centres, 8), labels)
    for most in range(7, 0, -1):
        finer, merged = (
            merge_strata(labels, centres, most + 1),
            merge_strata(labels, centres, most),
        )
        assert set(merged.tolist()) == set(range(most))
        # Of all ways to join two of the finer strata, none adds less to the squares inside.
        options = []
        for a in range(most + 1):
            for b in range(a):
                options.append(inertia(features, np.where(finer == a, b, finer)))
        assert inertia(features, merged) == pytest.approx(min(options))


def slow_merge(labels, centres, most):
    """All pairs, one by one, at every step."""
    groups = [np.flatnonzero(labels == h) for h in range(len(centres)) if (labels == h).any()]
    means = [centres[h] for h in range(len(centres)) if (labels == h).any()]
    while len(groups) > most:

        def cost(pair):
            a, b = pair
            na, nb = len(groups[a]), len(groups[b])
            return na * nb / (na + nb) * ((means[a] - means[b]) ** 2).sum()

        a, b = min(combinations(range(len(groups)), 2), key=cost)
        na, nb = len(groups[a]), len(groups[b])
        means[a] = (na * means[a] + nb * means[b]) / (na + nb)
        groups[a] = np.concatenate([groups[a], groups[b]])
        del groups[b], means[b]
    merged = np.empty(len(labels), dtype=int)
    for number, group in enumerate(groups):
        merged[group] = number
    return merged


@given(st.integers(0, 10**6), st.integers(1, 9), st.sampled_from([0.0, 1e6]))
def test_merging_is_that_of_its_slow_twin(seed, most, far):
    rng = np.random.default_rng(seed)
    labels, centres = rng.integers(0, 12, 40), rng.normal(size=(12, 3)) + far
    np.testing.assert_array_equal(
        merge_strata(labels, centres, most), slow_merge(labels, centres, most)
    )


def test_merging_many_strata_holds_no_table_of_pairs_times_features():
    rng = np.random.default_rng(0)
    labels, centres = np.arange(600) % 300, rng.normal(size=(300, 2000))
    tracemalloc.start()
    merged = merge_strata(labels, centres, 10)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert set(merged.tolist()) == set(range(10))
    assert most < 50e6  # 300 x 300 x 2000 doubles would be 1.4 GB


def test_strata_with_the_same_centre_are_one():
    labels, centres = join_copies(np.array([0, 1, 2, 3]), np.array([[7.0], [1.0], [7.0], [9.0]]))
    assert same_partition(labels, np.array([0, 1, 0, 2]))
    np.testing.assert_array_equal(centres[labels][:, 0], [7.0, 1.0, 7.0, 9.0])
    assert join_copies(np.array([0, 1]), np.zeros((2, 3)))[0].tolist() == [0, 0]
    small = 1e-6 * np.array([[7.0], [1.0], [9.0]])  # alike or not whatever the unit
    assert len(join_copies(np.arange(3), small)[1]) == 3


def test_merging_ignores_empty_strata():
    labels = np.array([0, 3, 3, 0])
    assert merge_strata(labels, [[0.0], [np.pi], [1.0], [5.0]], 2).tolist() == [0, 1, 1, 0]
    assert merge_strata(labels, [[0.0], [np.pi], [1.0], [5.0]], 9).tolist() == [0, 1, 1, 0]


def test_bad_arguments():
    features = np.ones((3, 2))
    for k in (0, 4):
        with pytest.raises(ValueError, match=r"k must be in \[1, 3\]"):
            kmeans(features, k, generator())
    with pytest.raises(ValueError, match="start must be 2 finite centres"):
        kmeans(features, 2, generator(), start=np.ones((3, 2)))
    with pytest.raises(ValueError, match="start must be 2 finite centres"):
        kmeans(features, 2, generator(), start=np.full((2, 2), np.nan))
    features[1, 1] = np.nan
    with pytest.raises(ValueError, match="features must be"):
        kmeans(features, 2, generator())
    with pytest.raises(ValueError, match="features must be"):
        kmeans(np.ones(3), 2, generator())
    with pytest.raises(ValueError, match="most must be"):
        merge_strata(np.array([0, 1]), np.ones((2, 2)), 0)
