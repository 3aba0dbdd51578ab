"""The same seed gives the same cohorts in the simulator and on Flower.

Weights and models are the same up to rounding: see helpers/parity.py for how far, and why.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle

import numpy as np
import pytest

import fedcohort
from fedcohort.server import Hajek, Redraw
from fedcohort.simulation import DropOuts, LocalWork, Random
from fedcohort.training import Softmax

pytest.importorskip("flwr")
from fedcohort import flower
from helpers import parity

N, ROUNDS, SEED = 12, 5, 11
WORK = LocalWork(steps=3, batch=8, lr=0.1)
SILENT = (1, 5, 8, 10)
QUICK = flower.Limits(population=0.2, poll=0.01)
PRIVATE = {"fedsampling"}  # clients draw from entropy of their own, which no seed repeats


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
    cls = fedcohort.schemes.schemes()[name]
    settings: dict[str, object] = dict(parity.SETTINGS.get(name, {}))
    fields = cls.__dataclass_fields__
    for key, value in {"m": 4, "d": 6}.items():
        if key in fields:
            settings[key] = value
    return fedcohort.scheme(name, **settings)


def played(task: Softmax, scheme: fedcohort.Scheme, kind=flower.InProcessGrid, **options: object):
    grid = kind(flower.client_app(flower.task_client(task, WORK), simulated=True), N, raises=True)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=SEED, **options)
    result = strategy.start(grid, flower.first_model(task, SEED), num_rounds=ROUNDS)
    return strategy, result.arrays["theta"].numpy()


@pytest.mark.parametrize("dtype", parity.TOLERANCE)
@pytest.mark.parametrize("name", sorted(fedcohort.schemes.schemes()))
def test_a_scheme_picks_the_same_cohorts_with_the_same_weights(name: str, dtype: str) -> None:
    for seed in (3, SEED):
        found = parity.difference(name, seed, parity.SIZES["small"], dtype)
        assert found.within(parity.TOLERANCE[dtype]), found


@pytest.mark.filterwarnings("ignore:haccs. the groups of optics are doubtful")
@pytest.mark.parametrize(("clients", "m", "seed"), [(10, 4, 0), (10, 4, 1), (20, 5, 2), (20, 5, 3)])
def test_haccs_picks_the_same_cohorts_on_the_digits(clients: int, m: int, seed: int) -> None:
    """Its weights sum to 1/2, where a draw once hung on the last digit of a loss."""
    found = parity.on_digits(seed, clients, m)
    assert found.within(parity.TOLERANCE["float32"]), found


def test_a_difference_is_seen() -> None:
    one = parity.Difference(-1, 0.0, 1e-6)
    assert one.within(1e-5)
    assert not one.within(1e-12)
    assert not parity.Difference(3, 0.0, 0.0).within(1.0)
    assert parity.apart(np.array([1.0, 2.0]), np.array([1.0, 4.0])) == 0.5


class Silent(flower.InProcessGrid):
    """Some clients answer questions, but never train."""

    def deliver(self, message):
        away = self.partition[message.metadata.dst_node_id] in SILENT
        if away and message.metadata.message_type == "train":
            return None
        return super().deliver(message)


@pytest.mark.parametrize(
    ("name", "rule"),
    [*zip(sorted(set(fedcohort.schemes.schemes()) - PRIVATE), cycle([Redraw(), Hajek()]))],
)
def test_drop_outs_are_made_up_for_in_the_same_way(name: str, rule, task: Softmax) -> None:
    scheme, how = of_size(name), "plain" if "fedsampling" in name else "memory"
    up = Random(tuple(0.0 if i in SILENT else 1.0 for i in range(N)))
    settings = {"rounds": ROUNDS, "seed": SEED, "work": WORK, "aggregator": how}
    failing = DropOuts(up, rule, quorum=0.3)
    trace = fedcohort.simulate(task, scheme, dropouts=failing, **settings)
    options = {"dropouts": rule, "aggregator": how, "quorum": 0.3, "limits": QUICK}
    strategy, theta = played(task, scheme, Silent, **options)
    assert (
        strategy.session.state.attendance.asked.sum()
        > strategy.session.state.attendance.answered.sum()
    )
    for round in np.flatnonzero(trace.distinct):  # the others are void
        np.testing.assert_array_equal(strategy.cohorts[round].clients, trace.cohort(round).clients)
    # Not to the last bit: clients that train together are summed in another order.
    np.testing.assert_allclose(theta, trace.model, rtol=0, atol=1e-12)


def test_at_least_twelve_schemes_are_compared() -> None:
    assert len(fedcohort.schemes.schemes()) >= 12


def test_schedule_momentum_and_fresh_batches_come_to_the_clients(task: Softmax) -> None:
    work = LocalWork(
        steps=3, batch=8, lr=0.2, batches="fresh", momentum=0.5, clip=0.3, schedule="inverse"
    )
    scheme = of_size("md")
    assert parity.compared(task, scheme, SEED, work, 4).within(parity.TOLERANCE["float64"])
    models = [
        fedcohort.simulate(task, scheme, rounds=4, seed=SEED, work=each).model
        for each in (work, replace(work, schedule="constant"))
    ]
    assert np.abs(models[0] - models[1]).max() > 1e-3
