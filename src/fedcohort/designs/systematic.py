"""Systematic sampling: every so many steps along a line of clients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.types import Floats, Ints
from fedcohort.designs.fixed_size import FixedSize
from fedcohort.designs.pools import NearPools
from fedcohort.maths._draws import Rng, pick


@dataclass(frozen=True, eq=False, repr=False)
class Systematic(FixedSize):
    """One random start, then the clients at equal steps along a line (Madow, 1949).

    Client i covers a length pi_i of the line, in the given order; with u uniform in [0, 1) the
    clients at u, u + 1, ..., u + k - 1 are taken. There are at most n different cohorts, so law
    and covariance are exact. Clients that are near on the line rarely meet in a cohort, which
    is why the order should put alike clients next to each other.

    *An aggregate may vary more than under MD sampling*: of four clients of equal size with the
    values +1, -1, +1, -1 in this order two are either both +1 or both -1, variance 1, where two
    draws of MD have 1/2.

    Parameters
    ----------
    order
        (n,) the clients as they stand on the line.

    >>> from fedcohort.core import Shares
    >>> design = Systematic.proportional(Shares.of(np.array([5, 4, 3, 2, 1])), 3, np.arange(5))
    >>> sorted(cohort.clients.tolist() for _, cohort in design.enumerate())
    [[0, 1, 2], [0, 1, 3], [0, 2, 4]]
    """

    order: Ints

    @cached_property
    def _ends(self) -> Ints:
        """(n,) where each client ends on the line."""
        masses = self.parts[self.order]
        if self.size * self.whole >= 2**63:
            masses = masses.astype(object)
        return np.cumsum(masses)

    @cached_property
    def _cuts(self) -> Ints:
        """(s,) the starts at which the cohort changes, the last of them the whole."""
        inside = np.unique(self._ends % self.whole)
        return np.append(inside[inside > 0], self.whole)

    def _starts(self) -> Ints:
        """(s,) the first start of each stretch that gives one cohort."""
        return np.concatenate([self._cuts[:1] * 0, self._cuts[:-1]])

    def _at(self, points: Ints) -> Ints:
        """Who covers these points of the line."""
        return self.order[np.searchsorted(self._ends, points, side="right")]

    def _members(self, start: int) -> Ints:
        steps = np.arange(self.size).astype(self._ends.dtype)
        return self._at(steps * self.whole + start)

    def pools(self) -> NearPools:
        return NearPools.along(self.order, self.inclusion(), self.drawn_with)

    def draw(self, rng: Rng) -> Cohort:
        stretch = int(pick(rng, self._cuts, self.whole, np.zeros(1, dtype=np.int64))[0])
        return self.cohort(self._members(self._cuts[stretch - 1] if stretch else 0))

    def outcomes(self) -> Iterator[tuple[Fraction, Ints]]:
        for start, end in zip(self._starts().tolist(), self._cuts.tolist(), strict=True):
            yield Fraction(end - start, self.whole), self._members(start)

    def count_covariance_times(self, x: Floats) -> Floats:
        starts = self._starts()
        chances = np.asarray((self._cuts - starts) / self.whole, dtype=np.float64)
        sums = np.zeros((len(starts), *x.shape[1:]))  # of x over each cohort
        for step in range(self.size):
            sums += x[self._at(starts + step * self.whole)]
        off = sums - np.tensordot(chances, sums, axes=1)
        off *= chances if x.ndim == 1 else chances[:, None]
        out = np.zeros_like(x, dtype=np.float64)
        for step in range(self.size):
            np.add.at(out, self._at(starts + step * self.whole), off)
        return out
