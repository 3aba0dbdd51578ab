"""Cluster clients by their distances: OPTICS, density clusters, K-Medoids and the silhouette.

Three clusterings of a precomputed distance matrix: K-Medoids, DBSCAN and OPTICS. Giunta's
thesis (Section 3.2) searches a grid of settings for the highest silhouette subject to at
least 70 % of the clients being clustered. What it leaves open is decided as follows.

* Noise is left out of the silhouette. This reproduces its Table 4.1 best and is why the
  70 % rule matters: with few clients left, a score is easily high.
* Every noise client becomes a cluster of its own afterwards (as in HACCS).
* Equal scores: the larger clustered share, then the setting that was tried first.
* If no setting clusters enough, the one that clusters most is taken, with a `caveat`.

Nothing is random: the same distances give the same clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


# DBSCAN and OPTICS on a distance matrix, with the neighbour work done once for a whole grid.
#
# Notation: the core distance c_i of a point is the distance to its min_samples-th nearest
# point, itself included; the mutual reachability of i and j is max(c_i, c_j, d_ij).
#
# DBSCAN (Ester et al. 1996) at radius eps joins the core points (c_i <= eps) that are within
# eps of each other: these are the components of "mutual reachability <= eps", so *one*
# minimum spanning tree per min_samples, cut at every eps, gives the whole grid.
# OPTICS (Ankerst et al. 1999) is an order of the points that visits dense regions first.


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


# K-Medoids of a distance matrix: k points stand for all, the sum of distances to them is small.
#
# FasterPAM (Schubert and Rousseeuw 2021) from the greedy start BUILD of PAM (Kaufman and Rousseeuw
# 1987). A swap of a medoid for another point is done as soon as one is found that makes the sum
# smaller, best medoid for that point; candidates are looked at in turn until all of them have been
# since the last swap. What one swap changes takes O(n) to tell, for all k medoids together:
# with near_o and second_o the distances of a point to its two nearest medoids, candidate j changes
#
#     sum_o min(d_jo - near_o, 0)                                  whichever medoid goes, and
#     sum_{o nearest to i} second_o - near_o                      if medoid i goes, which the points
#         + min(max(d_jo, near_o), second_o) - second_o            that j takes from it soften.
#
# Nothing is random, and no compiled code is needed: a block of candidates is one product with
# the sparse (k, n) indicator of who is nearest to whom.
#
# References
# ----------
# Schubert and Rousseeuw, "Fast and eager k-medoids clustering", Information Systems 101, 2021,
# Algorithm 3. Kaufman and Rousseeuw, "Clustering by means of medoids", 1987.


TILE = 256
"""Rows of the distances that are looked at together, at most."""
ROUNDING = 1e-12
"""A gain below this part of the sum is none.

