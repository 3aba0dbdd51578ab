"""A round is a conversation that ends in a model.

Three generators over what does not change (`Setup`) and what does (`State`)::

    choose    the scheme's questions; ends in a `Selection`: a cohort, and the law it came from
    settle    invitations to train, replacements for those who do not answer; ends in `Settled`
    fold      the answers, block by block; ends in the next `State` and the `Record` of the round

They yield what they want sent, receive what came back, and do no input or output: a `Carrier`
does that, be it the simulator, Flower or another framework. So the step, void rounds, memory,
attendance, replacements, optimiser and costs are written here and nowhere else.

Two values are durable: the `Selection` before anybody is invited, and the `State` after the step.
Generators are never saved; a resumed round starts at `settle` with the `Selection` it had, whose
law is found again by playing the scheme's conversation from the answers kept in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.conversation import Ask, questions
from fedcohort.core.design import Design
from fedcohort.core.errors import BadInput, FedcohortWarning
from fedcohort.core.federation import Federation, checked_positions
from fedcohort.core.latest import fits
from fedcohort.core.positions import ascending
from fedcohort.core.scheme import RoundContext, checked_latency, drawn
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.ledger import TRAINING, Ledger
from fedcohort.server import dropouts, latencies, protection
from fedcohort.server.dropouts import Attendance
from fedcohort.server.pile import Pile
from fedcohort.server.records import Record
from fedcohort.server.state import Heard, Selection, Setup, State
from fedcohort.server.transport import (
    CollectUpdates,
    QueryReplies,
    Request,
    Responses,
    TrainRequest,
    Transport,
    UpdateBlock,
    UpdateSum,
    drive,
)

T = TypeVar("T")


def context_of(
    state: State, available: ArrayLike | None = None, latency: ArrayLike | None = None
) -> RoundContext:
    """When a cohort is chosen: who is there, and how long a round takes each client.

    The latter is what was measured, unless it is given.
    """
    n = len(state.federation)
    here = None if available is None else checked_positions(available, n, "available")
    told = state.latencies.get(TRAINING) if latency is None else latency
    takes = None if told is None else checked_latency(told, n)
    return RoundContext(state.round, here, takes)


def picture(setup: Setup, state: State, law: Design | None) -> dict[str, Array]:
    """What there is to show: what the scheme knows now, and the strata last drawn from."""
    strata = {} if law is None else law.picture()
    return strata if state.scheme is None else {**strata, **setup.scheme.picture(state.scheme)}


# -- choosing --------------------------------------------------------------------------------

Choosing: TypeAlias = Generator[Ask, Any, T]


def _asked(
    setup: Setup,
    state: State,
    conversation: Any,
    ledger: Ledger,
    heard: list[Heard],
    round: int | None = None,
) -> Choosing[Any]:
    """A conversation of the scheme, or of the aggregator; questions are booked, answers kept.

    What is put to clients, and what the scheme hears of it, are as the guards want it.
    """
    round = state.round if round is None else round
    talk = questions(conversation, setup.asks, setup.scheme.name)
    rows: Any = None
    try:
        while True:
            ask = protection.question(setup, state, talk.send(rows))
            told = yield ask
            found = told if isinstance(told, QueryReplies) else QueryReplies(told, ask.clients, -1)
            rows = np.asarray(found.rows)
            if rows.ndim and len(rows) == len(ask.clients):  # or they are refused in a moment
                ledger.asked(round, ask, rows, *found[1:])
            heard.append(Heard(ask, rows))
            rows = protection.answer(setup, ask, rows)
    except StopIteration as end:
        return end.value
    except Exception as error:
        when = "before the first round" if round < 0 else f"round {round}"
        error.add_note(f"This was {when}.")
        raise


def begin(setup: Setup, state: State, ledger: Ledger) -> Choosing[State]:
    """Let scheme and aggregator ask what they must know; nothing is asked a second time."""
    round, heard = state.round, list[Heard]()
    if state.scheme is None:
        round = -1
        opening = setup.scheme.start(state.federation, stream(setup.seed, "start"))
        known = yield from _asked(setup, state, opening, ledger, heard, round)
        state = replace(state, scheme=known)
    talk = setup.aggregator.told(state.aggregator, state.federation)
    if talk is state.aggregator:
        return state
    told = yield from _asked(setup, state, _unheard(talk, heard), ledger, [], round)
    return replace(state, aggregator=told)


def _unheard(conversation: Any, heard: list[Heard]) -> Choosing[Any]:
    """The questions of a conversation that were not answered a moment ago."""
    rows: Any = None
    try:
        while True:
            ask = conversation.send(rows)
            rows = next((each.rows for each in heard if each.ask.asks_the_same(ask)), None)
            if rows is None:
                rows = yield ask
    except StopIteration as end:
        return end.value


def admit(setup: Setup, state: State, federation: Federation, ledger: Ledger) -> Choosing[State]:
    """Go on with another federation: clients came, left, or changed their size.

    Clients are recognised by their ids.
    """
    federation = setup.admitted(federation)
    old = {name: i for i, name in enumerate(state.federation.ids)}
    came_from = np.array([old.get(name, -1) for name in federation.ids], dtype=np.int64)
    server = _rescaled(setup, state, federation, came_from)
    known = state.scheme
    if known is not None:
        rng = stream(setup.seed, "adapt", state.round)
        adapted = setup.scheme.adapt(known, federation, came_from, rng)
        known = yield from _asked(setup, state, adapted, ledger, [])
    latest = None if known is None else setup.scheme.latest(known)
    return replace(
        state,
        federation=federation,
        scheme=known,
        attendance=state.attendance.moved(came_from),
        aggregator=setup.aggregator.moved(
            state.aggregator, federation.importance, came_from, latest
        ),
        algorithm=server,
        counted=np.where(came_from < 0, -1, state.counted[came_from]),
        guards=protection.moved(setup, state, came_from),
        latencies=latencies.moved(state.latencies, came_from),
    )


def _rescaled(
    setup: Setup, state: State, federation: Federation, came_from: Ints
) -> Mapping[str, Floats]:
    """The server's vectors for new importances: a tally follows a factor that is common to all."""
    tallies = setup.algorithm.tallies
    had = state.counted >= 0  # the others are no part of a tally yet
    if not tallies or not had.any():
        return state.algorithm
    now = np.zeros(len(state.federation))
    now[came_from[came_from >= 0]] = federation.importance[came_from >= 0]
    before = state.federation.importance
    factor = now[had].sum() / max(before[had].sum(), TINY)
    if not np.allclose(now[had], factor * before[had], rtol=1e-9, atol=0.0):
        raise BadInput(
            f"The local algorithm '{setup.algorithm.name}' keeps sums by importance, which clients "
            "that leave or change their size would make wrong; start another run with them."
        )
    scaled = {name: factor * state.algorithm[name] for name in tallies}
    return {**state.algorithm, **scaled}


