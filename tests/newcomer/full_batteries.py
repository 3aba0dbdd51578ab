"""The clients with the fullest batteries: a signal that looks at a fact of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from fedcohort.maths import top
from fedcohort.selection import (
    Ask,
    Citation,
    Claim,
    Cohort,
    Conversation,
    Federation,
    NoState,
    RoundContext,
    Scheme,
    Signal,
    Whole,
    cohort_size,
)
from fedcohort.selection._queries import usable

BATTERY = Signal(
    "battery",
    "how full the battery is",
    lambda client: client.battery,
    needs={"battery"},
    shape=(),
    lowest=0,
    highest=1,
    example=lambda rng, sizes: rng.beta(2, 1),
)


@dataclass(frozen=True)
class FullBatteries(Scheme[NoState]):
    """The m clients with the fullest batteries.

    Parameters
    ----------
    m
        How many clients.
    """

    m: Annotated[int, Whole(1)] = 2

    name: ClassVar[str] = "full-batteries"
    paper: ClassVar[Citation] = Citation("A student", "A thesis", "A university", 2026)
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EXACTLY_M})
    asks: ClassVar[frozenset[Signal]] = frozenset({BATTERY})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        m, there = cohort_size(self.m, federation, self.name), federation.present
        levels = usable((yield Ask(BATTERY, there)))
        return Cohort.equal(there[top(rng, levels, m)])
