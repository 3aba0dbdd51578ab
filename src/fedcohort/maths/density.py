"""DBSCAN and OPTICS on a distance matrix, with the neighbour work done once for a whole grid.

Notation: the core distance c_i of a point is the distance to its min_samples-th nearest
point, itself included; the mutual reachability of i and j is max(c_i, c_j, d_ij).

DBSCAN (Ester et al. 1996) at radius eps joins the core points (c_i <= eps) that are within
eps of each other: these are the components of "mutual reachability <= eps", so *one*
minimum spanning tree per min_samples, cut at every eps, gives the whole grid.
OPTICS (Ankerst et al. 1999) is an order of the points that visits dense regions first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NOISE = -1
DECIMALS = int(np.finfo(np.float64).precision)


def nearest(distances: Floats, k: int) -> tuple[Ints, Floats]:
    """The ``k`` nearest points of each, itself included: positions and distances, (n, k).

    Nearest first, equals by position. Which of several equals stands last is arbitrary.
    """
    positions = np.argpartition(distances, k - 1, axis=1)[:, :k]
    positions = np.sort(positions, axis=1)
    near = np.take_along_axis(distances, positions, axis=1)
    order = np.argsort(near, axis=1, kind="stable")
    return np.take_along_axis(positions, order, axis=1), np.take_along_axis(near, order, axis=1)


@dataclass(frozen=True)
class DensityTree:
    """All DBSCAN clusterings of one ``min_samples``; `cut` reads one off.

    core : (n,) core distances; +inf where there are fewer than min_samples points
    merges : (n - 1, 4) single-linkage tree of the mutual reachability
    neighbours, gaps : (n, min_samples) the nearest points and their distances
    """

    core: Floats
    merges: Floats
    neighbours: Ints
    gaps: Floats

    @classmethod
    def grow(cls, distances: Floats, neighbours: Ints, gaps: Floats) -> DensityTree:
        """The tree whose ``min_samples`` is the number of columns of ``neighbours``."""
        core = gaps[:, -1]
        reach = np.maximum(distances, np.maximum(core[:, None], core[None, :]))
        np.fill_diagonal(reach, 0.0)
        merges = linkage(squareform(reach, checks=False), method="single")
        return cls(core, merges, neighbours, gaps)

    @property
    def heights(self) -> Floats:
        """(n - 1,) rising: the only radii at which two clusters become one."""
        return self.merges[:, 2]

    def cut(self, eps: float) -> Ints:
        """Labels at radius ``eps``: (n,), noise is -1, clusters have no particular numbers.

        Core points are grouped exactly as by scikit-learn. A border point (not core, but
        within eps of a core point) joins its *nearest* core point, the first by position
        among equals; scikit-learn joins it to whichever cluster it happened to grow first,
        which depends on the order of the clients.
        """
        component = fcluster(self.merges, eps, criterion="distance")
        core = self.core <= eps
        labels: Ints = np.where(core, component, NOISE).astype(np.int64)
        # Fewer than min_samples points are within eps of a point that is not core, so all
        # of them are among its min_samples nearest.
        other = np.flatnonzero(~core)
        reachable = core[self.neighbours[other]] & (self.gaps[other] <= eps)
        border = reachable.any(axis=1)
        first = reachable[border].argmax(axis=1)
        labels[other[border]] = labels[self.neighbours[other[border], first]]
        return labels


@dataclass(frozen=True)
class Reachability:
    """The OPTICS order of points.

    ordering : (n,) positions in the order of the visit
    reachability : (n,) by position: distance at which the point was reached; +inf if it was not
    predecessor : (n,) by position: from which point; -1 if from none
    """

    ordering: Ints
    reachability: Floats
    predecessor: Ints

    @classmethod
    def walk(cls, distances: Floats, core: Floats, max_eps: float = np.inf) -> Reachability:
        """Visit next the point that is reachable at the smallest distance (ties: position).

        The same result as ``sklearn.cluster.compute_optics_graph``, rounding to 15 decimals
        included, in n passes over a row instead of n neighbour queries.
        """
        n = core.size
        steps = np.where(distances <= max_eps, np.round(distances, DECIMALS), np.inf)
        core = np.where(core <= max_eps, np.round(core, DECIMALS), np.inf)
        ordering = np.empty(n, dtype=np.int64)
        reachability = np.full(n, np.inf)
        predecessor = np.full(n, -1, dtype=np.int64)
        waiting = np.full(n, np.inf)  # reachability of those not visited; +inf once visited
        bar = np.full(n, np.inf)  # what a new path must beat; -inf once visited
        for step in range(n):
            point = int(waiting.argmin())
            if waiting[point] == np.inf:  # nobody is in reach: start anew at the first left
                point = int((bar > -np.inf).argmax())
            ordering[step] = point
            waiting[point], bar[point] = np.inf, -np.inf
            path = np.maximum(steps[point], core[point])
            closer = np.flatnonzero(path < bar)
            reachability[closer] = waiting[closer] = bar[closer] = path[closer]
            predecessor[closer] = point
        return cls(ordering, reachability, predecessor)

    def valleys(self, min_samples: int, xi: float) -> Ints:
        """Labels of the clusters between steep slopes of the reachability plot; noise is -1."""
        from sklearn.cluster import cluster_optics_xi  # slow to import, and seldom needed

        with np.errstate(divide="ignore", invalid="ignore"):  # plots that start at inf or touch 0
            labels, _ = cluster_optics_xi(
                reachability=self.reachability,
                predecessor=self.predecessor,
                ordering=self.ordering,
                min_samples=min_samples,
                xi=xi,
            )
        return np.asarray(labels, dtype=np.int64)
