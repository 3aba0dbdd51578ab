"""Binomial sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core import Citation, Claim, Federation, NoState, Scheme, Whole, cohort_size
from fedcohort.designs import Bernoulli


@dataclass(frozen=True)
class Binomial(Scheme[NoState]):
    """Every client takes part with probability m/n, independently; weight (n/m) p_i.

    The number of clients is binomial with mean m; nobody at all is possible, and the round is
    then void. alpha = 0, Var(omega_i) = (n/m - 1) p_i^2.

    Parameters
    ----------
    m
        Expected number of clients; ``"all"`` for every one.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("binomial", m=2).law(Federation.from_sizes([5, 4, 3, 2, 1]))
    >>> design.distinct().mean
    2.0
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    name: ClassVar[str] = "binomial"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "A General Theory for Client Sampling in Federated Learning",
        "FL-IJCAI workshop",
        2022,
        "Section 3.2, Table 1",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Bernoulli:
        m = cohort_size(self.m, federation, self.name)
        shares = federation.shares
        return Bernoulli(shares, np.where(shares.parts > 0, m, 0), len(shares.support))
