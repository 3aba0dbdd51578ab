"""FedAvg as published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.core import Citation, Claim, Federation, NoState, Scheme, Whole, cohort_size
from fedcohort.designs import Simple


@dataclass(frozen=True)
class FedAvg(Scheme[NoState]):
    """m clients uniformly without replacement; absent clients keep the global model.

    Averaging the models of *all* clients, of which only m moved, is the step
    ``theta += sum_{i in S} p_i delta_i``: weights p_i that sum to less than 1. The expected
    weight is (m/n) p_i, so the step is biased towards staying where one is; `uniform` is the
    same choice with the weights that mend this.

    Parameters
    ----------
    m
        How many clients; ``"all"`` for every one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> cohort = Selector(scheme("fedavg", m=2), Federation.from_sizes([1] * 4), seed=0).select()
    >>> float(cohort.weights.sum())
    0.5
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10

    name: ClassVar[str] = "fedavg"
    paper: ClassVar[Citation] = Citation(
        "McMahan, Moore, Ramage, Hampson, Agüera y Arcas",
        "Communication-Efficient Learning of Deep Networks from Decentralized Data",
        "AISTATS",
        2017,
        "Algorithm 1",
    )
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EXACTLY_M})

    def law(self, federation: Federation) -> Simple:
        m = cohort_size(self.m, federation, self.name)
        return Simple(federation.shares, m, compensated=False)
