"""Every client takes part or not, independently of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.design import Design, Distinct, exact_outcomes
from fedcohort.core.participation import Participation
from fedcohort.core.shares import EXACT_SCALE, Shares
from fedcohort.core.types import Floats, Ints
from fedcohort.maths._draws import Rng, coins


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Design):
    """Independent inclusion with probability q_i = parts_i / whole and weight p_i / q_i.

    The number of clients varies; a cohort may be empty (the round is void). Covariances are
    zero: alpha = 0. A client with q_i = 0 never takes part, so p_i > 0 with q_i = 0 is biased.

    Parameters
    ----------
    target
        The mean weights p.
    parts, whole
        The inclusion probabilities as exact integers over one denominator.
    """

    target: Shares
    parts: Ints
    whole: int

    @classmethod
    def of_floats(cls, target: Shares, inclusion: Floats) -> Bernoulli:
        """Inclusion probabilities in [0, 1], to the resolution of a double.

        A positive probability stays positive and 1 stays 1.
        """
        parts = np.rint(inclusion * EXACT_SCALE).astype(np.int64)
        parts = np.where((inclusion > 0) & (parts == 0), 1, parts)
        return cls(target, parts, EXACT_SCALE)

    @property
    def n(self) -> int:
        return len(self.target)

    @property
    def alpha(self) -> float | None:
        return 0.0

    def inclusion(self) -> Floats:
        return np.asarray(self.parts / self.whole, dtype=np.float64)

    @cached_property
    def value(self) -> Floats:
        q = self.inclusion()
        return np.divide(self.target.floats, q, out=np.zeros(self.n), where=q > 0)

    def draw(self, rng: Rng) -> Cohort:
        chosen = np.flatnonzero(coins(rng, self.parts, self.whole))
        return Cohort(chosen, self.value[chosen], np.ones(len(chosen), dtype=np.int64))

    def expected_counts(self) -> Floats:
        return self.inclusion()

    def count_variance(self) -> Floats:
        q = self.inclusion()
        return q * (1.0 - q)

    def count_covariance_times(self, x: Floats) -> Floats:
        variance = self.count_variance()
        out: Floats = (variance if x.ndim == 1 else variance[:, None]) * x
        return out

    def participation(self) -> Participation:
        how = "clients take part independently (Poisson sampling)"
        return Participation.once(self.inclusion(), self.value, np.zeros(self.n), how)

    def distinct(self) -> Distinct:
        q = self.inclusion()
        return Distinct(float(q.sum()), float((q * (1.0 - q)).sum()))

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        q = [Fraction(int(part), self.whole) for part in self.parts]
        value = [self.target.fraction(i) / q[i] if q[i] else q[i] for i in range(self.n)]
        # Certain clients are not branched on.
        ways = [((1,) if chance == 1 else (0,) if chance == 0 else (0, 1)) for chance in q]
        law = (
            (
                prod((q[i] if s else 1 - q[i] for i, s in enumerate(shown)), start=Fraction(1)),
                tuple(enumerate(shown)),
            )
            for shown in product(*ways)
        )
        return exact_outcomes(law, value)
