"""The clients whose worst samples are worst: a signal that looks at single samples."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort.maths import top
from fedcohort.selection import (
    Ask,
    Citation,
    Claim,
    Client,
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


def tail(client: Client) -> Any:
    """(3,) how large the losses of the worst half, tenth and hundredth of the samples are."""
    losses = client.sample_losses()
    return np.quantile(losses, [0.5, 0.9, 0.99]) if len(losses) else np.zeros(3)


TAIL = Signal(
    "tail_losses",
    "how large the losses of the worst samples are",
    tail,
    needs_model=True,
    needs={"sample_losses"},
    shape=(3,),
    lowest=0,
)


@dataclass(frozen=True)
class TailLosses(Scheme[NoState]):
    """The m clients with the largest losses in the tail.

    Parameters
    ----------
    m
        How many clients.
    """

    m: Annotated[int, Whole(1)] = 2

    name: ClassVar[str] = "tail-losses"
    paper: ClassVar[Citation] = Citation("A student", "A thesis", "A university", 2026)
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EXACTLY_M})
    asks: ClassVar[frozenset[Signal]] = frozenset({TAIL})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        m, there = cohort_size(self.m, federation, self.name), federation.present
        tails = usable((yield Ask(TAIL, there)))
        return Cohort.equal(there[top(rng, tails[:, 1], m)])
