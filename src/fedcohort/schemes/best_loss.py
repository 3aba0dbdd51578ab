"""The groups of similar data with the highest loss, the worst client of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fedcohort.core import Citation, Cohort, Conversation, Federation, RoundContext
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, LossStrategy


@dataclass(frozen=True)
class BestLoss(LossStrategy):
    """The groups with the highest mean loss; the worst client of each list trains.

    Parameters as for `static-uniform`, and

    loss
        As for `data-loss`.
    version
        ``"printed"`` is Algorithm 8 to the letter: a client outside can fill several lists and
        win all of them.

    Every client is asked for its loss in every round. The best of the z best is the best of all,
    so d matters through the fill rule alone: a group of fewer than z clients competes with the
    worst clients outside.

    >>> import numpy as np
    >>> from fedcohort import Federation, Selector, scheme
    >>> told = {"label_histogram": np.array([[9, 1], [8, 2], [1, 9], [2, 8]]),
    ...         "loss": np.array([0.1, 0.9, 0.8, 0.7])}
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("best-loss", m=1, d=2, clusters="dbscan"), federation, seed=0)
    >>> selector.select(ask=lambda ask: told[ask.signal.name][ask.clients]).clients
    array([2])
    """

    name: ClassVar[str] = "best-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 8")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        return self.best_loss(state, federation, rng)
