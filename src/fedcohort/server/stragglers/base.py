"""What rules for stragglers share."""

from __future__ import annotations

import math
from abc import ABC
from typing import ClassVar, NamedTuple

import numpy as np

from fedcohort.core.parameters import Checked
from fedcohort.core.scheme import Claim
from fedcohort.core.types import Bools, Floats
from fedcohort.server.dropouts import DropOutRule, Hajek


class Closed(NamedTuple):
    """A round that waits no longer."""

    counts: Bools  # (k,) whose answers were in time
    seconds: float  # after which it ended


class StragglerRule(Checked, ABC):
    """When a round stops waiting: after enough answers, or at a deadline."""

    name: ClassVar[str]
    withdraws: ClassVar[frozenset[Claim]] = frozenset(Claim) - {Claim.SUMS_TO_ONE}
    """Claims of schemes that no longer hold: who counts depends on who is fast."""
    competing: ClassVar[bool] = False
    """Whether a client that is fast takes the place of another."""

    @property
    def drop_outs(self) -> DropOutRule:
        """What corrects weights for late replies, unless another rule is given.

        Where clients compete the number of replies is fixed, so one that is late makes room for
        another: then scaling to the number of draws is less biased than the difference estimator,
        which takes replies for independent.
        """
        return Hajek(scale="draws" if self.competing else "difference")

    def enough(self, invited: int) -> int:
        """How many answers end a round to which so many were invited."""
        return invited

    @property
    def deadline(self) -> float:
        """Seconds after which it ends in any case."""
        return math.inf

    def close(self, arrivals: Floats, gone: Floats, invited: int) -> Closed:
        """Who counts of those whose answers come after ``arrivals`` (k,) seconds.

        ``gone`` are the times at which others are known to answer no more: nobody waits for them
        any longer. Of answers that come at once those of the first clients count.
        """
        order, enough = np.argsort(arrivals, kind="stable"), self.enough(invited)
        counts = np.zeros(len(arrivals), dtype=bool)
        counts[order[:enough]] = True
        if enough <= len(arrivals):
            last = float(arrivals[order[enough - 1]]) if enough else 0.0
        else:
            last = float(np.concatenate([[0.0], arrivals, gone]).max())
        ended = min(last, self.deadline)
        return Closed(counts & (arrivals <= ended), ended)
