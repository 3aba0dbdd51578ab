from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from fedcohort.maths import _distances as similarity
from fedcohort.maths import _tree as tree
from fedcohort.maths._distances import distances, refresh
from fedcohort.maths._tree import cut, linkage_of, refresh_rows_apart, rows_apart_of, ward_of_rows


def groups_of(labels):
    return [np.flatnonzero(labels == g).tolist() for g in range(max(labels) + 1)]


def obvious_cut(merges, masses, capacity):
    """The slow twin: ask every subtree whether it fits and its parent does not."""
    n = len(masses)
    members = [{i} for i in range(n)]
    for left, right in merges:
        members.append(members[int(left)] | members[int(right)])
    fits = [group for group in members if sum(masses[i] for i in group) <= capacity]
    return sorted(sorted(g) for g in fits if not any(g < other for other in fits))


def random_tree(rng, n):
    alive, merges = list(range(n)), []
    for node in range(n, 2 * n - 1):
        left, right = (alive.pop(int(rng.integers(len(alive)))) for _ in range(2))
        merges.append((left, right))
        alive.append(node)
    return np.array(merges, dtype=float).reshape(-1, 2)


GOLDEN_MERGES = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [9, 8]])
GOLDEN_SIZES = np.array([4, 3, 3, 2, 2, 1])


@pytest.mark.parametrize(
    ("m", "groups"), [(2, [[0, 1], [2, 3], [4, 5]]), (3, [[0], [1], [2, 3], [4, 5]])]
)
def test_golden_cut(m, groups):
    assert groups_of(cut(GOLDEN_MERGES, m * GOLDEN_SIZES, 15)) == groups


@given(st.integers(1, 12), st.integers(1, 8), st.integers(0, 2**32), st.booleans())
def test_cut_equals_the_obvious_twin(n, m, seed, big):
    rng = np.random.default_rng(seed)
    sizes = [int(x) * (2**61 if big else 1) for x in rng.integers(0, 9, n)]
    if sum(sizes) == 0:
        sizes[0] = 1
    M = sum(sizes)
    masses = [m * size % M if m * size > M else m * size for size in sizes]
    merges = random_tree(rng, n)
    labels = cut(merges, np.array(masses, dtype=object if big else np.int64), M)
    assert sorted(groups_of(labels)) == obvious_cut(merges, masses, M)
    firsts = [group[0] for group in groups_of(labels)]
    assert firsts == sorted(firsts)
    assert len(groups_of(labels)) * M >= sum(masses)


def test_cut_equals_the_authors_way():
    # They write the cumulated weight into the heights of the tree and cut by height.
    rng = np.random.default_rng(1)
    for _ in range(20):
        merges = linkage(rng.normal(size=(30, 3)), "ward")
        sizes = rng.integers(1, 20, 30)
        M, m = int(sizes.sum()), 4
        if (m * sizes).max() > M:
            continue
        heights, weights = merges.copy(), list(m * sizes)
        for row in heights:
            weights.append(weights[int(row[0])] + weights[int(row[1])])
            row[2] = weights[-1]
        theirs = fcluster(heights, M, "distance")
        ours = cut(merges, m * sizes, M)
        assert len(set(zip(theirs, ours, strict=True))) == len(set(theirs)) == len(set(ours))


def test_one_client_is_one_group():
    assert cut(np.empty((0, 4)), [3], 3).tolist() == [0]
    assert linkage_of(np.zeros((1, 1))).shape == (0, 4)
    assert ward_of_rows(np.zeros((1, 1))).shape == (0, 4)


def test_bad_cuts():
    with pytest.raises(ValueError, match="a tree of 3 clients has 2 merges"):
        cut(GOLDEN_MERGES, [1, 1, 1], 5)
    with pytest.raises(ValueError, match=r"masses must be in \[0, 5\]"):
        cut(GOLDEN_MERGES, [1, 1, 1, 1, 6, 1], 5)


def golden_updates():
    degrees = np.radians([0, 5, 90, 95, 180, 178])
    updates = np.zeros((8, 2))  # the last two clients were never seen
    updates[:6] = np.stack([np.cos(degrees), np.sin(degrees)], axis=1)
    return updates


