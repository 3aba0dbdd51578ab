"""The simulated clients: they answer questions and train."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from fedcohort.algorithms import Algorithm, LocalRule, LocalSgd, Vectors
from fedcohort.algorithms.base import MODEL, reported, weighed_by_samples
from fedcohort.core.client import Client
from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Ask
from fedcohort.core.errors import NotOffered
from fedcohort.core.streams import stream
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.learning.model import cut
from fedcohort.learning.task import Task
from fedcohort.learning.work import LocalWork
from fedcohort.maths.noise import noisy_counts
from fedcohort.privacy import SizeReport
from fedcohort.privacy.size_sum import SizeShare
from fedcohort.simulation.private_twin import report_size, share_size

Coins = Callable[[str, int], np.random.Generator]
"""The generator for a purpose, of a client."""


@dataclass
class SimulatedClients:
    """All clients of a task in one round, around one model.

    Mini-batches are keyed by (seed, round, client): a client that trains to report its norm
    does not train again to send its update, and two schemes that choose the same client see
    the same update. ``coins`` takes the place of the seed where clients have their own.

    Clients train by the rule of ``algorithm``, with the vectors of the ``server`` and what they
    ``keep``; what they propose to keep waits in `proposed` until the round is known to count.
    """

    task: Task
    work: LocalWork
    seed: int
    round: int
    theta: Floats
    coins: Coins | None = None
    algorithm: Algorithm = LocalSgd()  # noqa: RUF009 - it is frozen
    server: Vectors = field(default_factory=dict)
    keep: Mapping[int, Vectors] = field(default_factory=dict)
    proposed: dict[int, Vectors] = field(default_factory=dict)
    _trained: dict[int, Array] = field(default_factory=dict)
    _taken: dict[int, int] = field(default_factory=dict)

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
        """One quantity of some clients, a row each; see `fedcohort.core.client`."""
        if name in self.task.facts:
            return np.asarray(self.task.facts[name])[clients]
        if name in self.offers:
            return ROWS[name](self, clients, *settings)
        remedy = f"the task {self.task.name!r} must have facts = {{'{name}': one value per client}}"
        raise NotOffered(f"Client {clients[0]} of the simulation", name, remedy)

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
        def trained(theta: Floats, some: Ints) -> Array:
            rule, rngs = self._rule(some), self.rngs("train", some)
            return self.task.local_updates(theta, some, rule.work, rngs, data_rate, rule.drift)

        return np.asarray(self.each(clients, trained))

    def each(self, clients: Ints, of: Callable[[Floats, Ints], Any]) -> Any:
        """What a function says of a model and clients, for each client of the model it takes."""
        if self.algorithm.models == 1 or not len(clients):
            return of(self.theta, clients)
        models, taken = [self.theta, *(self.server[n] for n in self.algorithm.others)], self._taken
        new = np.array([i for i in clients.tolist() if i not in taken], dtype=np.int64)
        if len(new):
            losses = np.stack([self.task.losses(theta, new) for theta in models])
            taken.update(zip(new.tolist(), losses.argmin(axis=0).tolist(), strict=True))
        which = self.taken(clients)
        rows: list[Any] = [None] * len(clients)
        for number, theta in enumerate(models):
            places = np.flatnonzero(which == number)
            found = of(theta, clients[places]) if len(places) else ()
            for place, row in zip(places.tolist(), found, strict=True):
                rows[place] = row
        return rows

    def taken(self, clients: Ints) -> Ints:
        """(k,) which of the models these clients took."""
        return np.array([self._taken[i] for i in clients.tolist()], dtype=np.int64)

    def _rule(self, clients: Ints) -> LocalRule:
        return self.algorithm.rule(self.work, self.server, self._kept(clients))

    def _kept(self, clients: Ints) -> dict[str, Array]:
        """(k, d) what these clients keep, by name; zero before they have trained."""
        nothing = np.zeros(self.task.dimension)
        return {
            name: np.array([self.keep[i][name] if i in self.keep else nothing for i in clients])
            for name in self.algorithm.keeps_client
        }

    def rngs(self, purpose: str, clients: Iterable[int]) -> list[np.random.Generator]:
        """The generators of these clients for a purpose."""
        if self.coins is not None:
            return [self.coins(purpose, int(i)) for i in clients]
        return [stream(self.seed, purpose, self.round, int(i)) for i in clients]

    def sent(self, cohort: Cohort) -> tuple[Array, Cohort]:
        """(k, d) what the members of a cohort send, and what their updates counted for.

        They are the same cohort unless answers count per sample: then the second one weighs
        the mean update of a client by the samples that took part.
        """
        updates, counted, _ = self.reports(cohort)
        return updates, counted

    def reports(self, cohort: Cohort) -> tuple[Array, Cohort, dict[str, Array]]:
        """As `sent`, and the payloads (k, d) of the local algorithm, by name."""
        clients, rate = cohort.clients, cohort.data_rate
        if not cohort.per_sample:
            rows = self.updates(clients, rate)
            return rows, cohort, self._reported(cohort, rows)
        numbers = self.task.participating(clients, self.rngs("train", clients), rate)
        some = np.flatnonzero(numbers)  # the others need not be trained: they send zero
        rows = self.updates(clients[some], rate)
        sums = np.zeros((len(clients), self.task.dimension), rows.dtype)
        sums[some] = rows * numbers[some, None].astype(rows.dtype)
        weighed = replace(cohort, weights=cohort.weights * numbers, per_sample=False)
        means = np.zeros_like(sums)
        means[some] = rows
        return sums, weighed, self._reported(cohort, means, numbers)

    def _reported(
        self, cohort: Cohort, updates: Array, numbers: Ints | None = None
    ) -> dict[str, Array]:
        """The payloads of updates; ``numbers`` (k,) of samples, where answers count by them."""
        algorithm, clients = self.algorithm, cohort.clients
        if not (algorithm.payloads or algorithm.stateful):
            return {}
        took_part = self.task.participating(clients, self.rngs("train", clients), cohort.data_rate)
        work = self._rule(clients).work
        steps = np.array([work.steps_for(int(number)) for number in took_part], dtype=np.int64)
        known = self._kept(clients) | {n: self.rows(n, clients) for n in algorithm.needs}
        if algorithm.models > 1:
            known[MODEL] = self.taken(clients)[:, None]
        payloads, proposals = reported(algorithm, work, self.server, known, updates, steps)
        for place, client in enumerate(clients.tolist()):
            self.proposed[client] = {name: rows[place] for name, rows in proposals.items()}
        return weighed_by_samples(algorithm, payloads, numbers)


def _losses(all: SimulatedClients, clients: Ints, batch: int | None = None) -> Floats:
    if batch is None:
        return np.asarray(all.each(clients, all.task.losses))
    size = batch

    def of(theta: Floats, some: Ints) -> Floats:
        return all.task.batch_losses(theta, some, size, all.rngs("batch", some))

    return np.asarray(all.each(clients, of))


def _gradients(all: SimulatedClients, clients: Ints) -> Array:
    def of(theta: Floats, some: Ints) -> Array:
        sums, numbers = all.task.gradient_sums(theta, some, all.rngs("gradient", some))
        return np.asarray(sums / np.maximum(1, numbers)[:, None])

    return np.asarray(all.each(clients, of))


def _layers(all: SimulatedClients, clients: Ints, of: str = "update") -> list[dict[str, Array]]:
    models = all.each(clients, lambda theta, some: [theta] * len(some))
    vectors = models if of == "model" else all.rows(of, clients)
    return [cut(vector, all.task.layers) for vector in vectors]


ROWS: dict[str, Callable[..., Any]] = {
    "key": lambda all, clients: clients,
    "size": lambda all, clients: all.task.sizes[clients],
    "label_counts": lambda all, clients: all.task.label_histograms[clients],
    "loss": _losses,
    "sample_losses": lambda all, clients: all.each(
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
        return self._group.all.keep.get(self._position, {})

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
