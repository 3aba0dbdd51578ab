"""All clients, every time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.design import Design, Distinct, exact_outcomes
from fedcohort.core.participation import Participation
from fedcohort.core.shares import Shares
from fedcohort.core.types import Floats
from fedcohort.maths._draws import Rng


@dataclass(frozen=True, eq=False, repr=False)
class Everyone(Design):
    """Every client with a positive share takes part and weighs exactly its share."""

    shares: Shares

    @property
    def n(self) -> int:
        return len(self.shares)

    @property
    def value(self) -> Floats:
        return self.shares.floats

    @property
    def alpha(self) -> float | None:
        return 0.0

    def draw(self, rng: Rng) -> Cohort:
        chosen = self.shares.support
        return Cohort(chosen, self.value[chosen], np.ones(len(chosen), dtype=np.int64))

    def inclusion(self) -> Floats:
        return (self.shares.parts > 0).astype(np.float64)

    def expected_counts(self) -> Floats:
        return self.inclusion()

    def count_variance(self) -> Floats:
        return np.zeros(self.n)

    def count_covariance_times(self, x: Floats) -> Floats:
        return np.zeros_like(x, dtype=np.float64)

    def participation(self) -> Participation:
        how = "everybody takes part in every round"
        return Participation.once(self.inclusion(), self.value, np.zeros(self.n), how)

    def distinct(self) -> Distinct:
        return Distinct(float(len(self.shares.support)), 0.0)

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        value = [self.shares.fraction(i) for i in range(self.n)]
        everyone = tuple((int(i), 1) for i in self.shares.support)
        return exact_outcomes(iter([(Fraction(1), everyone)]), value)
