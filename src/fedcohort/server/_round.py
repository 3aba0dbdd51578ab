"""One round of federated learning: select a cohort, train it, aggregate its updates.

Three generators over what is constant in a run (`Setup`) and what a round changes (`State`)::

    select_cohort      queries of the scheme; returns a `Selection`: the cohort and its design
    train_cohort       invitations and replacements; returns the `Participants`
    aggregate_updates  updates, block by block; returns the next `State` and a `Record`

They yield requests and receive replies; a `Transport` does the input and output. Guards, payloads
of local algorithms, several models, noise and sample counts are stages that `Setup` has chosen
(`fedcohort.server._stages`); without them the loops over stages below are empty.

Two values are durable: the `Selection`, before any client is invited, and the `State` after the
step. Generators are never saved: a resumed round begins at `train_cohort`.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort._internal.types import Ints
from fedcohort.selection._cohort import Cohort, Replies, ascending
from fedcohort.selection._design import Design
from fedcohort.selection._queries import Ask, questions
from fedcohort.selection._scheme import RoundContext
from fedcohort.server import _dropouts as dropouts
from fedcohort.server._dropouts import Attendance
from fedcohort.server._ledger import Ledger
from fedcohort.server._records import Record
from fedcohort.server._stages import Blocks, RoundUpdate, UpdateStage
from fedcohort.server._state import Heard, Selection, Setup, State
from fedcohort.server._transport import (
    CollectUpdates,
    QueryReplies,
    Request,
    Responses,
    TrainRequest,
    Transport,
    UpdateSum,
    drive,
)

T = TypeVar("T")
Queries: TypeAlias = Generator[Ask, Any, T]
Traffic: TypeAlias = list[tuple[Ints, Responses]]  # the clients invited, and what came back

FLOAT_BYTES = 4
"""Models are sent as 32-bit floats."""


def run_round(
    setup: Setup,
    state: State,
    context: RoundContext,
    transport: Transport,
    ledger: Ledger,
    resume: Selection | None = None,
) -> tuple[State, Record]:
    """Run one round; ``resume`` is a selection that was stored before an interruption."""
    first_entry, selection = len(ledger.entries), resume
    if selection is None:
        select = select_cohort(setup, state, context, ledger)
        state, selection = drive(select, transport, None, f"This was round {state.round}.")
        transport.chosen(selection)
    rest = train_and_aggregate(setup, state, selection, ledger)
    state, record = drive(rest, transport)
    return state, replace(record, entries=ledger.since(first_entry))


def train_and_aggregate(
    setup: Setup, state: State, selection: Selection, ledger: Ledger
) -> Generator[Request, Any, tuple[State, Record]]:
    """Run the part of a round after the selection was stored."""
    participants = yield from train_cohort(setup, state, selection)
    return (yield from aggregate_updates(setup, state, participants, ledger))


# -- select ----------------------------------------------------------------------------------


def select_cohort(
    setup: Setup, state: State, context: RoundContext, ledger: Ledger
) -> Queries[tuple[State, Selection]]:
    """Let the scheme query clients; return the cohort, and the state with what it learned first."""
    federation = state.federation.among(context.available)
    if len(federation.present) == 0:
        return state, Selection(state.round, context, Cohort.empty())
    if state.scheme is None or setup.stages.asks_for_aggregator:
        state = yield from query_before_round(setup, state, ledger)
    for stage in setup.stages.selection:
        context = stage.restrict(state, context)
        federation = state.federation.among(context.available)

    rng = stream(setup.seed, "select", state.round)
    log: list[Heard] = []
    result = setup.scheme.select(state.scheme, federation, context, rng)
    if isinstance(result, Generator):
        result = yield from query_clients(setup, state, result, ledger, log)
    if isinstance(result, Design):
        selection = Selection(state.round, context, result.draw(rng), result, tuple(log))
        return state, selection

    if not isinstance(result, Cohort):
        raise BadInput(f"select() must end in a Cohort or a Design; got {type(result).__name__}.")
    for stage in setup.stages.selection:
        result = stage.amend(state, result, federation)
    return state, Selection(state.round, context, result, None, tuple(log))


def query_clients(
    setup: Setup,
    state: State,
    conversation: Any,
    ledger: Ledger,
    log: list[Heard],
    round: int | None = None,
) -> Queries[Any]:
    """Run a conversation of the scheme or the aggregator; book each query, and log its replies."""
    round = state.round if round is None else round
    checked = questions(conversation, setup.asks, setup.scheme.name)
    rows: Any = None
    try:
        while True:
            ask = checked.send(rows)
            for stage in setup.stages.selection:
                ask = stage.rewrite_query(state, ask)
            reply = yield ask
            if not isinstance(reply, QueryReplies):
                reply = QueryReplies(reply, ask.clients, -1)
            rows = np.asarray(reply.rows)
            if rows.ndim and len(rows) == len(ask.clients):  # else they are refused in a moment
                ledger.asked(round, ask, rows, reply.sent, reply.heard, reply.models)
            log.append(Heard(ask, rows))
            for stage in setup.stages.selection:
                rows = stage.rewrite_replies(ask, rows)
    except StopIteration as end:
        return end.value
    except Exception as error:
        when = "before the first round" if round < 0 else f"round {round}"
        error.add_note(f"This was {when}.")
        raise


def query_before_round(setup: Setup, state: State, ledger: Ledger) -> Queries[State]:
    """Let scheme and aggregator ask what they must know first; no query is sent twice."""
    round, log = state.round, list[Heard]()
    if state.scheme is None:
        round = -1
        start = setup.scheme.start(state.federation, stream(setup.seed, "start"))
        if isinstance(start, Generator):
            start = yield from query_clients(setup, state, start, ledger, log, round)
        state = replace(state, scheme=start)
    memory = setup.aggregator.told(state.aggregator, state.federation)
    if memory is state.aggregator:
        return state
    if isinstance(memory, Generator):
        new = _without_repeats(memory, log)
        memory = yield from query_clients(setup, state, new, ledger, [], round)
    return replace(state, aggregator=memory)


def _without_repeats(conversation: Any, log: list[Heard]) -> Queries[Any]:
    """Answer the queries of a conversation that are in the log; yield the others."""
    rows: Any = None
    try:
        while True:
            ask = conversation.send(rows)
            rows = next((each.rows for each in log if each.ask.asks_the_same(ask)), None)
            if rows is None:
                rows = yield ask
    except StopIteration as end:
        return end.value


# -- train -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Participants:
    """The clients that count in a round, and the traffic of inviting them."""

    selection: Selection
    cohort: Cohort  # after dropouts, with corrected weights
    attendance: Attendance
    filled: float  # share of the draws that were answered
    void: bool
    sent: Ints  # a client for every invitation
    models: int | None  # copies of the model that were sent
    heard: int | None  # valid responses, where that is not one per client


def train_cohort(
    setup: Setup, state: State, selection: Selection
) -> Generator[TrainRequest, Responses, Participants]:
    """Invite the cohort; replace clients that do not respond, and correct the weights."""
    cohort, attendance = selection.cohort, state.attendance
    available = selection.context.available
    void = available is not None and len(available) == 0
    responses = yield TrainRequest(cohort.clients, cohort, replacing=False)
    traffic = [(cohort.clients, responses)]
    complete = np.array_equal(responses.clients, cohort.clients)
    if complete and np.array_equal(attendance.asked, attendance.answered):  # no dropout ever
        attendance = attendance.after(cohort.clients, cohort.clients)
        return Participants(selection, cohort, attendance, 1.0, void, *_traffic(traffic))

    completed = yield from replace_missing(setup, state, selection, traffic)
    expected = setup.stragglers.enough(len(cohort)) / max(1, len(cohort))
    void = void or completed.void(setup.quorum * expected)
    return Participants(selection, *completed, void, *_traffic(traffic))


def replace_missing(
    setup: Setup, state: State, selection: Selection, traffic: Traffic
) -> Generator[TrainRequest, Responses, dropouts.Completed]:
    """Invite replacements for clients that did not respond; return who counts, and weights."""
    cohort, (_, responses) = selection.cohort, traffic[0]
    rng = stream(setup.seed, "replace", selection.round)
    replacing = dropouts.settle(
        setup.dropouts, cohort, selection.law, state.attendance, rng, responses.clients
    )
    try:
        clients = next(replacing)
        while True:
            responses = yield TrainRequest(clients, cohort, replacing=True)
            traffic.append((clients, responses))
            clients = replacing.send(responses.clients)
    except StopIteration as end:
        completed: dropouts.Completed = end.value
        return completed


def _traffic(traffic: Traffic) -> tuple[Ints, int | None, int | None]:
    """Return invited clients, copies of the model, and responses; None: not counted."""
    sent = [invited if reply.sent is None else reply.sent for invited, reply in traffic]
    models = [reply.models for _, reply in traffic if reply.models is not None]
    heard = [reply.heard for _, reply in traffic if reply.heard is not None]
    return np.concatenate(sent), sum(models) if models else None, sum(heard) if heard else None


# -- aggregate -------------------------------------------------------------------------------


def aggregate_updates(
    setup: Setup, state: State, participants: Participants, ledger: Ledger
) -> Generator[CollectUpdates, Blocks, tuple[State, Record]]:
    """Weigh the updates, step the model, and let the scheme observe the round."""
    selection, cohort = participants.selection, participants.cohort
    stages = [stage(setup, state, selection, cohort) for stage in setup.stages.updates]
    account = yield from accumulate_updates(setup, state, participants, stages)
    width = len(state.theta)
    if setup.stages.wide_rows:
        width = setup.algorithm.width(width)
    direction, memory = setup.aggregator.finish(account, width)
    update = RoundUpdate(
        account=account,
        direction=direction,
        theta=state.theta,
        vectors=state.algorithm,
        guards=state.guards,
        cohort=cohort,
        replies=Replies(cohort.clients, {}),
    )
    for stage in stages:
        stage.finish(update)

    optimizer, counted = state.optimiser, state.counted
    if not participants.void:  # an empty cohort that was drawn makes no round void
        for stage in stages:
            stage.before_step(update)
        update.theta, optimizer = setup.optimiser.step(update.theta, update.direction, optimizer)
        for stage in stages:
            stage.after_step(update)
        counted = counted.copy()
        counted[cohort.clients] = state.round

    # The scheme observes void rounds too, and the aggregator remembers their updates.
    scheme_state = observe(setup, state, cohort, update.replies)
    if setup.stages.shares_table:
        latest = None if scheme_state is None else setup.scheme.latest(scheme_state)
        memory = setup.aggregator.shared(memory, latest)
    record = record_round(setup, state, participants, update, ledger)
    after = replace(
        state,
        round=state.round + 1,
        scheme=scheme_state,
        theta=update.theta,
        optimiser=optimizer,
        aggregator=memory,
        attendance=participants.attendance,
        algorithm=update.vectors,
        counted=counted,
        guards=update.guards,
    )
    return after, record


def accumulate_updates(
    setup: Setup, state: State, participants: Participants, stages: list[UpdateStage]
) -> Generator[CollectUpdates, Blocks, Any]:
    """Return the aggregator's account of all updates.

    Updates come in blocks, so that a large cohort is never held as one table.
    """
    aggregator, cohort = setup.aggregator, participants.cohort
    available = participants.selection.context.available
    importance = None if available is None else state.federation.among(available).importance
    account = aggregator.begin(state.aggregator, cohort, importance)
    for prepare in setup.stages.accounts:
        account = prepare(account)
    if not len(cohort):
        return account

    blocks = each_once(cohort, (yield CollectUpdates(cohort, setup.listens)))
    for stage in stages:
        blocks = stage.process(blocks)
    for block in blocks:
        if isinstance(block, UpdateSum):
            account = aggregator.add_sum(account, block.clients, block.total)
        else:
            weights = cohort.weights_of(block.clients)
            account = aggregator.add(account, block.clients, weights, block.updates)
    return account


def each_once(cohort: Cohort, blocks: Blocks) -> Blocks:
    """Pass the blocks on; raise BadInput unless every member of the cohort is in exactly one."""
    pending = np.ones(len(cohort), dtype=bool)
    for block in blocks:
        positions = cohort.positions_of(block.clients)
        before = np.count_nonzero(pending)
        pending[positions] = False
        if before - np.count_nonzero(pending) != len(positions):
            raise BadInput("A client's update came twice in one round.")
        yield block
    if pending.any():
        missing = cohort.clients[pending].tolist()
        raise BadInput(f"The transport sent no update of clients {missing[:5]}, which responded.")


def observe(setup: Setup, state: State, cohort: Cohort, replies: Replies) -> Any:
    """Return the state of the scheme after a round."""
    if state.scheme is None:  # no client was ever available
        return None
    observed = setup.scheme.observe(state.scheme, state.federation, cohort, replies)
    if observed is None:
        raise BadInput(
            f"{type(setup.scheme).__name__}.observe() must return the scheme's new state; got "
            "None. Return the state, changed or not."
        )
    return observed


def record_round(
    setup: Setup, state: State, participants: Participants, update: RoundUpdate, ledger: Ledger
) -> Record:
    """Enter the training in the ledger, and return the record of the round."""
    number, available = len(ledger.entries), participants.selection.context.available
    ledger.trained(
        state.round,
        participants.sent,
        setup.scheme.listens,
        len(participants.cohort) if participants.heard is None else participants.heard,
        update.extra_bytes + ledger.number_bytes * update.extra_numbers,
        participants.models,
    )
    return Record(
        round=state.round,
        cohort=Cohort.empty() if participants.void else update.cohort,
        invited=ascending(participants.sent),
        available=len(state.federation) if available is None else len(available),
        void=participants.void,
        filled=participants.filled,
        entries=ledger.since(number),
    )
