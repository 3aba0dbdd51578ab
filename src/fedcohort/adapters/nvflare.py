"""NVIDIA FLARE: its FedAvg controller, with clients and weights of a scheme.

Written for nvflare 2.9: ``sample_clients``, ``aggregator=`` and ``update_model`` of its FedAvg.
Clients are known by their site names, which are the ids of the federation. A client may send its
new parameters or the difference. FLARE sends one task per target, so a client drawn twice trains
once and weighs twice; who does not answer counts as unchanged, unless ``dropouts`` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from fedcohort.adapters.loop import Loop, flat, shaped
from fedcohort.core.conversation import Ask
from fedcohort.core.errors import TooFewClients
from fedcohort.core.types import Array, Ints
from fedcohort.selector import Selector
from fedcohort.server import Aggregator, DropOutRule, Optimiser
from fedcohort.server.carrier import Answers, Arrived, Train

QUESTION = "fedcohort"
"""The task that puts a question: ``meta["signal"]`` and its settings; answer in ``params``.

The parameters that come with it are the model, where the signal is about it.
"""


class FlareCarrier(Loop):
    """Tasks for sites: questions, training and replacements."""

    name: ClassVar[str] = "NVIDIA FLARE"
    controller: Any  # whose network is used

    def sites(self, clients: Ints) -> list[str]:
        """The names of clients."""
        return [str(self.selector.federation.ids[i]) for i in clients.tolist()]

    def ask(self, ask: Ask) -> Answers:
        """One task to everybody who is asked; no answer is a row of NaN."""
        names, signal = self.sites(ask.clients), ask.signal
        replies = self.controller.asked({"signal": signal.name, **ask.settings}, names, signal)
        told = {reply.meta["client_name"]: (reply.params or {}).get("answer") for reply in replies}
        rows = {name: np.asarray(told[name]) for name in names if told.get(name) is not None}
        if not rows:
            raise TooFewClients(f"Nobody answered the question for '{signal.name}'.")
        shape = next(iter(rows.values())).shape
        nothing = np.full(shape, np.nan)
        fine = {name: row for name, row in rows.items() if row.shape == shape}
        stacked = np.asarray([fine.get(name, nothing) for name in names])
        models = len(names) if signal.needs_model else 0
        return Answers(stacked, ask.clients, len(fine), models)

    def train(self, train: Train) -> Arrived:
        """FLARE's own loop has invited the cohort; those who stand in are invited here."""
        if train.replacing:
            self.controller.trained_again(self.sites(train.clients))
        return super().train(train)


def cohort_fedavg(
    selector: Selector,
    *,
    eta_g: float = 1.0,
    optimiser: Optimiser | str | None = None,
    aggregator: Aggregator | str | None = None,
    dropouts: DropOutRule | str = "none",
    quorum: float = 0.0,
    timeout: int = 0,
    **options: Any,
) -> Any:
    """A controller: FLARE's FedAvg with the rounds of a selector.

    ``timeout`` is for questions and for replacements, in seconds (0: no limit); ``options`` are
    those of FLARE's FedAvg (``num_rounds``, ``model``, ...).
    """
    from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
    from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
    from nvflare.app_common.workflows.fedavg import FedAvg

    carrier = FlareCarrier(selector, eta_g, optimiser, aggregator, dropouts, quorum)

    class Kept(ModelAggregator):  # type: ignore[misc]
        """Keeps the answers by name; they are folded in the order of the clients."""

        def reset_stats(self) -> None:
            self.answers: dict[str, Any] = {}

        def accept_model(self, model: Any) -> None:
            name = (model.meta or {}).get("client_name", "")
            self.answers.setdefault(name, model)  # of two answers the first counts

        def aggregate_model(self) -> Any:
            return FLModel(params={"_": np.zeros(1)}, params_type=ParamsType.DIFF)

    class CohortFedAvg(FedAvg):  # type: ignore[misc]
        now: Any = None  # the model of this round, once it is known

        def load_model(self) -> Any:
            self.now = super().load_model()
            return self.now

        def sample_clients(self, num_clients: int | None = None) -> list[str]:
            if self.now is None:
                given = isinstance(self.model, FLModel)
                self.now = self.model if given else FLModel(params=self.model)
            there = {client.name for client in self.engine.get_clients()}
            ids = selector.federation.ids
            here = [i for i, name in enumerate(ids) if name in there]
            available = None if len(here) == len(ids) else np.array(here, dtype=np.int64)
            cohort = carrier.invite(available, len(flat(self.now.params.values())))
            return carrier.sites(cohort.clients)

        def send_model(self, *args: Any, **task: Any) -> None:
            if task.get("targets", True):  # FLARE never finishes a task for nobody
                super().send_model(*args, **task)

        def asked(self, meta: Mapping[str, Any], names: list[str], signal: Any) -> list[Any]:
            # FLARE carries no message without parameters.
            params = self.now.params if signal.needs_model else {"_": np.zeros(1)}
            question = FLModel(params=params, params_type=ParamsType.FULL, meta=dict(meta))
            return self._exchanged(QUESTION, question, names)

        def trained_again(self, names: list[str]) -> None:
            for answer in self._exchanged("train", self.now, names):
                self.aggregator.accept_model(answer)
            carrier.came(self._updates(), len(flat(self.now.params.values())))

        def _exchanged(self, task: str, data: Any, names: list[str]) -> list[Any]:
            replies: list[Any] = self.send_model_and_wait(
                task_name=task, data=data, targets=names, timeout=timeout
            )
            return replies

        def _updates(self) -> dict[int, Array]:
            """What every client that sent something has changed, (d,) each."""
            position = {str(name): i for i, name in enumerate(selector.federation.ids)}
            heard = self.aggregator.answers.items()
            return {position[name]: self._change(answer) for name, answer in heard}

        def _change(self, answer: Any) -> Array:
            if set(answer.params) != set(self.now.params):
                return np.empty(0)  # of another size than the model
            sent = flat(answer.params[name] for name in self.now.params)
            full = answer.params_type == ParamsType.FULL
            return sent - flat(self.now.params.values()) if full else sent

        def update_model(self, model: Any, aggr_result: Any) -> Any:
            self.now = model
            theta = carrier.step(flat(model.params.values()), self._updates())
            new = FLModel(params=shaped(theta, model.params), params_type=ParamsType.FULL)
            new.meta = aggr_result.meta
            self.now = super().update_model(model, new)
            return self.now

    carrier.controller = CohortFedAvg(aggregator=Kept(), **options)
    return carrier.controller
