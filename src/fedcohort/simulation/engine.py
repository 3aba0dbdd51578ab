"""One run: choose, train, step, observe, record; round after round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.conversation import UPDATE, Ask
from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.federation import Federation
from fedcohort.core.parameters import is_whole
from fedcohort.core.scheme import Scheme
from fedcohort.core.streams import checked_seed, stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning import Task
from fedcohort.learning.work import LocalWork
from fedcohort.ledger import Ledger
from fedcohort.schemes import as_scheme
from fedcohort.selector import Selector
from fedcohort.server import Attendance, Estimator, Optimiser, optimiser
from fedcohort.server import estimator as estimator_by_name
from fedcohort.simulation.availability import Always, Availability
from fedcohort.simulation.failing import DropOuts
from fedcohort.simulation.fleet import Fleet
from fedcohort.simulation.trace import Trace, versions

FLOAT_BYTES = 4
"""A model travels as 32-bit floats."""
EVALUATED_AT_ONCE = 16
"""Models are kept for this many rounds and evaluated in one wide product."""
ROUND_LIMIT = 10_000_000

Progress = Callable[[int, float], None]
"""Hears of every evaluation: rounds done, latest accuracy."""


def simulate(
    task: Task,
    scheme: Scheme[Any] | str,
    *,
    rounds: int,
    seed: int | None = 0,
    work: LocalWork | None = None,
    server: Optimiser | str | None = None,
    estimator: Estimator | str | None = None,
    availability: Availability | None = None,
    dropouts: DropOuts | None = None,
    evaluate_every: int = 1,
    progress: Progress | None = None,
    settings: Mapping[str, Any] | None = None,
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
    server, estimator
        What the server does with the answers, or its name (``"adam"``, ``"memory"``);
        ``theta + sum omega_i delta_i`` by default.
    availability
        Who is there; everyone by default.
    dropouts
        Who of the chosen does not answer, and what the server does about it; all answer by
        default.
    evaluate_every
        Loss and accuracy every so many rounds (and in the last).
    progress
        Called after every evaluation.
    settings
        Anything to keep with the trace (a label, the command that made it).

    >>> from fedcohort.learning import Quadratic
    >>> task = Quadratic([[0.0], [1.0]], sizes=[1, 3])
    >>> trace = simulate(task, "full", rounds=3, work=LocalWork(steps=1, lr=1.0, batch=None))
    >>> float(trace.model[0])
    0.75
    """
    check_rounds("rounds", rounds)
    check_rounds("evaluate_every", evaluate_every)
    run = _Run(
        task,
        as_scheme(scheme),
        checked_seed(seed, "simulate"),
        work or LocalWork(),
        optimiser(server),
        estimator_by_name(estimator),
        availability or Always(),
        dropouts,
    )
    recorder = _Recorder(task, rounds, evaluate_every, progress)
    with np.errstate(over="ignore", invalid="ignore"):  # divergence is refused, not warned of
        for round in range(rounds):
            run.play(round, recorder)
    return recorder.trace(run, {**(settings or {}), "rounds": rounds})


def check_rounds(name: str, value: object) -> None:
    """A number of rounds that a run can have."""
    if not is_whole(value) or not 1 <= value <= ROUND_LIMIT:  # type: ignore[operator]
        raise BadParameter(name, "simulate", f"an int in [1, {ROUND_LIMIT}]", value)


@dataclass
class _Run:
    """The moving parts of a run: the model, the selector, what the server remembers."""

    task: Task
    scheme: Scheme[Any]
    seed: int
    work: LocalWork
    server: Optimiser
    estimator: Estimator
    availability: Availability
    dropouts: DropOuts | None

    def __post_init__(self) -> None:
        task = self.task
        self.theta = np.asarray(task.initial(self.seed), dtype=np.float64)
        self.inertia = self.server.start(task.dimension)
        self.federation = federation_of(task)
        self.memory = self.estimator.start(self.federation.importance, task.dimension)
        self.attendance = Attendance.of(len(self.federation))
        self.ledger = Ledger(model_bytes=FLOAT_BYTES * task.dimension)
        self.selector = Selector(self.scheme, self.federation, self.seed, ledger=self.ledger)

    def play(self, round: int, recorder: _Recorder) -> None:
        """One round."""
        started = time.perf_counter()
        weather = stream(self.seed, "availability", round)
        there = self.availability.available(len(self.federation), round, weather)
        latency = self.availability.latency(len(self.federation), round, weather)
        fleet = Fleet(self.task, self.work, self.seed, round, self.theta)
        cohort, void = self.selector.select(there, fleet.answer, latency), False
        if self.dropouts is not None:
            cohort, self.attendance, void = self.dropouts.survived(
                self.selector, cohort, self.attendance
            )
        chosen = time.perf_counter()
        updates, counted = self._sent(fleet, cohort)
        here = self.federation.among(there)
        if len(here.present):
            # What a client sent in a void round is remembered, as the scheme remembers it.
            direction, self.memory = self.estimator.direction(
                self.memory,
                cohort,
                cohort.clients,
                updates,
                None if there is None else here.importance,
            )
            if not void:  # an empty draw is no void round
                self.theta, self.inertia = self.server.step(self.theta, direction, self.inertia)
        self.selector.observe(Replies(cohort.clients, self._overheard(fleet, cohort, updates)))
        self.memory = self.estimator.shared(self.memory, self.selector.latest())
        took = chosen - started, time.perf_counter() - chosen
        n_there = len(self.federation) if there is None else len(there)
        recorder.record(round, Cohort.empty() if void else counted, self.theta, n_there, took)

    def _sent(self, fleet: Fleet, cohort: Cohort) -> tuple[Array, Cohort]:
        """(k, d) what a cohort sends, and what it counted for; see `Fleet.sent`."""
        if len(cohort) == 0:
            return np.empty((0, self.task.dimension)), cohort
        updates, counted = fleet.sent(cohort)
        if not np.isfinite(updates).all():
            raise BadInput(
                f"Training diverged in round {fleet.round} ({self.scheme.name}): an update is not "
                "finite. Lower 'lr' or 'eta_g'."
            )
        return updates, counted

    def _overheard(self, fleet: Fleet, cohort: Cohort, updates: Array) -> dict[str, Array]:
        """The signals that come with the training replies at no extra message."""
        if len(cohort) == 0:
            return {signal.name: np.empty(0) for signal in self.scheme.listens}
        return {
            signal.name: updates
            if signal.name == UPDATE.name
            else fleet.answer(Ask(signal, cohort.clients))
            for signal in self.scheme.listens
        }

    def settings(self) -> dict[str, Any]:
        """All that decides the run."""
        return {
            "scheme": self.scheme.name,
            "parameters": dict(self.scheme.parameters),
            "task": self.task.name,
            "work": asdict(self.work),
            "server": {"name": self.server.name, **self.server.parameters},
            "estimator": self.estimator.name,
            "availability": {"name": self.availability.name, **asdict(self.availability)},  # type: ignore[call-overload]
            "dropouts": None if self.dropouts is None else self.dropouts.settings(),
            "seed": self.seed,
            "versions": versions(),
        }


