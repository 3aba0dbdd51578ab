"""The simulated clients: they answer questions and train."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedcohort._internal.errors import NotOffered
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.maths._noise import noisy_counts
from fedcohort.privacy import SizeReport
from fedcohort.privacy._size_estimate import SizeShare
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._queries import Ask, Client
from fedcohort.simulation.local_stage import LocalStage
from fedcohort.simulation.private_twin import report_size, share_size
from fedcohort.training._algorithms import Vectors
from fedcohort.training._local import LocalWork
from fedcohort.training._model import cut
from fedcohort.training._task import Task

Coins = Callable[[str, int], np.random.Generator]
"""The generator for a purpose, of a client."""


@dataclass
class SimulatedClients:
    """All clients of a task in one round, around one model.

    Mini-batches are keyed by (seed, round, client): a client that trains to report its norm
    does not train again to send its update, and two schemes that choose the same client see
    the same update. ``coins`` takes the place of the seed where clients have their own.

    A local algorithm other than plain SGD is a `LocalStage`.
    """

    task: Task
    work: LocalWork
    seed: int
    round: int
    theta: Floats
    coins: Coins | None = None
    stage: LocalStage | None = None
    _trained: dict[int, Array] = field(default_factory=dict)

    def answer(self, ask: Ask) -> Array:
        """What the clients say to a question; common signals are measured all at once."""
        group = Group(self, ask.clients)
        if ask.signal.measure_all is not None and not ask.settings:
            with suppress(NotOffered):  # then told, or made up, client by client
                return np.asarray(ask.signal.measure_all(group.rows))
        clients = (SimulatedClient(group, place) for place in range(len(ask.clients)))
        return np.asarray([self._told(ask, client) for client in clients])

    def _told(self, ask: Ask, client: SimulatedClient) -> Any:
        """One answer; facts that the task does not have are made up where the signal says how."""
        try:
            return ask.measured(client)
        except NotOffered:
            if ask.signal.example is None:
                raise
        rng = stream(self.seed, f"fact {ask.signal.name}", client=client._position)
        return ask.signal.made_up(rng, {**self.sizes, **ask.settings})

    @property
    def sizes(self) -> dict[str, int]:
        """The lengths that shapes of signals may name."""
        histograms = self.task.label_histograms
        classes = {} if histograms is None else {"classes": histograms.shape[1]}
        return {"parameters": self.task.dimension, **classes}

    @property
    def offers(self) -> frozenset[str]:
        """The names of what these clients have, beside private answers."""
        task = type(self.task)
        lacking = {
            name for name, way in OPTIONAL.items() if getattr(task, way) is getattr(Task, way)
        }
        if self.task.label_histograms is None:
            lacking.add("label_counts")
        return frozenset({*ROWS, *self.task.facts} - lacking)

    def rows(self, name: str, clients: Ints, *settings: Any) -> Any:
        """One quantity of some clients, a row each; see `fedcohort.selection._queries`."""
        if name in self.task.facts:
            return np.asarray(self.task.facts[name])[clients]
        if name in self.offers:
            return ROWS[name](self, clients, *settings)
        remedy = f"the task {self.task.name!r} must have facts = {{'{name}': one value per client}}"
        raise NotOffered(f"Client {clients[0]} of the simulation", name, remedy)

    def updates(self, clients: Ints, data_rate: float = 1.0) -> Array:
        """Return the updates (k, d) of these clients, each trained at most once a round."""
        if data_rate < 1:
            return self._train(clients, data_rate)
        if not self._trained:
            rows = self._train(clients)
            self._trained = dict(zip(clients.tolist(), rows, strict=True))
            return rows
        new = np.array([i for i in clients.tolist() if i not in self._trained], dtype=np.int64)
        if len(new):
            self._trained.update(zip(new.tolist(), self._train(new), strict=True))
        return np.stack([self._trained[i] for i in clients.tolist()])

    def _train(self, clients: Ints, data_rate: float = 1.0) -> Array:
        if self.stage is not None:
            return self.stage.train(self, clients, data_rate)
        rngs = self.rngs("train", clients)
        return np.asarray(self.task.updates(self.theta, clients, self.work, rngs, data_rate))

    def forget(self, clients: Ints) -> None:
        """Release updates that have been aggregated."""
        for client in clients.tolist():
            self._trained.pop(client, None)

    def per_model(self, clients: Ints, function: Callable[[Floats, Ints], Any]) -> Any:
        """Return rows of a function of a model and clients, at the model that each takes."""
        if self.stage is None:
            return function(self.theta, clients)
        return self.stage.per_model(self, clients, function)

    def rngs(self, purpose: str, clients: Iterable[int]) -> list[np.random.Generator]:
        """The generators of these clients for a purpose."""
        if self.coins is not None:
            return [self.coins(purpose, int(i)) for i in clients]
        return [stream(self.seed, purpose, self.round, int(i)) for i in clients]

    def sent(self, cohort: Cohort) -> tuple[Array, Cohort]:
        """Return what members of a cohort send (k, d), and the weights of their mean updates."""
        updates, counted, _ = self.reports(cohort)
        return updates, counted

    def reports(self, cohort: Cohort) -> tuple[Array, Cohort, dict[str, Array]]:
        """Return updates, the cohort with the weights of mean updates, and payloads by name."""
        if cohort.per_sample:
            return self._sample_sums(cohort)
        rows = self.updates(cohort.clients, cohort.data_rate)
        payloads = {} if self.stage is None else self.stage.payloads(self, cohort, rows)
        return rows, cohort, payloads

    def _sample_sums(self, cohort: Cohort) -> tuple[Array, Cohort, dict[str, Array]]:
        """As `reports`, for clients that send sums over the samples that take part."""
        clients, rate = cohort.clients, cohort.data_rate
        samples = self.task.participating(clients, self.rngs("train", clients), rate)
        some = np.flatnonzero(samples)  # the others need not be trained: they send zero
        rows = self.updates(clients[some], rate)
        sums = np.zeros((len(clients), self.task.dimension), rows.dtype)
        sums[some] = rows * samples[some, None].astype(rows.dtype)
        weighed = replace(cohort, weights=cohort.weights * samples, per_sample=False)
        if self.stage is None:
            return sums, weighed, {}
        means = np.zeros_like(sums)
        means[some] = rows
        return sums, weighed, self.stage.payloads(self, cohort, means, samples)


def _losses(all: SimulatedClients, clients: Ints, batch: int | None = None) -> Floats:
    if batch is None:
        return np.asarray(all.per_model(clients, all.task.losses))
    size = batch

    def of(theta: Floats, some: Ints) -> Floats:
        return all.task.batch_losses(theta, some, size, all.rngs("batch", some))

    return np.asarray(all.per_model(clients, of))


def _gradients(all: SimulatedClients, clients: Ints) -> Array:
    def of(theta: Floats, some: Ints) -> Array:
        sums, numbers = all.task.gradient_sums(theta, some, all.rngs("gradient", some))
        return np.asarray(sums / np.maximum(1, numbers)[:, None])

    return np.asarray(all.per_model(clients, of))


def _layers(all: SimulatedClients, clients: Ints, of: str = "update") -> list[dict[str, Array]]:
    models = all.per_model(clients, lambda theta, some: [theta] * len(some))
    vectors = models if of == "model" else all.rows(of, clients)
    return [cut(vector, all.task.layers) for vector in vectors]


ROWS: dict[str, Callable[..., Any]] = {
    "key": lambda all, clients: clients,
    "size": lambda all, clients: all.task.sizes[clients],
    "label_counts": lambda all, clients: all.task.label_histograms[clients],
    "loss": _losses,
    "sample_losses": lambda all, clients: all.per_model(
        clients, lambda theta, some: [all.task.sample_losses(theta, i) for i in some]
    ),
    "update": SimulatedClients.updates,
    "gradient": _gradients,
    "layers": _layers,
    "feature_counts": lambda all, clients, bins: all.task.feature_histograms(clients, bins),
}
"""Each quantity, of many clients at once."""
OPTIONAL = {"sample_losses": "sample_losses", "feature_counts": "feature_histograms"}
"""What a task need not have, and the method that it then does not write."""


@dataclass
class Group:
    """Clients that are asked together: what one of them computes, all do, and once."""

    all: SimulatedClients
    clients: Ints
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def rows(self, name: str, *settings: Any) -> Any:
        """A quantity of all of them."""
        if (name, *settings) not in self._known:
            self._known[name, *settings] = self.all.rows(name, self.clients, *settings)
        return self._known[name, *settings]


class SimulatedClient(Client):
    """One of a group, as a signal sees it."""

    def __init__(self, group: Group, place: int) -> None:
        self._group, self._place = group, place
        self._position = int(group.clients[place])

    @property
    def state(self) -> Vectors:  # type: ignore[override]
        """What it keeps for the local algorithm."""
        stage = self._group.all.stage
        return {} if stage is None else stage.keep.get(self._position, {})

    def quantity(self, name: str, *settings: Any) -> Any:
        """Private answers are each client's own; all else is computed for the group."""
        if name in ("private_size", "private_share", "private_counts"):
            return super().quantity(name, *settings)
        return self._group.rows(name, *settings)[self._place]

    def offer_private_size(self, report: SizeReport, round: int) -> int:
        """The seeded twin of an answer, which protects nobody."""
        rng = stream(self._group.all.seed, "private-size", round, self._position)
        return report_size(rng, self.size, report)

    def offer_private_share(self, share: SizeShare, round: int) -> int:
        """The seeded twin of a share of the sum of sizes, which protects nobody."""
        rng = stream(self._group.all.seed, "private-share", round, self._position)
        return share_size(rng, self.size, share)

    def offer_private_counts(self, counts: Ints, epsilon: float, sensitivity: int) -> Ints:
        """Counts with discrete Laplace noise: the seeded twin, which protects nobody."""
        (rng,) = self._group.all.rngs("private-counts", [self._position])
        return noisy_counts(rng, counts, epsilon, sensitivity)
