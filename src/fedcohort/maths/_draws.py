"""Exact random draws: integers, subsets, weighted choices, and counts of draws.

Everything random in a scheme comes down to "an integer below a bound". Written once here,
from raw 64-bit words and rejection, it is exact (no float rounding), and the same seed
gives the same cohorts under every numpy version: numpy keeps its raw streams stable, not
its distributions (NEP 19).

A `Script` may stand in for the generator: the exact oracle `fedcohort.maths._enumeration` uses
one to walk through *all* outcomes of a draw, each with its exact probability.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

WORD = 64


class Script(Protocol):
    """What may stand in for a generator: it answers every choice, with known probability."""

    def below(self, bound: int) -> int:
        """An integer below ``bound``, all equally likely."""
        ...

    def choose(self, weights: Sequence[int]) -> int:
        """An index, with probability proportional to integer weights."""
        ...


Rng = np.random.Generator | Script


def below(rng: Rng, bound: int, size: int) -> Ints:
    """Uniform integers in ``[0, bound)``, of any size of ``bound``.

    The result has dtype int64, or object (Python integers) when ``bound`` exceeds 2**63.

    >>> below(np.random.Generator(np.random.Philox(1)), 6, 5)
    array([0, 0, 0, 1, 2])
    """
    if bound < 1:
        raise ValueError(f"nothing is below {bound}")
    if not isinstance(rng, np.random.Generator):
        return _as_ints([rng.below(bound) for _ in range(size)], bound)
    bits = (bound - 1).bit_length()
    if bits == 0:
        return np.zeros(size, dtype=np.int64)
    if bits > WORD - 1:
        return _as_ints([_big_below(rng, bound, bits) for _ in range(size)], bound)
    out = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        missing = size - filled
        words = rng.bit_generator.random_raw(missing) >> np.uint64(WORD - bits)
        accepted = words[words < np.uint64(bound)]
        out[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return out


STEADY_BITS = 2 * WORD


def steadily_below(rng: np.random.Generator, bound: int) -> int:
    """A uniform integer in ``[0, bound)`` that moves little when the bound does.

    `below` looks at as many bits as the bound has, so that bounds of 2**k and 2**k + 1 turn the
    same words into quite different integers. Here two words are always read, as a point of
    ``[0, 2**128)``: the first K * bound of these points, K = floor(3 * 2**126 / bound), are
    shared out evenly and in order, the others are rejected. Exact as before, but the point at
    which ``x / bound`` is passed, for any share x / bound, moves by less than 2**-64 when the
    bound changes, and so does where the rejected points begin (bounds up to 2**62).

    For draws from weights that were rounded, by another machine perhaps; see `maths.choice`.

    >>> steadily_below(np.random.Generator(np.random.Philox(1)), 6)
    0
    """
    times = (3 << STEADY_BITS - 2) // bound
    return _big_below(rng, times * bound, STEADY_BITS) // times


def _big_below(rng: np.random.Generator, bound: int, bits: int) -> int:
    words = -(-bits // WORD)
    while True:
        value = 0
        for word in rng.bit_generator.random_raw(words):
            value = value << WORD | int(word)
        value >>= words * WORD - bits
        if value < bound:
            return value


def _as_ints(values: list[int], bound: int) -> Ints:
    return np.array(values, dtype=np.int64 if bound <= 2**63 else object)


def pick(rng: Rng, cumulative: Ints, width: int, rows: Ints) -> Ints:
    """Independent draws from rows of segments laid end to end.

    Segment j covers ``[cumulative[j-1], cumulative[j])``; row k covers
    ``[k * width, (k + 1) * width)``, so a segment may lie in several rows. One draw is made
    from each entry of ``rows``. Returns segment indices; a segment of no length is never hit.

    >>> pick(np.random.Generator(np.random.Philox(1)), np.array([3, 3, 6]), 3, np.array([0, 1]))
    array([0, 2])
    """
    if not isinstance(rng, np.random.Generator):
        drawn = [_pick_by_script(rng, cumulative, width, int(row)) for row in rows]
        return np.array(drawn, dtype=np.int64)
    keys = below(rng, width, len(rows)) + rows.astype(cumulative.dtype) * width
    return np.searchsorted(cumulative, keys, side="right")


def _pick_by_script(rng: Script, cumulative: Ints, width: int, row: int) -> int:
    inside = [min(max(int(edge) - row * width, 0), width) for edge in cumulative]
    return rng.choose([high - low for low, high in zip([0, *inside], inside, strict=False)])


def coins(rng: Rng, parts: Ints, whole: int) -> NDArray[np.bool_]:
    """Independent coins: coin i shows True with probability ``parts[i] / whole``, exactly."""
    if not isinstance(rng, np.random.Generator):
        shown = [rng.choose([int(part), whole - int(part)]) == 0 for part in parts]
        return np.array(shown, dtype=bool)
    return np.asarray(below(rng, whole, len(parts)) < parts, dtype=bool)


def distinct(rng: Rng, n: int, m: int) -> Ints:
    """A uniformly random set of ``m`` distinct integers below ``n``, in O(m) whatever ``n``.

    The first m distinct values of an endless i.i.d. stream are a simple random sample; for
    m > n/2 the complement is drawn instead, so that the stream never runs dry. Sorted.
    """
    if not 0 <= m <= n:
        raise ValueError(f"cannot choose {m} distinct of {n}")
    if not isinstance(rng, np.random.Generator):
        return _distinct_one_by_one(rng, n, m)
    if 2 * m > n:
        left_out = distinct(rng, n, n - m)
        kept = np.ones(n, dtype=bool)
        kept[left_out] = False
        return np.flatnonzero(kept)
    chosen = np.empty(0, dtype=np.int64)
    while chosen.size < m:
        # Append in order of arrival and keep first appearances, else ties would bias the set.
        stream = np.concatenate([chosen, below(rng, n, m - chosen.size)])
        _, first = np.unique(stream, return_index=True)
        chosen = stream[np.sort(first)]
    return np.sort(chosen)


def _distinct_one_by_one(rng: Script, n: int, m: int) -> Ints:
    """The same law by a finite number of choices (an endless stream cannot be enumerated)."""
    left = list(range(n))
    return np.array(sorted(left.pop(rng.below(len(left))) for _ in range(m)), dtype=np.int64)


def permutation(rng: Rng, n: int) -> Ints:
    """A uniformly random order of ``range(n)``."""
    if not isinstance(rng, np.random.Generator):
        left = list(range(n))
        return np.array([left.pop(rng.below(len(left))) for _ in range(n)], dtype=np.int64)
    words = rng.bit_generator.random_raw(n)
    order = np.argsort(words, kind="stable")
    if np.any(np.diff(words[order]) == 0):  # two equal words: about n**2 / 2**65
        return permutation(rng, n)
    return order


class Tickets:
    """Integers below bounds that change from draw to draw, from words read in blocks.

    As exact as `below` and far quicker for one at a time. Up to ``BLOCK`` words more are read
    than are used.
    """

    BLOCK = 64

    def __init__(self, rng: Rng) -> None:
        self._rng = rng
        self._words: list[int] = []

    def below(self, bound: int) -> int:
        """An integer in ``[0, bound)``, all equally likely."""
        if not isinstance(self._rng, np.random.Generator):
            return self._rng.below(bound)
        bits = (bound - 1).bit_length()
        while True:
            value, missing = 0, bits
            while missing > 0:
                if not self._words:
                    self._words = self._rng.bit_generator.random_raw(self.BLOCK).tolist()
                taken = min(missing, WORD)
                value = value << taken | self._words.pop() >> (WORD - taken)
                missing -= taken
            if value < bound:
                return value

    def heads(self, part: int, whole: int) -> bool:
        """Whether a coin shows heads, which it does with probability ``part / whole``."""
        if not isinstance(self._rng, np.random.Generator):
            return self._rng.choose([part, whole - part]) == 0
        return self.below(whole) < part


def coins_each(rng: Rng, parts: Ints, wholes: Ints) -> NDArray[np.bool_]:
    """Independent coins, each with a whole of its own: True with ``parts[i] / wholes[i]``.

    >>> coins_each(np.random.Generator(np.random.Philox(1)), np.array([0, 3]), np.array([5, 3]))
    array([False,  True])
    """
    if not isinstance(rng, np.random.Generator) or wholes.dtype == object:
        tickets = Tickets(rng)
        shown = [tickets.heads(int(p), int(w)) for p, w in zip(parts, wholes, strict=True)]
        return np.array(shown, dtype=bool)
    bounds = wholes.astype(np.uint64)
    # A whole that a float rounds up to a power of two gets a bit more than it needs: still exact.
    bits = np.maximum(np.frexp((wholes - 1).astype(np.float64))[1], 1)
    shifts = (WORD - bits).astype(np.uint64)
    drawn = rng.bit_generator.random_raw(len(parts)) >> shifts
    while (again := np.flatnonzero(drawn >= bounds)).size:
        drawn[again] = rng.bit_generator.random_raw(again.size) >> shifts[again]
    return np.asarray(drawn < parts.astype(np.uint64), dtype=bool)


# The two draws behind Power-of-Choice: candidates by weight, then the best of them.
#
# Cho, Wang and Joshi (2020, arXiv:2010.01243, Section 3) draw d candidates without
# replacement with probability p_i and keep the m with the highest loss. Both steps are
# written here over `fedcohort.maths._draws`, so they are exact, the same under every
# numpy version, and can be enumerated outcome by outcome.


GRID_BITS = 62
"""Float weights become integers whose sum stays below 2**62: one 64-bit word per draw."""


def weighted_without_replacement(rng: Rng, weights: ArrayLike, d: int) -> Ints:
    """Draw ``d`` distinct positions one after another, each ∝ the weights still left.

    Symbols: w_i = ``weights[i]`` >= 0 and T = the positions taken so far; the next one is i
    with probability w_i / sum_{j not in T} w_j (successive sampling, what
    ``Generator.choice(p=..., replace=False)`` does as well). A zero weight is never drawn;
    with fewer than ``d`` positive weights all of those are returned, and the caller decides
    whether to warn. The positions are sorted.

    The inclusion probabilities are *not* d * w_i: heavy positions are drawn less often than
    that, because they cannot be drawn twice.

    Integers count exactly, whatever their size. Floats are rounded to a grid of integers
    with a sum below 2**62, at least 1 where positive: the probabilities of a draw are off
    by less than n * 2**-59. Sizes are therefore better weights than shares n_i / M. Floats
    that differ by rounding (another processor, another order of a sum) give the same
    positions all but always: see `_steadily`.

    >>> rng = np.random.Generator(np.random.Philox(3))
    >>> weighted_without_replacement(rng, [5, 0, 1, 4, 90], 3)
    array([2, 3, 4])
    """
    d = operator.index(d)
    if d < 0:
        raise ValueError(f"The number of draws must be at least 0. Got {d} instead.")
    values = _checked(weights)
    positive = np.flatnonzero(values > 0)
    if positive.size <= d:
        return positive
    if d == 0:
        return positive[:0]
    integers = as_integers(values[positive])
    if not isinstance(rng, np.random.Generator):
        drawn = _one_by_one(rng, integers, d)
    elif values.dtype.kind == "f":
        drawn = _steadily(rng, integers, d)
    else:
        drawn = _by_stream(rng, integers, d)
    return np.sort(positive[drawn])


def _by_stream(rng: Rng, weights: Ints, d: int) -> Ints:
    """First appearances in an i.i.d. stream: exact, because a repeat says nothing new.

    Given T, the first draw outside T is i with probability w_i / (mass outside T), however
    many repeats come before it. Once T holds more than half of the mass, repeats would be
    most of the stream, so T is taken out of the table. Each rebuilding halves the mass:
    64-bit weights need at most 62 of them.
    """
    weights = weights.copy()
    taken = np.empty(0, dtype=np.int64)
    table = np.cumsum(weights)
    in_table = 0  # mass of those in `taken` that are still in the table
    while True:
        tickets = below(rng, int(table[-1]), d - taken.size)
        stream = np.concatenate([taken, np.searchsorted(table, tickets, side="right")])
        _, first = np.unique(stream, return_index=True)
        fresh = stream[np.sort(first)][taken.size :]
        taken = np.concatenate([taken, fresh])
        if taken.size == d:
            return taken
        in_table += int(weights[fresh].sum()) if fresh.size else 0
        if 2 * in_table > int(table[-1]):
            weights[taken] = 0
            table, in_table = np.cumsum(weights), 0


def _steadily(rng: np.random.Generator, weights: Ints, d: int) -> Ints:
    """One after another, so that a small change of the weights rarely changes who is drawn.

    Those left are laid end to end, and a draw is a point u of the line, uniform in [0, 1), that
    does not depend on the weights (`steadily_below`). Say that every weight changes by a factor
    in [1 - e, 1 + e]. The share F of the line before an edge has the odds F / (1 - F), which
    change by a factor of at most (1 + e) / (1 - e); so ``log(odds)`` moves by about 2 e at most,
    and F by 2 e F (1 - F) <= e / 2. As long as the same ones are taken, two lines therefore
    draw differently only if u lies between an edge and where it moved to: with probability
    less than n e / 2 in a draw, and **n d e / 2 in all**. Rounding to the grid moves an edge by
    n * 2**-60, and no total is special, because nothing depends on its number of bits.

    A stream with repeats, as for integers, would jump where half of the mass is taken.
    """
    edges = np.cumsum(weights)
    starts, left = edges - weights, int(edges[-1])
    taken = np.empty(0, dtype=np.int64)
    for _ in range(d):
        gaps = np.sort(taken)
        closed = np.cumsum(weights[gaps])  # how much is missing up to each gap, and with it
        ticket = steadily_below(rng, left)  # in a line without gaps
        passed = int(np.searchsorted(starts[gaps] - (closed - weights[gaps]), ticket, "right"))
        ticket += int(closed[passed - 1]) if passed else 0
        fresh = int(np.searchsorted(edges, ticket, side="right"))
        taken = np.append(taken, fresh)
        left -= int(weights[fresh])
    return taken


def _one_by_one(rng: Rng, weights: Ints, d: int) -> Ints:
    """The same law by a finite number of choices: the definition, and the enumerable path."""
    left, mass = list(range(weights.size)), [int(w) for w in weights]
    drawn = []
    for _ in range(d):
        width = sum(mass)
        edges = np.cumsum(np.array(mass, dtype=weights.dtype))
        place = int(pick(rng, edges, width, np.zeros(1, dtype=np.int64))[0])
        drawn.append(left.pop(place))
        mass.pop(place)
    return np.array(drawn, dtype=np.int64)


def as_integers(weights: ArrayLike) -> Ints:
    """Weights as integers with the same ratios: exact for integers, on a 2**62 grid for floats.

    >>> as_integers([3, 1])
    array([3, 1])
    >>> as_integers([0.75, 0.25, 0.0]) / 2**60
    array([1.5, 0.5, 0. ])
    """
    values = _checked(weights)
    if values.dtype.kind != "f":
        fits = sum(map(int, values)) < 2**63 if values.dtype == object else _sum_fits(values)
        return values.astype(np.int64 if fits else object)
    heaviest = float(values.max(initial=0.0))
    if heaviest == 0:
        return np.zeros(values.size, dtype=np.int64)
    # Powers of two only, so that dyadic weights stay exact. First all below 1, so that
    # 1e308 + 1e308 is harmless; then the sum to at most 2**61, to leave room for "at least 1".
    shares = values * math.ldexp(1.0, min(-math.frexp(heaviest)[1], 1023))
    exponent = GRID_BITS - 1 - math.ceil(math.log2(shares.sum()))
    grid: Ints = np.rint(shares * 2.0**exponent).astype(np.int64)
    grid[(grid == 0) & (values > 0)] = 1
    return grid


def _sum_fits(values: NDArray[Any]) -> bool:
    # The sum of floats is within a factor (1 + n * 2**-53) of the true sum.
    return bool(values.astype(np.float64).sum() < 2.0**62)


def _checked(weights: ArrayLike) -> NDArray[Any]:
    """Weights as a one-dimensional array of integers or floats, finite and not negative."""
    values = np.asarray(weights)
    if values.dtype == object:  # Python integers beyond 64 bits; anything else is refused
        flat = values.ravel().tolist()
        if not all(isinstance(v, int | np.integer) for v in flat):
            raise ValueError("The weights must be numbers. Got an array of other objects instead.")
    elif values.dtype.kind == "b" or values.dtype.kind not in "iuf":
        raise ValueError(f"The weights must be numbers. Got dtype {values.dtype} instead.")
    elif values.dtype.kind == "f":
        values = values.astype(np.float64)
    if values.ndim != 1:
        raise ValueError(f"The weights must have one dimension. Got shape {values.shape} instead.")
    bad = values < 0
    if values.dtype.kind == "f":
        bad |= ~np.isfinite(values)
    if np.any(bad):
        where = int(np.flatnonzero(bad)[0])
        raise ValueError(
            f"The weights must be finite and at least 0. Got {values[where]} at position {where}"
            " instead."
        )
    return values


def top(rng: Rng, values: ArrayLike, m: int) -> Ints:
    """Positions of the ``m`` largest values, best first; who among equals makes it is random.

    A NaN or -inf is never chosen, so that fewer than ``m`` positions come back when there
    are too few others: what to do then is the caller's rule. +inf is a value like any other
    (a scheme may give it to clients never seen). Equals at the cut are drawn uniformly;
    equals above the cut stand in the order of their positions. Cho's code sorts stably
    instead, which favours whoever was drawn as a candidate first.

    >>> top(np.random.default_rng(0), [4.0, 6.0, np.nan, 9.0, 7.0], 2)
    array([3, 4])
    """
    m = operator.index(m)
    if m < 0:
        raise ValueError(f"The number to choose must be at least 0. Got {m} instead.")
    numbers = np.asarray(values)
    if numbers.dtype.kind not in "iuf":
        raise ValueError(f"The values must be numbers. Got dtype {numbers.dtype} instead.")
    if numbers.ndim != 1:
        raise ValueError(f"The values must have one dimension. Got shape {numbers.shape} instead.")
    eligible = np.flatnonzero(numbers > -np.inf)  # false for NaN as well
    if m < eligible.size:
        eligible = _cut(rng, numbers, eligible, m)
    # Stable on the reversed array, then reversed: descending, equals by rising position.
    backwards = eligible[::-1]
    return backwards[np.argsort(numbers[backwards], kind="stable")][::-1].astype(np.int64)


def _cut(rng: Rng, numbers: NDArray[Any], eligible: Ints, m: int) -> Ints:
    """The ``m`` best of ``eligible``, sorted by position; ``m`` is less than there are."""
    if m == 0:
        return eligible[:0]
    left = numbers[eligible]
    threshold = np.partition(left, left.size - m)[left.size - m]
    above, equal = eligible[left > threshold], eligible[left == threshold]
    missing = m - above.size
    if missing < equal.size:
        equal = equal[distinct(rng, equal.size, missing)]
    return np.sort(np.concatenate([above, equal]))
