"""The tree by chains is fastcluster's to the last bit, equal distances included."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import is_valid_linkage
from scipy.spatial.distance import cdist, squareform

from fedcohort.maths import _tree as trees
from fedcohort.maths._tree import JOINED, tree_by_chain


@pytest.mark.parametrize("linkage", JOINED)
@given(n=st.integers(2, 30), seed=st.integers(0, 2**32 - 1), ties=st.sampled_from((0, 1, 3)))
def test_same_tree_as_fastcluster(linkage: str, n: int, seed: int, ties: int) -> None:
    fastcluster = pytest.importorskip("fastcluster", reason="no wheel for this Python")
    rng = np.random.default_rng(seed)
    # With points of a small grid most distances have several equals.
    points = rng.integers(0, ties + 1, (n, 2)).astype(float) if ties else rng.normal(size=(n, 3))
    apart = cdist(points, points)
    theirs = fastcluster.linkage(squareform(apart, checks=False), linkage)
    np.testing.assert_array_equal(tree_by_chain(apart, linkage), theirs)


def test_who_comes_first_among_equals_matters() -> None:
    """All four corners of a square: another order of equals is another tree."""
    corners = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    tree = tree_by_chain(cdist(corners, corners))
    np.testing.assert_array_equal(tree[:, :2], [[0, 1], [2, 3], [4, 5]])
    other = tree_by_chain(cdist(corners[[0, 2, 1, 3]], corners[[0, 2, 1, 3]]))
    np.testing.assert_array_equal(other[:, :2], tree[:, :2])  # clients 0 and 2 are joined there


@pytest.mark.parametrize("method", ["ward", "average", "complete", "weighted", "single"])
def test_without_fastcluster(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(3).normal(size=(12, 2))
    apart = cdist(points, points).astype(np.float32)
    with_it = trees.linkage_of(apart, method)
    monkeypatch.setattr(trees, "fastcluster", None)
    without = trees.linkage_of(apart, method)
    assert is_valid_linkage(without)
    np.testing.assert_allclose(without, with_it, rtol=1e-12)
