"""Power-of-Choice: of d candidates, the m with the highest loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import (
    LOSS,
    Ask,
    Cohort,
    Conversation,
    Federation,
    NoState,
    OneOf,
    RoundContext,
    Signal,
)
from fedcohort.core.losses import comparable
from fedcohort.schemes._power_of_choice import PowerOfChoice


@dataclass(frozen=True)
class PowD(PowerOfChoice[NoState]):
    """d candidates are drawn with probability p, tell their loss, and the m highest train.

    Biased on purpose: clients on which the model is bad are trained more, which is faster at
    first and ends elsewhere (`fedcohort.theory.skew`). The larger d, the more of both; d = m is
    sampling without replacement with probability p.

    Parameters
    ----------
    m
        How many clients train; each weighs 1/m.
    d
        How many candidates are asked, m <= d <= n; None: 2 m, or all. They download the model
        to answer.
    candidates
        ``"importance"``: drawn one after another with probability p; ``"uniform"``, as in some
        published implementations, which ask clients of one sample as often as any other.
    negative
        Whether a loss may be below 0; if not, such a report is rejected.
    loss
        ``"mean"``: clients are compared by the mean loss of their samples; ``"sum"``: by the sum,
        which favors large clients, as in early copies of FedLab 1.3.0.

    Where we differ: ties are broken at random, as the paper says (its code takes whoever was
    drawn first). A loss that is missing (None) counts as the median of the others; a candidate
    whose loss is no finite number comes after all others. For a client that was chosen and does
    not answer the next candidate trains, as if the first had not been one.

    >>> from fedcohort import Federation, Selector, scheme
    >>> losses = [0.4, 0.9, 0.1, 0.7]
    >>> selector = Selector(scheme("pow-d", m=2, d=4), Federation.from_sizes([1] * 4), seed=0)
    >>> selector.select(ask=lambda ask: [losses[i] for i in ask.clients]).clients
    array([1, 3])
    """

    loss: Annotated[str, OneOf(("mean", "sum"))] = "mean"

    name: ClassVar[str] = "pow-d"
    asks: ClassVar[frozenset[Signal]] = frozenset({LOSS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        candidates = self.drawn(federation, rng)
        answers = yield Ask(LOSS, candidates)
        losses = comparable(answers, self.name, self.negative)
        if self.loss == "sum":
            losses = losses * federation.importance[candidates]
        return self.best(candidates, losses, rng)
