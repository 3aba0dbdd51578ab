"""Uniform sampling without replacement, unbiased."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import Citation, Claim, Federation, NoState, Scheme, Whole, cohort_size
from fedcohort.designs import Simple


@dataclass(frozen=True)
class Uniform(Scheme[NoState]):
    """m of n clients, all equally likely, with weight (n/m) p_i.

    Var(omega_i) = (n/m - 1) p_i^2, alpha = (n - m) / (m (n - 1)), and the weights sum to 1
    only on average. Better than `md` exactly when sum p^2 <= 1 / (n - m + 1): nearly equal
    sizes.

    Clients without data are not counted in n.

    Parameters
    ----------
    m
        How many clients; ``"all"`` for every one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> len(Selector(scheme("uniform", m=3), Federation.from_sizes([5] * 9), seed=0).select())
    3
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    name: ClassVar[str] = "uniform"
    paper: ClassVar[Citation] = Citation(
        "Yann Fraboni, Richard Vidal, Laetitia Kameni, Marco Lorenzi",
        "A General Theory for Client Sampling in Federated Learning",
        "FL-IJCAI workshop",
        2022,
        "Section 3.2, Table 1",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EXACTLY_M})

    def law(self, federation: Federation) -> Simple:
        return Simple(federation.shares, cohort_size(self.m, federation, self.name))
