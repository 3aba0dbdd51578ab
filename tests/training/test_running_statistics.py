"""Running statistics, as of BatchNorm, are averaged over the clients and never stepped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import fedcohort
from fedcohort import LocalWork, simulate
from fedcohort._internal.errors import BadInput
from fedcohort.selection import Cohort, RoundContext
from fedcohort.server._stages import RunningStatistics
from fedcohort.server._state import Selection, Setup, State, Statistics
from fedcohort.server._transport import UpdateBlock
from fedcohort.training import ClientData, LearningTask, TorchModel, algorithm

pytest.importorskip("flwr")
from flwr.app import Message

from fedcohort import flower
from fedcohort.flower import _wire as wire

SIZES = np.array([4, 5, 6, 8, 10, 14, 20, 30, 60, 120])
N = len(SIZES)
WORK = LocalWork(steps=20, batch=4, lr=0.05)
QUICK = flower.Limits(population=0.2, poll=0.01)


def normed() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))


def task() -> LearningTask:
    """Clients whose inputs have very different variances."""
    rng, total = np.random.Generator(np.random.Philox(0)), int(SIZES.sum())
    scale = np.repeat(np.geomspace(0.05, 5.0, N), SIZES)[:, None]
    x = (rng.standard_normal((total, 4)) * scale).astype(np.float32)
    y = rng.integers(0, 3, total)
    clients = np.split(np.arange(total), np.cumsum(SIZES)[:-1])
    return LearningTask(TorchModel(normed()), ClientData.divide(x, y, x, y, clients, 3))


@pytest.mark.parametrize(
    "scheme", [pytest.param("uniform:m=2", marks=pytest.mark.slow), "binomial:m=2"]
)
def test_weights_that_do_not_sum_to_one_spoil_no_batch_norm_in_100_rounds(scheme: str) -> None:
    problem, net = task(), normed().eval()
    trace = simulate(problem, scheme, rounds=100, seed=0, work=WORK)
    assert np.isfinite(trace.train_loss).all()
    losses, variances = [], []

    @torch.no_grad()
    def look(round: int, arrays: Any) -> None:
        model = {name: torch.tensor(part) for name, part in wire.from_record(arrays).items()}
        net.load_state_dict(model, strict=False)
        scores = net(torch.tensor(problem.data.x_test))
        losses.append(float(nn.functional.cross_entropy(scores, torch.tensor(problem.data.y_test))))
        variances.append(float(model["1.running_var"].min()))

    app = flower.client_app(flower.task_client(problem, WORK), simulated=True)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=0, largest_size=None)
    grid = flower.InProcessGrid(app, N, raises=True)
    result = strategy.start(grid, flower.first_model(problem, 0), 100, evaluate_fn=look)
    assert len(losses) == 101
    assert np.isfinite(losses).all()
    assert min(variances) > 0
    sent = np.concatenate([part.ravel() for part in wire.from_record(result.arrays).values()])
    np.testing.assert_allclose(sent, trace.model, rtol=0, atol=1e-6 * np.abs(trace.model).max())


# Clients that change every array by numbers of their own: what the server makes of them is exact.

CHANGES = {"w": [3.0, -1.0, 0.5, 8.0], "bn.running_mean": [1.0, -2.0, 4.0, 0.5]}
CHANGES |= {"bn.running_var": [-0.9, 2.0, -0.5, 6.0], "bn.num_batches_tracked": [3, 5, 9, 30]}
OTHER = [0.25, 0.5, -1.0, 2.0]
START = {
    "w": np.array([1.0]),
    "bn.running_mean": np.array([0.5]),
    "bn.running_var": np.array([1.0]),
}
START |= {"bn.num_batches_tracked": np.array(7)}


class Local:
    def __init__(self, context: Any) -> None:
        self.number = int(context.node_config["partition-id"])
        self.size = [10, 20, 30, 140][self.number]

    def update(self, model: Any, work: Any) -> Any:
        return {
            name: np.full_like(array, CHANGES.get(name, OTHER)[self.number])
            for name, array in model.items()
        }


def played(
    scheme: str, rounds: int = 1, start: Any = START, grid: Any = None, **options: Any
) -> tuple[flower.CohortStrategy, dict[str, Any]]:
    strategy = flower.CohortStrategy(scheme, clients=4, seed=1, limits=QUICK, **options)
    grid = grid or flower.InProcessGrid(flower.client_app(Local), 4)
    result = strategy.start(grid, wire.to_record(start), num_rounds=rounds)
    return strategy, wire.from_record(result.arrays)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"optimiser": "sgd:eta_g=0.5,momentum=0.9"},
        {"optimiser": "adam"},
        {"aggregator": "memory"},
        {"aggregator": "memory", "optimiser": "yogi"},
        {"hardened": "clip:times=1000"},
    ],
    ids=str,
)
def test_statistics_move_by_the_mean_whatever_steps_the_weights(options: Any) -> None:
    strategy, model = played("uniform:m=2", 3, **options)
    expected = {name: float(START[name][0]) for name in ("bn.running_mean", "bn.running_var")}
    for cohort in strategy.cohorts:
        assert abs(cohort.weights.sum() - 1) > 0.1  # or there is nothing to see
        shares = cohort.weights / cohort.weights.sum()
        for name in expected:
            expected[name] += float(shares @ np.array(CHANGES[name])[cohort.clients])
    for name, value in expected.items():
        np.testing.assert_allclose(model[name], value, rtol=0, atol=1e-12)


def test_weights_are_still_multiplied_by_the_weights_of_the_scheme() -> None:
    strategy, model = played("uniform:m=2")
    (cohort,) = strategy.cohorts
    step = cohort.weights @ np.array(CHANGES["w"])[cohort.clients]
    np.testing.assert_allclose(model["w"], 1 + step, rtol=0, atol=1e-12)
    shares = cohort.weights / cohort.weights.sum()
    counted = shares @ np.array(CHANGES["bn.num_batches_tracked"])[cohort.clients]
    assert model["bn.num_batches_tracked"] == np.rint(7 + counted)


@pytest.mark.parametrize("name", ["median", "trimmed-mean", "krum"])
def test_a_robust_aggregator_has_a_robust_mean_of_statistics(name: str) -> None:
    start = {"v": np.array([0.0]), "running_mean": np.array([0.0])}
    strategy, model = played("uniform:m=3", start=start, aggregator=name)
    total = strategy.cohorts[0].weights.sum()
    assert abs(total - 1) > 0.1
    np.testing.assert_allclose(model["v"], total * model["running_mean"], rtol=1e-12)


def test_no_reply_leaves_statistics_where_they_are() -> None:
    class Silent(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            late = wire.config_of(message).get(wire.ROUND, 0) > 0
            return None if late else super().deliver(message)

    grid = Silent(flower.client_app(Local), 4)
    strategy, model = played("full", 2, grid=grid, optimiser="sgd:momentum=0.9")
    assert strategy.void == 1
    _, first = played("full", 1, optimiser="sgd:momentum=0.9")
    assert all(np.array_equal(model[name], part) for name, part in first.items())
    empty, model = played("binomial:m=1", 12, optimiser="sgd:momentum=0.9")
    assert 0 in {len(cohort) for cohort in empty.cohorts}
    expected = 0.5
    for cohort in empty.cohorts:
        if len(cohort):
            shares = cohort.weights / cohort.weights.sum()
            expected += shares @ np.array(CHANGES["bn.running_mean"])[cohort.clients]
    np.testing.assert_allclose(model["bn.running_mean"], expected, rtol=0, atol=1e-12)


def test_a_client_cannot_push_a_variance_below_zero() -> None:
    _, model = played("full", start=START | {"bn.running_var": np.array([-50.0])})
    assert model["bn.running_var"] == 0.0


def test_arrays_of_other_names_are_statistics_where_the_user_names_them() -> None:
    start = {"w": np.array([1.0]), "ema": np.array([0.0])}
    strategy, model = played("uniform:m=2", start=start, statistics=["ema"])
    (cohort,) = strategy.cohorts
    summed = cohort.weights @ np.array(OTHER)[cohort.clients]
    np.testing.assert_allclose(model["ema"], summed / cohort.weights.sum())
    _, model = played("uniform:m=2", start=start)
    np.testing.assert_allclose(model["ema"], summed)
    with pytest.raises(
        BadInput, match=r"'statistics' of CohortStrategy must name arrays.*Got emma"
    ):
        played("full", start=start, statistics=["emma"])


@pytest.mark.parametrize("which", [{"aggregator": "gaussian"}, {"algorithm": "feddyn"}], ids=str)
def test_noise_and_feddyn_refuse_running_statistics(which: Any) -> None:
    with pytest.raises(BadInput, match=r"running statistics.*GroupNorm"):
        simulate(task(), "full", rounds=1, work=WORK, **which)
    strict = {"dropouts": "none", "quorum": 0.0} if "aggregator" in which else {}
    with pytest.raises(BadInput, match=r"running statistics.*GroupNorm"):
        played("full", **which, **strict)


@pytest.mark.parametrize("average", ["models", "gradients"])
def test_each_of_several_models_has_the_mean_of_its_own_clients(average: str) -> None:
    layers = {"w": (1,), "shared.running_mean": (1,), "running_mean": (1,)}
    statistics = Statistics.of(layers, Statistics.named(layers))
    how = algorithm(f"ifca:k=3,average={average},shared=2")
    setup = Setup(fedcohort.scheme("uniform", m=4), 0, algorithm=how, statistics=statistics)
    state = State.first(setup, fedcohort.Federation.from_sizes([1, 2, 3, 4]), np.zeros(3))
    weights, updates = np.array([0.2, 0.4, 0.6, 0.8]), np.arange(12.0).reshape(4, 3)
    cohort, clusters = Cohort.of(np.arange(4), weights), np.array([[0], [1], [0], [0]])
    selection = Selection(0, RoundContext(0), cohort)
    assert RunningStatistics in setup.stages.updates
    stage = RunningStatistics(setup, state, selection, cohort)
    stage.add(UpdateBlock(np.arange(4), updates, payloads={"cluster": clusters}))
    means = stage.mean_change(np.zeros(9), state.algorithm)
    first = np.average(updates[[0, 2, 3], 2], weights=weights[[0, 2, 3]])
    np.testing.assert_allclose(means.reshape(3, 3)[:, 2], [first, updates[1, 2], 0.0])
    everybody = np.average(updates[:, 1], weights=weights)
    np.testing.assert_allclose(means.reshape(3, 3)[:, 1], everybody)


def test_one_flat_array_is_refused_by_clients_of_a_model_with_statistics() -> None:
    problem = task()
    arrays = wire.from_record(flower.first_model(problem, 0))
    assert set(arrays) == set(problem.layers)
    client = flower._in_process.TaskClient(problem, 0, WORK)
    with pytest.raises(BadInput, match=r"12 running statistics.*first_model"):
        client.loss({"theta": np.zeros(problem.dimension)})
