"""Power-of-Choice by the loss of one mini-batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.core import (
    Ask,
    Cohort,
    Conversation,
    Federation,
    NoState,
    RoundContext,
    Signal,
    Whole,
)
from fedcohort.core.losses import comparable
from fedcohort.schemes._power_of_choice import PowerOfChoice

BATCH_LOSS = Signal(
    "batch_loss",
    "the loss of the model on a few local samples",
    lambda client, batch: client.loss(batch),
    needs_model=True,
    needs={"loss"},
    shape=(),
)


@dataclass(frozen=True)
class CPowD(PowerOfChoice[NoState]):
    """As `pow-d`, with the loss of one mini-batch instead of all local data: less work to ask.

    Parameters
    ----------
    m, d, candidates, negative
        As for `pow-d`.
    batch
        How many samples a candidate looks at, drawn anew each time.

    >>> from fedcohort import Federation, Selector, scheme
    >>> federation = Federation.from_sizes([1] * 4)
    >>> selector = Selector(scheme("cpow-d", m=1, d=4, batch=8), federation, seed=0)
    >>> selector.select(ask=lambda ask: [ask.settings["batch"] * i for i in ask.clients]).clients
    array([3])
    """

    batch: Annotated[int, Whole(1)] = 64

    name: ClassVar[str] = "cpow-d"
    asks: ClassVar[frozenset[Signal]] = frozenset({BATCH_LOSS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        candidates = self.drawn(federation, rng)
        losses = yield Ask(BATCH_LOSS, candidates, {"batch": self.batch})
        return self.best(candidates, comparable(losses, self.name, self.negative), rng)
