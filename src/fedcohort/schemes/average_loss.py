"""Groups of similar data by mean loss, the worst candidate of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fedcohort.core import Citation, Cohort, Conversation, Federation, RoundContext
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, LossStrategy


@dataclass(frozen=True)
class AverageLoss(LossStrategy):
    """Groups by mean loss, candidates by loss, both at random; the worst of each list trains.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 7 to the letter: a client outside can fill several lists and
        win all of them.

    Every client is asked for its loss in every round.

    >>> from fedcohort import scheme
    >>> scheme("average-loss", m=3, d=6).paper.where
    'Algorithm 7'
    """

    name: ClassVar[str] = "average-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 7")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        return self.average_loss(state, federation, rng)
