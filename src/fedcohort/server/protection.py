"""Where the guards of a run act: one function for each point of a round.

Without guards every one of them gives back what it was given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import RoundContext
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.server.guards import Guard, Outcome
from fedcohort.server.state import Selection, Setup, State
from fedcohort.server.transport import UpdateBlock, UpdateSum


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
    """Updates as they are folded, block by block, and how long they were.

    Where a guard compares the clients of a round the updates of all are held until the last came.
    """

    setup: Setup
    state: State
    came: list[Array] = field(default_factory=list)  # (b,) each
    folded: list[Array] = field(default_factory=list)

    def of(
        self, answers: Iterable[UpdateBlock | UpdateSum]
    ) -> Iterator[tuple[UpdateBlock | UpdateSum, Floats | None]]:
        """Each block, with what the guards multiply its updates with; None: they stay."""
        guards = tuple(zip(self.setup.guards, self.state.guards, strict=True))
        if not any(guard.measures for guard, _ in guards):
            yield from ((block, None) for block in answers)
            return
        whole = any(guard.compares(known) for guard, known in guards)
        for blocks in [list(answers)] if whole else ([block] for block in answers):
            yield from zip(blocks, self._factors(guards, blocks), strict=True)

    def _factors(
        self, guards: Iterable[tuple[Guard, Any]], blocks: Sequence[UpdateBlock | UpdateSum]
    ) -> list[Floats | None]:
        """What to multiply the updates of each block with."""
        came = [_lengths(block) for block in blocks]
        lengths, total = np.concatenate([np.empty(0), *came]), None
        for guard, known in guards:
            factors = guard.factors(known, lengths)
            if factors is not None:
                lengths = lengths * factors
                total = factors if total is None else total * factors
        ends = np.cumsum([len(each) for each in came])[:-1]
        self.came += [each for each in came if len(each)]
        self.folded += [each for each in np.split(lengths, ends) if len(each)]
        return [None] * len(blocks) if total is None else [*np.split(total, ends)]


def _lengths(block: UpdateBlock | UpdateSum) -> Floats:
    """(b,) of its updates; nobody's is known of a sum."""
    if isinstance(block, UpdateSum):
        return np.empty(0)
    return np.asarray(np.linalg.norm(block.updates.astype(np.float64, copy=False), axis=1))


def scaled(block: UpdateBlock, factors: Floats | None) -> UpdateBlock:
    """The block with its updates multiplied."""
    if factors is None:
        return block
    return replace(block, updates=block.updates * factors[:, None].astype(block.updates.dtype))
