"""The surroundings of simulated clients: availability, drop-outs and the clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any, NamedTuple

import numpy as np

from fedcohort._internal.parameters import Checked, Real
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.selection._queries import UPDATE, Ask, Signal, row_bytes
from fedcohort.selection._scheme import RoundContext
from fedcohort.server._dropouts import DropOutRule, Redraw
from fedcohort.server._ledger import REQUEST_BYTES, TRAINING, Ledger
from fedcohort.server._membership import round_context
from fedcohort.server._records import Record, Stopwatch
from fedcohort.server._state import State
from fedcohort.server._stragglers import Closed
from fedcohort.simulation._availability import Availability, InTime
from fedcohort.simulation._devices import DeviceModel
from fedcohort.training._local import LocalWork

# Chosen clients that do not answer, in a simulation.


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


# The virtual clock: how long rounds would take on the devices that clients have.
#
# A client that trains downloads the model (unless a question brought it already in this round),
# computes, and uploads its answer::
#
#     bytes down / line down  +  samples * seconds per sample  +  bytes up / line up
#
# with the bytes that the ledger books. The samples are those of local work, epochs times the
# client's own or steps times the batch; of a question they are those of local work if it needs the
# update, one pass over the client's data if it needs the model, none otherwise. Questions follow
# one another and wait for the slowest client asked; so does training for the slowest that counts,
# unless a rule for stragglers ends it before. The server itself takes no time.

IDLE = 60.0
"""Seconds after which a round ends for which nobody was there."""


@dataclass
class Clock:
    """The time of one run, and what its devices do in it.

    Parameters
    ----------
    devices
        How fast clients are.
    sizes
        (n,) their samples.
    seed
        Of the run.
    ledger
        What models and updates weigh.
    extra
        What a client sends with its update, in bytes.
    """

    devices: DeviceModel
    sizes: Ints
    seed: int
    ledger: Ledger
    extra: int = 0
    now: float = 0.0
    """Seconds since the run began."""

    def __post_init__(self) -> None:
        self.speeds = self.devices.of(len(self.sizes), self.seed)

    def round(self, number: int, work: LocalWork, until: Floats | None = None) -> RoundClock:
        """The clock of a round; ``until`` (n,) is when each client leaves."""
        mood = self.devices.mood(len(self.sizes), self.seed, number)
        return RoundClock(self, work, mood, until)

    def usual(self, work: LocalWork) -> Floats:
        """(n,) how long a round takes each client without jitter."""
        return RoundClock(self, work, 1.0).training(np.arange(len(self.sizes)))


@dataclass
class RoundClock:
    """One round: what has been asked so far, who has the model, how much time is gone."""

    clock: Clock
    work: LocalWork
    mood: Floats | float
    until: Floats | None = None
    elapsed: float = 0.0
    watch: Stopwatch = field(default_factory=Stopwatch)

    def __post_init__(self) -> None:
        n = len(self.clock.sizes)
        self._has_model, self._trained = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    def asked(self, ask: Ask, rows: Array) -> None:
        """A question was answered by all whom it was put to."""
        clients, signal = ask.clients, ask.signal
        if not len(clients):
            return
        down = REQUEST_BYTES + signal.needs_model * self._model_bytes(clients)
        trains = bool({"update", "layers"} & set(signal.needs or ()))
        samples = self._samples(clients) if trains else self._passes(ask)
        up = _answer_bytes(signal, np.asarray(rows))
        seconds = self._seconds(clients, down, samples, up)
        if trains:
            self._trained[clients] = True
        if signal.needs_model:
            self._has_model[clients] = True
        self.watch.note(signal.name, clients, seconds)
        self.elapsed += float(seconds.max())

    def training(self, clients: Ints, data_rate: float = 1.0) -> Floats:
        """(k,) how long these clients take to train and to send what they learnt."""
        ledger = self.clock.ledger
        update = ledger.model_bytes if ledger.update_bytes is None else ledger.update_bytes
        samples = self._samples(clients, data_rate)
        up = update + self.clock.extra
        seconds = self._seconds(clients, self._model_bytes(clients), samples, up)
        self._has_model[clients] = self._trained[clients] = True
        return seconds

    def staying(self, clients: Ints, seconds: Floats) -> Bools:
        """(k,) who is still there when it would be done."""
        if self.until is None:
            return np.ones(len(clients), dtype=bool)
        return self.clock.now + self.elapsed + seconds <= self.until[clients]

    def left(self, clients: Ints) -> Floats:
        """(k,) seconds from now until these clients leave."""
        if self.until is None:
            return np.zeros(len(clients))
        return np.maximum(0.0, self.until[clients] - self.clock.now - self.elapsed)

    def trained(self, clients: Ints, seconds: Floats, closed: Closed) -> None:
        """Training has ended; these clients would have taken so many seconds."""
        there, late = closed.counts, ~closed.counts
        self.watch.note(TRAINING, clients[there], seconds[there])
        ended = np.full(int(late.sum()), closed.seconds)  # all that the server knows of them
        self.watch.note(TRAINING, clients[late], ended, late=True)
        self.elapsed += closed.seconds

    def end(self, deserted: bool) -> float:
        """The round is over: how long it took."""
        took = IDLE if deserted else self.elapsed
        self.clock.now += took
        return took

    def _model_bytes(self, clients: Ints) -> Floats:
        ledger = self.clock.ledger
        return np.where(self._has_model[clients], 0.0, ledger.model_bytes + ledger.with_model)

    def _samples(self, clients: Ints, data_rate: float = 1.0) -> Floats:
        """(k,) samples of local work that are still to do."""
        sizes, work = data_rate * self.clock.sizes[clients], self.work
        if work.epochs is not None:
            samples = work.epochs * sizes
        else:
            samples = (work.steps or 0) * (
                sizes if work.batch is None else np.minimum(sizes, work.batch)
            )
        done = self._trained[clients] if data_rate == 1 else False
        return np.where(done, 0.0, samples)

    def _passes(self, ask: Ask) -> Floats | float:
        """(k,) samples that an answer takes: one pass, or a batch where the question says so."""
        if not ask.signal.needs_model:
            return 0.0
        most: Any = ask.settings.get("batch", math.inf)
        return np.asarray(np.minimum(self.clock.sizes[ask.clients], most), dtype=np.float64)

    def _seconds(
        self, clients: Ints, down: Floats | float, samples: Floats | float, up: Floats | float
    ) -> Floats:
        speeds = self.clock.speeds
        mood = self.mood if isinstance(self.mood, float) else self.mood[clients]
        takes = down / speeds.down[clients] + samples * speeds.seconds[clients]
        return np.asarray(mood * (takes + up / speeds.up[clients]))


def _answer_bytes(signal: Signal, rows: Array) -> Floats | float:
    """(k,) what each answer weighs, as in the ledger; rows alike are not weighed one by one."""
    if signal.nbytes is row_bytes:
        return float(rows[:1].nbytes)
    return np.array([signal.nbytes(row) for row in rows], dtype=np.float64)


def listened_bytes(listens: frozenset[Signal], sizes: Mapping[str, int]) -> int:
    """What a client tells the scheme beside its update, in bytes."""
    shapes = [signal.row_shape(sizes) or () for signal in listens if signal != UPDATE]
    return sum(8 * math.prod(shape) for shape in shapes)


# The stage of a simulated run that decides who is available, who answers, and how long it takes.
#
# A run in which all clients are always available, answer, and have no devices has none.


class Conditions(NamedTuple):
    """The environment of one round."""

    context: RoundContext
    answering: Ints | None = None
    """Positions of clients that respond when invited; None for all."""
    clock: RoundClock | None = None


@dataclass(frozen=True)
class Environment:
    """Availability, dropouts and the virtual clock of a run."""

    availability: Availability
    dropouts: DropOuts | None
    clock: Clock | None
    seed: int

    def conditions(self, state: State, work: LocalWork) -> Conditions:
        """Return the conditions of the coming round."""
        n, round = len(state.federation), state.round
        rng = stream(self.seed, "availability", round)
        until: Floats | None = None
        if isinstance(self.availability, InTime) and self.clock is not None:
            until = self.availability.until(n, self.clock.now, self.seed)
            available: Ints | None = np.flatnonzero(until > self.clock.now)
        else:
            available = self.availability.available(n, round, rng)
        latency = self.availability.latency(n, round, rng)
        context = round_context(state, available, latency)
        answering = None
        if self.dropouts is not None:
            silence = stream(self.seed, "dropouts", round)
            answering = self.dropouts.answering.available(n, round, silence)
        clock = None if self.clock is None else self.clock.round(round, work, until)
        return Conditions(context, answering, clock)

    def finish(self, conditions: Conditions, state: State, record: Record) -> tuple[State, Record]:
        """Advance the clock; note how long clients took."""
        clock, available = conditions.clock, conditions.context.available
        if clock is None:
            return state, record
        latencies = clock.watch.believed(state.latencies, len(state.federation))
        deserted = available is not None and len(available) == 0
        time = clock.end(deserted)
        return replace(state, latencies=latencies), replace(record, time=time)
