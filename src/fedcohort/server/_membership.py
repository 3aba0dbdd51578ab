"""Rounds at the edges of a run: their context, a new federation, a selection that was stored."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation, checked_positions
from fedcohort.selection._scheme import RoundContext, checked_latency
from fedcohort.server import _records
from fedcohort.server._ledger import TRAINING, Ledger
from fedcohort.server._round import Queries, query_clients, select_cohort
from fedcohort.server._state import Selection, Setup, State

TINY = float(np.finfo(np.float64).tiny)


def round_context(
    state: State, available: ArrayLike | None = None, latency: ArrayLike | None = None
) -> RoundContext:
    """Return the context of the coming round; latencies are the measured ones unless given."""
    n = len(state.federation)
    positions = None if available is None else checked_positions(available, n, "available")
    seconds = state.latencies.get(TRAINING) if latency is None else latency
    checked = None if seconds is None else checked_latency(seconds, n)
    return RoundContext(state.round, positions, checked)


def diagnostics(setup: Setup, state: State, law: Design | None) -> dict[str, Array]:
    """Return what a report can draw: arrays of the scheme's state and of the last design."""
    strata = {} if law is None else law.picture()
    return strata if state.scheme is None else {**strata, **setup.scheme.picture(state.scheme)}


def replay_selection(setup: Setup, state: State, selection: Selection) -> Selection:
    """Return a stored selection with its design, derived again from the stored replies.

    If another version of the scheme selects other clients now, the stored cohort counts and has
    no design.
    """
    replies = iter(selection.heard)
    try:
        conversation = select_cohort(setup, state, selection.context, Ledger())
        ask = next(conversation)
        while True:
            stored = next(replies, None)
            if stored is None or stored.ask.signal != ask.signal:
                return selection
            ask = conversation.send(stored.rows)
    except StopIteration as end:
        again: Selection = end.value[1]
    except BadInput:
        return selection
    if selection.drawn is None:
        return again if again.cohort == selection.cohort else selection
    return replace(selection, law=again.law) if again.cohort == selection.drawn else selection


def admit_clients(
    setup: Setup, state: State, federation: Federation, ledger: Ledger
) -> Queries[State]:
    """Continue with a federation in which clients came, left or changed size; ids identify them."""
    federation = setup.admitted(federation)
    old = {name: i for i, name in enumerate(state.federation.ids)}
    came_from = np.array([old.get(name, -1) for name in federation.ids], dtype=np.int64)
    vectors = _rescaled(setup, state, federation, came_from)
    scheme_state = state.scheme
    if scheme_state is not None:
        rng = stream(setup.seed, "adapt", state.round)
        scheme_state = setup.scheme.adapt(scheme_state, federation, came_from, rng)
        if isinstance(scheme_state, Generator):
            scheme_state = yield from query_clients(setup, state, scheme_state, ledger, [])
    latest = None if scheme_state is None else setup.scheme.latest(scheme_state)
    pairs = zip(setup.guards, state.guards, strict=True)
    return replace(
        state,
        federation=federation,
        scheme=scheme_state,
        attendance=state.attendance.moved(came_from),
        aggregator=setup.aggregator.moved(
            state.aggregator, federation.importance, came_from, latest
        ),
        algorithm=vectors,
        counted=np.where(came_from < 0, -1, state.counted[came_from]),
        guards=tuple(guard.moved(memory, came_from) for guard, memory in pairs),
        latencies=_records.moved(state.latencies, came_from),
    )


def _rescaled(
    setup: Setup, state: State, federation: Federation, came_from: Ints
) -> Mapping[str, Floats]:
    """Scale the server's running sums to new importances, which must keep their ratios."""
    tallies = setup.algorithm.tallies
    entered = state.counted >= 0  # the others are no part of a sum yet
    if not tallies or not entered.any():
        return state.algorithm
    after = np.zeros(len(state.federation))
    after[came_from[came_from >= 0]] = federation.importance[came_from >= 0]
    before = state.federation.importance
    factor = after[entered].sum() / max(before[entered].sum(), TINY)
    if not np.allclose(after[entered], factor * before[entered], rtol=1e-9, atol=0.0):
        raise BadInput(
            f"The local algorithm '{setup.algorithm.name}' keeps sums by importance, which clients "
            "that leave or change their size would make wrong; start another run with them."
        )
    scaled = {name: factor * state.algorithm[name] for name in tallies}
    return {**state.algorithm, **scaled}
