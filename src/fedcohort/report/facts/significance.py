"""Is a difference more than chance? Paired, exact, and honest about what the p value is about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from fedcohort._internal.errors import BadInput
from fedcohort._internal.html import plural
from fedcohort._internal.types import Bools, Floats
from fedcohort.simulation._comparison import LEVEL, smallest_p

EXACT_SEEDS = 16
"""Up to this many pairs all 2^s sign patterns are counted; above, a sample of them."""
SAMPLED, AT_ONCE = 100_000, 1_000
"""Patterns of a sample, and of those in memory: a thousand runs have a thousand signs each."""


@dataclass(frozen=True)
class Paired:
    """How two schemes differ over the pairs of runs that they share.

    With one partition, ``p`` is the two-sided sign-flip test of "the two are exchangeable in
    every pair": it speaks of that division of the data. With several, ``p`` flips the mean gap
    of each partition as a whole and speaks of divisions like these, of which they are a sample;
    ``p_these`` flips pair by pair, and speaks of these divisions alone (NaN with one, where
    ``p`` does). ``low`` and ``high`` are the 95 % interval of the mean gap by Student's t, over
    what ``p`` flips, and ``p_t`` the test that belongs to it, which assumes normal gaps; NaN
    with fewer than two.
    """

    pairs: int
    difference: float
    low: float
    high: float
    p: float
    p_t: float
    partitions: int = 1
    p_these: float = np.nan

    @property
    def units(self) -> int:
        """What ``p`` flips, how many: partitions, or pairs on the only one."""
        return self.partitions if self.partitions > 1 else self.pairs

    @property
    def over(self) -> str:
        """The units that ``p`` flips, in words.

        >>> Paired(5, 0.1, 0.0, 0.2, 0.0625, 0.03).over
        '5 seeds'
        """
        unit = "division" if self.partitions > 1 else "seed"
        return f"{self.units} {plural(self.units, unit)}"

    @property
    def p_smallest(self) -> float:
        """The smallest p that so few can give; NaN without a pair."""
        return smallest_p(self.units) if self.pairs else np.nan

    @property
    def p_these_smallest(self) -> float:
        """The same of ``p_these``; NaN with one partition."""
        return smallest_p(self.pairs) if self.partitions > 1 else np.nan

    @property
    def p_attainable(self) -> float:
        """The level that a test at 5 % has with so few, at most."""
        return attainable_level(self.units)


def paired(first: ArrayLike, second: ArrayLike, partitions: Sequence[int] | None = None) -> Paired:
    """Compare two schemes that ran with the same seeds on the same partitions, entry by entry.

    Under the hypothesis that it does not matter which scheme is which, every paired
    difference could as well have had the other sign. The p value is the share of the 2^s
    sign patterns whose mean is at least as far from 0 as the one seen. No distribution is
    assumed; in return, s pairs cannot give a p below 2 / 2^s.

    ``partitions`` says for every pair on which division it ran. One scheme may suit one division
    better and the other another, so pairs of one division are not independent of each other as
    far as other divisions are concerned: their mean is one number, and k partitions cannot give
    a p below 2 / 2^k, however many seeds there are.

    >>> result = paired([3, 4, 5, 6], [1, 2, 3, 5])
    >>> result.difference, result.p
    (1.75, 0.125)
    >>> result = paired([3, 4, 5, 6], [1, 2, 3, 5], partitions=[0, 0, 1, 1])
    >>> result.difference, result.p, result.p_these
    (1.75, 0.5, 0.125)
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if x.shape != y.shape or x.ndim != 1:
        raise BadInput(f"A paired test needs two equal rows; got {x.shape} and {y.shape}.")
    where = np.zeros(len(x), dtype=np.int64) if partitions is None else np.asarray(partitions)
    if where.shape != x.shape:
        raise BadInput(f"A paired test needs a partition of each pair; got {where.shape}.")
    both = np.isfinite(x) & np.isfinite(y)
    gaps = x[both] - y[both]
    if len(gaps) == 0:
        return Paired(0, np.nan, np.nan, np.nan, np.nan, np.nan)
    _, block, seeds = np.unique(where[both], return_inverse=True, return_counts=True)
    if len(seeds) == 1:
        return Paired(len(gaps), *_tested(gaps))
    scaled = gaps / seeds[block]  # every partition counts the same, whatever its number of seeds
    means: Floats = np.bincount(block, scaled).astype(np.float64)
    return Paired(len(gaps), *_tested(means), len(means), sign_flip_p(scaled))


def _tested(gaps: Floats) -> tuple[float, float, float, float, float]:
    """The mean of independent gaps (s,), its interval, and whether it is 0: p by flips, p by t."""
    s = len(gaps)
    mean, half, p_t = float(gaps.mean()), np.nan, np.nan
    if s > 1:
        error = float(gaps.std(ddof=1) / np.sqrt(s))
        half = float(stats.t.ppf(0.975, s - 1)) * error
        p_t = float(2 * stats.t.sf(abs(mean) / error, s - 1)) if error else float(mean == 0)
    return mean, mean - half, mean + half, sign_flip_p(gaps), p_t


def sign_flip_p(gaps: Floats) -> float:
    """Two-sided p of the sign-flip test of differences ``gaps`` (s,)."""
    s = len(gaps)
    scale = float(np.abs(gaps).max(initial=0.0))
    if scale == 0:
        return 1.0
    slack = 1e-12 * scale * s  # equal sums in another order differ by rounding
    if s <= EXACT_SEEDS:
        flipped = np.abs(_all_signs(s) @ gaps)
        return float(np.mean(flipped >= abs(gaps.sum()) - slack))
    rng = np.random.default_rng(0)  # the same report every time
    hits = 0
    for _ in range(SAMPLED // AT_ONCE):
        flips = np.where(rng.random((AT_ONCE, s)) < 0.5, -1.0, 1.0)
        hits += int(np.count_nonzero(np.abs(flips @ gaps) >= abs(gaps.sum()) - slack))
    return float((hits + 1) / (SAMPLED + 1))  # the seen pattern counts as one of the sample


@lru_cache(maxsize=4)
def _all_signs(s: int) -> Floats:
    """(2^s, s) all patterns of +1 and -1; comparisons of many schemes want the same ones."""
    bits: Bools = (np.arange(2**s)[:, None] >> np.arange(s)) & 1 == 1
    return np.where(bits, -1.0, 1.0)


def attainable_level(pairs: int, level: float = LEVEL) -> float:
    """The largest p of the sign-flip test that is not above ``level``; 0 where all are.

    Patterns come in twos, one the other's mirror, so p is a multiple of 2 / 2^s: told to reject at
    ``level``, the test rejects a true hypothesis this often, or less where sums are equal.

    >>> [attainable_level(s) for s in (5, 6, 7, 8)]
    [0.0, 0.03125, 0.046875, 0.046875]
    """
    step = smallest_p(pairs)
    return float(np.floor(level / step * (1 + 1e-12)) * step)


def holm(p: ArrayLike) -> Floats:
    """Holm's correction of several p values, so that one false alarm in all is unlikely.

    The smallest of k is multiplied by k, the next by k - 1, ..., never decreasing; NaN stay.

    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p, dtype=np.float64)
    out = values.copy()
    there = np.flatnonzero(np.isfinite(values))
    order = there[np.argsort(values[there], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(1.0, np.maximum.accumulate(values[order] * factors))
    return out
