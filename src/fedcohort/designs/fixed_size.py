"""What designs of a fixed number of distinct clients share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.design import OUTCOME_LIMIT, Design, Distinct, exact_outcomes
from fedcohort.core.errors import TooLarge
from fedcohort.core.participation import Participation
from fedcohort.core.paths import every_path
from fedcohort.core.shares import Shares, capped, exact_sum
from fedcohort.core.types import Floats, Ints
from fedcohort.maths._draws import Rng
from fedcohort.maths._inclusion import largest_of_others

EQUAL = 1e-12
"""Weights that differ less, relatively, were rounded."""


def proportional_chances(shares: Shares, m: int) -> tuple[Ints, int]:
    """Chances proportional to the shares, at most 1, over one denominator."""
    parts, whole = capped(shares, m)
    if shares.rounded and whole != shares.whole:
        # What is left of the mass may be a power of two; see `Shares.of_floats`.
        sure = parts == whole
        if np.any((parts > 0) & ~sure):
            left = Shares.of_floats(np.where(sure, 0.0, shares.floats))
            others, whole = capped(left, m - int(sure.sum()))
            parts = np.where(sure, whole, others)
    return parts, whole


@dataclass(frozen=True, eq=False, repr=False)
class FixedSize(Design):
    """k distinct clients, client i among them with probability pi_i = parts_i / whole exactly.

    Its weight is p_i / pi_i (Horvitz and Thompson, 1952): unbiased. Client i's weight has the
    variance p_i^2 (1 / pi_i - 1) whatever the *joint* law, which is what the designs differ in.

    Where pi_i = min(1, c p_i), as `proportional` makes them, the weights of every cohort sum to 1,
    and no client's weight varies more than under MD sampling with k draws: the clients that are
    not sure have together the share R and k' draws with R / k' <= 1 / k, because each sure one
    took at least its part, and then p_i (R / k' - p_i) <= p_i (1 - p_i) / k.

    Parameters
    ----------
    target
        The mean weights p.
    parts, whole
        The inclusion probabilities as exact integers over one denominator; they sum to k.
    """

    target: Shares
    parts: Ints
    whole: int

    swaps: ClassVar[bool] = False
    """Whether a cohort with a client can be coupled with one without it, by one swap.

    So it is for every *strongly Rayleigh* law (Pemantle and Peres, 2014): conditional Poisson,
    Sampford's (Brändén and Jonasson, 2012), pivotal along a line; `docs/privacy.md` has the proof.
    """

    @classmethod
    def proportional(cls, shares: Shares, m: int, *more: Any, target: Shares | None = None) -> Self:
        """Chances proportional to the shares; who would have more than 1 is sure.

        The mean weights are the shares, unless there is another ``target``.
        """
        parts, whole = proportional_chances(shares, m)
        return cls(shares if target is None else target, parts, whole, *more)

    @property
    def n(self) -> int:
        return len(self.target)

    @cached_property
    def size(self) -> int:
        """k, how many clients a cohort has."""
        return exact_sum(self.parts) // self.whole

    @cached_property
    def open(self) -> Ints:
        """The clients that chance decides on."""
        return np.flatnonzero((self.parts > 0) & (self.parts < self.whole))

    @cached_property
    def sure(self) -> Ints:
        """The clients of every cohort."""
        return np.flatnonzero(self.parts == self.whole)

    @cached_property
    def value(self) -> Floats:
        chance = self.inclusion()
        return np.divide(self.target.floats, chance, out=np.zeros(self.n), where=chance > 0)

    def inclusion(self) -> Floats:
        return np.asarray(self.parts / self.whole, dtype=np.float64)

    def expected_counts(self) -> Floats:
        return self.inclusion()

    def count_variance(self) -> Floats:
        chance = self.inclusion()
        return chance * np.asarray((self.whole - self.parts) / self.whole, dtype=np.float64)

    def participation(self) -> Participation:
        """One other gives way where the law swaps; else nothing is known of who does."""
        chance, how = self.inclusion(), "a cohort of fixed size"
        if self.swaps:
            others = largest_of_others(self.value, np.where(chance < 1, chance, 0.0))
            others = np.where(chance < 1, others, 0.0)
            return Participation.once(chance, self.value, others, f"{how}, by swaps")
        others = np.where(chance < 1, np.inf, 0.0)
        how += " whose members hang together: priced as if it were known who took part"
        return Participation.once(chance, self.value, others, how)

    def distinct(self) -> Distinct:
        return Distinct(float(self.size), 0.0)

    def weight_sum_variance(self) -> float:
        values = self.value[self.open]
        if len(values) == 0 or float(np.ptp(values)) <= EQUAL * float(values.max()):
            return 0.0  # as many of equal weight, whoever they are
        return super().weight_sum_variance()

    def cohort(self, chosen: Ints) -> Cohort:
        """The cohort of these clients, in any order."""
        clients = np.sort(chosen)
        return Cohort(clients, self.value[clients], np.ones(len(clients), dtype=np.int64))

    def drawn_with(self, parts: Ints, whole: int, rng: Rng) -> Ints:
        """Clients drawn as this design draws, with other chances."""
        return replace(self, parts=parts, whole=whole).draw(rng).clients

    def outcomes(self) -> Iterator[tuple[Fraction, Ints]]:
        """Every cohort with its probability, each perhaps in parts: every path through `draw`."""
        if 2 ** len(self.open) > OUTCOME_LIMIT:  # it would take as many paths, at least
            raise TooLarge(f"Of {len(self.open)} clients too many cohorts can be drawn to list.")
        for chance, cohort in every_path(self.draw, OUTCOME_LIMIT):
            yield chance, cohort.clients

    def enumerate(self) -> Iterator[tuple[Fraction, Cohort]]:
        law: dict[tuple[int, ...], Fraction] = {}
        for chance, clients in self.outcomes():
            key = tuple(clients.tolist())
            law[key] = law.get(key, Fraction(0)) + chance
        value = [
            self.target.fraction(i) * self.whole / int(part) if part else Fraction(0)
            for i, part in enumerate(self.parts.tolist())
        ]
        counts = ((chance, tuple((i, 1) for i in chosen)) for chosen, chance in law.items())
        return exact_outcomes(counts, value)
