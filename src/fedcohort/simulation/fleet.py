"""The simulated clients: they answer questions and train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import LABEL_HISTOGRAM, LOSS, SIZE, UPDATE, UPDATE_NORM, Ask
from fedcohort.core.errors import BadInput
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning import Task
from fedcohort.learning.work import LocalWork
from fedcohort.maths.noise import noisy_counts
from fedcohort.privacy import SizeReport
from fedcohort.simulation.private_twin import report_size


@dataclass
class Fleet:
    """All clients of a task in one round, around one model.

    Mini-batches are keyed by (seed, round, client): a client that trains to report its norm
    does not train again to send its update, and two schemes that choose the same client see
    the same update.
    """

    task: Task
    work: LocalWork
    seed: int
    round: int
    theta: Floats
    _trained: dict[int, Array] = field(default_factory=dict)

    def answer(self, ask: Ask) -> Array:
        """What the clients say to a question; common signals are measured all at once."""
        at_once: dict[str, Callable[[Ints], Array]] = {
            SIZE.name: lambda clients: self.task.sizes[clients],
            LOSS.name: lambda clients: self.task.losses(self.theta, clients),
            LABEL_HISTOGRAM.name: self._label_histograms,
            UPDATE.name: self.updates,
            UPDATE_NORM.name: lambda c: np.linalg.norm(self.updates(c).astype(float), axis=1),
        }
        if ask.signal.name in at_once:
            return at_once[ask.signal.name](ask.clients)
        rows = [ask.measured(SimulatedClient(self, int(i), ask.clients)) for i in ask.clients]
        return np.asarray(rows)

    def _label_histograms(self, clients: Ints) -> Array:
        histograms = self.task.label_histograms
        if histograms is None:
            raise BadInput(f"The task {self.task.name!r} has no labels to count.")
        return histograms[clients]

    def updates(self, clients: Ints, data_rate: float = 1.0) -> Array:
        """(k, d) the updates of these clients, each trained at most once a round."""
        if data_rate < 1:
            return self._train(clients, data_rate)
        new = np.array([i for i in clients.tolist() if i not in self._trained], dtype=np.int64)
        if len(new) == len(clients) and not self._trained:
            rows = self._train(new)
            self._trained = dict(zip(new.tolist(), rows, strict=True))
            return rows
        if len(new):
            self._trained.update(zip(new.tolist(), self._train(new), strict=True))
        return np.stack([self._trained[i] for i in clients.tolist()])

    def forget(self, clients: Ints) -> None:
        """Let go of updates that have been folded."""
        for client in clients.tolist():
            self._trained.pop(client, None)

    def _train(self, clients: Ints, data_rate: float = 1.0) -> Array:
        return self.task.updates(self.theta, clients, self.work, self._rngs(clients), data_rate)

    def _rngs(self, clients: Ints) -> list[np.random.Generator]:
        return [stream(self.seed, "train", self.round, int(i)) for i in clients]

    def sent(self, cohort: Cohort) -> tuple[Array, Cohort]:
        """(k, d) what the members of a cohort send, and what their updates counted for.

        They are the same cohort unless answers count per sample: then the second one weighs
        the mean update of a client by the samples that took part.
        """
        clients, rate = cohort.clients, cohort.data_rate
        if not cohort.per_sample:
            return self.updates(clients, rate), cohort
        numbers = self.task.participating(clients, self._rngs(clients), rate)
        some = np.flatnonzero(numbers)  # the others need not be trained: they send zero
        rows = self.updates(clients[some], rate)
        sums = np.zeros((len(clients), self.task.dimension), rows.dtype)
        sums[some] = rows * numbers[some, None].astype(rows.dtype)
        return sums, replace(cohort, weights=cohort.weights * numbers, per_sample=False)


@dataclass(frozen=True)
class SimulatedClient:
    """One client, as a signal of a scheme's own sees it.

    If it must train, so must the ``others`` that were asked the same: they train together, which
    is faster than one by one.
    """

    fleet: Fleet
    position: int
    others: Ints

    @property
    def _alone(self) -> Ints:
        return np.array([self.position])

    @property
    def size(self) -> int:
        """The number of samples."""
        return int(self.fleet.task.sizes[self.position])

    @property
    def label_counts(self) -> Ints:
        """How many samples of each class."""
        row: Ints = self.fleet._label_histograms(self._alone)[0]
        return row

    def loss(self, batch: int | None = None) -> float:
        """Of the current model, over all local data or over one mini-batch of it."""
        task, theta = self.fleet.task, self.fleet.theta
        if batch is None:
            return float(task.losses(theta, self._alone)[0])
        return float(task.batch_losses(theta, self._alone, batch, [self._rng("batch")])[0])

    def feature_counts(self, bins: int) -> Ints:
        """(classes, bins) how often the features of each class take which values in [0, 1]."""
        row: Ints = self.fleet.task.feature_histograms(self._alone, bins)[0]
        return row

    def private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with discrete Laplace noise: the seeded twin, which protects nobody."""
        return noisy_counts(self._rng("private-counts"), counts, epsilon, sensitivity)

    def _rng(self, purpose: str) -> np.random.Generator:
        return stream(self.fleet.seed, purpose, self.fleet.round, self.position)

    def update(self) -> Array:
        """(d,) local training, as if the client had been chosen."""
        if self.position not in self.fleet._trained:
            self.fleet.updates(self.others)
        return self.fleet._trained[self.position]

    def private_size(self, report: SizeReport, round: int = 0) -> int:
        """A randomised answer about the size: the seeded twin, which protects nobody."""
        rng = stream(self.fleet.seed, "private-size", round, self.position)
        return report_size(rng, self.size, report)

    def gradient(self) -> Array:
        """(d,) of the local objective at the current model."""
        task = self.fleet.task
        sums, numbers = task.gradient_sums(self.fleet.theta, self._alone, [self._rng("gradient")])
        row: Array = sums[0] / max(1, int(numbers[0]))
        return row
