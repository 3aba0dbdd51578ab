"""m of n clients without replacement, all equally likely."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.design import Design, Distinct, exact_outcomes
from fedcohort.core.participation import Participation
from fedcohort.core.shares import Shares
from fedcohort.core.types import Floats, Ints
from fedcohort.maths._draws import Rng, distinct
from fedcohort.maths._inclusion import largest_of_others


@dataclass(frozen=True, eq=False, repr=False)
class Simple(Design):
    """Simple random sampling without replacement among the clients with a positive share.

    With N such clients each is chosen with probability m/N and weighs (N/m) p_i, which makes
    the mean weight p_i; ``compensated=False`` leaves the weight at p_i (McMahan's FedAvg, in
    which absent clients count as unchanged), so that the mean is (m/N) p_i.

    A draw takes O(m) whatever n.
    """

    shares: Shares
    m: int
    compensated: bool = True

    @property
    def n(self) -> int:
        return len(self.shares)

    @cached_property
    def support(self) -> Ints:
        """The clients that can be chosen."""
        return self.shares.support

    @property
    def _chance(self) -> Fraction:
        return Fraction(self.m, len(self.support))

    @cached_property
    def value(self) -> Floats:
        factor = 1.0 / float(self._chance) if self.compensated else 1.0
        return self.shares.floats * factor

    @property
    def alpha(self) -> float | None:
        """(N - m) / (m (N - 1)) for unbiased weights."""
        total = len(self.support)
        if not self.compensated:
            return None
        return (total - self.m) / (self.m * (total - 1)) if total > 1 else 0.0

    def draw(self, rng: Rng) -> Cohort:
        chosen = self.support[distinct(rng, len(self.support), self.m)]
        return Cohort(chosen, self.value[chosen], np.ones(len(chosen), dtype=np.int64))

    def inclusion(self) -> Floats:
        return np.where(self.shares.parts > 0, float(self._chance), 0.0)

    def expected_counts(self) -> Floats:
        return self.inclusion()

    def count_variance(self) -> Floats:
        chance = self.inclusion()
        return chance * (1.0 - chance)

    def count_covariance_times(self, x: Floats) -> Floats:
        total = len(self.support)
        out = np.zeros_like(x, dtype=np.float64)
        if total > 1:
            q = self.m / total
            inside = x[self.support]
            # Cov = q (1 - q) N / (N - 1) * (identity - average)
            out[self.support] = q * (1 - q) * total / (total - 1) * (inside - inside.mean(axis=0))
        return out

    def participation(self) -> Participation:
        """Who is not in leaves its place to one other: swap the two, and all others are alike."""
        chance, how = self.inclusion(), "a cohort of fixed size, without replacement"
        others = largest_of_others(self.value, chance)
        return Participation.once(chance, self.value, others, how)

    def distinct(self) -> Distinct:
        return Distinct(float(self.m), 0.0)

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        probability = Fraction(1, comb(len(self.support), self.m))
        factor = 1 / self._chance if self.compensated else Fraction(1)
        value = [self.shares.fraction(i) * factor for i in range(self.n)]
        chosen = combinations(self.support.tolist(), self.m)
        return exact_outcomes(((probability, tuple((i, 1) for i in s)) for s in chosen), value)
