"""The stage of a simulated round that runs a local algorithm other than plain SGD."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.training._algorithms import (
    MODEL,
    Algorithm,
    LocalRule,
    Vectors,
    reported,
    weighed_by_samples,
)

if TYPE_CHECKING:
    from fedcohort.simulation._clients import SimulatedClients


@dataclass
class LocalStage:
    """A local algorithm on simulated clients, in one round.

    What clients propose to keep waits in `proposed` until the round is known to count.
    """

    algorithm: Algorithm
    server: Vectors = field(default_factory=dict)  # sent down with the model
    keep: Mapping[int, Vectors] = field(default_factory=dict)  # that each client remembers
    proposed: dict[int, Vectors] = field(default_factory=dict)
    _best_model: dict[int, int] = field(default_factory=dict)  # of several, by client

    def train(self, clients: SimulatedClients, positions: Ints, data_rate: float) -> Array:
        """Return the updates (k, d) of clients that train by the rule of the algorithm."""

        def train(theta: Floats, some: Ints) -> Array:
            rule, rngs = self.rule(clients, some), clients.rngs("train", some)
            return clients.task.local_updates(theta, some, rule.work, rngs, data_rate, rule.drift)

        return np.asarray(self.per_model(clients, positions, train))

    def rule(self, clients: SimulatedClients, positions: Ints) -> LocalRule:
        """Return what clients train with."""
        return self.algorithm.rule(clients.work, self.server, self._kept(clients, positions))

    def payloads(
        self, clients: SimulatedClients, cohort: Cohort, updates: Array, samples: Ints | None = None
    ) -> dict[str, Array]:
        """Return the payloads (k, ...); ``samples`` (k,) weigh them where they count per sample."""
        algorithm, positions = self.algorithm, cohort.clients
        if not (algorithm.payloads or algorithm.stateful):
            return {}
        rngs = clients.rngs("train", positions)
        sizes = clients.task.participating(positions, rngs, cohort.data_rate)
        work = self.rule(clients, positions).work
        steps = np.array([work.steps_for(int(size)) for size in sizes], dtype=np.int64)
        known: dict[str, Any] = self._kept(clients, positions)
        known |= {name: clients.rows(name, positions) for name in algorithm.needs}
        if algorithm.models > 1:
            known[MODEL] = self._choices(positions)[:, None]
        payloads, proposals = reported(algorithm, work, self.server, known, updates, steps)
        for place, client in enumerate(positions.tolist()):
            self.proposed[client] = {name: rows[place] for name, rows in proposals.items()}
        return weighed_by_samples(algorithm, payloads, samples)

    def per_model(
        self, clients: SimulatedClients, positions: Ints, function: Callable[[Floats, Ints], Any]
    ) -> Any:
        """Return rows of a function, for each client at the model with its lowest loss."""
        if self.algorithm.models == 1 or not len(positions):
            return function(clients.theta, positions)
        models = [clients.theta, *(self.server[name] for name in self.algorithm.others)]
        new = np.array([i for i in positions.tolist() if i not in self._best_model], np.int64)
        if len(new):
            losses = np.stack([clients.task.losses(theta, new) for theta in models])
            self._best_model.update(zip(new.tolist(), losses.argmin(axis=0).tolist(), strict=True))
        choices = self._choices(positions)
        rows: list[Any] = [None] * len(positions)
        for number, theta in enumerate(models):
            places = np.flatnonzero(choices == number)
            some = function(theta, positions[places]) if len(places) else ()
            for place, row in zip(places.tolist(), some, strict=True):
                rows[place] = row
        return rows

    def _choices(self, positions: Ints) -> Ints:
        return np.array([self._best_model[i] for i in positions.tolist()], dtype=np.int64)

    def _kept(self, clients: SimulatedClients, positions: Ints) -> dict[str, Array]:
        """Return rows (k, d) that clients keep, by name; zero before they have trained."""
        zero = np.zeros(clients.task.dimension)
        return {
            name: np.array([self.keep[i][name] if i in self.keep else zero for i in positions])
            for name in self.algorithm.keeps_client
        }
