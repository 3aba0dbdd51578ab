"""A simulated task as Flower clients: the same clients on a real deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context

from fedcohort.core.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.quantities import Model
from fedcohort.flower.work import Work
from fedcohort.learning import Task
from fedcohort.learning.model import cut
from fedcohort.learning.work import LocalWork
from fedcohort.learning.wrong_use import check_task, check_work
from fedcohort.simulation.clients import Coins, SimulatedClients

THETA = "theta"


@dataclass(frozen=True)
class TaskClient:
    """One client of a task, as `fedcohort.flower.client_app` wants it: the simulated one."""

    task: Task
    position: int
    work: LocalWork

    def _clients(self, theta: Array | None = None, coins: Coins | None = None) -> SimulatedClients:
        here = np.empty(0) if theta is None else theta
        return SimulatedClients(self.task, self.work, 0, 0, here, coins)

    def _one(self, name: str, clients: SimulatedClients, *settings: Any) -> Any:
        return clients.rows(name, np.array([self.position]), *settings)[0]

    @property
    def offers(self) -> frozenset[str]:
        """The names of what it has."""
        return self._clients().offers

    def __getattr__(self, name: str) -> Any:
        """Its size, its label counts, and facts of the task."""
        if name.startswith("_") or name not in self.offers:
            raise AttributeError(name=name, obj=self)
        return self._one(name, self._clients())

    @property
    def statistics(self) -> int:
        """Of the numbers of a model, those that are no weights."""
        return self.task.statistics

    def loss(self, model: Model, batch: int | None = None, rng: Any = None) -> float:
        """Of a model, over all local data or over one mini-batch of it."""
        clients = self._clients(model[THETA], lambda purpose, client: rng)
        return float(self._one("loss", clients, batch))

    def sample_losses(self, model: Model) -> Array:
        """Of a model, on each sample."""
        return np.asarray(self._one("sample_losses", self._clients(model[THETA])))

    def update(self, model: Model, work: Work) -> Model:
        """Local training on the share of the data that the server asks for."""
        rule = work.rule(self.work)
        drift = None if rule.drift is None else rule.drift[THETA][None]
        alone, rngs = np.array([self.position]), [work.rng("train")]
        return {
            THETA: self.task.local_updates(
                model[THETA], alone, rule.work, rngs, work.data_rate, drift
            )[0]
        }

    def gradient(self, model: Model, work: Work) -> Model:
        """Of the local objective."""
        clients = self._clients(model[THETA], lambda purpose, client: work.rng(purpose))
        return {THETA: self._one("gradient", clients)}

    def layers(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The layers of a flat model."""
        return cut(arrays[THETA], self.task.layers)

    def feature_counts(self, bins: int) -> Ints:
        """(classes, bins) how often the features of each class take which values."""
        return np.asarray(self._one("feature_counts", self._clients(), bins))


def task_client(task: Task, work: LocalWork) -> Callable[[Context], TaskClient]:
    """Clients of a task: node with ``partition-id`` i is client i."""
    check_task(task, "task_client")
    check_work(work, "task_client")

    def local(context: Context) -> TaskClient:
        return TaskClient(task, int(context.node_config["partition-id"]), work)

    return local


def first_model(task: Task, seed: int) -> ArrayRecord:
    """The model a simulation of the task begins with, for ``start(initial_arrays=...)``."""
    return wire.to_record({THETA: np.asarray(task.initial(seed), dtype=np.float64)})
