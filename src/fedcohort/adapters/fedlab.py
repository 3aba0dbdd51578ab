"""FedLab: its synchronous server, with clients and weights of a scheme.

Written for FedLab 1.3: `SyncServerHandler.sample_clients`, ``num_clients_per_round`` and
`global_update`. Clients are 0, 1, ..., and upload in the order in which they were sampled, as
FedLab's own standalone pipelines do; the first tensor of an upload is the new model. FedLab waits
for everybody it has sampled, so nobody drops out, and nobody is replaced.
"""

from __future__ import annotations

from typing import Any, ClassVar

from fedcohort._internal.errors import BadInput
from fedcohort.adapters._loop import Loop, changed, flat, numbers
from fedcohort.server import Aggregator, Optimiser
from fedcohort.server._selector import Selector


class FedLabCarrier(Loop):
    """One model down and one up for each of the sampled clients."""

    name: ClassVar[str] = "FedLab"
    again: ClassVar[bool] = False


def cohort_handler(
    selector: Selector,
    model: Any,
    global_round: int,
    *,
    eta_g: float = 1.0,
    optimiser: Optimiser | str | None = None,
    aggregator: Aggregator | str | None = None,
    largest: float = 1e6,
    **options: Any,
) -> Any:
    """A server handler for FedLab's pipelines: the rounds of a selector.

    FedLab cannot play a round without clients: one with an empty cohort (Poisson sampling) is
    played before the next cohort is sampled, and does not count as a round of FedLab.
    ``largest`` is the largest change of a single parameter that is believed; ``options`` are
    those of `SyncServerHandler`.
    """
    from fedlab.contrib.algorithm.basic_server import SyncServerHandler
    from fedlab.utils import SerializationTool

    if list(selector.federation.ids) != list(range(len(selector.federation))):
        raise BadInput("FedLab numbers its clients: leave out the ids of the federation.")
    carrier = FedLabCarrier(selector, eta_g, optimiser, aggregator, largest=largest)

    class CohortHandler(SyncServerHandler):  # type: ignore[misc]
        gate = carrier.gate  # what was rejected, and why

        @property
        def num_clients_per_round(self) -> int:
            return 0 if selector.pending is None else len(selector.pending)

        def sample_clients(self, num_to_sample: int | None = None) -> list[int]:
            dimension = len(flat([self.model_parameters]))
            while len(cohort := carrier.invite(dimension=dimension)) == 0:
                self.global_update([])
            out: list[int] = cohort.clients.tolist()
            return out

        def global_update(self, buffer: list[Any]) -> None:
            old, clients = self.model_parameters, carrier.invite().clients.tolist()
            theta = flat([old])
            sent = zip(map(str, clients), buffer, strict=True)
            model = {"model": theta.shape}
            carrier.came(sent, model, lambda up: {"model": changed(numbers(up[0]).ravel(), theta)})
            new = carrier.finish(theta)
            SerializationTool.deserialize_model(self._model, old.new_tensor(new))

    handler = CohortHandler(model, global_round, sample_ratio=1.0, **options)
    handler.num_clients = len(selector.federation)
    return handler
