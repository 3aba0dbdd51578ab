"""What can be measured of a model beside its losses and its accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._statistics import f1_by_class, macro_f1, worst_share
from fedcohort.simulation.evaluation import shares_of
from fedcohort.training import Evaluation, LearningTask, Task

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
