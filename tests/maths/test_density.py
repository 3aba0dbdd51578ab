"""DBSCAN and OPTICS: the shared work gives what scikit-learn gives, setting by setting."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN, OPTICS, compute_optics_graph

from fedcohort.maths._clusters import DensityTree, Reachability, nearest


def distances(seed: int, n: int, coarse: bool) -> np.ndarray:
    """Coarse points coincide and have many equal distances."""
    rng = np.random.default_rng(seed)
    points = rng.integers(0, 6, (n, 2)).astype(float) if coarse else rng.random((n, 2)) * 6
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def grow(matrix: np.ndarray, min_samples: int) -> DensityTree:
    return DensityTree.grow(matrix, *nearest(matrix, min_samples))


def test_the_nearest_are_those_of_a_full_sort() -> None:
    matrix = distances(0, 300, coarse=False)
    for k in (1, 2, 7, 100, 300):
        around, gaps = nearest(matrix, k)
        np.testing.assert_array_equal(gaps, np.sort(matrix, axis=1)[:, :k])
        np.testing.assert_array_equal(np.take_along_axis(matrix, around, axis=1), gaps)


cases = given(
    st.integers(0, 10**6), st.integers(2, 30), st.booleans(), st.integers(1, 8), st.floats(0, 4)
)


@cases
def test_core_points_are_grouped_as_by_scikit_learn(seed, n, coarse, min_samples, eps):
    matrix = distances(seed, n, coarse)
    min_samples = min(min_samples, n)
    eps = float(np.sqrt(round(eps**2))) if coarse else eps  # hit distances exactly
    eps = max(eps, 1e-300)  # scikit-learn refuses 0
    tree = grow(matrix, min_samples)
    labels = tree.cut(eps)
    theirs = DBSCAN(eps=eps, min_samples=min_samples, metric="precomputed").fit(matrix)
    core = np.flatnonzero(tree.core <= eps)
    assert core.tolist() == theirs.core_sample_indices_.tolist()
    same_ours = labels[core][:, None] == labels[core][None]
    same_theirs = theirs.labels_[core][:, None] == theirs.labels_[core][None]
    assert np.array_equal(same_ours, same_theirs)
    assert np.array_equal(labels < 0, theirs.labels_ < 0)
    for i in np.flatnonzero((labels >= 0) & (tree.core > eps)):  # border: the nearest core point
        closest = core[np.argmin(matrix[i, core])]
        assert labels[i] == labels[closest]
        assert matrix[i, closest] <= eps


def test_border_points_do_not_depend_on_the_order_of_clients():
    # 2.1 has too few neighbours to be core; the core points 1.0 and 3.1 are both within 1.2.
    line = np.array([0.0, 0.5, 1.0, 2.1, 3.1, 3.5, 4.0])
    matrix = np.abs(line[:, None] - line)
    theirs = []
    for order in (np.arange(7), np.arange(7)[::-1]):
        shuffled = matrix[np.ix_(order, order)]
        labels = grow(shuffled, 4).cut(1.2)[order]  # both orders are their own inverse
        assert labels[0] == labels[1] == labels[2] != labels[4]
        assert labels[3] == labels[4] == labels[5] == labels[6]
        fitted = DBSCAN(eps=1.2, min_samples=4, metric="precomputed").fit_predict(shuffled)
        theirs.append(fitted[order][3] == fitted[order][4])
    assert theirs == [False, True]  # whichever group comes first


def test_zero_radius_joins_equal_clients():
    matrix = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    labels = grow(matrix, 2).cut(0.0)
    assert labels[0] == labels[1] != -1
    assert labels[2] == -1


def test_merging_radii_are_the_only_ones_that_matter():
    matrix = distances(5, 25, coarse=False)
    tree = grow(matrix, 2)
    for low, high in zip(tree.heights[:-1], tree.heights[1:], strict=True):
        assert np.array_equal(tree.cut(low), tree.cut(low + (high - low) / 2))


def sklearn_walk(matrix, min_samples, max_eps):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all reachabilities infinite
        ordering, _, reachability, predecessor = compute_optics_graph(
            matrix,
            min_samples=min_samples,
            max_eps=max_eps,
            metric="precomputed",
            p=2,
            metric_params=None,
            algorithm="auto",
            leaf_size=30,
            n_jobs=None,
        )
    return ordering, reachability, predecessor


@given(
    st.integers(0, 10**6),
    st.integers(2, 25),
    st.booleans(),
    st.integers(2, 8),
    st.floats(0.1, 5) | st.just(np.inf),
    st.sampled_from([0.01, 0.05, 0.2, 0.5]),
)
def test_the_walk_and_its_valleys_are_those_of_scikit_learn(
    seed, n, coarse, min_samples, max_eps, xi
):
    matrix = distances(seed, n, coarse)
    min_samples = min(min_samples, n)
    _, near = nearest(matrix, min_samples)
    walk = Reachability.walk(matrix, near[:, -1], max_eps)
    ordering, reachability, predecessor = sklearn_walk(matrix, min_samples, max_eps)
    assert walk.ordering.tolist() == ordering.tolist()
    assert walk.reachability.tolist() == reachability.tolist()
    assert walk.predecessor.tolist() == predecessor.tolist()
    model = OPTICS(min_samples=min_samples, max_eps=max_eps, metric="precomputed", xi=xi)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = model.fit(matrix).labels_
    assert walk.valleys(min_samples, xi).tolist() == theirs.tolist()


@pytest.mark.parametrize("k", [1, 3, 6])
def test_nearest_against_a_full_sort(k):
    matrix = distances(2, 6, coarse=True)
    positions, near = nearest(matrix, k)
    assert np.array_equal(near, np.sort(matrix, axis=1)[:, :k])
    assert np.array_equal(np.take_along_axis(matrix, positions, axis=1), near)
