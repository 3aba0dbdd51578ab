"""An order of points in which neighbours are alike."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

OPTIMAL = 1_000
"""Up to this many points the branches of the tree are turned as well as can be."""


def leaf_order(points: Floats) -> Ints:
    """The leaves of a tree of similar points, turned so that neighbours are near. # (n, f).

    Average linkage of Euclidean distances; up to `OPTIMAL` points the order of least total
    distance that the tree allows (Bar-Joseph, Gifford and Jaakkola, 2001). Time and memory grow
    with the square of n.

    >>> leaf_order(np.array([[0.0], [9.0], [1.0], [8.0]])).tolist() in ([0, 2, 3, 1], [1, 3, 2, 0])
    True
    """
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import pdist

    n = len(points)
    if n < 3 or points.shape[1] == 0:
        return np.arange(n)
    apart = pdist(points)
    tree = linkage(apart, "average")
    if n <= OPTIMAL:
        tree = optimal_leaf_ordering(tree, apart)
    return np.asarray(leaves_list(tree), dtype=np.int64)
