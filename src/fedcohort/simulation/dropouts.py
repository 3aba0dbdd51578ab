"""Chosen clients that do not answer, in a simulation."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from fedcohort._internal.parameters import Checked, Real
from fedcohort.server._dropouts import DropOutRule, Redraw
from fedcohort.simulation._availability import Availability


@dataclass(frozen=True)
class DropOuts(Checked):
    """Who of the chosen answers, and what the server does about the others.

    Availability in `fedcohort.simulate` is known before clients are chosen; this is not.

    Parameters
    ----------
    answering
        Which clients would answer in a round.
    rule
        What becomes of the weights; see `fedcohort.server._dropouts`.
    quorum
        Below this share of answered draws the round is void, and the model stays.

    >>> from fedcohort.simulation import Random
    >>> DropOuts(Random(0.7)).rule
    Redraw(scale='difference', attempts=2)
    """

    answering: Availability
    rule: DropOutRule = field(default_factory=Redraw)
    quorum: Annotated[float, Real(0, 1)] = 0.0

    def settings(self) -> dict[str, Any]:
        """In plain values, to be kept with the run."""
        who, rule = self.answering, self.rule
        own = asdict(rule)  # type: ignore[call-overload]
        return {
            "answering": {"name": who.name, **asdict(who)},  # type: ignore[call-overload]
            "rule": {"name": rule.name, "attempts": rule.attempts, **own},
            "quorum": self.quorum,
        }
