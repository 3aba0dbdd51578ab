"""Full participation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.core import Citation, Claim, Federation, NoState, Scheme
from fedcohort.designs import Everyone


@dataclass(frozen=True)
class Full(Scheme[NoState]):
    """Every client, every round, with weight p_i: the average that all others estimate.

    >>> from fedcohort import Federation, Selector, scheme
    >>> Selector(scheme("full"), Federation.from_sizes([3, 1]), seed=0).select().weights
    array([0.75, 0.25])
    """

    name: ClassVar[str] = "full"
    paper: ClassVar[Citation] = Citation(
        "H. Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera~y~Arcas",
        "Communication-Efficient Learning of Deep Networks from Decentralized Data",
        "AISTATS",
        2017,
        "Algorithm 1 with C = 1",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset(
        {Claim.UNBIASED, Claim.SUMS_TO_ONE, Claim.NO_WORSE_THAN_MD}
    )

    def law(self, federation: Federation) -> Everyone:
        return Everyone(federation.shares)
