"""One run of the simulator: a transport for the rounds of `fedcohort.server._round`."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from fedcohort._internal.environment import versions
from fedcohort._internal.errors import BadInput, BadParameter, Diverged, UnequalWork
from fedcohort._internal.files import as_path
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.random import checked_seed
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.schemes import as_scheme
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._design import Design
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import ROUND_LIMIT, UPDATE, Ask
from fedcohort.selection._scheme import RoundContext, Scheme
from fedcohort.server import Aggregator, Optimiser
from fedcohort.server import aggregator as aggregator_by_name
from fedcohort.server import optimiser as optimiser_by_name
from fedcohort.server._compatibility import check_compatible
from fedcohort.server._dropouts import AsDrawn
from fedcohort.server._guards import Hardened, guards
from fedcohort.server._ledger import TRAINING, Ledger
from fedcohort.server._noise import Gaussian
from fedcohort.server._noise_budget import Budget, calibrated, promised
from fedcohort.server._records import Record
from fedcohort.server._round import FLOAT_BYTES, run_round
from fedcohort.server._state import Selection, Setup, State, Statistics
from fedcohort.server._stragglers import StragglerRule, prepared, straggler_rule
from fedcohort.server._trace import Trace
from fedcohort.server._transport import (
    CollectUpdates,
    Responses,
    TrainRequest,
    Transport,
    UpdateBlock,
    blocks,
)
from fedcohort.simulation._availability import Always, Availability, InTime
from fedcohort.simulation._availability import availability as availability_by_name
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.simulation._devices import DeviceModel
from fedcohort.simulation._devices import devices as devices_by_name
from fedcohort.simulation._environment import (
    Clock,
    Conditions,
    DropOuts,
    Environment,
    RoundClock,
    listened_bytes,
)
from fedcohort.simulation._local_stage import LocalStage
from fedcohort.simulation._measures import Progress, Recorder, checked_measures
from fedcohort.simulation._storage import ORACLE, End
from fedcohort.training import LocalWork, Task
from fedcohort.training._algorithms import Algorithm, LocalSgd, Vectors, unequal_work
from fedcohort.training._algorithms import algorithm as algorithm_by_name
from fedcohort.training._call_checks import check_task, check_work, says_how
from fedcohort.training._local import CONSTANT

DEFERRED = 16
"""Models are kept for this many evaluations, which are then one wide product."""
SEEDS_LIMIT = 100_000
NOTICED = 0.0
"""Seconds after which a client that does not answer at all is known not to."""
BLOCK_BYTES = 2**28
"""Updates are folded in blocks of this size: a large cohort is never held as one table."""


@says_how('simulate(task, "md:m=10", rounds=50)')
def simulate(
    task: Task,
    scheme: Scheme[Any] | str,
    *,
    rounds: int,
    seed: int | None = 0,
    work: LocalWork | None = None,
    optimiser: Optimiser | str | None = None,
    aggregator: Aggregator | str | None = None,
    availability: Availability | str | None = None,
    dropouts: DropOuts | None = None,
    algorithm: Algorithm | str | None = None,
    hardened: Hardened = None,
    devices: DeviceModel | str | None = None,
    stragglers: StragglerRule | str | None = None,
    evaluate_every: int = 1,
    evaluate_on: int | None = None,
    measures: str | Sequence[str] | None = None,
    defer: int = DEFERRED,
    progress: Progress | None = None,
    settings: Mapping[str, Any] | None = None,
    keep: str | os.PathLike[str] | None = None,
    before: Trace | None = None,
) -> Trace:
    """Run a scheme on a task.

    Parameters
    ----------
    task
        The clients, their data and their model.
    scheme
        How to choose; a name stands for the scheme with its defaults.
    rounds
        T, how many.
    seed
        Decides the first model, the cohorts, the mini-batches and the availability.
    work
        What a chosen client does; 50 steps on batches of 50 by default.
    optimiser, aggregator
        What the server does with the answers, or words for it (``"adam:eta_g=0.1"``,
        ``"memory"``); ``theta + sum omega_i delta_i`` by default.
    availability
        Who is there, or words for it (``"random:probability=0.8"``); everyone by default.
    dropouts
        Who of the chosen does not answer, and what the server does about it; all answer by
        default, unless they leave or are late (see the next two), for which weights are then
        corrected (`fedcohort.server.Hajek`).
    algorithm
        What a chosen client does, from `fedcohort.training`, or words for it
        (``"fedprox:mu=0.1"``); plain SGD by default.
    hardened
        What is done about clients that lie: True for all that `fedcohort.server._guards` has, as
        measured in docs/reliability.md, or the guards by name (``"size-cap+clip:times=3"``);
        nothing by default. Claims that no longer hold then are in ``settings["withdrawn"]``.
    devices
        How fast clients are, or words for it (``"lognormal:sigma=1"``): a virtual clock then says
        how long rounds would take, see docs/time.md. Without, there is no time.
    stragglers
        When a round stops waiting, or words for it (``"deadline:seconds=60"``,
        ``"over-commit:factor=1.3"``); by default when all have answered.
    evaluate_every
        Loss and accuracy every so many rounds (and in the last).
    evaluate_on
        Evaluate on about so many training samples, of every client its share, and as many test
        samples, always the same; by default on all.
    measures
        What else is measured: ``"client-accuracy"``, ``"f1"``, ``"perplexity"`` (see
        `fedcohort.simulation._measures`). By default what the task says: accuracy client by client
        where clients have test samples of their own, perplexity where the next token is told.
    defer
        So many models are kept and evaluated together, which is faster for small models; 1
        evaluates at once. Results are the same up to rounding.
    progress
        Called after every evaluation.
    settings
        Anything to keep with the trace (a label, the command that made it).
    keep
        A file for what the run knows after its last round (the model, and what scheme, server
        and clients remember), so that it can be extended; up to 268 MB.
    before
        The trace of the same run with fewer rounds, which wrote ``keep``: it goes on from there,
        and what comes out is that of one run, bit for bit.

    >>> from fedcohort.training import Quadratic
    >>> task = Quadratic([[0.0], [1.0]], sizes=[1, 3])
    >>> trace = simulate(task, "full", rounds=3, work=LocalWork(steps=1, lr=1.0, batch=None))
    >>> float(trace.model[0])
    0.75
    """
    check_task(task, "simulate")
    check_work(work, "simulate")
    check_rounds("rounds", rounds)
    check_rounds("evaluate_every", evaluate_every)
    if keep is not None:
        as_path(keep)  # before anything is computed
    there = availability_by_name(availability)
    chooser, rule = prepared(as_scheme(scheme), straggler_rule(stragglers))
    loses = bool(rule.withdraws) or isinstance(there, InTime)
    setup = Setup(
        chooser,
        checked_seed(seed, "simulate"),
        optimiser_by_name(optimiser),
        aggregator_by_name(aggregator),
        (rule.drop_outs if loses else AsDrawn()) if dropouts is None else dropouts.rule,
        0.0 if dropouts is None else dropouts.quorum,
        algorithm_by_name(algorithm),
        guards(hardened),
        rule,
    )
    fast = None if devices is None else devices_by_name(devices)
    run = Simulation(task, setup, work or LocalWork(), there, dropouts, fast)
    unequal = unequal_work(setup.algorithm, run.work, task.sizes, task.importance, task.ids)
    if unequal:
        warnings.warn(unequal, UnequalWork, stacklevel=3)
    check_rounds("defer", defer)
    if evaluate_on is not None:
        check_rounds("evaluate_on", evaluate_on)
    seen = task if evaluate_on is None else task.subset(evaluate_on)
    told = checked_measures(seen, measures)
    recorder = Recorder(seen, rounds, evaluate_every, progress, told, defer)
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is refused, not warned of
        if before is None:
            recorder.begin(run.state.models(setup))
        else:
            end = _end(before, keep, setup, rounds)
            run.state, run.kept = end.state, end.clients
            run.resume(before.time)
            recorder.go_on(before, end.waiting)
        for _ in range(run.state.round, rounds):
            recorder.add(run.play(), run.state.models(setup))
        some: dict[str, Any] = {} if evaluate_on is None else {"evaluate_on": evaluate_on}
        some |= promised(run.setup, run.state)
        trace = recorder.trace(run, {**(settings or {}), **some, "rounds": rounds})
    if keep is not None:
        End(run.state, run.kept, recorder.unfinished).save(keep, setup)
    return trace


def _end(before: Trace, keep: str | os.PathLike[str] | None, setup: Setup, rounds: int) -> End:
    if keep is None or before.rounds >= rounds:
        raise BadInput(
            f"A run of {before.rounds} rounds is extended to more, from the file 'keep' that it "
            f"wrote. Got {rounds} rounds and {'no file' if keep is None else 'a file'}."
        )
    return End.load(keep, setup, before.rounds)


def check_rounds(name: str, value: object) -> None:
    """A number of rounds that a run can have."""
    if not is_whole(value) or not 1 <= value <= ROUND_LIMIT:  # type: ignore[operator]
        raise BadParameter(name, "simulate", f"an int in [1, {ROUND_LIMIT}]", value)


class SimulatedTransport(Transport):
    """The clients of a task in one round: they respond at once, and train when collected."""

    name: ClassVar[str] = "the simulator"
    timed: ClassVar[bool] = True

    def __init__(
        self,
        clients: SimulatedClients,
        setup: Setup,
        answering: Ints | None = None,
        clock: RoundClock | None = None,
    ) -> None:
        self.clients, self.setup, self.answering, self.clock = clients, setup, answering, clock

    def ask(self, ask: Ask) -> Array:
        rows = self.clients.answer(ask)
        if self.clock is not None:
            self.clock.asked(ask, rows)
        return rows

    def chosen(self, selection: Selection) -> None:
        self.law, self.selected_at = selection.law, time.perf_counter()

    def train(self, train: TrainRequest) -> Responses:
        invited, answering = train.clients, self.answering
        clients = invited if answering is None else invited[np.isin(invited, answering)]
        if self.clock is None:
            return Responses(clients)
        seconds = self.clock.training(clients, train.cohort.data_rate)
        stays = self.clock.staying(clients, seconds)
        arrivals, gone = seconds[stays], self.clock.left(clients[~stays])
        silent = np.full(len(invited) - len(clients), NOTICED)
        losses = np.concatenate([gone, silent])
        closed = self.setup.stragglers.close(arrivals, losses, len(invited))
        self.clock.trained(clients[stays], arrivals, closed)
        return Responses(clients[stays][closed.counts])

    def answers(self, fold: CollectUpdates) -> Iterator[UpdateBlock]:
        cohort, clients = fold.cohort, self.clients
        signals = [signal for signal in self.setup.scheme.listens if signal != UPDATE]
        row_bytes = 8 * clients.task.dimension
        if self.setup.stages.wide_rows:
            row_bytes = 8 * self.setup.algorithm.width(clients.task.dimension)
        for part in split_cohort(cohort, row_bytes):
            updates, counted, payloads = clients.reports(part)
            for rows in (updates, *payloads.values()):
                if not np.isfinite(rows).all():
                    raise Diverged(
                        f"Training diverged in round {clients.round} ({self.setup.scheme.name}): "
                        "an update is not finite. Lower 'lr' or 'eta_g'."
                    )
            heard = {}
            for signal in signals:
                heard[signal.name] = clients.answer(Ask(signal, part.clients))
            weighed = counted.weights if cohort.per_sample else None
            yield UpdateBlock(part.clients, updates, heard, payloads, weighed)
            clients.forget(part.clients)


def split_cohort(cohort: Cohort, row_bytes: int) -> Iterator[Cohort]:
    """Yield parts of a cohort whose rows fit into memory together."""
    if len(cohort) * row_bytes <= BLOCK_BYTES:
        yield cohort
        return
    for some in blocks(cohort.clients, row_bytes, BLOCK_BYTES):
        yield replace(
            cohort,
            clients=cohort.clients[some],
            weights=cohort.weights[some],
            draws=cohort.draws[some],
            reserve=None,
        )


@dataclass
class Simulation:
    """A run that goes on round by round."""

    task: Task
    setup: Setup
    work: LocalWork
    availability: Availability
    dropouts: DropOuts | None
    devices: DeviceModel | None = None

    def __post_init__(self) -> None:
        check_compatible(self.setup, SimulatedTransport)
        if self.devices is None:
            for part, timed in (
                (self.setup.stragglers, bool(self.setup.stragglers.withdraws)),
                (self.availability, isinstance(self.availability, InTime)),
            ):
                if timed:
                    raise BadInput(
                        f"'{part.name}' lives in time, and without devices there is none: give "
                        "them as in devices='lognormal:sigma=1' (--devices lognormal:sigma=1)."
                    )
        known = Statistics.of(self.task.layers, (), self.task.statistics)
        self.setup = self.setup.for_model(known)
        if not hasattr(
            self.availability, "__dataclass_fields__"
        ):  # its settings are kept with the trace
            raise BadInput(
                f"{type(self.availability).__name__} is not a dataclass: write "
                "@dataclass(frozen=True) above the class."
            )
        theta = np.asarray(self.task.initial(self.setup.seed), dtype=np.float64)
        federation = self.setup.admitted(federation_of(self.task))
        self.setup = calibrated(self.setup, federation)
        self.budget = Budget() if isinstance(self.setup.aggregator, Gaussian) else None
        self.state = State.first(self.setup, federation, theta, self.task.layers)
        self.ledger = Ledger(
            model_bytes=FLOAT_BYTES * self.task.dimension,
            with_model=FLOAT_BYTES * self.task.dimension * len(self.setup.algorithm.vectors),
            number_bytes=FLOAT_BYTES,
        )
        self.clock = None if self.devices is None else self._clock(self.devices)
        self.law: Design | None = None  # that the last cohort came from
        self.kept: dict[int, Vectors] = {}  # what clients remember for the local algorithm
        plain = type(self.availability) is Always and self.dropouts is None
        self.environment: Environment | None = None
        if not plain or self.clock is not None:
            self.environment = Environment(
                self.availability, self.dropouts, self.clock, self.setup.seed
            )

    def _clock(self, devices: DeviceModel) -> Clock:
        """The time of this run; where devices are profiled, what is known of them beforehand."""
        setup, sizes = self.setup, {"parameters": self.task.dimension}
        told = setup.algorithm.up(self.task.dimension).values()
        extra = FLOAT_BYTES * sum(length for (length,) in told)
        extra += listened_bytes(setup.scheme.listens, sizes)
        clock = Clock(devices, self.task.sizes, setup.seed, self.ledger, extra)
        if devices.profiled:
            known = {TRAINING: clock.usual(self.work)}
            self.state = replace(self.state, latencies=known)
        return clock

    def resume(self, time: Floats) -> None:
        """Go on after rounds that took so long."""
        if self.clock is not None:
            for seconds in time.tolist():  # one after another, as they were
                self.clock.now += seconds

    def play(self) -> Record:
        """Run one round."""
        started, state, setup, work = time.perf_counter(), self.state, self.setup, self.work
        if work.schedule != CONSTANT:
            work = work.at(state.round)
        latencies = state.latencies.get(TRAINING)
        conditions = Conditions(RoundContext(state.round, None, latencies))
        if self.environment is not None:
            conditions = self.environment.conditions(state, work)
        if self.budget is not None:
            self.budget.require(setup, state, conditions.context.available is None)
        stage = None
        if type(setup.algorithm) is not LocalSgd:
            vectors = {name: state.algorithm[name] for name in setup.algorithm.vectors}
            stage = LocalStage(setup.algorithm, vectors, self.kept)
        clients = SimulatedClients(
            self.task, work, setup.seed, state.round, state.theta, stage=stage
        )
        transport = SimulatedTransport(clients, setup, conditions.answering, conditions.clock)
        self.state, record = run_round(setup, state, conditions.context, transport, self.ledger)
        if self.environment is not None:
            self.state, record = self.environment.finish(conditions, self.state, record)
        if stage is not None and not record.void:
            self.kept |= stage.proposed
        self.law, selected_at = transport.law, transport.selected_at
        return replace(record, seconds=(selected_at - started, time.perf_counter() - selected_at))

    def settings(self) -> dict[str, Any]:
        """All that decides the run."""
        setup = self.setup
        return {
            "scheme": setup.scheme.name,
            "parameters": dict(setup.scheme.parameters),
            "task": self.task.name,
            "work": asdict(self.work),
            "optimiser": {"name": setup.optimiser.name, **setup.optimiser.parameters},
            "aggregator": setup.aggregator.spec,
            "algorithm": {"name": setup.algorithm.name, **setup.algorithm.parameters},
            "availability": {"name": self.availability.name, **asdict(self.availability)},  # type: ignore[call-overload]
            "dropouts": None if self.dropouts is None else self.dropouts.settings(),
            "seed": setup.seed,
            "versions": versions(),
            **({ORACLE: True} if setup.scheme.oracle else {}),
            **setup.hardening(),
            **self._timed(),
        }

    def _timed(self) -> dict[str, Any]:
        """What decides how long rounds take; {} without a clock."""
        if self.devices is None:
            return {}
        rules = {"dropouts_rule": self.setup.dropouts.spec, "biased": self.setup.dropouts.biased}
        words = {"devices": self.devices.spec, "stragglers": self.setup.stragglers.spec}
        return words | rules


def federation_of(task: Task) -> Federation:
    """The clients of a task, as a scheme sees them."""
    total = int(task.sizes.sum())
    if total and np.allclose(task.importance, task.sizes / total, rtol=0, atol=1e-12):
        return Federation(sizes=task.sizes)  # exact integers where there are any
    return Federation(importance=task.importance, sizes=task.sizes)
