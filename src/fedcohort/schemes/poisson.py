"""Poisson-binomial sampling."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core import Citation, Claim, Federation, Flag, NoState, Scheme, Whole
from fedcohort.core.errors import BadParameter
from fedcohort.core.shares import capped, exact_multiple
from fedcohort.designs import Bernoulli


@dataclass(frozen=True)
class Poisson(Scheme[NoState]):
    """Client i takes part with probability m p_i, independently, with weight 1/m.

    Var(omega_i) = p_i (1 - m p_i) / m, alpha = 0: less variance than MD for every client, but
    the weights sum to 1 only on average and a cohort may be empty. Needs m p_i <= 1.

    Parameters
    ----------
    m
        Expected number of clients.
    cap
        Where m p_i > 1, take that client always, with weight p_i, and share the rest of the
        budget among the others (again until all are at most 1): still unbiased, still m
        clients on average. Without it such a federation is an error.

    >>> from fedcohort import Federation, scheme
    >>> design = scheme("poisson", m=2, cap=True).law(Federation.from_sizes([8, 1, 1]))
    >>> design.inclusion(), design.mean()
    (array([1. , 0.5, 0.5]), array([0.8, 0.1, 0.1]))
    """

    m: Annotated[int, Whole(1)] = 10
    cap: Annotated[bool, Flag()] = False

    name: ClassVar[str] = "poisson"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "A General Theory for Client Sampling in Federated Learning",
        "FL-IJCAI workshop",
        2022,
        "Section 3.2, equation (47) with m <= 1/p_max",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED})

    def law(self, federation: Federation) -> Bernoulli:
        shares = federation.shares
        largest = int(shares.parts.max())
        if self.m * largest <= shares.whole:
            parts = exact_multiple(shares.parts, self.m, self.m * largest)
            return Bernoulli(shares, parts, shares.whole)
        if not self.cap:
            raise BadParameter(
                "m",
                self.name,
                f"at most {shares.whole // largest} here, as the largest client has a share of "
                f"{largest / shares.whole:.3g} and m * p_i is a probability",
                self.m,
                "Lower m, or say cap=True to take large clients always.",
            )
        parts, whole = capped(shares, self.m)
        if shares.rounded:  # what is left of the mass may be a power of two
            return Bernoulli.of_floats(shares, np.asarray(parts / whole, dtype=np.float64))
        return Bernoulli(shares, parts, whole)
