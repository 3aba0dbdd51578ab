"""Multinomial (MD) sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import Citation, Claim, Federation, NoState, Scheme, Whole
from fedcohort.designs import Rows


@dataclass(frozen=True)
class MD(Scheme[NoState]):
    """m independent draws with probability p_i, with replacement, each of weight 1/m.

    Var(omega_i) = p_i (1 - p_i) / m, alpha = 1/m, weights always sum to 1. A client drawn c
    times trains once and weighs c/m (the authors' first code base trains it c times).

    Parameters
    ----------
    m
        Number of draws; a cohort may have fewer distinct clients.

    >>> from fedcohort import Federation, Selector, scheme
    >>> cohort = Selector(scheme("md", m=4), Federation.from_sizes([6, 3, 1]), seed=0).select()
    >>> float(cohort.weights.sum()), int(cohort.draws.sum())
    (1.0, 4)
    """

    m: Annotated[int, Whole(1)] = 10

    name: ClassVar[str] = "md"
    paper: ClassVar[Citation] = Citation(
        "Tian Li, Anit Kumar Sahu, Manzil Zaheer, Maziar Sanjabi, Ameet Talwalkar, Virginia Smith",
        "Federated Optimization in Heterogeneous Networks",
        "MLSys",
        2020,
        "named MD sampling in Fraboni et al. (ICML 2021), Section 3",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )

    def law(self, federation: Federation) -> Rows:
        return Rows.alike(federation.shares, self.m)
