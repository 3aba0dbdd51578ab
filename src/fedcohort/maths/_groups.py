"""Groups of clients: strata by k-means, sizes of allocations, and rows of draws.

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

import heapq
import math
from collections.abc import Callable, Iterator
from functools import partial
from math import lcm
from operator import index
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from fedcohort.maths._draws import (
    Ints,
    Rng,
    below,
    distinct,
    permutation,
    top,
    weighted_without_replacement,
)

Floats: TypeAlias = NDArray[np.float64]


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


# How many of the m draws each stratum gets.
#
# All allocations here keep ``1 <= m_h <= N_h`` and sum to exactly m, for N_h clients in stratum
# h. They work on integers, floats and Fractions; with integers and Fractions they are exact.
#
# References
# ----------
# Neyman (1934); Wright, "A simple method of exact optimal sample allocation under stratification",
# 2017, for the integer optimum; HCSFed, equation (5), for the paper's own.


Numbers = NDArray[Any]  # integers, floats or Fractions
Reading = Literal["pairs", "mean-pair", "variance"]


def proportional_allocation(sizes: ArrayLike, m: int) -> Ints:
    """Draws in proportion to the number of clients: m_h near m N_h / N. # (H,) -> (H,).

    >>> proportional_allocation([12, 20, 8, 10], 10)
    array([2, 4, 2, 2])
    """
    return largest_remainder(np.asarray(sizes), sizes, m)


def largest_remainder(shares: ArrayLike, sizes: ArrayLike, m: int) -> Ints:
    """Whole numbers near ``m * shares / sum(shares)``, within the bounds.

    Start from the shares rounded down and moved into the bounds; then give to the stratum that
    lacks most, or take from the one that has most too much, until the sum is m. Ties go to the
    first stratum. If all shares are zero, they are the sizes.
    """
    counts = _checked_sizes(sizes, m)
    wanted = _checked_shares(shares, counts.size, "shares")
    total = wanted.sum()
    if total == 0:
        return largest_remainder(counts, counts, m)
    if wanted.dtype.kind in "iu":  # m times the sum may exceed 64 bits
        wanted, total = wanted.astype(object), int(total)
    wanted = wanted * m
    given: Ints = np.clip((wanted // total).astype(np.int64), 1, counts)
    missing = m - int(given.sum())
    for _ in range(abs(missing)):
        lacking = wanted - given * total
        if missing > 0:
            able = np.flatnonzero(given < counts)
            given[able[np.argmax(lacking[able])]] += 1
        else:
            able = np.flatnonzero(given > 1)
            given[able[np.argmin(lacking[able])]] -= 1
    return given


def unknown_draws(unknown: int, n: int, m: int) -> int:
    """How many of m draws go to the clients of whom nothing is known: their share, rounded.

    At least 1, so that they are found out, and at most m - 1, so that something is left for the
    others; hence never less than the share rounded down. For 0 < unknown < n and 2 <= m <= n
    both parts have enough clients for their draws.

    >>> unknown_draws(30, 100, 10), unknown_draws(1, 100, 10), unknown_draws(99, 100, 10)
    (3, 1, 9)
    """
    return min(max(1, round(m * unknown / n)), m - 1)


def neyman_allocation(sizes: ArrayLike, deviations: ArrayLike, m: int) -> Ints:
    """The allocation of least variance: the exact integer optimum.

    The stratified estimate of a mean has variance::

        V = sum_h (N_h / N)^2 s_h^2 (1/m_h - 1/N_h)

    One more draw in stratum h lowers it in proportion to ``N_h^2 s_h^2 / (m_h (m_h + 1))``.
    Since these gains fall as m_h grows, giving each draw to the largest gain is optimal.

    Parameters
    ----------
    sizes
        N_h >= 1, the number of clients. # (H,)
    deviations
        s_h >= 0, the standard deviations (not variances) inside the strata. # (H,)
        If all are zero nothing is gained anywhere, and the allocation is proportional.
    m
        Number of draws, H <= m <= N. Ties go to the first stratum.

    Examples
    --------
    >>> neyman_allocation([10, 30, 60], [5.0, 1.0, 0.5], 20)
    array([9, 6, 5])
    """
    counts = _checked_sizes(sizes, m)
    spread = _checked_shares(deviations, counts.size, "deviations")
    if not np.any(spread > 0):
        return proportional_allocation(counts, m)
    if spread.dtype.kind == "f":
        spread = spread / spread.max()  # squares neither overflow nor vanish
    gains = [(size * s) ** 2 for size, s in zip(counts.tolist(), spread.tolist(), strict=True)]
    given = [1] * counts.size
    first = [(-gain / 2, h) for h, gain in enumerate(gains) if counts[h] > 1]
    heapq.heapify(first)
    for _ in range(m - counts.size):
        _, h = first[0]
        given[h] += 1
        if given[h] < counts[h]:
            heapq.heapreplace(first, (-gains[h] / (given[h] * (given[h] + 1)), h))
        else:
            heapq.heappop(first)
    return np.array(given, dtype=np.int64)


def paper_allocation(sizes: ArrayLike, dispersions: ArrayLike, m: int) -> Ints:
    """Equation (5) of HCSFed as printed, rounded: m_h near m N_h S_h / sum N_h S_h.

    S_h is a *variance* there (see `dispersion`). With m_h not rounded, no finite-population
    correction and all S_h > 0, that has exactly the variance of the proportional allocation in
    the readings ``"variance"`` and ``"mean-pair"``, and mostly a larger one in ``"pairs"``.
    Whole m_h within their bounds and the correction change that for better or worse; with
    `neyman_allocation`, what equation (8) needs, the variance is never larger than with either.

    >>> paper_allocation([10, 30, 60], [25.0, 1.0, 0.25], 20)
    array([10,  6,  4])
    """
    counts = _checked_sizes(sizes, m)
    return largest_remainder(
        counts * _checked_shares(dispersions, counts.size, "dispersions"), counts, m
    )


def dispersion(sizes: ArrayLike, variances: ArrayLike, reading: Reading) -> Numbers:
    """S_h of equation (5) of HCSFed, whose sum has a free index, in its three readings.

    ``"pairs"``: all ordered pairs, divided by N_h - 1, which is 2 N_h s_h^2; ``"mean-pair"``:
    the mean over ordered pairs, 2 s_h^2; ``"variance"``: s_h^2 itself. The last two differ by a
    factor that all strata share, so that they allocate alike. # (H,) -> (H,)

    >>> dispersion([4], [20 / 3], "mean-pair").round(3)
    array([13.333])
    """
    if reading not in get_args(Reading):
        raise ValueError(f"reading must be one of {get_args(Reading)}, got {reading!r}")
    counts, squares = np.asarray(sizes), np.asarray(variances)
    doubled: Numbers = 2 * squares
    if reading == "pairs":
        return counts * doubled
    return doubled if reading == "mean-pair" else squares


def _checked_sizes(sizes: ArrayLike, m: int) -> Ints:
    counts = np.asarray(sizes)
    if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
        raise ValueError(
            f"sizes must be one row of integers >= 1, got {counts.dtype} {counts.shape}"
        )
    if not counts.size <= m <= counts.sum():
        raise ValueError(
            f"m must be from {counts.size}, one for each stratum, to {counts.sum()}, everybody, "
            f"got {m}; merge strata if there are too many"
        )
    return counts.astype(np.int64)


def _checked_shares(values: ArrayLike, count: int, name: str) -> Numbers:
    numbers = np.asarray(values)
    fine = numbers.shape == (count,) and bool(np.all((numbers >= 0) & (numbers < np.inf)))
    if not fine:  # NaN included
        raise ValueError(
            f"{name} must be {count} finite numbers >= 0, got {numbers.dtype} {numbers.shape}"
        )
    return numbers


# Algorithm 2, lines 4 to 20: from groups of clients to m distributions, in exact integers.
#
# Client i has mass m n_i and every distribution holds M = sum n_i, so the masses fill the m
# distributions to the brim. A *layout* is the whole of them as one line of segments: ``clients``
# and ``masses``, end to end, such that distribution k is the stretch from k M to (k + 1) M. A
# client may own several segments; a draw from distribution k is a point of its stretch.


def exact_masses(sizes: ArrayLike, m: int) -> Ints:
    """The masses m n_i: int64 while m M < 2**63, else Python integers. # (n,) -> (n,).

    >>> exact_masses([3, 1], 2)
    array([6, 2])
    >>> exact_masses([2**62, 1], 4)
    array([18446744073709551616, 4], dtype=object)
    """
    values = np.asarray(sizes)
    if values.ndim != 1 or values.dtype.kind not in "iuO":
        raise ValueError(f"sizes must be one row of integers, got {values.dtype} {values.shape}")
    numbers = [index(size) for size in values.tolist()]
    if m < 1 or not numbers or min(numbers) < 0 or sum(numbers) == 0:
        raise ValueError(f"sizes must be >= 0, not all 0, and m >= 1, got m = {m}")
    fits = m * sum(numbers) < 2**63
    return np.array([m * size for size in numbers], dtype=np.int64 if fits else object)


def split_large(masses: Ints, capacity: int) -> tuple[Ints, Ints]:
    """Distributions that a client fills alone, and what remains of it. # (n,) -> (n,), (n,).

    The remainders are the masses to `cut` a tree by: none exceeds the capacity.
    """
    return masses // capacity, masses % capacity


def evened(row: Ints, masses: Ints) -> Ints:
    """Scale the masses of each row, so that all rows have the same sum, exactly. # (s,), (s,).

    For distributions as they are printed, which do not sum to one number.

    >>> evened(np.array([0, 0, 1]), np.array([1, 2, 2]))
    array([2, 4, 6])
    """
    exact = masses.astype(object)
    sums = np.zeros(int(row.max()) + 1, dtype=object)
    np.add.at(sums, row, exact)
    width = lcm(*sums)
    scaled: Ints = exact * (width // sums)[row]
    return scaled.astype(np.int64) if width * len(sums) < 2**63 else scaled


def pour(groups: ArrayLike, masses: Ints, m: int, as_printed: bool = False) -> tuple[Ints, Ints]:
    """Fill m distributions with groups of similar clients.

    1. A client of mass >= M fills floor(m n_i / M) distributions alone; the rest of it takes
       part below. (In the paper's text; the authors' code loses it, hence is biased.)
    2. The heaviest groups become one distribution each, by decreasing mass.
    3. The clients of the other groups, in the same order, are poured into the room that is left,
       one distribution after the other, split where necessary. Ties by group number, clients of
       a group by index. (The authors' code lists and pours by increasing mass, and shuffles the
       clients of a group: other distributions, the same promise.)

    Every distribution sums to exactly M and every client to exactly m n_i, so the weights of a
    draw are unbiased (Proposition 1).

    Parameters
    ----------
    groups
        The group of each client, as `fedcohort.maths._tree.cut` returns them for the remainders
        of `split_large`: no group heavier than M. # (n,)
    masses
        m n_i of `exact_masses`. # (n,)
    m
        Number of distributions; M is the total mass divided by m.
    as_printed
        Pour by line 12 as it is printed. Distributions then do not sum to M; they are scaled to
        one sum, in which a client's share is not m n_i / M.

    Returns
    -------
    clients, masses
        The layout. # (s,), (s,), s <= n + 2 m

    Examples
    --------
    >>> clients, shares = pour([0, 0, 1, 1, 2, 3], exact_masses([1] * 6, 2), 2)
    >>> clients, shares
    (array([0, 1, 4, 2, 3, 5]), array([2, 2, 2, 2, 2, 2]))

    References
    ----------
    Fraboni et al., "Clustered Sampling", ICML 2021, Algorithm 2. Line 12 as printed stores
    b_i = q_k + u_i and never updates q_k; here u_i is stored and q_k grows.
    """
    capacity = _capacity(masses, m)
    labels = np.asarray(groups, dtype=np.int64)
    if labels.shape != masses.shape or np.any(labels < 0):
        raise ValueError(f"groups must be {masses.size} numbers >= 0, got shape {labels.shape}")
    full, rest = split_large(masses, capacity)
    alone = np.repeat(np.arange(masses.size), full.astype(np.int64))  # (dedicated,)
    rank, kept = _ranked_groups(labels, rest, m - alone.size, capacity)
    sequence = np.argsort(rank[labels], kind="stable")
    sequence = sequence[rest[sequence] > 0]
    stays = rank[labels[sequence]] < kept
    settled, poured = sequence[stays], sequence[~stays]
    rows = rank[labels[settled]]  # the distribution of every client that stays with its group
    room = np.full(kept, capacity, dtype=masses.dtype)
    np.subtract.at(room, rows, rest[settled])
    fill = partial(_fill_as_printed, capacity) if as_printed else _fill
    which, where, shares = fill(rest[poured], room)
    every = np.concatenate([rows, where])
    by_row = np.argsort(every, kind="stable")
    clients = np.concatenate([settled, poured[which]])[by_row]
    segments = np.concatenate([rest[settled], shares])[by_row]
    if as_printed and kept:
        segments = evened(every[by_row], segments)
        capacity = int(segments.sum()) // kept
    dedicated = np.full(alone.size, capacity, dtype=segments.dtype)
    return np.concatenate([alone, clients]), np.concatenate([dedicated, segments])


def _capacity(masses: Ints, m: int) -> int:
    capacity, left = divmod(int(masses.sum()), m)
    if left or capacity < 1:
        raise ValueError(f"masses must sum to a positive multiple of m = {m}, got {masses.sum()}")
    return capacity


def _ranked_groups(labels: Ints, rest: Ints, rows: int, capacity: int) -> tuple[Ints, int]:
    """The place of each group in the order of filling, and how many of them become rows."""
    count = int(labels.max()) + 1
    weight = np.zeros(count, dtype=rest.dtype)
    np.add.at(weight, labels, rest)  # exact, unlike bincount
    if np.any(weight > capacity):
        heaviest = int(np.argmax(weight))
        raise ValueError(
            f"groups must weigh at most {capacity}, group {heaviest} weighs {weight[heaviest]}; "
            "cut the tree by the remainders of split_large"
        )
    rank = np.empty(count, dtype=np.int64)
    rank[np.argsort(-weight, kind="stable")] = np.arange(count)
    return rank, min(rows, count)


def _fill(amounts: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
    """Pour amounts into room, one after the other: which amount, into which room, how much.

    Both are stretches of the same line, so the segments lie between neighbouring ends of
    either; this is the loop "fill, split, next" for all at once.
    """
    ends: NDArray[Any] = np.cumsum(amounts)
    walls: NDArray[Any] = np.cumsum(room)
    borders = np.unique(np.concatenate([ends, walls]))
    borders = borders[borders > 0]
    shares = np.diff(borders, prepend=borders[:1] * 0)
    # A segment that ends at a border belongs to the first stretch that reaches this far.
    return np.searchsorted(ends, borders), np.searchsorted(walls, borders), shares


def _fill_as_printed(capacity: int, amounts: Ints, room: Ints) -> tuple[Ints, Ints, Ints]:
    """The same by lines 8 to 19 as printed: q_k, what lies in a distribution, is never updated."""
    found: list[tuple[int, int, int]] = []
    k = 0
    for which, amount in enumerate(amounts.tolist()):
        left = amount
        while left >= room[k]:  # lines 14 to 17
            found.append((which, k, int(room[k])))
            left, k = left - int(room[k]), k + 1
            if left == 0:
                break
        else:
            found.append((which, k, capacity - int(room[k]) + left))  # line 12: b_i = q_k + u_i
    some = [each for each in found if each[2]]
    columns = np.array(some, dtype=amounts.dtype).reshape(-1, 3).T
    return columns[0].astype(np.int64), columns[1].astype(np.int64), columns[2]


# Lists of candidates, one for each of a few groups of clients.
#
# The common part of Giunta's clustered Power-of-Choice (thesis 2024, Section 3.3): z candidates
# from each group taken, short lists filled from outside. Clients and groups are positions and
# numbers; ``labels`` (n,) says which group a client belongs to, ``here`` which clients there are,
# ascending.


Array: TypeAlias = NDArray[Any]
Take: TypeAlias = Callable[[Ints, int], Ints]
"""(pool, k) -> k distinct members of the pool, or all of it; none for k <= 0."""


def by_weight(rng: Rng, weights: Array) -> Take:
    """Draw one after another in proportion to weights (n,); those of weight 0 last, uniformly.

    >>> by_weight(np.random.default_rng(0), np.array([0, 5, 0, 1]))(np.arange(4), 2)
    array([1, 3])
    """

    def take(pool: Ints, k: int) -> Ints:
        if k <= 0 or len(pool) <= k:
            return pool[: max(0, k)]
        drawn = weighted_without_replacement(rng, weights[pool], k)
        left = without(np.arange(len(pool)), drawn)
        more = left[distinct(rng, len(left), k - len(drawn))]
        chosen: Ints = pool[np.concatenate([drawn, more])]
        return chosen

    return take


def by_rank(rng: Rng, values: Floats) -> Take:
    """Take those with the highest values (n,), best first, ties at random; a NaN never."""
    return lambda pool, k: pool[top(rng, values[pool], k)] if k > 0 else pool[:0]


def without(pool: Ints, some: Ints) -> Ints:
    """The members of a sorted pool that are not among some of its members."""
    kept = np.ones(len(pool), dtype=bool)
    kept[np.searchsorted(pool, some)] = False
    return pool[kept]


def draw_groups(rng: Rng, labels: Ints, here: Ints, weights: Array, w: int) -> Ints:
    """At most w of the groups that have members here, by weight (groups,), in random order."""
    drawn = by_weight(rng, weights)(np.unique(labels[here]), w)
    return drawn[permutation(rng, len(drawn))]


def candidate_lists(
    taken: Ints,
    labels: Ints,
    here: Ints,
    z: int,
    least: int,
    take: Take,
    fill: Take | None = None,
    once: bool = True,
) -> list[Ints]:
    """List z candidates for each of the groups ``taken``, in their order.

    A group with fewer than z members is filled up from outside all groups taken, by ``fill`` or
    in the same way; if nobody is left there, its list stays short. Nobody stands twice, unless
    ``once`` is False: then a filler may stand in several lists. If all lists together have fewer
    than ``least`` candidates, one more list of others is added.

    >>> labels = np.array([0, 1, 2, 2, 2])
    >>> losses = np.array([50.0, 45.0, 90.0, 80.0, 1.0])
    >>> rank = by_rank(np.random.default_rng(0), losses)
    >>> [found.tolist() for found in
    ...  candidate_lists(np.array([0, 1]), labels, np.arange(5), 2, 2, rank)]
    [[0, 2], [1, 3]]
    """
    group = labels[here]
    outside = here[~np.isin(group, taken)]
    found = [here[:0]]
    for number in taken.tolist():
        inside = take(here[group == number], z)
        fillers = (fill or take)(outside, z - len(inside))
        if once:
            outside = without(outside, fillers)
        found.append(np.concatenate([inside, fillers]))
    listed = np.unique(np.concatenate(found))
    if len(listed) < least:
        found.append(take(without(here, listed), least - len(listed)))
    return [one for one in found if len(one)]


def group_means(values: Floats, labels: Ints, here: Ints) -> Floats:
    """(groups,) mean value of those who are here; 0 for a group without any.

    Sums are exact and rounded once, so that the order of the clients is no matter.
    """
    means = np.zeros(int(labels.max()) + 1)
    found: dict[int, list[float]] = {}
    for number, value in zip(labels[here].tolist(), values[here].tolist(), strict=True):
        found.setdefault(number, []).append(value)
    for number, members in found.items():
        means[number] = math.fsum(members) / len(members)
    return means


def group_mean_weights(parts: Array, labels: Ints, here: Ints) -> Array:
    """(groups,) weights in proportion to the mean of the parts, of integers exactly.

    >>> group_mean_weights(np.array([2, 4, 5]), np.array([0, 0, 1]), np.arange(3))
    array([6, 10], dtype=object)
    """
    if parts.dtype.kind == "f":
        return group_means(parts, labels, here)
    group = labels[here]
    counts = np.bincount(group, minlength=int(labels.max()) + 1).tolist()
    common = math.lcm(*{count for count in counts if count})
    totals: Array = np.zeros(len(counts), dtype=object)
    np.add.at(totals, group, parts[here].astype(object))
    pairs = zip(totals.tolist(), counts, strict=True)
    return np.array([t * (common // c) if c else 0 for t, c in pairs], dtype=object)
