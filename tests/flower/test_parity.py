"""The same seed gives the same cohorts, weights and model in the simulator and on Flower."""

from __future__ import annotations

import numpy as np
import pytest

import fedcohort
from fedcohort.simulation import LocalWork
from fedcohort.simulation.tasks import Softmax

pytest.importorskip("flwr")
from fedcohort import flower

N, ROUNDS, SEED = 12, 5, 11
WORK = LocalWork(steps=3, batch=8, lr=0.1)
PRIVATE = {"fedsampling"}  # clients draw from entropy of their own, which no seed repeats
SETTINGS = {
    "fedsampling": {"K": 60, "mechanism": "exact"},
    "fedsampling-naive": {"rate": 0.5},
    "poisson": {"cap": True},
}


@pytest.fixture(scope="module")
def task() -> Softmax:
    rng = np.random.default_rng(5)
    sizes = rng.integers(10, 40, N)
    x, y = rng.random((int(sizes.sum()), 6)), rng.integers(0, 4, int(sizes.sum()))
    parts = np.split(np.arange(len(x)), np.cumsum(sizes)[:-1])
    for i, part in enumerate(parts):  # clients differ: two classes each
        y[part] = (i + (y[part] > 1)) % 4
    return Softmax(x, y, x, y, parts, 4, dtype=np.float64)


def of_size(name: str) -> fedcohort.Scheme:
    """A scheme for twelve clients, whatever its parameters are."""
    cls = fedcohort.schemes()[name]
    settings: dict[str, object] = dict(SETTINGS.get(name, {}))
    fields = cls.__dataclass_fields__
    for key, value in {"m": 4, "d": 6}.items():
        if key in fields:
            settings[key] = value
    return fedcohort.scheme(name, **settings)


def played(task: Softmax, scheme: fedcohort.Scheme, **options: object):
    grid = flower.InProcessGrid(flower.client_app(flower.task_client(task, WORK)), N, raises=True)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=SEED, **options)
    result = strategy.start(grid, flower.first_model(task, SEED), num_rounds=ROUNDS)
    return strategy, result.arrays["theta"].numpy()


@pytest.mark.parametrize("name", sorted(fedcohort.schemes()))
def test_a_scheme_picks_the_same_cohorts_with_the_same_weights(name: str, task: Softmax) -> None:
    scheme = of_size(name)
    trace = fedcohort.simulate(task, scheme, rounds=ROUNDS, seed=SEED, work=WORK)
    strategy, theta = played(task, scheme)
    for round, cohort in enumerate(strategy.cohorts):
        expected = trace.cohort(round)
        np.testing.assert_array_equal(cohort.clients, expected.clients)
        np.testing.assert_array_equal(cohort.draws, expected.draws)
        if not cohort.per_sample:  # the trace shows what those came to count for
            np.testing.assert_array_equal(cohort.weights, expected.weights)
    np.testing.assert_array_equal(theta, trace.model)


def test_at_least_twelve_schemes_are_compared() -> None:
    assert len(fedcohort.schemes()) >= 12
