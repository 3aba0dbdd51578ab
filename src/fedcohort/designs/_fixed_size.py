"""Bases of designs with a fixed number of distinct clients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._draws import Rng
from fedcohort.maths._enumeration import every_path
from fedcohort.maths._inclusion import largest_of_others
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import (
    OUTCOME_LIMIT,
    Design,
    Distinct,
    Participation,
    exact_outcomes,
)
from fedcohort.selection._federation import Shares, capped, exact_sum

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


# Second moments of designs that have no formula for them.


ROUNDS = 100
"""Most steps towards the factors c of the approximation; about ten are taken."""


@dataclass(frozen=True, eq=False, repr=False)
class Approximated(FixedSize):
    """A design that can be drawn from, and whose joint law is known for few clients only.

    There the covariance is exact, by every path through `draw`. For more it is the approximation
    of Deville and Tillé (2005): of Poisson sampling with chances as here, given that the columns
    A of the design are balanced,

        Cov(c) ~ C - C A (A' C A)^-1 A' C,    C = diag(c_i),

    with c such that the diagonal is what it must be, pi_i (1 - pi_i) (their fourth variant). The
    variances of single weights are therefore exact. `second_moments` says which it is.
    """

    exact_paths: ClassVar[int] = 1_000
    """With more paths through a draw the law is not listed."""

    @property
    def exact_up_to(self) -> int:
        """How many undecided clients there may be for every path to be walked."""
        return 6

    @abstractmethod
    def balanced_columns(self) -> Floats:
        """(open, q) what the design balances, one row for each client that chance decides on."""

    @cached_property
    def _law(self) -> list[tuple[Fraction, Ints]] | None:
        if len(self.open) > self.exact_up_to:
            return None
        try:
            paths = every_path(self.draw, self.exact_paths)
            return [(chance, cohort.clients) for chance, cohort in paths]
        except TooLarge:
            return None

    def outcomes(self) -> list[tuple[Fraction, Ints]]:  # type: ignore[override]
        if self._law is None:
            raise TooLarge(f"Of {len(self.open)} clients too many cohorts can be drawn to list.")
        return self._law

    @property
    def second_moments(self) -> str:
        if self._law is not None:
            return "exact, by enumeration"
        return "approximate (Deville and Tillé 2005)"

    def count_covariance_times(self, x: Floats) -> Floats:
        out = np.zeros_like(x, dtype=np.float64)
        inside = x[self.open].astype(np.float64)
        if self._law is not None:
            out[self.open] = self._enumerated @ inside
        elif len(self.open):
            factors, columns, inverse = self._approximation
            scaled = (inside.T * factors).T
            fitted = columns @ (inverse @ (columns.T @ scaled))
            out[self.open] = scaled - (fitted.T * factors).T
        return out

    @cached_property
    def _enumerated(self) -> Floats:
        """(open, open) covariance of who is drawn."""
        joint = np.full((self.n, self.n), Fraction(0), dtype=object)
        for chance, clients in self._law or ():
            joint[np.ix_(clients, clients)] += chance
        once = np.array([Fraction(int(part), self.whole) for part in self.parts], dtype=object)
        exact = joint - np.outer(once, once)
        return exact[np.ix_(self.open, self.open)].astype(np.float64)

    @cached_property
    def _approximation(self) -> tuple[Floats, Floats, Floats]:
        """C (open,), A (open, q) and (A' C A)^-1 (q, q)."""
        wanted, columns = self.count_variance()[self.open], self.balanced_columns()
        factors = wanted * len(wanted) / max(1, len(wanted) - columns.shape[1])
        for _ in range(ROUNDS):
            inverse = np.linalg.pinv((columns.T * factors) @ columns, hermitian=True)
            taken = factors**2 * np.einsum("iq,qr,ir->i", columns, inverse, columns)
            if np.allclose(factors - taken, wanted, rtol=1e-10, atol=0):
                break
            factors = wanted + np.minimum(taken, 0.999 * factors)
        return factors, columns, inverse


def decided(design: FixedSize, inside: Ints) -> Cohort:
    """The cohort of the sure clients and of these positions in ``design.open``."""
    return design.cohort(np.concatenate([design.sure, design.open[inside]]))
