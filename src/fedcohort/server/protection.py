"""Where the guards of a run act: one function for each point of a round.

Without guards every one of them gives back what it was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import RoundContext
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.server.carrier import Block
from fedcohort.server.guards import Outcome
from fedcohort.server.state import Selection, Setup, State


def question(setup: Setup, state: State, ask: Ask) -> Ask:
    """What clients are asked."""
    for guard, known in zip(setup.guards, state.guards, strict=True):
        ask = guard.question(known, ask)
    return ask


def answer(setup: Setup, ask: Ask, rows: Array) -> Array:
    """What the scheme hears; an answer of a wrong shape is left to be refused."""
    if rows.ndim and len(rows) == len(ask.clients):
        for guard in setup.guards:
            rows = guard.answer(ask, rows)
    return rows


def without_barred(setup: Setup, state: State, context: RoundContext) -> RoundContext:
    """The round without the clients that must sit it out."""
    for guard, known in zip(setup.guards, state.guards, strict=True):
        here = state.federation.among(context.available)
        barred = guard.barred(known, here, setup.m)
        if barred is not None and barred[here.present].any():
            context = replace(context, available=here.present[~barred[here.present]])
    return context


def chosen(setup: Setup, state: State, cohort: Cohort, federation: Federation) -> Cohort:
    """The cohort of a scheme that has no law."""
    for guard in setup.guards:
        rng = stream(setup.seed, f"guard {guard.name}", state.round)
        cohort = guard.chosen(cohort, federation, rng)
    return cohort


def moved(setup: Setup, state: State, came_from: Ints) -> tuple[Any, ...]:
    """What guards remember after clients came or left."""
    return tuple(
        guard.moved(known, came_from)
        for guard, known in zip(setup.guards, state.guards, strict=True)
    )


def after(
    setup: Setup,
    state: State,
    selection: Selection,
    cohort: Cohort,
    lengths: tuple[Floats | None, Floats | None] = (None, None),
) -> tuple[Any, ...]:
    """What guards remember after a round that counted."""
    if not setup.guards:
        return ()
    outcome = Outcome(
        state.federation,
        selection.cohort,
        selection.law,
        cohort,
        tuple((heard.ask, heard.rows) for heard in selection.heard),
        *lengths,
    )
    return tuple(
        guard.after(known, outcome) for guard, known in zip(setup.guards, state.guards, strict=True)
    )


@dataclass
class Shortening:
    """Updates as they are folded, block by block, and how long they were."""

    setup: Setup
    state: State
    came: list[Array] = field(default_factory=list)  # (b,) each
    folded: list[Array] = field(default_factory=list)

    def of(self, block: Block) -> Block:
        """The block with updates of the lengths that the guards allow."""
        if not any(guard.measures for guard in self.setup.guards):
            return block
        lengths = np.linalg.norm(block.updates.astype(np.float64, copy=False), axis=1)
        self.came.append(lengths)
        updates = block.updates
        for guard, known in zip(self.setup.guards, self.state.guards, strict=True):
            factors = guard.factors(known, lengths)
            if factors is not None:
                updates = updates * factors[:, None].astype(updates.dtype)
                lengths = lengths * factors
        self.folded.append(lengths)
        return block if updates is block.updates else replace(block, updates=updates)
