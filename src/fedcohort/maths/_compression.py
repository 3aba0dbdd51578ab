"""Gradient compression (GC): a client describes its update of d numbers by d' of them.

Clients are compared by these features, so feature j must mean the same for every client. HCSFed
says "group the components by value and keep the centres", which loses the places of the
components and leaves the order of the centres open. What can be done instead:

========================  ===========================  ======================================
function                  tells apart                  cannot tell apart
========================  ===========================  ======================================
`signed_sums` (random     everything, up to an angle   nothing systematically; needs d'
groups; the default)      error of 1 / sqrt(d')        of hundreds to see small angles
`sketch` (sparse random   as above; each coordinate    as above
projection)               is in four sums, not one
`sorted_centres`          distributions of component   any permutation of the coordinates,
(as in the paper)         values (a quantile sketch)   e.g. "class 3" from "class 7"
`group_means` (groups     updates that differ in the   a permutation *inside* a group: noise
of the last update)       mean of some group           within groups averages out, and so
                                                       does signal
========================  ===========================  ======================================

References
----------
HCSFed, Section 4 and Algorithm 1, and its compression rate R = d' / d; Weinberger, Dasgupta,
Langford, Smola and Attenberg, "Feature Hashing for Large Scale Multitask Learning", ICML 2009,
for `signed_sums`.
"""

from __future__ import annotations

import heapq
from functools import lru_cache
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedcohort.maths._distances import sketch
from fedcohort.maths._draws import permutation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


Method = Literal["quantiles", "kmeans"]
Compression = Literal["groups", "centres", "projection"]

MOST_STEPS = 300
"""Steps of one-dimensional k-means; it converges long before, or nearly stands still."""


def compressed_length(d: int, rate: float) -> int:
    """The length d' = max(1, round(R d)) at the compression rate R in (0, 1].

    >>> compressed_length(7850, 0.05)
    392
    """
    if not 0 < rate <= 1:
        raise ValueError(f"rate must be in (0, 1], got {rate}")
    return max(1, round(rate * d))


def compress(
    updates: ArrayLike, rate: float, method: Compression = "groups", seed: int = 0
) -> Floats:
    """The features of updates, the same on every client and in every round. # (n, d) -> (n, d').

    ``"groups"``: `signed_sums`; ``"centres"``: `sorted_centres`; ``"projection"``: `sketch`. All
    depend on the update, the rate and the seed alone: a client needs no message to compute
    them, and features of different rounds can be compared. At rate 1 groups and projection
    leave updates as they are.

    >>> compress([[1.0, 2.0, 3.0, 4.0]], 0.5).shape
    (1, 2)
    """
    rows = _finite(updates, 2, "updates")
    d = rows.shape[1]
    k = compressed_length(d, rate)
    if method not in get_args(Compression):
        raise ValueError(f"method must be one of {get_args(Compression)}, got {method!r}")
    if method == "centres":
        return sorted_centres(rows, k)
    if k == d:
        return rows.astype(np.float64)
    if method == "projection":
        return sketch(rows, k, seed)
    return signed_sums(rows, k, seed)


def signed_sums(updates: ArrayLike, k: int, seed: int = 0) -> Floats:
    """Sums over k random groups of coordinates, each with a random sign. # (n, d) -> (n, k).

    The mean over all signs of an inner product of features is that of the updates (Weinberger
    et al., Lemma 2), and its error is about 1 / sqrt(k) of their lengths. Without signs a mean
    that all coordinates share adds up inside a group while all else averages out: of two
    updates 60 degrees apart, of mean 1 and standard deviation 1, sums over ten coordinates
    make 25 degrees.

    >>> signed_sums([[1.0, 2.0, 3.0, 4.0]], 2)
    array([[ 2., -2.]])
    """
    rows = _finite(updates, 2, "updates")
    d = rows.shape[1]
    _check_length(k, d)
    groups, signs = shared_groups(d, k, seed), shared_signs(d, seed)
    sums = np.empty((len(rows), k))
    for i, row in enumerate(rows):  # row by row: no copy of all updates
        sums[i] = np.bincount(groups, weights=row * signs, minlength=k)
    return sums


