"""NVIDIA FLARE: its FedAvg controller, with clients and weights of a scheme.

Written for nvflare 2.9: ``sample_clients``, ``aggregator=`` and ``update_model`` of its FedAvg.
Clients are known by their site names, which are the ids of the federation. A client may send its
new parameters or the difference. FLARE sends one task per target, so a client drawn twice trains
once and weighs twice; who does not answer counts as unchanged, unless ``dropouts`` says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from fedcohort._internal.errors import TooFewClients
from fedcohort._internal.types import Ints
from fedcohort.adapters._loop import Loop, changed, flat, shaped
from fedcohort.selection._queries import Ask
from fedcohort.server import Aggregator, DropOutRule, Optimiser
from fedcohort.server._reply_validation import Form
from fedcohort.server._selector import Selector
from fedcohort.server._transport import QueryReplies, Responses, TrainRequest, stacked

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

    def ask(self, ask: Ask) -> QueryReplies:
        """One task to everybody who is asked; no answer is a row of NaN."""
        names, signal = self.sites(ask.clients), ask.signal
        replies = self.controller.asked({"signal": signal.name, **ask.settings}, names, signal)
        form = Form.of(signal, {**self.sizes, **ask.settings})
        found = self.admitted(
            named(replies), ask.clients, form, lambda reply: {signal.name: reply.params["answer"]}
        )
        rows = self.gate.alike({client: told[signal.name] for client, told in found.items()})
        self.tell()
        if not rows:
            raise TooFewClients(
                f"Nobody answered the question for '{signal.name}'.{self.gate.quote()}"
            )
        models = len(names) if signal.needs_model else 0
        return QueryReplies(stacked(rows, ask.clients), ask.clients, len(rows), models)

    def train(self, train: TrainRequest) -> Responses:
        """FLARE's own loop has invited the cohort; those who stand in are invited here."""
        if train.replacing:
            self.controller.trained_again(train.clients)
        return super().train(train)


def named(replies: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Replies with the names of their sites, "" where FLARE does not tell it."""
    for reply in replies:
        meta = reply.meta if isinstance(reply.meta, Mapping) else {}
        yield str(meta.get("client_name", "")), reply


def cohort_fedavg(
    selector: Selector,
    *,
    eta_g: float = 1.0,
    optimiser: Optimiser | str | None = None,
    aggregator: Aggregator | str | None = None,
    dropouts: DropOutRule | str = "none",
    quorum: float = 0.0,
    largest: float = 1e6,
    timeout: int = 0,
    **options: Any,
) -> Any:
    """A controller: FLARE's FedAvg with the rounds of a selector.

    ``largest`` is the largest change of a single parameter that is believed. ``timeout`` is for
    questions and for replacements, in seconds (0: no limit); ``options`` are those of FLARE's
    FedAvg (``num_rounds``, ``model``, ...).
    """
    from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
    from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
    from nvflare.app_common.workflows.fedavg import FedAvg

    carrier = FlareCarrier(selector, eta_g, optimiser, aggregator, dropouts, quorum, largest)

    class Kept(ModelAggregator):  # type: ignore[misc]
        """Keeps the answers; they are folded in the order of the clients."""

        def reset_stats(self) -> None:
            self.answers: list[Any] = []

        def accept_model(self, model: Any) -> None:
            self.answers.append(model)

        def aggregate_model(self) -> Any:
            return FLModel(params={"_": np.zeros(1)}, params_type=ParamsType.DIFF)

    class CohortFedAvg(FedAvg):  # type: ignore[misc]
        now: Any = None  # the model of this round, once it is known
        gate = carrier.gate  # what was rejected, and why

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

        def trained_again(self, clients: Ints) -> None:
            self._came(self._exchanged("train", self.now, carrier.sites(clients)), clients)

        def _exchanged(self, task: str, data: Any, names: list[str]) -> list[Any]:
            replies: list[Any] = self.send_model_and_wait(
                task_name=task, data=data, targets=names, timeout=timeout
            )
            return replies

        def _came(self, answers: list[Any], clients: Ints | None = None) -> None:
            shapes = {name: np.shape(array) for name, array in self.now.params.items()}
            carrier.came(named(answers), shapes, self._change, clients)

        def _change(self, answer: Any) -> dict[str, Any]:
            """What a site has changed; it may send the difference, or the new parameters."""
            sent, now = dict(answer.params), self.now.params
            if answer.params_type != ParamsType.FULL:
                return sent
            return {
                name: changed(sent[name], now[name]) if name in now else sent[name] for name in sent
            }

        def update_model(self, model: Any, aggr_result: Any) -> Any:
            self.now = model
            self._came(self.aggregator.answers)
            theta = carrier.finish(flat(model.params.values()))
            new = FLModel(params=shaped(theta, model.params), params_type=ParamsType.FULL)
            new.meta = aggr_result.meta
            self.now = super().update_model(model, new)
            return self.now

    carrier.controller = CohortFedAvg(aggregator=Kept(), **options)
    return carrier.controller
