"""How many of the m draws each stratum gets.

All allocations here keep ``1 <= m_h <= N_h`` and sum to exactly m, for N_h clients in stratum
h. They work on integers, floats and Fractions; with integers and Fractions they are exact.

References
----------
Neyman (1934); Wright, "A simple method of exact optimal sample allocation under stratification",
2017, for the integer optimum; HCSFed, equation (5), for the paper's own.
"""

from __future__ import annotations

import heapq
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints = NDArray[np.int64]
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
