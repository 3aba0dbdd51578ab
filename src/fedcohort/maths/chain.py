"""Ward's tree by chains of nearest neighbours, where fastcluster cannot be had.

fastcluster is compiled, and has no wheel for the newest Python for a while. This is the same
algorithm in numpy: the same tree bit for bit, equal distances included, as who comes first among
equals is decided alike. It takes O(n^2) like the other, some twenty times as long for a hundred
clients (n small steps of Python), two to three times for thousands.

References
----------
Murtagh, "Multidimensional Clustering Algorithms", 1985, page 86.
Müllner, "Modern hierarchical, agglomerative clustering algorithms", 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
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
