"""Trees of clients by Ward's method, and where to cut them.

Algorithm 2 of clustered sampling builds a hierarchy of the clients and cuts it into the largest
subtrees that fit into one distribution. The paper says "Ward" of the angles; the authors' code
hands the square matrix to scipy, which takes its *rows* as points: clients are close if they
look alike to all the others. `ward_of_rows` is that, `linkage_of` is any linkage of the
distances themselves.

References
----------
Fraboni et al., "Clustered Sampling", ICML 2021, Algorithm 2. The rule of the cut is not in the
paper; it is the one of the authors' code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster import hierarchy

from fedcohort.maths._distances import TILE, distances, refresh

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# Ward's tree by chains of nearest neighbours, where fastcluster cannot be had.
#
# fastcluster is compiled, and has no wheel for the newest Python for a while. This is the same
# algorithm in numpy: the same tree bit for bit, equal distances included, as who comes first among
# equals is decided alike. It takes O(n^2) like the other, some twenty times as long for a hundred
# clients (n small steps of Python), two to three times for thousands.
#
# References
# ----------
# Murtagh, "Multidimensional Clustering Algorithms", 1985, page 86.
# Müllner, "Modern hierarchical, agglomerative clustering algorithms", 2011.


Joined = Callable[[Floats, Floats, float, float, float, Floats], Any]


def _ward(a: Floats, b: Floats, apart: float, s: float, t: float, v: Floats) -> Floats:
    joined: Floats = ((v + s) * a - v * apart + (v + t) * b) / (s + t + v)
    return joined


JOINED: dict[str, Joined] = {
    "ward": _ward,
    "average": lambda a, b, _, s, t, v: s / (s + t) * a + t / (s + t) * b,
    "complete": lambda a, b, _, s, t, v: np.maximum(a, b),
    "weighted": lambda a, b, _, s, t, v: (a + b) * 0.5,
}
"""How far others are from two that are joined: by their distances to the one (a, of s leaves) and
to the other (b, of t leaves), the distance of these two, and the leaves of the others."""


def tree_by_chain(matrix: NDArray[Any], linkage: str = "ward") -> Floats:
    """The tree of a symmetric matrix of finite distances, as scipy writes it. # -> (n - 1, 4).

    Follow nearest neighbours from any client until two are nearest to each other: these are
    joined at some time in any case, so they may be at once; the order is put right at the end.

    >>> tree_by_chain(np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 3.0], [3.0, 3.0, 0.0]]), "complete")
    array([[0., 1., 1., 2.],
           [2., 3., 3., 3.]])
    """
    apart = np.array(matrix, dtype=np.float64)
    n = len(apart)
    if linkage == "ward":
        apart *= apart
    np.fill_diagonal(apart, np.inf)
    joined, leaves = JOINED[linkage], np.ones(n)
    first, chain = 0, list[int]()
    pairs, heights = np.empty((n - 1, 2), dtype=np.int64), np.empty(n - 1)
    for k in range(n - 1):
        if len(chain) < 2:
            while apart[first].min() == np.inf:  # joined to another
                first += 1
            chain = [first, int(apart[first].argmin())]
        least = float(apart[chain[-2], chain[-1]])
        while True:
            row = apart[chain[-1]]
            nearest = int(row.argmin())
            if not row[nearest] < least:  # the one before it in the chain is as near
                break
            least = float(row[nearest])
            chain.append(nearest)
        two, one = chain.pop(), chain.pop()
        pairs[k], heights[k] = (two, one), least
        one, two = min(one, two), max(one, two)
        row = joined(apart[one], apart[two], least, leaves[one], leaves[two], leaves)
        row[[one, two]] = np.inf
        row[np.isinf(apart[two])] = np.inf  # those that are gone
        leaves[two] += leaves[one]
        apart[two] = apart[:, two] = row
        apart[one] = apart[:, one] = np.inf
    return _in_order(pairs, np.sqrt(heights) if linkage == "ward" else heights)


def _in_order(pairs: NDArray[np.int64], heights: Floats) -> Floats:
    """The joins from the lowest to the highest, nodes numbered as they come to be."""
    n = len(pairs) + 1
    above, leaves = list(range(2 * n - 1)), [1] * (2 * n - 1)

    def top(node: int) -> int:
        while above[node] != node:
            above[node] = above[above[node]]
            node = above[node]
        return node

    tree = np.empty((n - 1, 4))
    for k, row in enumerate(np.argsort(heights, kind="stable").tolist()):
        one, two = sorted(top(node) for node in pairs[row].tolist())
        above[one] = above[two] = n + k
        leaves[n + k] = leaves[one] + leaves[two]
        tree[k] = one, two, heights[row], leaves[n + k]
    return tree


try:
    import fastcluster
except ImportError:  # compiled, and without a wheel for the newest Python
    fastcluster = None
Matrix = NDArray[Any]  # float32 or float64

TRUSTED = 1e-3
"""By what part of their mean the squares of kept distances may be off, on average over pairs."""


def ward_of_rows(matrix: Matrix, rows_apart: Matrix | None = None) -> Floats:
    """Ward's tree of the rows of a distance matrix, as the authors build it.

    The same tree as ``scipy.cluster.hierarchy.linkage(matrix, "ward")``, but the O(n**3)
    distances between rows are one matrix product instead of n**2 loops; pass them as
    ``rows_apart`` if they are kept from round to round (`refresh_rows_apart`).

    >>> angles = np.array([[0.0, 0.1, 3.0], [0.1, 0.0, 3.0], [3.0, 3.0, 0.0]])
    >>> ward_of_rows(angles)[:, :2]
    array([[0., 1.],
           [2., 3.]])
    """
    return linkage_of(rows_apart_of(matrix) if rows_apart is None else rows_apart, "ward")


def is_tree(tree: Floats) -> bool:
    """Whether (n - 1, 4) numbers join n leaves: each row two that are there, each of them once.

    >>> is_tree(np.array([[0.0, 1.0, 0.5, 2.0], [2.0, 3.0, 0.7, 3.0]]))
    True
    >>> is_tree(np.array([[0.0, 1.0, 0.5, 2.0], [1.0, 3.0, 0.7, 3.0]]))
    False
    """
    joined, n = tree[:, :2], len(tree) + 1
    there = n + np.arange(n - 1)[:, None]  # what the rows before have made can be joined, too
    return bool(np.all(joined < there)) and np.array_equal(
        np.sort(joined, axis=None), np.arange(2 * n - 2)
    )


def linkage_of(matrix: Matrix, method: str = "average") -> Floats:
    """The tree of a symmetric matrix of distances by any linkage of scipy. # (n, n) -> (n-1, 4).

    fastcluster builds the tree that scipy does, about three times sooner; where distances are
    equal the two may differ. Where it is missing `tree_by_chain` gives its very tree for the
    linkages of `JOINED`, Ward's among them; the other three are scipy's then.
    """
    if len(matrix) < 2:
        return np.empty((0, 4))
    if fastcluster is None and method in JOINED:
        return tree_by_chain(matrix, method)
    pairs = np.concatenate([row[i + 1 :] for i, row in enumerate(matrix)])
    tree: Floats = (
        hierarchy.linkage(pairs.astype(np.float64), method)
        if fastcluster is None
        else fastcluster.linkage(pairs, method, preserve_input=False)
    )
    return tree


def rows_apart_of(matrix: Matrix) -> Matrix:
    """Euclidean distances between the rows of a square matrix. # (n, n) -> (n, n)."""
    return distances(matrix, "l2")


