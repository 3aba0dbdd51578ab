"""How well a clustering separates: the mean silhouette, noise left out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def silhouette(distances: Floats, labels: Ints) -> float | None:
    """Mean over clustered points of (b - a) / max(a, b); None where it is not defined.

    a = mean distance of a point to the rest of its own cluster, b = smallest mean distance to
    another cluster (Rousseeuw 1987). A point alone in its cluster scores 0. Points with a
    negative label are noise: not scored, and no cluster of their own. With fewer than two
    clusters, or nothing but singletons, there is no score.

    All sums of distances to clusters are one product of the sparse (clusters, n) indicator
    with the (n, n) distances: n**2 additions, whatever the number of clusters.

    >>> line = np.array([0.0, 1.0, 10.0, 11.0, 99.0])
    >>> round(silhouette(abs(line[:, None] - line), np.array([0, 0, 1, 1, -1])), 4)
    0.8997
    """
    kept = np.flatnonzero(labels >= 0)
    _, own, sizes = np.unique(labels[kept], return_inverse=True, return_counts=True)
    if not 2 <= sizes.size < kept.size:
        return None
    members = kept[np.argsort(own, kind="stable")]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    indicator = csr_array((np.ones(kept.size), members, starts), (sizes.size, labels.size))
    sums = (indicator @ distances)[:, kept]  # (clusters, kept)
    place = (own, np.arange(kept.size))
    inside = sums[place] / np.maximum(sizes[own] - 1, 1)
    sums /= sizes[:, None]
    sums[place] = np.inf
    outside = sums.min(axis=0)
    widest = np.maximum(inside, outside)
    scored = (sizes[own] > 1) & (widest > 0)  # all distances 0: neither near nor far
    scores = np.zeros(kept.size)
    np.divide(outside - inside, widest, out=scores, where=scored)
    return float(scores.mean())
