"""The two draws behind Power-of-Choice: candidates by weight, then the best of them.

Cho, Wang and Joshi (2020, arXiv:2010.01243, Section 3) draw d candidates without
replacement with probability p_i and keep the m with the highest loss. Both steps are
written here over `fedcohort.maths.draws`, so they are exact, the same under every
numpy version, and can be enumerated outcome by outcome.
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedcohort.maths.draws import Ints, Rng, below, distinct, pick, steadily_below

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
