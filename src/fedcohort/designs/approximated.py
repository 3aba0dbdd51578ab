"""Second moments of designs that have no formula for them."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import TooLarge
from fedcohort.core.paths import every_path
from fedcohort.core.types import Floats, Ints
from fedcohort.designs.fixed_size import FixedSize

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