def refresh_rows_apart(
    rows_apart: Matrix,
    matrix: Matrix,
    changed: ArrayLike,
    columns_before: Matrix,
    lost: float = 0.0,
) -> tuple[Matrix, float]:
    """The result of `rows_apart_of` after the rows and columns ``changed`` of the matrix changed.

    Two other rows i, j differ from before in the r changed columns only::

        |S'_i - S'_j|^2 = |S_i - S_j|^2 + |S'_iR - S'_jR|^2 - |S_iR - S_jR|^2

    which costs O(n n r) for all pairs, instead of O(n n n). But a difference of large numbers is
    a poor small one, and its error stays: once a client was a million times as far as the
    others, nothing would be left of the distances between these. So the errors are counted
    (rounding of what is subtracted, and of what is kept), and when they exceed `TRUSTED`
    of the squares all distances are computed anew.

    Parameters
    ----------
    rows_apart
        The distances between rows before the change. # (n, n)
    matrix
        The matrix after the change, symmetric. # (n, n)
    changed
        Which rows and columns changed, each once. # (r,)
    columns_before
        ``matrix[:, changed]`` as it was. # (n, r)
    lost
        What the squares of ``rows_apart`` may be off by, on average: 0 for `rows_apart_of`,
        else what this function returned with it.

    Returns
    -------
    rows_apart, lost
        A new matrix, and what its squares may be off by. # (n, n), float
    """
    which = np.asarray(changed, dtype=np.int64)
    n = len(matrix)
    if columns_before.shape != (n, which.size):
        raise ValueError(
            f"columns_before must be {n} x {which.size}, got shape {columns_before.shape}"
        )
    result = np.empty_like(rows_apart)
    old = columns_before.astype(np.float64)  # (n, r)
    new = matrix[:, which].astype(np.float64)
    # The rounding of n squares of the size of these.
    nothing = 1e-13 * n * float(max(np.max(old**2, initial=0), np.max(new**2, initial=0)))
    total = _refreshed_squares(result, rows_apart, old, new, which, nothing)
    refresh(result, matrix, which, "l2")
    lost += nothing + float(np.finfo(result.dtype).eps) * total / n**2
    total += 2 * float(np.square(result[which], dtype=np.float64).sum())
    if lost * n**2 > TRUSTED * total:
        return rows_apart_of(matrix), 0.0
    return result, lost


