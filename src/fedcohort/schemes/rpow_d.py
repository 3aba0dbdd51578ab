"""Power-of-Choice by the loss that came with the last update: nobody is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core import LOSS, Cohort, Federation, Maybe, Replies, RoundContext, Signal, Whole
from fedcohort.core.errors import BadInput
from fedcohort.core.losses import sound
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Floats, Ints
from fedcohort.schemes._power_of_choice import PowerOfChoice


@dataclass(frozen=True)
class LastLosses:
    """The loss that each client told when it last trained."""

    losses: Annotated[Floats, Shaped("n", finite=False)]  # +inf where none is known
    rounds: Annotated[Ints, Shaped("n", low=-1)]  # when it was told; -1 for never
    round: int  # the coming round

    def check_coherent(self) -> None:
        """Refuse a round that no run comes to, of a file that somebody else wrote."""
        if not 0 <= self.round < 2**62:
            raise BadInput("'round' is outside its range")


@dataclass(frozen=True)
class RPowD(PowerOfChoice[LastLosses]):
    """As `pow-d`, with the loss that a client told when it last trained: nobody is asked.

    A client that never trained counts as infinitely bad, so every candidate has its turn first.

    Parameters
    ----------
    m, d, candidates, negative
        As for `pow-d`.
    stale
        After so many rounds a loss is forgotten, as if the client had never trained; None keeps
        it for ever, as in the paper.

    Where we differ: the paper's clients report the mean loss over their local steps; here it is
    the loss of the model they received, which comes with the update in the same way.

    >>> from fedcohort import Federation, Selector, scheme
    >>> selector = Selector(scheme("rpow-d", m=2, d=3), Federation.from_sizes([1] * 3), seed=0)
    >>> len(selector.select())  # without an `ask`
    2
    """

    stale: Annotated[int | None, Maybe(Whole(1))] = None

    name: ClassVar[str] = "rpow-d"
    listens: ClassVar[frozenset[Signal]] = frozenset({LOSS})
    State: ClassVar[type] = LastLosses

    def start(self, federation: Federation, rng: Any) -> LastLosses:
        n = len(federation)
        return LastLosses(np.full(n, np.inf), np.full(n, -1, dtype=np.int64), 0)

    def select(
        self, state: LastLosses, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        candidates = self.drawn(federation, rng)
        losses = state.losses[candidates]
        if self.stale is not None:
            losses[context.round - state.rounds[candidates] > self.stale] = np.inf
        return self.best(candidates, losses, rng)

    def observe(
        self, state: LastLosses, federation: Federation, cohort: Cohort, replies: Replies
    ) -> LastLosses:
        told = sound(replies.signals[LOSS.name], self.name, self.negative)
        good = np.isfinite(told)
        losses, rounds = state.losses.copy(), state.rounds.copy()
        losses[replies.clients[good]] = told[good]
        rounds[replies.clients[good]] = state.round
        return LastLosses(losses, rounds, state.round + 1)

    def adapt(
        self, state: LastLosses, federation: Federation, came_from: Ints, rng: Any
    ) -> LastLosses:
        known = came_from >= 0
        return replace(
            state,
            losses=np.where(known, state.losses[came_from], np.inf),
            rounds=np.where(known, state.rounds[came_from], -1),
        )
