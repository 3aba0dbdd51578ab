"""Strata of clients by their features: k-means that starts anywhere, and merging of strata.

Own code of a few lines rather than a library's, because a scheme needs exactly k strata that
are never empty, whatever the features (all equal in the first round), the same strata for the
same generator under every version of numpy, and a warm start from the last round's centres.

References
----------
Lloyd (1982); Arthur and Vassilvitskii, "k-means++", SODA 2007, with the best of a few candidates
in each step; HCSFed, Algorithm 1, whose stopping test compares a centre with itself and whose
clusters are never emptied between steps.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from fedcohort.maths.draws import Rng, below

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[Any]  # float32 or float64

BLOCK = 2048
"""Clients handled at a time, so that intermediate results stay in the cache."""


def kmeans(
    features: ArrayLike,
    k: int,
    rng: Rng,
    start: ArrayLike | None = None,
    steps: int = 30,
    settled: float = 1e-3,
) -> tuple[Ints, Floats]:
    """Split clients into k strata of similar features, none of them empty.

    Parameters
    ----------
    features
        One row per client, finite. # (n, d)
    k
        Number of strata, 1 <= k <= n.
    rng
        For the first centres (greedy k-means++); not used with ``start``.
    start
        Centres to start from, those of the last round for instance: a warm start takes a few
        steps, and keeps the numbers of the strata. # (k, d)
    steps
        At most so many steps. Features without clusters keep changing for long; 10 steps do
        for a warm start, and take 0.4 s for 100,000 clients, 100 features and 10 strata.
    settled
        Stop when at most this share of the clients changed their stratum in a step: with
        fewer than 1,000 clients, when nobody did.

    Returns
    -------
    labels, centres
        The stratum of each client, every one used; the mean of each stratum. # (n,), (k, d)
        A stratum that would be empty gets the client farthest from its own centre.

    Examples
    --------
    >>> rng = np.random.Generator(np.random.Philox(0))
    >>> labels, centres = kmeans([[0.0], [0.1], [5.0], [5.1]], 2, rng, start=[[0.0], [1.0]])
    >>> labels
    array([0, 0, 1, 1])
    """
    rows = _checked_rows(features)
    n = len(rows)
    if not 1 <= k <= n:
        raise ValueError(f"k must be in [1, {n}], at most one stratum for each client, got {k}")
    if start is None:
        centres = _spread_centres(rows, k, rng)
    else:
        centres = np.array(start, dtype=np.float64)
        if centres.shape != (k, rows.shape[1]) or not np.all(np.isfinite(centres)):
            raise ValueError(
                f"start must be {k} finite centres of {rows.shape[1]} features, "
                f"got shape {centres.shape}"
            )
    labels = _assigned(rows, centres)
    for _ in range(steps):
        centres = stratum_means(rows, labels, k)
        moved = _assigned(rows, centres)
        changed = np.count_nonzero(moved != labels)
        labels = moved
        if changed <= settled * n:
            break
    return labels, stratum_means(rows, labels, k)


def stratum_means(features: ArrayLike, labels: Ints, k: int) -> Floats:
    """The mean of the rows of each stratum; zero for an empty one. # (n, d), (n,) -> (k, d)."""
    rows = np.asarray(features)
    n = len(rows)
    sums = np.zeros((k, rows.shape[1]))
    for block in _blocks(n):
        # A sparse product adds up rows by label; np.add.at would take ten times as long.
        some = labels[block]
        members = csr_array((np.ones(some.size), some, np.arange(some.size + 1)), (some.size, k))
        sums += members.T @ rows[block]
    return sums / np.maximum(np.bincount(labels, minlength=k), 1)[:, None]


def stratum_variances(features: ArrayLike, labels: Ints, k: int) -> Floats:
    """Within-stratum variance s_h^2 = sum ||x - mean_h||^2 / (N_h - 1). # (n, d), (n,) -> (k,).

    Zero for strata of one client or none.

    >>> square = [[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [2.0, 4.0]]
    >>> stratum_variances(square, np.zeros(4, dtype=np.int64), 1).round(3)
    array([6.667])
    """
    rows = np.asarray(features)
    means = stratum_means(rows, labels, k)
    squares = np.zeros(k)
    for block in _blocks(len(rows)):
        gaps = rows[block] - means[labels[block]]
        squares += np.bincount(labels[block], np.einsum("ij,ij->i", gaps, gaps), k)
    return squares / np.maximum(np.bincount(labels, minlength=k) - 1, 1)


