"""Best-loss for a while, then data-loss."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from fedcohort.core import Citation, Cohort, Conversation, Federation, RoundContext, Whole
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, LossStrategy


@dataclass(frozen=True)
class BestLossX(LossStrategy):
    """`best-loss` for the first x rounds, then `data-loss`, which asks far less.

    Parameters as for `average-loss-x`, and

    version
        ``"printed"`` is Algorithm 10 to the letter, which is `data-loss` in every round.

    Where we differ: Algorithm 10 is misprinted, with data-loss in both branches; the prose, and
    Table 4.2, say best-loss first.

    >>> from fedcohort import scheme
    >>> scheme("best-loss-x", m=3, d=6, x=10).x
    10
    """

    x: Annotated[int, Whole(0)] = 25

    name: ClassVar[str] = "best-loss-x"
    paper: ClassVar[Citation] = replace(
        GIUNTA, where="Section 3.3.2, item 5 (Algorithm 10 is misprinted)"
    )

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        begins = context.round < self.x and not self.printed
        return (self.best_loss if begins else self.data_loss)(state, federation, rng)