def federation_of(task: Task) -> Federation:
    """The clients of a task, as a scheme sees them."""
    total = int(task.sizes.sum())
    if total and np.allclose(task.importance, task.sizes / total, rtol=0, atol=1e-12):
        return Federation(sizes=task.sizes)  # exact integers where there are any
    return Federation(importance=task.importance, sizes=task.sizes)


@dataclass
class _Recorder:
    """Collects the trace; evaluates several models at once."""

    task: Task
    rounds: int
    every: int
    progress: Progress | None
    waiting: list[tuple[int, Floats]] = field(default_factory=list)
    cohorts: list[Cohort] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.curves = np.full((3, self.rounds), np.nan)  # train loss, test loss, accuracy
        self.weight_sum = np.zeros(self.rounds)
        self.classes = np.full(self.rounds, -1, dtype=np.int64)
        self.available = np.zeros(self.rounds, dtype=np.int64)
        self.seconds = np.zeros((self.rounds, 3))

    def record(
        self, round: int, cohort: Cohort, theta: Floats, available: int, took: tuple[float, float]
    ) -> None:
        """Note a round."""
        self.cohorts.append(cohort)
        self.weight_sum[round] = cohort.weights.sum()
        self.available[round] = available
        self.seconds[round, :2] = took
        histograms = self.task.label_histograms
        if histograms is not None:
            self.classes[round] = np.count_nonzero(histograms[cohort.clients].sum(axis=0))
        last = round == self.rounds - 1
        if (round + 1) % self.every == 0 or last:
            self.waiting.append((round, theta))
        if len(self.waiting) >= EVALUATED_AT_ONCE or last:
            self._evaluate()

    def _evaluate(self) -> None:
        if not self.waiting:
            return
        started = time.perf_counter()
        rounds = [round for round, _ in self.waiting]
        found = self.task.evaluate(np.stack([theta for _, theta in self.waiting]))
        self.curves[:, rounds] = found.train_loss, found.test_loss, found.accuracy
        self.seconds[rounds, 2] = (time.perf_counter() - started) / len(rounds)
        self.waiting.clear()
        if self.progress is not None:
            self.progress(rounds[-1] + 1, float(found.accuracy[-1]))

    def trace(self, run: _Run, settings: Mapping[str, Any]) -> Trace:
        """The finished record."""
        costs = run.ledger.per_round(self.rounds)
        histograms = self.task.label_histograms
        return Trace(
            settings={**run.settings(), **settings},
            ledger=_ledger_rows(run.ledger),
            train_loss=self.curves[0],
            test_loss=self.curves[1],
            accuracy=self.curves[2],
            weight_sum=self.weight_sum,
            classes=self.classes,
            available=self.available,
            messages=costs[:, 0],
            bytes_down=costs[:, 1],
            bytes_up=costs[:, 2],
            seconds=self.seconds,
            cohort_ends=np.cumsum([len(cohort) for cohort in self.cohorts]),
            cohort_clients=_joined([cohort.clients for cohort in self.cohorts]),
            cohort_weights=np.concatenate([cohort.weights for cohort in self.cohorts]),
            cohort_draws=_joined([cohort.draws for cohort in self.cohorts]),
            importance=run.federation.importance,
            sizes=self.task.sizes,
            label_histograms=np.empty((len(self.task.sizes), 0), dtype=np.int64)
            if histograms is None
            else histograms,
            client_losses=self.task.client_losses(run.theta[None])[0],
            model=run.theta,
            pictures=run.selector.picture(),
        )


def _joined(parts: list[Ints]) -> Ints:
    return np.concatenate(parts).astype(np.int64, copy=False)


def _ledger_rows(ledger: Ledger) -> tuple[Mapping[str, Any], ...]:
    says, spent = ledger.disclosures(), ledger.epsilons()
    return tuple(
        {
            "purpose": purpose,
            **cost._asdict(),
            "discloses": says[purpose],
            "epsilon": spent.get(purpose),
        }
        for purpose, cost in ledger.by_purpose().items()
    )
