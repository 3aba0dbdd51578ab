"""NVIDIA FLARE: its FedAvg controller, with clients and weights of a scheme.

Written for nvflare 2.9: ``sample_clients``, ``aggregator=`` and ``update_model`` of its FedAvg.
Clients are known by their site names, which are the ids of the federation. A client may send its
new parameters or the difference. FLARE sends one task per target, so a client drawn twice trains
once and weighs twice; who does not answer counts as unchanged.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort.core.cohort import Replies
from fedcohort.core.conversation import UPDATE, Ask
from fedcohort.core.errors import TooFewClients
from fedcohort.core.types import Array
from fedcohort.selector import Selector
from fedcohort.server.estimators import weighted_sum, weights_of

QUESTION = "fedcohort"
"""The task that puts a question: ``meta["signal"]`` and its settings; answer in ``params``."""


def cohort_fedavg(
    selector: Selector, *, eta_g: float = 1.0, timeout: int = 0, **options: Any
) -> Any:
    """A controller for ``FedJob.to_server``: FedAvg with the cohorts of a selector.

    ``timeout`` is for questions, in seconds (0: no limit); ``options`` are those of FLARE's
    FedAvg (``num_rounds``, ``model``, ...).
    """
    from nvflare.app_common.abstract.fl_model import FLModel, ParamsType
    from nvflare.app_common.aggregators.model_aggregator import ModelAggregator
    from nvflare.app_common.workflows.fedavg import FedAvg

    class Kept(ModelAggregator):  # type: ignore[misc]
        """Keeps the answers by name; they are added up in the order of the clients."""

        def reset_stats(self) -> None:
            self.answers: dict[str, Any] = {}

        def accept_model(self, model: Any) -> None:
            name = (model.meta or {}).get("client_name", "")
            self.answers.setdefault(name, model)  # of two answers the first counts

        def aggregate_model(self) -> Any:
            return FLModel(params={"_": np.zeros(1)}, params_type=ParamsType.DIFF)

    class CohortFedAvg(FedAvg):  # type: ignore[misc]
        def sample_clients(self, num_clients: int | None = None) -> list[str]:
            there = {client.name for client in self.engine.get_clients()}
            ids = selector.federation.ids
            here = [i for i, name in enumerate(ids) if name in there]
            available = None if len(here) == len(ids) else np.array(here, dtype=np.int64)
            self.cohort = selector.select(available, self._ask)
            return [str(name) for name in selector.names(self.cohort)]

        def _ask(self, ask: Ask) -> Array:
            names = [str(selector.federation.ids[i]) for i in ask.clients]
            question = FLModel(meta={"signal": ask.signal.name, **ask.settings})
            replies = self.send_model_and_wait(
                task_name=QUESTION, data=question, targets=names, timeout=timeout
            )
            rows = {reply.meta["client_name"]: reply.params["answer"] for reply in replies}
            if not rows:
                raise TooFewClients(f"Nobody answered the question for '{ask.signal.name}'.")
            nothing = np.full(np.shape(next(iter(rows.values()))), np.nan)
            return np.asarray([rows.get(name, nothing) for name in names])

        def update_model(self, model: Any, aggr_result: Any) -> Any:
            answers, names = self.aggregator.answers, sorted(model.params)
            sites = zip(self.cohort.clients.tolist(), selector.names(self.cohort), strict=True)
            heard = {client: answers[str(site)] for client, site in sites if str(site) in answers}
            clients = np.array(list(heard), dtype=np.int64)
            weights = weights_of(self.cohort, clients)
            changes: dict[str, Array] = {}  # (k, size of the parameter)
            for name in names:
                old = np.asarray(model.params[name], dtype=np.float64)
                rows = [
                    np.asarray(answer.params[name]) - (old if _full(answer) else 0.0)
                    for answer in heard.values()
                ]
                changes[name] = np.reshape(rows, (len(rows), old.size))
            moved = {
                name: eta_g * weighted_sum(weights, rows).reshape(np.shape(model.params[name]))
                for name, rows in changes.items()
            }
            wanted = UPDATE in selector.scheme.listens
            together = {UPDATE.name: np.concatenate(list(changes.values()), axis=1)}
            selector.observe(Replies(clients, together if wanted else {}))
            return super().update_model(model, FLModel(params=moved, params_type=ParamsType.DIFF))

    def _full(answer: Any) -> bool:
        return bool(answer.params_type == ParamsType.FULL)

    return CohortFedAvg(aggregator=Kept(), **options)