@pytest.mark.parametrize(
    ("m", "groups"),
    [(4, [[0, 1], [2, 3], [4, 5], [6, 7]]), (2, [[0, 1], [2, 3, 6, 7], [4, 5]])],
)
def test_golden_pipeline_ward_of_rows(m, groups):
    matrix = distances(golden_updates(), zero="alike")
    assert groups_of(cut(ward_of_rows(matrix), np.full(8, m), 8)) == groups


@pytest.mark.parametrize(
    ("zero", "groups"),
    [
        # Where distances themselves are linked, a client never seen must not be near everybody.
        ("alike", [[0, 6], [1, 7], [2, 3], [4, 5]]),
        ("apart", [[0, 1], [2, 3], [4, 5], [6, 7]]),
    ],
)
def test_golden_pipeline_average(zero, groups):
    matrix = distances(golden_updates(), zero=zero)
    assert groups_of(cut(linkage_of(matrix, "average"), np.full(8, 4), 8)) == groups


@pytest.mark.filterwarnings("ignore:The symmetric non-negative hollow")  # what the authors do
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ward_of_rows_is_scipys(dtype):
    rng = np.random.default_rng(2)
    for n in (2, 3, 10, 60):
        matrix = distances(rng.normal(size=(n, 20)).astype(dtype))
        ours, theirs = ward_of_rows(matrix), linkage(matrix.astype(float), "ward")
        np.testing.assert_array_equal(ours[:, [0, 1, 3]], theirs[:, [0, 1, 3]])
        np.testing.assert_allclose(ours[:, 2], theirs[:, 2], rtol=1e-5)


@pytest.mark.parametrize("method", ["single", "complete", "average", "weighted", "ward"])
def test_linkages_are_those_of_scipy(method):
    rng = np.random.default_rng(5)
    for n in (2, 3, 10, 60):
        matrix = distances(rng.normal(size=(n, 20)))
        untouched = matrix.copy()
        ours = linkage_of(matrix, method)
        theirs = linkage(squareform(matrix, checks=False), method)
        np.testing.assert_array_equal(ours[:, [0, 1, 3]], theirs[:, [0, 1, 3]])
        np.testing.assert_allclose(ours[:, 2], theirs[:, 2], rtol=1e-12)
        np.testing.assert_array_equal(matrix, untouched)


@pytest.mark.parametrize("method", ["centroid", "median"])
def test_linkages_with_inversions_are_those_of_scipy(method):
    # A merge may be lower than the one below it, so the order of merges is a matter of taste;
    # which clients are ever grouped, and how high, is not.
    matrix = distances(np.random.default_rng(6).normal(size=(30, 20)), "l2")
    ours = linkage_of(matrix, method)
    theirs = linkage(squareform(matrix, checks=False), method)
    heights = [dict(zip(subtrees(tree), tree[:, 2], strict=True)) for tree in (ours, theirs)]
    assert heights[0] == pytest.approx(heights[1], rel=1e-9)


def subtrees(merges):
    """The clients below every node of a tree."""
    below = [frozenset([i]) for i in range(len(merges) + 1)]
    for left, right in merges[:, :2].astype(int).tolist():
        below.append(below[left] | below[right])
    return below[len(merges) + 1 :]


def test_zero_clients_merge_first_whatever_the_others():
    rng = np.random.default_rng(3)
    updates = rng.normal(size=(40, 5))
    updates[10:30] = 0
    merges = ward_of_rows(distances(updates))
    np.testing.assert_array_equal(merges[:19, 2], 0)
    assert set(merges[:19, :2].ravel()) >= set(range(10, 30))