Of a cluster of two either may be the medoid, so that ties are common. The package ``kmedoids``
lets rounding decide and goes sideways there, with other results on other processors; here a swap
has to help.
"""


class Medoids(NamedTuple):
    """The points that stand for the others."""

    medoids: Ints  # (k,)
    labels: Ints  # (n,) the place in `medoids` of the nearest one
    loss: float  # the sum of all distances to it


def build(distances: Floats, k: int) -> Ints:
    """(k,) medoids, each the one that helps most beside those before it; the first of equals.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> build(abs(line[:, None] - line), 2)
    array([2, 4])
    """
    n = len(distances)
    chosen = [int(np.argmin(distances.sum(axis=1)))]
    near = distances[chosen[0]].copy()
    while len(chosen) < k:
        gains = np.concatenate(
            [
                np.minimum(distances[start : start + TILE] - near, 0.0).sum(axis=1)
                for start in range(0, n, TILE)
            ]
        )
        gains[chosen] = np.inf
        chosen.append(int(np.argmin(gains)))
        near = np.minimum(near, distances[chosen[-1]])
    return np.array(chosen, dtype=np.int64)


def fasterpam(distances: Floats, start: Ints) -> Medoids:
    """The medoids after all swaps that help, from those of ``start``.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0])
    >>> fasterpam(abs(line[:, None] - line), np.array([0, 1]))
    Medoids(medoids=array([4, 1]), labels=array([1, 1, 1, 0, 0, 0]), loss=4.0)
    """
    n, medoids = len(distances), start.astype(np.int64)
    now = _Standing.of(distances, medoids)
    at, unchanged, width = 0, 0, 8
    while unchanged < n and len(medoids) < n:
        block = np.arange(at, min(at + width, n))
        change, leaving = now.best_swaps(distances[block])
        change[np.isin(block, medoids)] = np.inf
        better = np.flatnonzero(change < -ROUNDING * max(now.loss, 1e-300))
        if len(better):
            first = int(better[0])
            medoids[leaving[first]] = block[first]
            now = _Standing.of(distances, medoids, now.labels, int(leaving[first]))
            at, unchanged, width = int(block[first]) + 1, 0, 8
        else:  # look at more of them at a time while nothing happens
            at, unchanged, width = int(block[-1]) + 1, unchanged + len(block), min(2 * width, TILE)
        at %= n
    return Medoids(medoids, now.labels, now.loss)


class _Standing(NamedTuple):
    """Where every point stands with the present medoids."""

    labels: Ints  # (n,)
    near: Floats  # (n,) the distance to the nearest medoid
    second: Floats  # (n,) to the next one; of a single medoid, infinite
    owners: csr_array  # (k, n) 1 where a point is nearest to a medoid
    loss: float

    @classmethod
    def of(
        cls, distances: Floats, medoids: Ints, before: Ints | None = None, new: int = -1
    ) -> _Standing:
        """With these medoids; of equals the first, or whom a point was nearest to ``before``.

        ``new`` is the place of the medoid that came last, which has to be nearer to win.
        """
        rows, everyone = distances[medoids], np.arange(distances.shape[1])  # (k, n)
        labels, n = np.argmin(rows, axis=0), len(everyone)
        if before is not None:
            coming = rows[new].copy()
            rows[new] = np.inf
            labels = np.argmin(rows, axis=0)
            stays = (before != new) & (rows[before, everyone] == rows[labels, everyone])
            labels = np.where(stays, before, labels)
            labels = np.where(coming < rows[labels, everyone], new, labels)
            rows[new] = coming
        near = rows[labels, everyone]
        rows[labels, everyone] = np.inf
        second = rows.min(axis=0)
        members = np.argsort(labels, kind="stable")
        ends = np.concatenate([[0], np.cumsum(np.bincount(labels, minlength=len(medoids)))])
        owners = csr_array((np.ones(n), members, ends), (len(medoids), n))
        return cls(labels, near, second, owners, float(near.sum()))

    def best_swaps(self, rows: Floats) -> tuple[Floats, Ints]:
        """(b,) the change of the sum for each of b candidates, and which medoid would go."""
        anyway = np.minimum(rows - self.near, 0.0).sum(axis=1)
        if self.owners.shape[0] == 1:  # the only one goes, and nobody has a second
            return (rows - self.near).sum(axis=1), np.zeros(len(rows), dtype=np.int64)
        # second - near, softened by min(max(d, near), second) - second: both in one sum.
        rest = np.minimum(np.maximum(rows, self.near), self.second) - self.near  # (b, n)
        going = self.owners @ rest.T  # (k, b)
        leaving = np.argmin(going, axis=0)
        return anyway + going[leaving, np.arange(len(rows))], leaving


# How well a clustering separates: the mean silhouette, noise left out.


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


Parameters: TypeAlias = Mapping[str, float | None]
AllNoise: TypeAlias = Literal["singletons", "one"]
Caveat: TypeAlias = Literal["", "few clustered", "no score", "all noise"]
Candidate: TypeAlias = tuple[Parameters, Ints, Reachability | None]

LEAST_SHARE = 0.7
MIN_SAMPLES = tuple(range(2, 11))
RADII = 50
STEEPNESS = (0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
MOST_MEDOIDS = 50


@dataclass(frozen=True)
class Trial:
    """One setting of the grid and what came of it."""

    parameters: Parameters
    clusters: int
    clustered_share: float
    silhouette: float | None


@dataclass(frozen=True, eq=False)
class Clustering:
    """Who belongs together, and how that was found.

    labels : (n,) clusters 0, 1, ... by first appearance, then the noise clients one by one
    method, parameters : what gave these labels (``max_eps: None`` is no limit)
    silhouette : of the clustered clients; None where it is undefined
    clustered_share : share of clients that were not noise
    noise : (n,) bool, the clients that became singletons
    tried : every setting in the order of the grid
    caveat : "" or why to look twice: "few clustered" (below the demanded share), "no score"
        (one cluster only, or too few clients to tell), "all noise"
    ordering, reachability : (n,) for OPTICS only, the reachability plot is
        ``reachability[ordering]``
    """

    labels: Ints
    method: str
    parameters: Parameters
    silhouette: float | None
    clustered_share: float
    noise: NDArray[np.bool_]
    tried: tuple[Trial, ...]
    caveat: Caveat = ""
    ordering: Ints | None = None
    reachability: Floats | None = None


def kmedoids(distances: ArrayLike, ks: Sequence[int] | None = None) -> Clustering:
    """K-Medoids: k clients stand for the clusters, the sum of distances to them is small.

    FasterPAM (Schubert and Rousseeuw 2021) from the greedy BUILD start, see
    `fedcohort.maths._clusters`. The start for k is the first k of the start for the largest k, so
    it is made once. By default k = 2 ... 50, fewer than there are clients. There is no noise.
    """
    matrix = _checked(distances)
    n = len(matrix)
    grid = ks if ks is not None else range(2, min(n - 1, MOST_MEDOIDS) + 1) or [1]
    _require_all(grid, lambda k: 1 <= k <= n, "numbers of medoids", f"between 1 and {n}")

    def candidates() -> Iterator[Candidate]:
        start = build(matrix, max(grid))
        for k in grid:
            yield {"k": int(k)}, fasterpam(matrix, start[:k]).labels, None

    return _search("kmedoids", n, candidates(), matrix, LEAST_SHARE, "singletons")


def dbscan(
    distances: ArrayLike,
    eps: Sequence[float] | None = None,
    min_samples: Sequence[int] = MIN_SAMPLES,
    *,
    least_share: float = LEAST_SHARE,
    all_noise: AllNoise = "singletons",
) -> Clustering:
    """DBSCAN: clients within ``eps`` of dense clients; see `fedcohort.maths._clusters`.

    By default ``eps`` runs, for each ``min_samples``, over 50 evenly spaced quantiles of the
    radii at which clusters merge; between two of those nothing merges.

    >>> line = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 50.0])
    >>> found = dbscan(abs(line[:, None] - line))
    >>> found.labels, found.parameters
    (array([0, 0, 0, 1, 1, 1, 2]), {'eps': 1.0, 'min_samples': 2})
    """
    matrix = _checked(distances)
    n = len(matrix)
    if eps is not None:
        _require_all(eps, lambda e: 0 <= e < np.inf, "radii", "finite and at least 0")
    _require_all(min_samples, lambda s: s >= 1, "minimum sample numbers", "at least 1")

    def candidates() -> Iterator[Candidate]:
        around, gaps = nearest(matrix, min(max(min_samples), n))
        for samples in min_samples:
            if samples > n:
                yield {"eps": None, "min_samples": int(samples)}, np.full(n, NOISE), None
                continue
            tree = DensityTree.grow(matrix, around[:, :samples], gaps[:, :samples])
            for radius in _radii(tree.heights) if eps is None else eps:
                setting = {"eps": float(radius), "min_samples": int(samples)}
                yield setting, tree.cut(radius), None

    return _search("dbscan", n, candidates(), matrix, least_share, all_noise)


def optics(
    distances: ArrayLike,
    xi: Sequence[float] = STEEPNESS,
    min_samples: Sequence[int] = MIN_SAMPLES,
    max_eps: Sequence[float | None] | None = None,
    *,
    least_share: float = LEAST_SHARE,
    all_noise: AllNoise = "singletons",
) -> Clustering:
    """OPTICS: valleys of the reachability plot with slopes steeper than ``xi``.

    ``max_eps`` (None: no limit) cuts the plot; by default no limit and the 75 % and 90 %
    quantiles of the radii at which clusters merge. One walk per (min_samples, max_eps)
    serves every xi.
    """
    matrix = _checked(distances)
    n = len(matrix)
    _require_all(xi, lambda x: 0 < x < 1, "slopes", "between 0 and 1")
    _require_all(min_samples, lambda s: s >= 2, "minimum sample numbers", "at least 2")
    if max_eps is not None:
        _require_all(max_eps, lambda e: e is None or e > 0, "limits", "positive or None")

    def candidates() -> Iterator[Candidate]:
        around, gaps = nearest(matrix, min(max(min_samples), n))
        for samples in min_samples:
            if samples > n:
                yield {"xi": None, "min_samples": int(samples)}, np.full(n, NOISE), None
                continue
            limits: Iterable[float | None] | None = max_eps
            if limits is None:
                tree = DensityTree.grow(matrix, around[:, :samples], gaps[:, :samples])
                limits = [None, *_quantiles(tree.heights, [0.75, 0.9])]
            for limit in limits:
                reach = np.inf if limit is None else float(limit)
                walk = Reachability.walk(matrix, gaps[:, samples - 1], reach)
                longest = None if reach == np.inf else reach
                for slope in xi:
                    setting = {"xi": slope, "min_samples": int(samples), "max_eps": longest}
                    yield setting, walk.valleys(samples, slope), walk

    return _search("optics", n, candidates(), matrix, least_share, all_noise)


METHODS: Mapping[str, Callable[[ArrayLike], Clustering]] = {
    "kmedoids": kmedoids,
    "dbscan": dbscan,
    "optics": optics,
}


def _search(
    method: str,
    n: int,
    candidates: Iterator[Candidate],
    distances: Floats,
    least_share: float,
    all_noise: AllNoise,
) -> Clustering:
    """The best of ``candidates``; see the head of this module for what "best" is."""
    _require(0 <= least_share <= 1, "least share", "between 0 and 1", least_share)
    _require(
        all_noise in ("singletons", "one"), "rule for noise", "'singletons' or 'one'", all_noise
    )
    if n == 1:  # nothing to compare with
        alone = np.zeros(1, dtype=np.int64)
        return Clustering(alone, method, {}, None, 1.0, alone > 0, (), "no score")
    tried: list[Trial] = []
    scores: dict[bytes, float | None] = {}  # many settings give the same labels
    best: tuple[tuple[float, ...], Ints, Trial, Reachability | None] | None = None
    for parameters, raw, walk in candidates:
        labels = _by_first_appearance(raw)
        key = labels.tobytes()
        if key not in scores:
            scores[key] = silhouette(distances, labels)
        share = float(np.mean(labels >= 0))
        trial = Trial(parameters, int(labels.max(initial=NOISE)) + 1, share, scores[key])
        tried.append(trial)
        rank = _rank(trial, least_share)
        if best is None or rank > best[0]:
            best = rank, labels, trial, walk
    if best is None:  # the grids were checked not to be empty
        raise RuntimeError(f"the grid of {method} is empty")
    return _result(method, best[1], best[2], best[3], tuple(tried), least_share, all_noise)


def _rank(trial: Trial, least_share: float) -> tuple[float, ...]:
    if trial.silhouette is None:
        return (0, trial.clustered_share)
    if trial.clustered_share < least_share:
        return (1, trial.clustered_share, trial.silhouette)
    return (2, trial.silhouette, trial.clustered_share)


def _result(
    method: str,
    labels: Ints,
    trial: Trial,
    walk: Reachability | None,
    tried: tuple[Trial, ...],
    least_share: float,
    all_noise: AllNoise,
) -> Clustering:
    caveat: Caveat = ""
    if trial.clusters == 0:
        caveat = "all noise"
    elif trial.silhouette is None:
        caveat = "no score"
    elif trial.clustered_share < least_share:
        caveat = "few clustered"
    noise = labels == NOISE
    labels = labels.copy()
    together = caveat == "all noise" and all_noise == "one"
    labels[noise] = 0 if together else trial.clusters + np.arange(np.count_nonzero(noise))
    return Clustering(
        labels,
        method,
        trial.parameters,
        trial.silhouette,
        trial.clustered_share,
        noise,
        tried,
        caveat,
        walk.ordering if walk else None,
        walk.reachability if walk else None,
    )


def _by_first_appearance(labels: Ints) -> Ints:
    """The same groups numbered 0, 1, ... as they come; noise stays noise."""
    out = np.full(labels.size, NOISE, dtype=np.int64)
    kept = labels >= 0
    _, first, group = np.unique(labels[kept], return_index=True, return_inverse=True)
    rank = np.empty(first.size, dtype=np.int64)
    rank[np.argsort(first)] = np.arange(first.size)
    out[kept] = rank[group]
    return out


def _radii(heights: Floats) -> Floats:
    return _quantiles(heights, np.arange(1, RADII + 1) / RADII)


def _quantiles(heights: Floats, levels: Sequence[float] | Floats) -> Floats:
    """Quantiles that are heights themselves, so that a cut there is at a merger, not near it."""
    values: Floats = np.unique(np.quantile(heights, np.asarray(levels), method="inverted_cdf"))
    return values


def _checked(distances: ArrayLike) -> Floats:
    matrix = np.ascontiguousarray(distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ValueError(
            f"The distances must be a square matrix. Got shape {matrix.shape} instead."
        )
    if not np.isfinite(matrix).all() or (matrix < 0).any():
        raise ValueError("The distances must be finite and at least 0. Got others among them.")
    if matrix.diagonal().any() or not np.array_equal(matrix, matrix.T):
        raise ValueError(
            "The distances must be exactly symmetric with a zero diagonal. Got others: pass "
            "(d + d.T) / 2 if only rounding differs."
        )
    return matrix


def _require(holds: bool, what: str, must: str, got: object) -> None:
    if not holds:
        raise ValueError(f"The {what} must be {must}. Got {got!r} instead.")


def _require_all(grid: Sequence[Any], holds: Callable[[Any], bool], what: str, must: str) -> None:
    fine = len(grid) > 0 and all(holds(value) for value in grid)
    _require(fine, what, f"one or more, {must}", grid)
