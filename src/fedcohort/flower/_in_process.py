"""Flower apps in one process, for tests and examples."""

from __future__ import annotations

import copy
import itertools
import logging
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from flwr.app import ArrayRecord, Context, Error, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid

from fedcohort._internal.errors import BadInput, BadParameter, brief
from fedcohort._internal.types import Array, Ints
from fedcohort.flower import _wire
from fedcohort.flower._client_values import Model, Work
from fedcohort.simulation._clients import Coins, SimulatedClients
from fedcohort.training import Task
from fedcohort.training._call_checks import check_task, check_work
from fedcohort.training._local import LocalWork
from fedcohort.training._model import cut

if TYPE_CHECKING:
    from flwr.supercore.run import Run

# A grid in one process: real apps, real messages, no network and no Ray.
#
# For tests and for finding mistakes: an exception of a client is reported with the client's key,
# and a debugger stops where it happens.

log = logging.getLogger("flwr.fedcohort")
RAISED = 2
"""Flower's code for "the ClientApp raised an exception"."""
PULL = 0.01
"""Seconds between two looks for replies, where clients work in threads."""


def _identify_process() -> None:
    """Set the identity of this process, which the constructor of Message reads."""
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ImportError:  # the module is private: a release of flwr may do without it
        return
    TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1


class InProcessGrid(Grid):
    """Nodes with random ids that answer at once, or as fast as they are.

    Parameters
    ----------
    app
        What every node runs, or a function from the number of the node to its app.
    nodes
        How many; node i has ``partition-id`` i.
    node_config
        More configuration for node i.
    run_config
        The configuration of the run.
    raises
        Let an exception of a client through instead of reporting it to the server.
    threads
        So many clients work at a time, and the server waits for them as on a network; each node
        answers one message after another. With 0 they answer while messages are delivered.

    >>> from fedcohort.flower import client_app
    >>> grid = InProcessGrid(client_app(size=lambda context: 5), nodes=3)
    >>> len(set(grid.get_node_ids()))
    3
    """

    def __init__(
        self,
        app: ClientApp | Callable[[int], ClientApp],
        nodes: int,
        *,
        node_config: Callable[[int], Mapping[str, Any]] = lambda number: {},
        run_config: Mapping[str, Any] | None = None,
        raises: bool = False,
        threads: int = 0,
    ) -> None:
        if not callable(app):
            raise BadParameter(
                "app", "InProcessGrid", "a ClientApp, or a function from a number to one", app
            )
        _identify_process()
        self.raises = raises
        self._told: set[tuple[int, str]] = set()
        self.contexts: dict[int, Context] = {}
        self.apps: dict[int, ClientApp] = {}
        self.partition: dict[int, int] = {}
        """Which partition a node has."""
        self._counter = itertools.count(1)
        self._replies: dict[str, Message] = {}
        self.took: dict[str, float] = {}
        """Seconds to answer, by the name of the message, where clients answer at once."""
        self._pool = ThreadPoolExecutor(threads) if threads else None
        self._working: dict[str, Future[Message | None]] = {}
        self._turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)  # by node
        for number in range(nodes):
            node = secrets.randbits(63)
            config = {"partition-id": number, "num-partitions": nodes, **node_config(number)}
            self.contexts[node] = Context(1, node, config, RecordDict(), dict(run_config or {}))
            self.apps[node] = app if isinstance(app, ClientApp) else app(number)
            self.partition[node] = number

    @property
    def at_once(self) -> bool:
        """Whether nobody has to be waited for."""
        return self._pool is None

    def set_run(self, run: Run) -> None:
        """There is only one."""

    @property
    def run(self) -> Run:
        """There is none."""
        raise NotImplementedError("An in-process grid has no run.")

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """A message, as Flower's own grids make it."""
        return Message(content, dst_node_id, message_type, ttl=ttl, group_id=group_id)

    def get_node_ids(self) -> Iterable[int]:
        """The ids of the nodes, in no order."""
        return set(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Deliver messages; the answers wait to be pulled."""
        names = []
        for message in messages:
            name = f"message-{next(self._counter)}"
            message.metadata.__dict__["_message_id"] = name  # as Flower's own grids do
            names.append(name)
            if self._pool is not None:
                self._working[name] = self._pool.submit(self._in_turn, copy.deepcopy(message))
                continue
            began = time.perf_counter()
            try:
                reply = self.deliver(copy.deepcopy(message))
            except BaseException:
                message.metadata.__dict__["_message_id"] = ""  # it was not sent
                raise
            self.took[name] = time.perf_counter() - began
            if reply is not None:
                self._replies[name] = reply
        return names

    def _in_turn(self, message: Message) -> Message | None:
        with self._turns[message.metadata.dst_node_id]:
            return self.deliver(message)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """The answers that there are."""
        message_ids = list(message_ids)
        for name in message_ids:
            if name in self._working and self._working[name].done():
                reply = self._working.pop(name).result()
                if reply is not None:
                    self._replies[name] = reply
        return [self._replies.pop(name) for name in message_ids if name in self._replies]

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Deliver messages and return a list of the replies, as Flower's grids do.

        Wait for all replies, or until the timeout; clients that reply at once keep nobody waiting.
        """
        waiting = set(self.push_messages(list(messages)))
        began, replies = time.monotonic(), list[Message]()
        while True:
            came = list(self.pull_messages(waiting))
            replies += came
            waiting -= {reply.metadata.reply_to_message_id for reply in came}
            waited = timeout is not None and time.monotonic() - began >= timeout
            if not waiting or self.at_once or waited:
                return replies
            time.sleep(PULL)

    def deliver(self, message: Message) -> Message | None:
        """What a node says to a message; None for nothing. Override it to plant faults."""
        node = message.metadata.dst_node_id
        if node not in self.contexts:
            return None
        try:
            return self.apps[node](message, self.contexts[node])
        except Exception as error:
            if self.raises:
                error.add_note(f"This was the client of partition {self.partition[node]}.")
                raise
            if (node, repr(error)) not in self._told:  # a client that is asked again says it again
                self._told.add((node, repr(error)))
                log.info("client of partition %s: %r", self.partition[node], error)
            return Message(Error(RAISED, repr(error)), reply_to=message)


# A simulated task as Flower clients: the same clients on a real deployment.

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
    return _wire.to_record(cut(theta, task.layers) if by_layer else {THETA: theta})
