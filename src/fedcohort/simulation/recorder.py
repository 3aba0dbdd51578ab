"""What a run leaves: evaluations on the way, and its `Trace` at the end."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort.server._membership import diagnostics
from fedcohort.server._records import Record, joined
from fedcohort.server._trace import Trace
from fedcohort.simulation.evaluation import evaluated
from fedcohort.simulation.measures import f1_of, measure
from fedcohort.training import Task

if TYPE_CHECKING:
    from fedcohort.simulation.engine import Simulation

Progress = Callable[[int, float], None]
"""Hears of every evaluation: rounds done, latest accuracy."""


@dataclass
class Recorder:
    """Collects the trace; evaluates several models at once."""

    task: Task  # that is evaluated: the one that is learnt, or some samples of it
    rounds: int
    every: int
    progress: Progress | None
    measures: Sequence[str]
    defer: int
    waiting: list[tuple[int, Floats]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    metrics: dict[int, dict[str, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.curves = np.full((3, self.rounds), np.nan)  # train loss, test loss, accuracy
        self.seconds = np.zeros(self.rounds)  # of evaluation
        self.initial = np.full(3, np.nan)  # the same three, of the first model
        self.before: Trace | None = None
        self.unfinished: list[tuple[int, Floats]] = []

    def begin(self, models: Floats) -> None:
        """Evaluate the models (k, d) that the run starts from."""
        found = self.last = evaluated(self.task, models[None])
        self.initial[:] = found.train_loss[0], found.test_loss[0], found.accuracy[0]

    def go_on(self, before: Trace, waiting: list[tuple[int, Floats]]) -> None:
        """Take over the rounds of a shorter run; what only its end had evaluated is forgotten."""
        done, self.before, self.waiting = before.rounds, before, list(waiting)
        self.initial[:], self.seconds[:done] = before.initial, before.seconds[:, 2]
        self.curves[:, :done] = before.train_loss, before.test_loss, before.accuracy
        self.records, self.metrics = before.remembered()
        if done % self.every:
            self.curves[:, done - 1] = np.nan
            self.metrics.pop(done - 1, None)

    def add(self, record: Record, models: Floats) -> None:
        """Note a round and the models (k, d) after it."""
        self.records.append(record)
        last = record.round == self.rounds - 1
        if (record.round + 1) % self.every == 0 or last:
            self.waiting.append((record.round, models))
        if last:  # a longer run would wait for more of them
            regular = [each for each in self.waiting if (each[0] + 1) % self.every == 0]
            self.unfinished = regular if len(regular) < self.defer else []
        if len(self.waiting) >= self.defer or last:
            self._evaluate()

    def _evaluate(self) -> None:
        if not self.waiting:
            return
        started = time.perf_counter()
        rounds = [round for round, _ in self.waiting]
        models = np.stack([models for _, models in self.waiting])  # (T, k, d)
        found = self.last = evaluated(self.task, models)
        self.curves[:, rounds] = found.train_loss, found.test_loss, found.accuracy
        for name, values in measure(self.task, models, found, self.measures).items():
            for round, value in zip(rounds, values.tolist(), strict=True):
                self.metrics.setdefault(round, {})[name] = value
        self.seconds[rounds] = (time.perf_counter() - started) / len(rounds)
        self.waiting.clear()
        if self.progress is not None:
            self.progress(rounds[-1] + 1, float(found.accuracy[-1]))

    def trace(self, run: Simulation, settings: Mapping[str, Any]) -> Trace:
        """The finished record."""
        histograms = run.task.label_histograms
        setup, models = run.setup, run.state.models(run.setup)
        disclosures = [*setup.disclosures(self.rounds), *setup.algorithm.disclosures]
        own = self.last.client_accuracy
        trace = Trace.from_records(
            {**run.settings(), **settings, "disclosures": disclosures, "ids": run.task.ids},
            joined(self.records, self.metrics),
            curves=self.curves,
            seconds=self.seconds,
            importance=run.state.federation.importance,
            sizes=run.task.sizes,
            label_histograms=histograms,
            client_losses=self.task.client_losses(models).min(axis=0),
            model=models.ravel(),
            pictures=diagnostics(run.setup, run.state, run.law),
            latencies=run.state.latencies,
            initial=self.initial,
            client_accuracy=np.zeros(0) if own is None else own[-1],
            f1=f1_of(self.task, models, self.last),
        )
        return trace if self.before is None else trace.after(self.before)