TINY = float(np.finfo(np.float64).tiny)


def choose(
    setup: Setup, state: State, context: RoundContext, ledger: Ledger
) -> Choosing[tuple[State, Selection]]:
    """The cohort of a round; the state comes back as the scheme begins with it."""
    federation = state.federation.among(context.available)
    if len(federation.present) == 0:
        return state, Selection(state.round, context, Cohort.empty())
    state = yield from begin(setup, state, ledger)
    if setup.guards:
        context = protection.without_barred(setup, state, context)
        federation = state.federation.among(context.available)
    rng = stream(setup.seed, "select", state.round)
    heard: list[Heard] = []
    talk = setup.scheme.select(state.scheme, federation, context, rng)
    ending = yield from _asked(setup, state, talk, ledger, heard)
    law, cohort = ending if isinstance(ending, Design) else None, drawn(ending, rng)
    if law is None:
        cohort = protection.chosen(setup, state, cohort, federation)
    return state, Selection(state.round, context, cohort, law, tuple(heard))


def replayed(setup: Setup, state: State, selection: Selection) -> Selection:
    """A selection that was kept without its law, with it: the same answers give the same law.

    Should another version of the scheme choose others now, the cohort that was written down
    counts, and it has no law.
    """
    answers = iter(selection.heard)
    try:
        talk = choose(setup, state, selection.context, Ledger())
        ask = next(talk)
        while True:
            known = next(answers, None)
            if known is None or known.ask.signal != ask.signal:
                return selection
            ask = talk.send(known.rows)
    except StopIteration as end:
        again: Selection = end.value[1]
    except BadInput:
        return selection
    if selection.drawn is None:
        return again if again.cohort == selection.cohort else selection
    return replace(selection, law=again.law) if again.cohort == selection.drawn else selection


