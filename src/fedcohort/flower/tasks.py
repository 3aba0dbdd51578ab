"""A simulated task as Flower clients: the same clients on a real deployment."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context

from fedcohort._internal.errors import BadInput, brief
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import wire
from fedcohort.flower.quantities import Model
from fedcohort.flower.work import Work
from fedcohort.simulation._clients import Coins, SimulatedClients
from fedcohort.training import Task
from fedcohort.training._call_checks import check_task, check_work
from fedcohort.training._local import LocalWork
from fedcohort.training._model import cut

THETA = "theta"
"""The name of a model that travels as one array; others travel layer by layer."""


@dataclass(frozen=True)
class TaskClient:
    """One client of a task, as `fedcohort.flower.client_app` wants it: the simulated one.

    Its answers have the arrays of the model that it was sent: one, or one of each layer.
    """

    task: Task
    position: int
    work: LocalWork

    def _clients(self, theta: Array | None = None, coins: Coins | None = None) -> SimulatedClients:
        here = np.empty(0) if theta is None else theta
        return SimulatedClients(self.task, self.work, 0, 0, here, coins)

    def _one(self, name: str, clients: SimulatedClients, *settings: Any) -> Any:
        return clients.rows(name, np.array([self.position]), *settings)[0]

    def _names(self, arrays: Mapping[str, Array]) -> list[str]:
        """The arrays of a model in the order of a flat one: one for all, or one of each layer."""
        layers = self.task.layers
        if arrays.keys() == {THETA} and self.task.statistics:
            raise BadInput(
                f"The model of this task has {self.task.statistics} running statistics, which the "
                f"server finds by the names of layers. Got one array '{THETA}': begin with "
                "initial_arrays=first_model(task, seed)."
            )
        if arrays.keys() != {THETA} and arrays.keys() != layers.keys():
            raise BadInput(
                f"A client of task_client trains a model of one array '{THETA}', or of the layers "
                f"{brief(', '.join(layers))}. Got {brief(', '.join(arrays))} instead: begin with "
                "initial_arrays=first_model(task, seed), layers=True or not."
            )
        return list(layers if len(arrays) > 1 else arrays)

    def _flat(self, arrays: Mapping[str, Array]) -> Array:
        """(d,) a model, or what has its arrays, as the task wants it."""
        return np.concatenate([np.ravel(arrays[name]) for name in self._names(arrays)])

    def _like(self, model: Model, flat: Array) -> Model:
        """A vector with the arrays of a model."""
        return cut(flat, {name: model[name].shape for name in self._names(model)})

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
        clients = self._clients(self._flat(model), lambda purpose, client: rng)
        return float(self._one("loss", clients, batch))

    def sample_losses(self, model: Model) -> Array:
        """Of a model, on each sample."""
        return np.asarray(self._one("sample_losses", self._clients(self._flat(model))))

    def update(self, model: Model, work: Work) -> Model:
        """Local training on the share of the data that the server asks for."""
        rule = work.rule(self.work)
        drift = None if rule.drift is None else self._flat(rule.drift)[None]
        alone, rngs = np.array([self.position]), [work.rng("train")]
        change = self.task.local_updates(
            self._flat(model), alone, rule.work, rngs, work.data_rate, drift
        )
        return self._like(model, change[0])

    def gradient(self, model: Model, work: Work) -> Model:
        """Of the local objective."""
        clients = self._clients(self._flat(model), lambda purpose, client: work.rng(purpose))
        return self._like(model, self._one("gradient", clients))

    def layers(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The layers of a model."""
        return cut(self._flat(arrays), self.task.layers)

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


def first_model(task: Task, seed: int, *, layers: bool = False) -> ArrayRecord:
    """The model a simulation of the task begins with, for ``start(initial_arrays=...)``.

    One array, ``theta``; with ``layers`` one of each layer by its name, as ``task.layers`` has
    them, which is what the names in ``ifca:shared=...`` are about. A model with running statistics
    is always given by layers, so that the server finds the statistics by their names.
    """
    theta = np.asarray(task.initial(seed), dtype=np.float64)
    by_layer = layers or task.statistics
    return wire.to_record(cut(theta, task.layers) if by_layer else {THETA: theta})