def merge_strata(labels: Ints, centres: ArrayLike, most: int) -> Ints:
    """Merge strata until at most ``most`` are left. # (n,), (k, d) -> (n,).

    With fewer draws than strata some stratum would never be drawn, and no weights could make
    that unbiased. Each step merges the two strata whose union adds least to the squares inside
    strata, ``N_a N_b / (N_a + N_b) ||mean_a - mean_b||^2`` (Ward's rule). The result is
    numbered 0, 1, ... in the order of the old numbers.

    >>> merge_strata(np.array([0, 1, 2, 2]), [[0.0], [0.1], [9.0]], 2)
    array([0, 0, 1, 1])
    """
    if most < 1:
        raise ValueError(f"most must be at least 1 stratum, got {most}")
    used, numbered = np.unique(labels, return_inverse=True)
    means = np.asarray(centres, dtype=np.float64)[used]
    means = means - means.mean(axis=0)  # so that little is lost by |a|^2 + |b|^2 - 2 ab
    counts = np.bincount(numbered).astype(np.float64)
    target = np.arange(used.size)  # the stratum that each old stratum is part of
    costs = np.full((used.size, used.size), np.inf)  # of merging a with b > a
    for a in range(used.size if used.size > most else 0):
        costs[a, a + 1 :] = _union_costs(means, counts, a)[a + 1 :]
    for _ in range(used.size - most):
        a, b = divmod(int(np.argmin(costs)), used.size)  # a < b
        total = counts[a] + counts[b]
        means[a] = (counts[a] * means[a] + counts[b] * means[b]) / total
        counts[a], counts[b] = total, np.inf
        target[target == b] = a
        costs[b, :] = costs[:, b] = np.inf
        new = np.where(np.isfinite(counts), _union_costs(means, counts, a), np.inf)
        costs[a, a + 1 :], costs[:a, a] = new[a + 1 :], new[:a]
    merged: Ints = np.unique(target, return_inverse=True)[1][numbered]
    return merged


def join_copies(labels: Ints, centres: Floats) -> tuple[Ints, Floats]:
    """Strata with the same centre are one: more of them would only be split by chance.

    >>> join_copies(np.array([0, 1, 2]), np.array([[5.0], [1.0], [5.0]]))
    (array([1, 0, 1]), array([[1.],
           [5.]]))
    """
    scale = float(np.abs(centres).max(initial=0.0)) or 1.0
    _, first, same = np.unique(
        np.round(centres / scale, 9), axis=0, return_index=True, return_inverse=True
    )
    return same.reshape(-1)[labels], centres[first]


def _union_costs(means: Floats, counts: Floats, a: int) -> Floats:
    """What merging stratum a with each other one adds to the squares inside. # (k, d) -> (k,)."""
    squares = np.einsum("ij,ij->i", means, means)
    gaps = np.maximum(squares + squares[a] - 2 * (means @ means[a]), 0.0)
    costs: Floats = gaps / (1 / counts + 1 / counts[a])
    return costs


def _checked_rows(features: ArrayLike) -> Rows:
    rows = np.asarray(features)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.ndim != 2 or not np.all(np.isfinite(rows)):
        raise ValueError(
            f"features must be one row of finite numbers per client (n, d), "
            f"got shape {rows.shape} or NaN or infinity in it"
        )
    return rows


def _blocks(n: int) -> Iterator[slice]:
    return (slice(start, start + BLOCK) for start in range(0, n, BLOCK))


def _squares(rows: Rows, centres: Floats) -> Floats:
    """Squared distances of some rows to the centres. # (b, d), (k, d) -> (b, k)."""
    products: Floats = (rows @ (-2 * centres.T).astype(rows.dtype)).astype(np.float64)
    products += np.einsum("ij,ij->i", rows, rows)[:, None]
    products += np.einsum("ij,ij->i", centres, centres)
    return np.maximum(products, 0, out=products)


def _assigned(rows: Rows, centres: Floats) -> Ints:
    """The stratum of the nearest centre, the first of equals; no stratum stays empty."""
    labels = np.empty(len(rows), dtype=np.int64)
    lengths = np.einsum("ij,ij->i", centres, centres)
    doubled = (-2 * centres.T).astype(rows.dtype)
    for block in _blocks(len(rows)):
        labels[block] = np.argmin(rows[block] @ doubled + lengths, axis=1)
    counts = np.bincount(labels, minlength=len(centres))
    if np.all(counts > 0):
        return labels
    gaps = rows - centres[labels]
    distances = np.einsum("ij,ij->i", gaps, gaps)
    for empty in np.flatnonzero(counts == 0):  # gets the farthest client that is not alone
        client = int(np.argmax(np.where(counts[labels] > 1, distances, -1.0)))
        counts[labels[client]] -= 1
        counts[empty] += 1
        labels[client], distances[client] = empty, 0.0
    return labels


def _spread_centres(rows: Rows, k: int, rng: Rng) -> Floats:
    """Greedy k-means++: each centre is the best of a few clients drawn by squared distance."""
    n = len(rows)
    candidates = 2 + int(np.log(k))
    chosen = [int(below(rng, n, 1)[0])]
    gaps = _squares_to(rows, rows[chosen])[:, 0]
    for _ in range(k - 1):
        ends = np.cumsum(gaps)
        if ends[-1] > 0:
            points = below(rng, 2**53, candidates) * 2.0**-53 * ends[-1]
            drawn = np.minimum(np.searchsorted(ends, points, side="right"), n - 1)
        else:
            drawn = below(rng, n, candidates)  # everybody is on a centre already
        left = np.minimum(_squares_to(rows, rows[drawn]), gaps[:, None])  # (n, candidates)
        best = int(np.argmin(left.sum(axis=0)))
        chosen.append(int(drawn[best]))
        gaps = left[:, best]
    return rows[chosen].astype(np.float64)


def _squares_to(rows: Rows, centres: Rows) -> Floats:
    return np.concatenate(
        [_squares(rows[b], centres.astype(np.float64)) for b in _blocks(len(rows))]
    )
