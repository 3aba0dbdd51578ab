"""FedAvg: as published, and as it is commonly run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import (
    Citation,
    Claim,
    Cohort,
    Design,
    Federation,
    NoState,
    OneOf,
    RoundContext,
    Scheme,
    Whole,
    cohort_size,
)
from fedcohort.core.depending import depending
from fedcohort.designs import Simple
from fedcohort.maths._draws import distinct


@dataclass(frozen=True)
class FedAvg(Scheme[NoState]):
    """m clients uniformly without replacement, weighed in one of three ways.

    ``"plain"``, as published: averaging the models of *all* clients, of which only m moved, is
    the step ``theta += sum_{i in S} p_i delta_i``: weights p_i that sum to less than 1. The
    expected weight is (m/n) p_i, so the step is biased towards staying where one is.

    ``"normalised"``, as most programs run it (Flower's FedAvg among them): the average over the
    chosen, ``n_i / sum_{j in S} n_j``. The weights sum to 1, but what a client counts for depends
    on who else was chosen, and a large one makes its own cohort heavy: large clients count for
    less than their share, small ones for more. Sizes 3, 2, 1 and m = 2 give the expected weights
    9/20, 16/45, 7/36 instead of 1/2, 1/3, 1/6. With equal sizes there is no bias.

    ``"equal"``, the average of the chosen, each counting 1/m whatever its size: FedAvg as Qi et
    al. run it beside FedSampling (IJCAI 2023). A client's expected weight is 1/n: what is learnt
    is the mean over clients, not over samples.

    `uniform` is the same choice with weights that are unbiased, `md` another choice with weights
    that are unbiased and sum to 1.

    Parameters
    ----------
    m
        How many clients; ``"all"`` for every one.
    weights
        ``"plain"``, ``"normalised"`` or ``"equal"``.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([6, 2, 2])
    >>> for weights in ("plain", "normalised", "equal"):
    ...     chooser = scheme("fedavg", m=2, weights=weights)
    ...     print(Selector(chooser, federation, seed=1).select().weights)
    [0.6 0.2]
    [0.75 0.25]
    [0.5 0.5]
    """

    m: Annotated[int | str, Whole(1, words=("all",))] = 10
    weights: Annotated[str, OneOf(("plain", "normalised", "equal"))] = "plain"

    name: ClassVar[str] = "fedavg"
    paper: ClassVar[Citation] = Citation(
        "H. Brendan McMahan, Eider Moore, Daniel Ramage, Seth Hampson, Blaise Agüera~y~Arcas",
        "Communication-Efficient Learning of Deep Networks from Decentralized Data",
        "AISTATS",
        2017,
        "Algorithm 1",
    )
    claims: ClassVar[frozenset[Claim]] = depending(
        frozenset({Claim.EXACTLY_M}),
        lambda scheme: (
            frozenset({Claim.EXACTLY_M})
            if scheme.weights == "plain"
            else frozenset({Claim.EXACTLY_M, Claim.SUMS_TO_ONE})
        ),
    )

    def law(self, federation: Federation) -> Simple | None:
        if self.weights != "plain":
            return None  # what a client weighs depends on the others, or not on its importance
        m = cohort_size(self.m, federation, self.name)
        return Simple(federation.shares, m, compensated=False)

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort | Design:
        law = self.design(state, federation, context)
        if law is not None:
            return law
        there = federation.present
        chosen = there[distinct(rng, len(there), cohort_size(self.m, federation, self.name))]
        if self.weights == "equal":
            return Cohort.equal(chosen)
        shares = federation.importance[chosen]
        return Cohort.of(chosen, shares / shares.sum())