@lru_cache(maxsize=8)
def shared_signs(d: int, seed: int = 0) -> NDArray[np.int8]:
    """A random sign for each of d coordinates, known to everybody who knows the seed. # -> (d,).

    >>> shared_signs(6).tolist()
    [-1, 1, 1, -1, 1, -1]
    """
    # Another key than that of the groups, which have nothing to do with the signs.
    words = np.random.Philox(key=seed + (1 << 64)).random_raw(d)
    signs = np.where(words & np.uint64(1), 1, -1).astype(np.int8)
    signs.flags.writeable = False  # it is shared by all callers
    return signs


@lru_cache(maxsize=8)
def shared_groups(d: int, k: int, seed: int = 0) -> Ints:
    """A random division of d coordinates into k groups of equal size (up to one). # -> (d,).

    Known to everybody who knows the seed. Groups of neighbours would not do: the update of a
    softmax layer sums to zero over the classes, and so would every group of whole rows.

    >>> np.bincount(shared_groups(10, 3))
    array([4, 3, 3])
    """
    order = permutation(np.random.Generator(np.random.Philox(key=seed)), d)
    groups = group_coordinates(order.astype(np.float64), k)
    groups.flags.writeable = False  # it is shared by all callers
    return groups


def group_coordinates(reference: ArrayLike, k: int, method: Method = "quantiles") -> Ints:
    """Groups of coordinates that behaved alike: in which group each coordinate is.

    The reference is for instance the previous global update, the difference of two models that
    every client has received, so that all can work out the same groups without another message.
    Groups that change with it make features of different rounds incomparable: where these are
    kept, or k-means starts from old centres, take `shared_groups`.

    ``"quantiles"`` gives k groups of equal size (up to one) by the order of the values; equal
    values are taken in the order of the coordinates, so a reference of zeros (the first round)
    gives blocks of neighbours. ``"kmeans"`` groups by nearness of the values: large coordinates
    get small groups, and a group is empty if there are fewer values than groups.

    >>> group_coordinates([0.1, -3.0, 0.2, 5.0], 2)
    array([0, 0, 1, 1])
    >>> group_coordinates([0.1, -3.0, 0.2, 5.0], 3, "kmeans")
    array([1, 0, 1, 2])
    """
    values = _finite(reference, 1, "reference")
    _check_length(k, values.size)
    if method not in get_args(Method):
        raise ValueError(f"method must be one of {get_args(Method)}, got {method!r}")
    order = np.argsort(values, kind="stable")
    ranks = np.arange(values.size)
    groups = np.empty(values.size, dtype=np.int64)
    if method == "quantiles":
        groups[order] = ranks * k // values.size
    else:
        _, borders = _kmeans_sorted(values[order], k)
        groups[order] = np.searchsorted(borders[1:-1], ranks, side="right")
    return groups


def group_means(updates: ArrayLike, groups: ArrayLike, k: int) -> Floats:
    """The mean of every update over each group of coordinates. # (n, d), (d,) -> (n, k).

    Linear in the update: the features of a weighted mean of updates are the weighted mean of
    their features. An empty group has mean 0.

    >>> group_means([[1.0, 3.0, 5.0, 5.0]], [0, 0, 1, 1], 2)
    array([[2., 5.]])
    """
    rows = _finite(updates, 2, "updates")
    places = np.asarray(groups)
    if places.shape != rows.shape[1:] or places.dtype.kind not in "iu":
        raise ValueError(
            f"groups must be {rows.shape[1]} integers, one for each coordinate, "
            f"got {places.dtype} of shape {places.shape}"
        )
    if places.size and not 0 <= places.min() <= places.max() < k:
        raise ValueError(f"groups must be in [0, {k}), got {places.min()} to {places.max()}")
    counts = np.maximum(np.bincount(places, minlength=k), 1)
    sums = np.empty((len(rows), k))
    for i, row in enumerate(rows):
        sums[i] = np.bincount(places, weights=row, minlength=k)
    return sums / counts


