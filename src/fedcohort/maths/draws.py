"""Exact random draws out of raw generator words.

Everything random in a scheme comes down to "an integer below a bound". Written once here,
from raw 64-bit words and rejection, it is exact (no float rounding), and the same seed
gives the same cohorts under every numpy version: numpy keeps its raw streams stable, not
its distributions (NEP 19).

A `Script` may stand in for the generator: the exact oracle `fedcohort.core.paths` uses
one to walk through *all* outcomes of a draw, each with its exact probability.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