def _refreshed_squares(
    result: Matrix, rows_apart: Matrix, old: Floats, new: Floats, which: Ints, nothing: float
) -> float:
    """Write the distances between rows that did not change; the sum of their squares."""
    n = len(result)
    same = np.ones(n)
    same[which] = 0
    # What squares grow by is one product: |x - y|^2 = |x|^2 - 2 x y + |y|^2, new less old.
    lengths = (np.sum(new**2, axis=1) - np.sum(old**2, axis=1))[:, None]
    ones = np.ones((n, 1))
    these = np.hstack([new, old, lengths, ones])  # (n, 2 r + 2)
    those = np.hstack([-2 * new, 2 * old, ones, lengths])
    starts, total = range(0, n, TILE), 0.0
    for a in starts:
        left = slice(a, a + TILE)
        for b in starts[a // TILE :]:
            right = slice(b, b + TILE)
            squares = these[left] @ those[right].T
            squares += np.square(rows_apart[left, right], dtype=np.float64)
            squares[squares <= nothing] = 0
            total += (1 if a == b else 2) * float(same[left] @ squares @ same[right])
            tile = np.sqrt(squares if a != b else (squares + squares.T) / 2)
            result[left, right] = tile
            result[right, left] = tile.T
    np.fill_diagonal(result, 0)
    return total


def cut(tree: Floats, masses: ArrayLike, capacity: int) -> Ints:
    """The largest subtrees whose clients weigh at most ``capacity`` together.

    Every client is in exactly one group, and no two subtrees that hang from the same node
    could be joined. With masses m n_i and capacity M there are at least m groups, since no
    group is heavier than one of the m distributions.

    Parameters
    ----------
    tree
        Merges as scipy writes them: children in the first two columns. # (n - 1, >= 2)
    masses
        Integers >= 0, none above the capacity; exact at any size. # (n,)
    capacity
        The most that a group may weigh.

    Returns
    -------
    groups
        The group of each client, numbered by the smallest client in it. # (n,)

    Examples
    --------
    >>> merges = np.array([[0, 1], [2, 3], [4, 5], [6, 7], [9, 8]])
    >>> cut(merges, [12, 9, 9, 6, 6, 3], 15)
    array([0, 1, 2, 2, 3, 3])
    """
    # A plain loop over Python integers: exact at any size, and nothing beside the tree itself.
    weights: list[int] = [int(mass) for mass in np.asarray(masses).tolist()]
    n = len(weights)
    if len(tree) != max(n - 1, 0):
        raise ValueError(f"a tree of {n} clients has {max(n - 1, 0)} merges, got {len(tree)}")
    if any(not 0 <= weight <= capacity for weight in weights):
        raise ValueError(
            f"masses must be in [0, {capacity}], the capacity of a group, got up to "
            f"{max(weights)} and down to {min(weights)}"
        )
    children = np.asarray(tree)[:, :2].astype(np.int64).tolist()
    for left, right in children:
        weights.append(weights[left] + weights[right])
    top = list(range(2 * n - 1))  # the subtree that a node belongs to
    for node in range(2 * n - 2, n - 1, -1):  # parents before children
        if weights[node] <= capacity:
            left, right = children[node - n]
            top[left] = top[right] = top[node]
    return _numbered_by_first(np.array(top[:n], dtype=np.int64))


def _numbered_by_first(labels: Ints) -> Ints:
    """Labels 0, 1, ... in the order of their first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    numbered: Ints = rank[inverse]
    return numbered
