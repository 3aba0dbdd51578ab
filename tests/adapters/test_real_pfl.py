"""pfl's own simulated backend and training loop, against the simulator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Selector
from fedcohort.adapters.pfl import cohort_parts
from helpers.real_frameworks import MINIMA, RATE, ROUNDS, SEED, SIZES, framework, simulated

pytestmark = pytest.mark.adapters


def played(scheme: str, **server: Any) -> tuple[np.ndarray, list[Any], Selector]:
    framework("pfl")
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.data.dataset import Dataset
    from pfl.hyperparam.base import NNTrainHyperParams
    from pfl.model.pytorch import PyTorchModel

    class Point(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(2, dtype=torch.float64))

        def loss(self, x: Any, eval: bool = False) -> Any:
            return 0.5 * (self.weight - x).square().sum()

        def metrics(self, x: Any, eval: bool = True) -> dict[str, Any]:
            return {}

    users: list[Any] = []

    def data_of(user: int) -> Any:
        users.append(user)
        return Dataset((torch.tensor(MINIMA[[user]]),), user_id=user)

    selector = Selector(scheme, Federation.from_sizes(SIZES), seed=SEED)
    dataset, weights, algorithm = cohort_parts(selector, data_of, **server)
    point = Point()
    central = torch.optim.SGD(point.parameters(), lr=1.0)
    model = PyTorchModel(point, torch.optim.SGD, central)
    algorithm.run(
        NNAlgorithmParams(
            central_num_iterations=ROUNDS,
            evaluation_frequency=ROUNDS + 1,
            train_cohort_size=1,
            val_cohort_size=None,
        ),
        SimulatedBackend(dataset, dataset, [weights]),
        model,
        NNTrainHyperParams(local_num_epochs=1, local_learning_rate=RATE, local_batch_size=None),
        send_metrics_to_platform=False,
    )
    return point.weight.detach().numpy(), users, selector


@pytest.mark.parametrize(
    ("scheme", "server"),
    [
        ("md:m=2", None),
        ("uniform:m=2", None),
        ("poisson:m=1", "sgd:eta_g=0.5,momentum=0.9"),
        ("fedavg:m=3", "adam:eta_g=0.1"),
    ],
)
def test_pfl_plays_the_rounds_of_the_simulator(scheme: str, server: str | None) -> None:
    theta, users, selector = played(scheme, optimiser=server)
    trace = simulated(scheme, selector.round, optimiser=server)
    assert users == trace.cohort_clients.tolist()
    assert (trace.distinct > 0).sum() == ROUNDS  # pfl plays none without users
    np.testing.assert_allclose(theta, trace.model, rtol=1e-6)
