"""Evaluation of models in a simulation, and the recorder of its measures."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._statistics import f1_by_class, macro_f1, worst_share
from fedcohort.server._membership import diagnostics
from fedcohort.server._records import Record, joined
from fedcohort.server._trace import Trace
from fedcohort.training import LearningTask
from fedcohort.training._task import Evaluation, Task

if TYPE_CHECKING:
    from fedcohort.simulation._engine import Simulation

# How good the model of a round is, or its models.


def evaluated(task: Task, models: Floats) -> Evaluation:
    """How good the models (T, k, d) of T rounds are: every client has the best of k for itself.

    The train loss is that of everybody's own model, sum_i p_i min_j F_i(theta_j). Loss and
    accuracy on the test set, which is common to all, are means over the models, each by the
    importance of the clients that have it.

    >>> from fedcohort.training import Quadratic
    >>> task = Quadratic([[0.0], [2.0]])
    >>> evaluated(task, np.array([[[0.0], [2.0]]])).train_loss
    array([0.])
    """
    rounds, k, dimension = models.shape
    found = task.evaluate(models.reshape(rounds * k, dimension))
    if k == 1:
        return found
    losses = task.client_losses(models.reshape(rounds * k, dimension)).reshape(rounds, k, -1)
    best = losses.argmin(axis=1)  # (T, n)
    shares = shares_of(best, k, task.importance)  # (T, k)
    own = found.client_accuracy
    if own is not None:
        own = np.take_along_axis(own.reshape(rounds, k, -1), best[:, None], axis=1)[:, 0]
    return Evaluation(
        losses.min(axis=1) @ task.importance,
        (shares * found.test_loss.reshape(rounds, k)).sum(axis=1),
        (shares * found.accuracy.reshape(rounds, k)).sum(axis=1),
        own,
        best,
    )


def shares_of(best: Ints, k: int, importance: Floats) -> Floats:
    """The importance of the clients that have each of k models, (T, n) -> (T, k)."""
    return np.asarray((best[:, None] == np.arange(k)[:, None]) @ importance)


# What can be measured of a model beside its losses and its accuracy.

WORST = 0.1
"""The share of clients that the worst tenth is."""


@dataclass(frozen=True)
class Evaluated:
    """The models of several rounds, and what is known of them."""

    task: LearningTask
    models: Floats  # (T, k, d) k models in every round, one as a rule
    found: Evaluation

    @cached_property
    def predictions(self) -> list[list[Ints]]:
        """The class that each model gives to each sample of the test set, [T][k]."""
        return [[self.task.predictions(theta) for theta in models] for models in self.models]

    @cached_property
    def client_accuracy(self) -> Floats:
        """(T, n) of each client: on its own test samples, or as its labels are mixed.

        Where the test set is everybody's, the accuracy of client i is sum_c q_ic a_c, with a_c the
        accuracy on class c and q_ic its share in the client's training samples: what a test set of
        the client's own, drawn with its labels, has in expectation.
        """
        if self.found.client_accuracy is not None:
            return self.found.client_accuracy
        y, held = self.task.data.y_test, np.asarray(self.task.label_histograms)  # (n, classes)
        classes = held.shape[1]
        there = np.bincount(y, minlength=classes)
        hits = np.array(
            [[np.bincount(y[g == y], minlength=classes) for g in told] for told in self.predictions]
        )  # (T, k, classes)
        counts = np.where(there > 0, held, 0)
        totals = counts.sum(axis=1)
        shares = counts / np.where(totals > 0, totals, np.nan)[:, None]
        every = (hits / np.maximum(there, 1)) @ shares.T  # (T, k, n)
        best = self.found.best
        if best is None:
            return np.asarray(every[:, 0])
        return np.asarray(np.take_along_axis(every, best[:, None], axis=1)[:, 0])

    def mean(self, values: Floats) -> Floats:
        """(T, k, ...) of the models to (T, ...): each by the importance of its clients."""
        best, k = self.found.best, values.shape[1]
        if best is None:
            return np.asarray(values[:, 0])
        shares = shares_of(best, k, self.task.importance)
        return np.asarray(np.einsum("tk,tk...->t...", shares, values))


def client_accuracy(models: Evaluated) -> dict[str, Floats]:
    """Accuracy client by client: sum p_i acc_i, the worst tenth of clients, and the spread."""
    each = models.client_accuracy  # (T, n)
    there = ~np.isnan(each)
    known = np.where(there, each, 0.0)
    count = np.where(there.any(axis=1), there.sum(axis=1), np.nan)
    p = np.where(there, models.task.importance, 0.0)
    total = p.sum(axis=1)
    centre = known.sum(axis=1) / count
    spread = np.sqrt((np.where(there, known - centre[:, None], 0.0) ** 2).sum(axis=1) / count)
    return {
        "client_accuracy": (p * known).sum(axis=1) / np.where(total > 0, total, np.nan),
        "client_worst_tenth": worst_share(each, WORST),
        "client_spread": spread,
    }


def f1(models: Evaluated) -> dict[str, Floats]:
    """Macro F1 on the test set, the mean over classes."""
    y, classes = models.task.data.y_test, models.task.data.classes or 0
    scores = [[macro_f1(y, guess, classes) for guess in told] for told in models.predictions]
    return {"f1": models.mean(np.array(scores))}


def perplexity(models: Evaluated) -> dict[str, Floats]:
    """Of text: among how many tokens the model hesitates, exp of the test loss."""
    with np.errstate(over="ignore"):
        return {"perplexity": np.exp(models.found.test_loss)}


MEASURES: Mapping[str, Callable[[Evaluated], dict[str, Floats]]] = {
    "client-accuracy": client_accuracy,
    "f1": f1,
    "perplexity": perplexity,
}
"""What `simulate(measures=...)` and ``--measure`` take."""


def checked_measures(task: Task, names: str | Sequence[str] | None) -> tuple[str, ...]:
    """What is to be measured, told before the first round if it cannot be."""
    wanted = task.measures if names is None else ([names] if isinstance(names, str) else names)
    if not isinstance(wanted, Iterable):
        raise BadParameter("measures", "simulate", "names of measures", names)
    known_measures(wanted)
    for name in wanted:
        tells = isinstance(task, LearningTask) and task.classes is not None
        if not tells or len(task.data.y_test) == 0:  # type: ignore[attr-defined]
            raise BadInput(
                f"The measure '{name}' needs classes and a test set; the task {task.name!r} has"
                " none: leave it out."
            )
    return tuple(dict.fromkeys(wanted))


def known_measures(names: Iterable[str]) -> None:
    """Refuse a name that none has."""
    for name in names:
        if name not in MEASURES:
            raise UnknownName("measure", name, MEASURES)


def measure(
    task: Task, models: Floats, found: Evaluation, names: Sequence[str]
) -> dict[str, Floats]:
    """(T,) each, of the models (T, k, d), by the names under which a trace keeps them."""
    if not names or not isinstance(task, LearningTask):
        return {}
    known = Evaluated(task, models, found)
    return {key: row for name in names for key, row in MEASURES[name](known).items()}


def f1_of(task: Task, models: Floats, found: Evaluation) -> Floats:
    """F1 of each class, (classes,), of the models (k, d) that were evaluated last.

    (0,) where nothing tells classes.
    """
    if not isinstance(task, LearningTask) or task.classes is None or np.isnan(found.accuracy[-1]):
        return np.zeros(0)
    y, best = task.data.y_test, None if found.best is None else found.best[-1:]
    known = Evaluated(task, models[None], replace(found, best=best))
    told = known.predictions[0]
    scores = np.array([[f1_by_class(y, guess, task.classes) for guess in told]])
    return np.asarray(known.mean(scores)[0])


# What a run leaves: evaluations on the way, and its `Trace` at the end.

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
