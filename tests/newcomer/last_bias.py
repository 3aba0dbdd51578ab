"""The clients whose last layer is most in doubt: a signal that looks at named layers."""

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


def last_bias(client: Client) -> Any:
    """(classes,) how training moves the biases of the last layer."""
    return list(client.layers().values())[-1]


LAST_BIAS = Signal(
    "last_bias",
    "the last biases of the model update, hence roughly which classes there are",
    last_bias,
    needs_model=True,
    needs={"layers"},
    shape=("classes",),
    secrecy="update",
)


@dataclass(frozen=True)
class LastBias(Scheme[NoState]):
    """The m clients whose last biases move most.

    Parameters
    ----------
    m
        How many clients.
    """

    m: Annotated[int, Whole(1)] = 2

    name: ClassVar[str] = "last-bias"
    paper: ClassVar[Citation] = Citation("A student", "A thesis", "A university", 2026)
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EXACTLY_M})
    asks: ClassVar[frozenset[Signal]] = frozenset({LAST_BIAS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        m, there = cohort_size(self.m, federation, self.name), federation.present
        biases = usable((yield Ask(LAST_BIAS, there)))
        return Cohort.equal(there[top(rng, np.linalg.norm(biases, axis=1), m)])
