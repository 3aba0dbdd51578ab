"""Clusters of clients from their distances, with the settings found by a grid search.

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
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedcohort.maths.density import NOISE, DensityTree, Floats, Ints, Reachability, nearest
from fedcohort.maths.medoids import build, fasterpam
from fedcohort.maths.silhouette import silhouette

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
    `fedcohort.maths.medoids`. The start for k is the first k of the start for the largest k, so
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
    """DBSCAN: clients within ``eps`` of dense clients; see `fedcohort.maths.density`.

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