# -- training --------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Settled:
    """A round of which it is known who counts, and how much."""

    selection: Selection
    cohort: Cohort  # after drop-outs
    attendance: Attendance
    filled: float
    void: bool
    sent: Ints  # a client for every invitation
    models: int | None  # copies of the model that went out
    heard: int | None  # answers that came, where that is not one of each client


def settle(
    setup: Setup, state: State, selection: Selection
) -> Generator[TrainRequest, Responses, Settled]:
    """Invite the cohort, and others for those who do not answer."""
    rng = stream(setup.seed, "replace", selection.round)
    cohort, law = selection.cohort, selection.law
    talk = dropouts.settle(setup.dropouts, cohort, law, state.attendance, rng)
    sent: list[Ints] = []
    models: int | None = None
    heard: int | None = None
    clients = next(talk)
    while True:
        arrived = yield TrainRequest(clients, cohort, bool(sent))
        sent.append(clients if arrived.sent is None else arrived.sent)
        if arrived.models is not None:
            models = (models or 0) + arrived.models
        if arrived.heard is not None:
            heard = (heard or 0) + arrived.heard
        try:
            clients = talk.send(arrived.clients)
        except StopIteration as end:
            ended: dropouts.Completed = end.value
            break
    waited = setup.stragglers.enough(len(cohort)) / max(1, len(cohort))
    void = selection.deserted or ended.void(setup.quorum * waited)
    everybody = np.concatenate(sent)
    cohort, attendance, filled = ended
    return Settled(selection, cohort, attendance, filled, void, everybody, models, heard)


def fold(
    setup: Setup, state: State, settled: Settled, ledger: Ledger
) -> Generator[CollectUpdates, Iterable[UpdateBlock | UpdateSum], tuple[State, Record]]:
    """Weigh the answers, take the step, and let the scheme observe."""
    cohort, selection = settled.cohort, settled.selection
    there = selection.context.available
    here = None if there is None else state.federation.among(there).importance
    listens = frozenset(signal.name for signal in setup.scheme.listens)
    pile = Pile(setup, state, cohort, here, listens)
    if len(cohort):
        for block, factors in pile.shortening.of((yield CollectUpdates(cohort, listens))):
            pile.add(block, factors)
    # What a client sent in a void round is remembered, as the scheme remembers it.
    width = setup.algorithm.width(len(state.theta))
    direction, remembered = setup.aggregator.finish(pile.account, width)
    if setup.scheme.divides:
        direction = pile.divided(direction)
    theta, inertia, server = state.theta, state.optimiser, state.algorithm
    counted, guards = state.counted, state.guards
    if not settled.void:  # an empty draw is no void round
        server = setup.algorithm.step(server, pile.sums) if pile.sums else server
        direction = setup.algorithm.direct(direction, server)
        means = pile.averaged(direction, server)
        theta, inertia, server = _stepped(setup, state, direction, server, means)
        counted = counted.copy()
        counted[cohort.clients] = state.round
        guards = protection.after(setup, state, selection, cohort, pile.measured())
    known = observed(setup, state, cohort, Replies(cohort.clients, pile.replies()))
    latest = None if known is None else setup.scheme.latest(known)
    number = len(ledger.entries)
    told = setup.algorithm.up(len(state.theta)).values()
    payload_bytes = ledger.number_bytes * sum(length for (length,) in told)
    ledger.trained(
        state.round,
        settled.sent,
        setup.scheme.listens,
        len(cohort) if settled.heard is None else settled.heard,
        payload_bytes + pile.row_bytes,
        settled.models,
    )
    after = State(
        state.round + 1,
        state.federation,
        known,
        theta,
        inertia,
        setup.aggregator.shared(remembered, latest),
        settled.attendance,
        server,
        counted,
        guards,
        state.latencies,
    )
    record = Record(
        state.round,
        Cohort.empty() if settled.void else pile.weighed(),
        ascending(settled.sent),
        len(state.federation) if there is None else len(there),
        settled.void,
        settled.filled,
        ledger.since(number),
    )
    return after, record


