"""Groups of similar data by mean size, the worst candidate of each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

from fedcohort.core import Citation, Cohort, Conversation, Federation, RoundContext
from fedcohort.schemes._groups import Groups
from fedcohort.schemes._label_clusters import GIUNTA, LossStrategy


@dataclass(frozen=True)
class DataLoss(LossStrategy):
    """Groups by mean size, candidates by size; the worst of each list trains.

    Parameters as for `static-uniform`, and

    loss
        ``"mean"``: clients are compared by the mean loss of their samples; ``"sum"``: by the sum.
    version
        ``"printed"`` is Algorithm 6 to the letter: candidates are drawn uniformly in a group, and
        a client outside can fill several lists and win all of them.

    Only the candidates are asked for their loss: about d.

    >>> import numpy as np
    >>> from fedcohort import Federation, Selector, scheme
    >>> told = {"label_histogram": np.array([[9, 1], [8, 2], [1, 9], [2, 8]]),
    ...         "loss": np.array([0.1, 0.9, 0.3, 0.2])}
    >>> federation = Federation.from_sizes([10] * 4)
    >>> selector = Selector(scheme("data-loss", m=2, d=4, clusters="dbscan"), federation, seed=0)
    >>> selector.select(ask=lambda ask: told[ask.signal.name][ask.clients]).clients
    array([1, 2])
    """

    name: ClassVar[str] = "data-loss"
    paper: ClassVar[Citation] = replace(GIUNTA, where="Algorithm 6")

    def select(
        self, state: Groups, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        return self.data_loss(state, federation, rng)
