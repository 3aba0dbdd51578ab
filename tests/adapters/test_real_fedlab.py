"""FedLab's own standalone pipeline, against the simulator; run by `make test-adapters`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Selector
from fedcohort.adapters.fedlab import cohort_handler
from helpers.real_frameworks import MINIMA, RATE, ROUNDS, SEED, SIZES, framework, simulated

pytestmark = pytest.mark.adapters


def played(scheme: str, **server: Any) -> tuple[np.ndarray, list[list[int]], Selector]:
    framework("fedlab")
    import torch
    from fedlab.core.client.trainer import SerialClientTrainer
    from fedlab.core.standalone import StandalonePipeline

    class Trainer(SerialClientTrainer):
        uploads: list[Any]

        @property
        def uplink_package(self) -> list[Any]:
            sent, self.uploads = self.uploads, []
            return sent

        def local_process(self, payload: list[Any], id_list: list[int]) -> None:
            cohorts.append(list(id_list))
            self.uploads = [[self.trained(client, payload[0])] for client in id_list]

        def trained(self, client: int, parameters: Any) -> Any:
            self.set_model(parameters)
            optimiser = torch.optim.SGD(self._model.parameters(), lr=RATE)
            loss = 0.5 * (self._model.weight - torch.tensor(MINIMA[client])).square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            return self.model_parameters

    class Pipeline(StandalonePipeline):
        def evaluate(self) -> None:
            """Nothing: the model is compared at the end."""

    def linear() -> Any:
        model = torch.nn.Linear(2, 1, bias=False).double()
        torch.nn.init.zeros_(model.weight)
        return model

    cohorts: list[list[int]] = []
    selector = Selector(scheme, Federation.from_sizes(SIZES), seed=SEED)
    handler = cohort_handler(selector, linear(), ROUNDS, **server)
    Pipeline(handler, Trainer(linear(), len(SIZES), cuda=False)).main()
    return handler.model_parameters.detach().numpy(), cohorts, selector


@pytest.mark.parametrize(
    ("scheme", "server"),
    [
        ("md:m=2", {}),
        ("uniform:m=2", {"optimiser": "adam:eta_g=0.1"}),
        ("clustered-similarity:m=2", {"aggregator": "memory"}),
        ("poisson:m=1", {"optimiser": "sgd:eta_g=0.5,momentum=0.9"}),
    ],
)
def test_fedlab_plays_the_rounds_of_the_simulator(scheme: str, server: dict[str, str]) -> None:
    theta, cohorts, selector = played(scheme, **server)
    trace = simulated(scheme, selector.round, **server)
    expected = [trace.cohort(number).clients.tolist() for number in range(trace.rounds)]
    assert cohorts == [cohort for cohort in expected if cohort]  # FedLab plays none with nobody
    np.testing.assert_allclose(theta, trace.model, rtol=1e-6)
    assert selector.ledger.total() == tuple(
        int(each.sum()) for each in (trace.messages, trace.bytes_down, trace.bytes_up)
    )