def _stepped(
    setup: Setup,
    state: State,
    direction: Floats,
    server: Mapping[str, Floats],
    means: Floats | None,
) -> tuple[Floats, Any, Mapping[str, Floats]]:
    """The models after the optimiser's step, all of them side by side, and its memory.

    Running statistics move by the ``means`` instead, whatever the optimiser is.
    """
    models, others = state.models(setup), setup.algorithm.others
    positions, variances = setup.statistics
    if means is not None:
        direction = direction.reshape(models.shape).copy()
        direction[:, positions] = 0.0
    moved, inertia = setup.optimiser.step(models.ravel(), direction.ravel(), state.optimiser)
    moved = moved.reshape(models.shape)
    if means is not None:
        means = means.reshape(models.shape)
        moved[:, positions] = models[:, positions] + means[:, positions]
        moved[:, variances] = np.maximum(moved[:, variances], 0.0)
    theta, *more = moved
    return theta, inertia, {**server, **dict(zip(others, more, strict=True))}


FLOAT_BYTES = 4
"""A model travels as 32-bit floats."""


def observed(setup: Setup, state: State, cohort: Cohort, replies: Replies) -> Any:
    """What the scheme knows after a round; replies that are not finite are left out.

    Of two replies of a client the first counts.
    """
    if state.scheme is None:  # nobody was ever available
        return None
    known = setup.scheme.observe(state.scheme, state.federation, cohort, _finite(replies))
    if known is None:
        raise BadInput(
            f"{type(setup.scheme).__name__}.observe() must return the scheme's new state; got "
            "None. Return the state, changed or not."
        )
    return known


def _finite(replies: Replies) -> Replies:
    """The first reply of every client without NaN or infinity, in ascending order."""
    clients, good = replies.clients, np.ones(len(replies.clients), dtype=bool)
    for name, rows in replies.signals.items():
        if rows.dtype.kind not in "biuf":
            raise BadInput(f"Replies must be real numbers; '{name}' is of type {rows.dtype}.")
        good &= fits(rows)
    if good.all() and np.all(np.diff(clients) > 0):
        return replies
    if not good.all():
        warnings.warn(
            f"{int((~good).sum())} of {len(good)} replies contain values that are not finite "
            "or huge, and are left out.",
            FedcohortWarning,
            stacklevel=5,
        )
    kept, first = np.unique(clients[good], return_index=True)
    return Replies(kept, {name: rows[good][first] for name, rows in replies.signals.items()})


def play(
    setup: Setup, state: State, selection: Selection, ledger: Ledger
) -> Generator[Request, Any, tuple[State, Record]]:
    """A round whose cohort is chosen: everything after the first durable point."""
    settled = yield from settle(setup, state, selection)
    return (yield from fold(setup, state, settled, ledger))


def run_round(
    setup: Setup,
    state: State,
    context: RoundContext,
    carrier: Transport,
    ledger: Ledger,
    resume: Selection | None = None,
) -> tuple[State, Record]:
    """One round in its synchronous order; ``resume`` is a selection that was made durable."""
    number, selection = len(ledger.entries), resume
    if selection is None:
        when = f"This was round {state.round}."
        state, selection = drive(choose(setup, state, context, ledger), carrier, None, when)
        carrier.chosen(selection)
    after, record = drive(play(setup, state, selection, ledger), carrier)
    return after, replace(record, entries=ledger.since(number))
