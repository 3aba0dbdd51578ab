"""FedLab: its synchronous server, with clients and weights of a scheme.

Written for FedLab 1.3: `SyncServerHandler.sample_clients`, ``num_clients_per_round`` and
`global_update`. Clients are 0, 1, ..., and upload in the order in which they were sampled, as
FedLab's own standalone pipelines do; the first tensor of an upload is the new model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort, Replies
from fedcohort.core.conversation import UPDATE
from fedcohort.core.errors import BadInput
from fedcohort.selector import Selector
from fedcohort.server import Plain


def cohort_handler(
    selector: Selector, model: Any, global_round: int, *, eta_g: float = 1.0, **options: Any
) -> Any:
    """A server handler for FedLab's pipelines: the cohorts and weights of a selector.

    An empty cohort (Poisson sampling) is passed over: FedLab cannot play a round without clients.
    """
    from fedlab.contrib.algorithm.basic_server import SyncServerHandler
    from fedlab.utils import SerializationTool

    if list(selector.federation.ids) != list(range(len(selector.federation))):
        raise BadInput("FedLab numbers its clients: leave out the ids of the federation.")

    more = {signal.name for signal in selector.scheme.listens} - {UPDATE.name}
    if more:
        raise BadInput(f"FedLab uploads models only; {selector.scheme.name} listens to {more}.")

    class CohortHandler(SyncServerHandler):  # type: ignore[misc]
        cohort: Cohort

        @property
        def num_clients_per_round(self) -> int:
            return len(self.cohort)

        def sample_clients(self) -> list[int]:
            self.cohort = selector.select()
            while len(self.cohort) == 0:
                selector.observe()
                self.cohort = selector.select()
            out: list[int] = self.cohort.clients.tolist()
            return out

        def global_update(self, buffer: list[Any]) -> None:
            old = self.model_parameters
            theta = old.detach().cpu().numpy().astype(np.float64)
            sent = np.stack([payload[0].detach().cpu().numpy() for payload in buffer])
            updates = sent.astype(np.float64) - theta
            direction, _ = Plain().direction(None, self.cohort, self.cohort.clients, updates)
            new = old.new_tensor(theta + eta_g * direction)
            SerializationTool.deserialize_model(self._model, new)
            wanted = {signal.name for signal in selector.scheme.listens}
            if wanted - {"update"}:
                raise BadInput(
                    f"FedLab uploads models only: {selector.scheme.name} needs {wanted}."
                )
            selector.observe(Replies(self.cohort.clients, {UPDATE.name: updates}))

    handler = CohortHandler(model, global_round, sample_ratio=1.0, **options)
    handler.num_clients = len(selector.federation)
    return handler