@pytest.mark.parametrize("zero", ["alike", "apart"])
@pytest.mark.parametrize("tile", [7, 2048])
def test_refreshed_row_distances_equal_new_ones(monkeypatch, zero, tile):
    monkeypatch.setattr(similarity, "TILE", tile)
    monkeypatch.setattr(tree, "TILE", tile)
    rng = np.random.default_rng(4)
    updates = np.zeros((25, 6))
    matrix = distances(updates, zero=zero)
    apart, lost = rows_apart_of(matrix), 0.0
    for _ in range(30):
        changed = rng.choice(25, 4, replace=False)
        updates[changed] = rng.normal(size=(4, 6))
        before = matrix[:, changed].copy()
        refresh(matrix, updates, changed, zero=zero)
        kept, old = apart.copy(), apart
        apart, lost = refresh_rows_apart(apart, matrix, changed, before, lost)
        np.testing.assert_array_equal(old, kept)  # a value does not change
        np.testing.assert_array_equal(apart, apart.T)
        np.testing.assert_allclose(apart, rows_apart_of(matrix), rtol=1e-7, atol=1e-6)


def once_far_away(metric, factor, dtype=np.float32):
    """A matrix, and its row distances refreshed after one client was far away and came back."""
    updates = np.random.default_rng(8).normal(size=(40, 20)).astype(dtype)
    usual, far = updates.copy(), updates.copy()
    far[7] *= factor
    matrix, lost = distances(usual, metric), 0.0
    apart = rows_apart_of(matrix)
    for now, changed in ((far, [7]), (far, [3]), (usual, [7]), (usual, [5])):
        before = matrix[:, changed].copy()
        refresh(matrix, now, changed, metric)
        apart, lost = refresh_rows_apart(apart, matrix, changed, before, lost)
    return matrix, apart


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("metric", ["l2", "l1"])
@pytest.mark.parametrize("factor", [10, 1e3, 1e6, 1e9, 1e12])
def test_a_client_that_was_far_away_once_leaves_no_trace(metric, factor, dtype):
    matrix, apart = once_far_away(metric, factor, dtype)
    np.testing.assert_allclose(apart, rows_apart_of(matrix), rtol=1e-3)
    np.testing.assert_array_equal(apart, apart.T)


def test_without_the_count_of_what_is_lost_nothing_would_be_left(monkeypatch):
    """The planted defect: differences of large numbers, trusted whatever they are."""
    monkeypatch.setattr(tree, "TRUSTED", np.inf)
    matrix, apart = once_far_away("l2", 1e12)
    assert np.mean(apart == 0) > 0.9
    assert np.mean(rows_apart_of(matrix) == 0) < 0.1


@pytest.mark.parametrize("metric", ["arccos", "l2", "l1"])
def test_ordinary_rounds_compute_nothing_anew(monkeypatch, metric):
    """From all zeros on, lengths of updates that fall to a tenth, one in five ten times longer."""
    rng = np.random.default_rng(9)
    lengths = np.where(rng.random(50) < 0.2, 10.0, 1.0)
    updates = np.zeros((50, 8), np.float32)
    matrix, lost = distances(updates, metric), 0.0
    apart = rows_apart_of(matrix)
    monkeypatch.setattr(tree, "rows_apart_of", None)
    for number in range(200):
        changed = rng.choice(50, 3, replace=False)
        updates[changed] = rng.normal(size=(3, 8)) * lengths[changed, None] * 0.1 ** (number / 200)
        before = matrix[:, changed].copy()
        refresh(matrix, updates, changed, metric)
        apart, lost = refresh_rows_apart(apart, matrix, changed, before, lost)
    np.testing.assert_allclose(apart, rows_apart_of(matrix), rtol=1e-3, atol=1e-5)


def test_tiny_distances_are_refreshed_as_large_ones():
    updates = np.random.default_rng(10).normal(size=(12, 5))
    matrix = distances(updates, "l2")
    apart, before = rows_apart_of(matrix), matrix[:, [3]].copy()
    updates[3] *= 2
    refresh(matrix, updates, [3], "l2")
    usual, lost = refresh_rows_apart(apart, matrix, [3], before)
    unit = 2.0**-40
    tiny, tiny_lost = refresh_rows_apart(unit * apart, unit * matrix, [3], unit * before)
    np.testing.assert_array_equal(tiny, unit * usual)
    assert tiny_lost == unit**2 * lost > 0


def test_refresh_needs_the_columns_as_they_were():
    with pytest.raises(ValueError, match="columns_before must be 3 x 1"):
        refresh_rows_apart(np.zeros((3, 3)), np.zeros((3, 3)), [1], np.zeros((3, 2)))
