"""No update is longer than so many times a typical one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.core.federation import Federation
from fedcohort.core.parameters import Maybe, Real
from fedcohort.core.scheme import Claim, Scheme
from fedcohort.core.shaped import Shaped
from fedcohort.core.types import Floats
from fedcohort.maths._inclusion import shortening
from fedcohort.server.guards.base import Guard, Outcome

WINDOW = 5
"""Of so many past rounds the typical length is taken."""


@dataclass(frozen=True, eq=False)
class Lengths:
    """How long updates were."""

    medians: Annotated[Floats, Shaped(WINDOW, finite=False)]
    """Of the last rounds, the newest last; NaN where there is none."""


@dataclass(frozen=True)
class Clip(Guard):
    """Updates that are too long are shortened to the longest that is believed.

    That is ``times`` the typical length: the median over the last rounds of the median over the
    clients of a round (of those that are not zero). The current round does not enter, so that
    whoever comes in numbers once cannot lift the cap for itself; in the first round there is
    nothing else, and the updates of its cohort are held until the last one came. Whatever a scheme
    observes of updates is shortened, too; what a local algorithm sends beside them is not.

    Parameters
    ----------
    times
        How many times the typical length; None for no such cap.
    length
        The longest update that is believed, whatever is typical; None for no such cap.
    """

    times: Annotated[float | None, Maybe(Real(0, open_low=True))] = 2.0
    length: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "clip"
    needs_rows: ClassVar[bool] = True
    measures: ClassVar[bool] = True
    withdraws: ClassVar[frozenset[Claim]] = frozenset({Claim.UNBIASED, Claim.EVEN_OVER_SAMPLES})

    def start(
        self, federation: Federation, scheme: Scheme[Any], rng: np.random.Generator
    ) -> Lengths:
        return Lengths(np.full(WINDOW, np.nan))

    def compares(self, state: Lengths) -> bool:
        return self.times is not None and not np.isfinite(state.medians).any()

    def factors(self, state: Lengths, lengths: Floats) -> Floats | None:
        longest = self.longest(state, lengths)
        return None if np.all(lengths <= longest) else shortening(lengths, longest)

    def longest(self, state: Lengths, lengths: Floats) -> float:
        """What an update is cut to; ``lengths`` are those of the round, for the first."""
        known = state.medians[np.isfinite(state.medians)]
        typical = float(np.median(known)) if len(known) else _median(lengths)
        longest = np.inf if self.times is None or np.isnan(typical) else self.times * typical
        return float(longest if self.length is None else min(longest, self.length))

    def after(self, state: Lengths, outcome: Outcome) -> Lengths:
        if outcome.lengths is None:
            return state
        median = _median(outcome.lengths)
        return state if np.isnan(median) else Lengths(np.append(state.medians[1:], median))


def _median(lengths: Floats) -> float:
    """Of those that are not zero; NaN where all are."""
    some = lengths[lengths > 0]
    return float(np.median(some)) if len(some) else float("nan")