def sorted_centres(updates: ArrayLike, k: int) -> Floats:
    """The k centres of the component values of each update, increasing. # (n, d) -> (n, k).

    One-dimensional k-means, from successive best splits to its fixed point: deterministic, and
    at most 1.4 times the best sum of squares where that was compared. The centres are sorted,
    so that centre j of one client can be compared with centre j of another (unsorted centres
    compare noise). If an update has fewer than k distinct values, centres repeat. It is the
    paper's compression, and **blind to permutations of the coordinates**.

    >>> sorted_centres([[5.0, 1.0, 1.2, 5.2], [1.0, 5.0, 5.2, 1.2]], 2)
    array([[1.1, 5.1],
           [1.1, 5.1]])
    """
    rows = _finite(updates, 2, "updates")
    _check_length(k, rows.shape[1])
    centres = np.empty((len(rows), k))
    for i, row in enumerate(rows):
        centres[i], _ = _kmeans_sorted(np.sort(row.astype(np.float64)), k)
    return centres


def _kmeans_sorted(values: Floats, k: int) -> tuple[Floats, Ints]:
    """Centres of sorted values, and the borders of their groups. # (d,) -> (k,), (k + 1,).

    In one dimension groups are intervals, so a step of k-means is k binary searches for the
    midpoints and differences of prefix sums: O(k log d), whatever the number of values.
    """
    d = values.size
    sums = np.concatenate([[0.0], np.cumsum(values)])  # (d + 1,)
    borders = _best_splits(sums, k)
    centres = np.diff(sums[borders]) / np.diff(borders)
    for _ in range(MOST_STEPS):
        middles = (centres[:-1] + centres[1:]) / 2
        moved = np.concatenate([[0], np.searchsorted(values, middles), [d]])
        if np.array_equal(moved, borders):
            break
        borders = moved
        counts = np.diff(borders)
        means = np.diff(sums[borders]) / np.maximum(counts, 1)
        centres = np.where(counts > 0, means, centres)  # an empty group keeps its centre
        centres = np.maximum.accumulate(centres)  # rounding must not disturb the order
    return centres, borders


def _best_splits(sums: Floats, k: int) -> Ints:
    """Borders of k intervals by cutting, k - 1 times, where the squares fall most.

    Starting k-means from quantiles instead ends up to four times above the best sum of squares
    when values are heavy-tailed or clumped, as components of updates are.
    """
    candidates = [_best_split(sums, 0, sums.size - 1)]
    borders = [0, sums.size - 1]
    for _ in range(k - 1):
        _, cut, start, stop = heapq.heappop(candidates)
        borders.append(cut)
        for a, b in ((start, cut), (cut, stop)):
            if b - a > 1:
                heapq.heappush(candidates, _best_split(sums, a, b))
    return np.array(sorted(borders), dtype=np.int64)


def _best_split(sums: Floats, start: int, stop: int) -> tuple[float, int, int, int]:
    """(minus the fall of the squares, where to cut, and the interval itself)."""
    if stop - start < 2:
        return 0.0, stop, start, stop
    left = sums[start + 1 : stop] - sums[start]
    count = np.arange(1, stop - start)
    total, size = sums[stop] - sums[start], stop - start
    # The squares between the two parts: c (n - c) / n times the squared gap of their means.
    falls = (left - total * (count / size)) ** 2 * (size / (count * (size - count)))
    best = int(np.argmax(falls))
    return -float(falls[best]), start + 1 + best, start, stop


def _finite(values: ArrayLike, dimensions: int, name: str) -> NDArray[Any]:
    numbers = np.asarray(values)
    if numbers.ndim != dimensions or not np.all(np.isfinite(numbers)):
        raise ValueError(
            f"{name} must be finite numbers in {dimensions} dimension(s), "
            f"got shape {numbers.shape} or NaN or infinity in it"
        )
    return numbers


def _check_length(k: int, d: int) -> None:
    if not 1 <= k <= d:
        raise ValueError(f"k must be in [1, {d}], at most the number of coordinates, got {k}")
