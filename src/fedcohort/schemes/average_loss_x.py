"""Average-loss for a while, then data-loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from fedcohort.core import Citation, Cohort, Conversation, Federation, RoundContext, Whole
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, LossStrategy


@dataclass(frozen=True)
class AverageLossX(LossStrategy):
    """`average-loss` for the first x rounds, then `data-loss`, which asks far less.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 9 to the letter, as for `average-loss` and `data-loss`.
    x
        How many rounds; 25 in the thesis.

    >>> from fedcohort import scheme
    >>> scheme("average-loss-x", m=3, d=6).x
    25
    """

    x: Annotated[int, Whole(0)] = 25

    name: ClassVar[str] = "average-loss-x"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 9")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        begins = context.round < self.x
        return (self.average_loss if begins else self.data_loss)(state, federation, rng)
