"""Exact shares of a whole: p_i = parts_i / whole, in integers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from fedcohort.core.types import Array, Floats, Ints

EXACT_SCALE = 2**52
"""Float probabilities are written as integers over this whole (the resolution of a double)."""
STEADY_SCALE = 3 * 2**50
"""Float shares are written as integers over about this whole, far from any power of two."""


@dataclass(frozen=True, eq=False)
class Shares:
    """Non-negative integers that add up to ``whole``; float64 appears only on request.

    Sums and multiples never overflow: 64-bit integers where they suffice, Python integers
    (dtype object) beyond.

    >>> shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    >>> shares.fraction(1), float(shares.floats[0])
    (Fraction(4, 15), 0.3333333333333333)
    """

    parts: Ints  # (n,)
    whole: int
    rounded: bool = False  # whether floats stood here

    @classmethod
    def of(cls, parts: Array) -> Shares:
        """Shares proportional to non-negative integers."""
        whole = exact_sum(parts)
        if parts.dtype != object:
            parts = parts.astype(np.int64, copy=False)
        return cls(parts, whole)

    @classmethod
    def of_floats(cls, values: Floats) -> Shares:
        """Shares proportional to non-negative floats, to the resolution of a double.

        A positive value never becomes a zero share, however small.

        The whole is about 3/4 of a power of two, whatever the floats: a draw reads as many bits
        as the whole has (`fedcohort.maths._draws.below`), so their number must not hang on a
        rounding error. Then an edge between two clients moves by e/2 of the whole at most if
        every float changes by a factor in [1 - e, 1 + e] (see `fedcohort.maths._draws`), the end
        of the line by n/2 units; a word of the generator that lies at none of these gives the
        same client or is rejected on both lines. m draws read 4/3 m words on average: their
        cohort changes with probability n m e / 2 at most, and rounding adds n**2 m 2**-51.
        """
        scaled = values / values.max()
        parts = np.rint(scaled / scaled.sum() * STEADY_SCALE).astype(np.int64)
        parts = np.where((values > 0) & (parts == 0), 1, parts)
        return cls(parts, exact_sum(parts), rounded=True)

    def among(self, here: Ints) -> Shares:
        """The same shares where only the clients ``here`` have any."""
        parts = np.zeros_like(self.parts)
        parts[here] = self.parts[here]
        if self.rounded and parts.any():  # a part of the whole may be a power of two
            return Shares.of_floats(parts.astype(np.float64))
        return Shares.of(parts)

    @property
    def weights(self) -> Array:
        """What to draw by: exact integers, or floats where floats stood (see `maths.choice`)."""
        return self.floats if self.rounded else self.parts

    def __len__(self) -> int:
        return len(self.parts)

    @cached_property
    def floats(self) -> Floats:  # (n,)
        """The shares as floats, each rounded once."""
        if self.whole == 0:  # a round in which nobody is available
            return np.zeros(len(self))
        return np.asarray(self.parts / self.whole, dtype=np.float64)

    def fraction(self, i: int) -> Fraction:
        """The exact share of client ``i``."""
        return Fraction(int(self.parts[i]), self.whole)

    @cached_property
    def support(self) -> Ints:
        """Positions with a positive share."""
        return np.flatnonzero(self.parts > 0)


def exact_sum(parts: Array) -> int:
    """The sum as a Python integer, without overflow."""
    if parts.dtype == object or parts.size == 0:
        return sum(int(part) for part in parts)
    if int(parts.max()) <= (2**63 - 1) // parts.size:
        return int(parts.sum(dtype=np.int64))
    high, low = parts >> 32, parts & 0xFFFFFFFF  # each half sums without overflow
    return (int(high.sum(dtype=np.int64)) << 32) + int(low.sum(dtype=np.int64))


def exact_multiple(parts: Ints, factor: int, bound: int) -> Ints:
    """``parts * factor`` without overflow, given that all sums of it stay within ``bound``."""
    if bound < 2**63 and parts.dtype != object:
        return parts * np.int64(factor)
    return parts.astype(object) * factor


def capped(shares: Shares, m: int) -> tuple[Ints, int]:
    """Inclusion probabilities proportional to the shares, at most 1, with sum min(m, clients).

    Returned as exact integers over one denominator: the mass of the clients not taken always.
    """
    always = np.zeros(len(shares), dtype=bool)
    rest = shares.parts
    while (mass := exact_sum(rest)) > 0:
        # Positive as long as mass is left: as many as the budget at 1 would hold all the mass.
        budget = m - int(always.sum())
        full = rest >= -(-mass // budget)  # budget * rest / mass >= 1
        if not full.any():
            return np.where(always, mass, exact_multiple(rest, budget, budget * mass)), mass
        always |= full
        rest = np.where(always, 0, shares.parts)
    return always.astype(np.int64), 1
