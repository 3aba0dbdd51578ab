"""Designs without stages: independent clients, all clients, and simple random samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import comb, prod

import numpy as np

from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._draws import Rng, coins, distinct
from fedcohort.maths._inclusion import largest_of_others
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design, Distinct, Participation, exact_outcomes
from fedcohort.selection._federation import EXACT_SCALE, Shares


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


# All clients, every time.


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


# m of n clients without replacement, all equally likely.


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
