"""What the variants of Power-of-Choice share: candidates, and the best of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from fedcohort.core import (
    Citation,
    Claim,
    Cohort,
    Federation,
    Flag,
    Maybe,
    OneOf,
    Scheme,
    Whole,
    candidate_number,
    cohort_size,
)
from fedcohort.core.errors import BadParameter
from fedcohort.core.losses import LARGEST
from fedcohort.core.types import Floats, Ints
from fedcohort.maths._draws import distinct, top, weighted_without_replacement

S = TypeVar("S")

CHO = Citation(
    "Yae Jee Cho, Jianyu Wang, Gauri Joshi",
    "Towards Understanding Biased Client Selection in Federated Learning",
    "AISTATS",
    2022,
    "Section 4, Algorithm 1; arXiv:2010.01243",
)


@dataclass(frozen=True)
class PowerOfChoice(Scheme[S]):
    """d candidates; the m with the highest loss train, then the next."""

    m: Annotated[int, Whole(1)] = 10
    d: Annotated[int | None, Maybe(Whole(1))] = None
    candidates: Annotated[str, OneOf(("importance", "uniform"))] = "importance"
    negative: Annotated[bool, Flag()] = True

    paper: ClassVar[Citation] = CHO
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.SUMS_TO_ONE, Claim.EXACTLY_M})

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.d is not None and self.d < self.m:
            raise BadParameter("d", self.name, f"at least m ({self.m})", self.d)

    def drawn(self, federation: Federation, rng: Any) -> Ints:
        """The candidates: d distinct clients, with probability p or uniformly."""
        cohort_size(self.m, federation, self.name)  # more than could ever be chosen is an error
        d = candidate_number(self.d, self.m, federation, self.name)
        if self.candidates == "importance":
            return weighted_without_replacement(rng, federation.shares.weights, d)
        return federation.present[distinct(rng, len(federation.present), d)]

    def best(self, candidates: Ints, losses: Floats, rng: Any) -> Cohort:
        """The m candidates with the highest loss, ties at random, 1/m each; then the next.

        Those whose report was rejected (NaN) come last: there are m wherever there can be.
        """
        values = np.where(np.isnan(losses), -LARGEST, losses)
        chosen = Cohort.equal(candidates[top(rng, values, self.m)])
        return chosen.backed_by(candidates, values)
