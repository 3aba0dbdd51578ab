"""SCAFFOLD, FedDyn and IFCA on Flower, as in the simulator."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort import flower
from fedcohort._internal.errors import BadInput, TooFewClients
from fedcohort.flower import _wire as wire
from fedcohort.training import MLP, LocalWork, Quadratic, algorithm
from helpers.weighed import Weighing, imbalance, remembered, with_folders

ALGORITHMS = ("scaffold:option=1", "scaffold:option=2", "feddyn:alpha=1", "ifca:k=3,shared=1")
N, D, ROUNDS = 8, 3, 5
WORK = LocalWork(steps=4, lr=0.2, batch=None, mu=0.1)
QUICK = flower.Limits(population=0.2, poll=0.01)


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def task() -> Quadratic:
    return Quadratic(
        3 * philox(0).standard_normal((N, D)), sizes=np.arange(1, N + 1) * 10, noise=0.3
    )


def app(folder: Path, local: Any = None) -> Any:
    local = local or flower.task_client(task(), WORK)
    return flower.client_app(local, policy=with_folders(folder), simulated=True)


def play(grid: Any, chosen: str = "md:m=4", rounds: int = ROUNDS, **options: Any) -> Any:
    strategy = flower.CohortStrategy(chosen, clients=N, seed=3, limits=QUICK, **options)
    strategy.start(grid, flower.first_model(task(), 3), num_rounds=rounds)
    return strategy


@pytest.mark.parametrize("which", ALGORITHMS)
@pytest.mark.parametrize("chosen", ["md:m=4", "optimal:m=3", "pow-d:m=2,d=5"])
def test_flower_plays_the_run_of_the_simulator(chosen: str, which: str, tmp_path: Path) -> None:
    strategy = play(flower.InProcessGrid(app(tmp_path), N), chosen, algorithm=which)
    trace = fedcohort.simulate(task(), chosen, rounds=ROUNDS, seed=3, work=WORK, algorithm=which)
    assert [cohort.clients.tolist() for cohort in strategy.cohorts] == [
        trace.cohort(number).clients.tolist() for number in range(ROUNDS)
    ]
    found = np.concatenate([model["theta"] for model in strategy.models])
    np.testing.assert_allclose(found, trace.model, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("which", ["ifca:k=2,spread=0.5,shared={}", "scaffold:option=1"])
@pytest.mark.parametrize("chosen", ["md:m=3", "pow-d:m=2,d=5", "hcsfed:m=3,strata=3"])
def test_models_travel_layer_by_layer(chosen: str, which: str, tmp_path: Path) -> None:
    """The names of the task's layers are those of the arrays, and bits stay what they are."""
    rng, work = philox(1), LocalWork(steps=2, batch=5, lr=0.1)
    x, y = rng.standard_normal((160, 4)), rng.integers(0, 3, 160)
    network = MLP(x, y, x[:10], y[:10], np.split(np.arange(160), N), 3, hidden=4)
    common = list(network.layers)[2]
    which = which.format(common)
    strategy = flower.CohortStrategy(chosen, clients=N, seed=3, limits=QUICK, algorithm=which)
    grid = flower.InProcessGrid(app(tmp_path, flower.task_client(network, work)), N, raises=True)
    strategy.start(grid, flower.first_model(network, 3, layers=True), num_rounds=3)
    assert {name: layer.shape for name, layer in strategy.models[0].items()} == network.layers
    trace = fedcohort.simulate(network, chosen, rounds=3, seed=3, work=work, algorithm=which)
    found = [np.ravel(layer) for model in strategy.models for layer in model.values()]
    np.testing.assert_allclose(np.concatenate(found), trace.model, rtol=1e-12, atol=1e-12)
    if which.startswith("ifca"):
        one, other = strategy.models
        assert [n for n in one if np.array_equal(one[n], other[n])] == [common]


def test_arrays_in_another_order_are_the_same_model_and_others_are_none() -> None:
    layers = {"w": np.arange(6.0).reshape(3, 2), "theta": np.ones(3), "b": np.zeros(1)}
    shapes = {name: layer.shape for name, layer in layers.items()}
    network = SimpleNamespace(layers=shapes, statistics=0)
    client = flower._in_process.TaskClient(network, 0, WORK)
    turned = dict(reversed(layers.items()))
    flat = client._flat(layers)
    assert flat.tolist() == [*range(6), 1, 1, 1, 0] == client._flat(turned).tolist()
    for name, layer in client._like(turned, flat).items():
        np.testing.assert_array_equal(layer, layers[name])
    assert client._like({"theta": flat}, flat + 1)["theta"].tolist() == (flat + 1).tolist()
    with pytest.raises(BadInput, match=r"layers w, theta, b\. Got w, c instead: begin with"):
        client._flat({"w": np.zeros(6), "c": np.zeros(4)})


@pytest.mark.parametrize("which", ALGORITHMS)
def test_a_killed_server_goes_on(which: str, tmp_path: Path) -> None:
    whole = play(flower.InProcessGrid(app(tmp_path / "a"), N), algorithm=which)
    grid = flower.InProcessGrid(app(tmp_path / "b"), N)
    play(grid, rounds=2, algorithm=which, folder=tmp_path / "server")
    again = play(grid, algorithm=which, folder=tmp_path / "server")
    for one, other in zip(whole.models, again.models, strict=True):
        np.testing.assert_array_equal(one["theta"], other["theta"])


class Losing(flower.InProcessGrid):  # type: ignore[misc,name-defined]
    """Of every round some reports are lost after the clients have trained."""

    def deliver(self, message: Any) -> Any:
        reply = super().deliver(message)
        if message.metadata.message_type != wire.TRAIN:
            return reply
        round = int(wire.config_of(message)[wire.ROUND])
        here = self.partition[message.metadata.dst_node_id]
        return None if here in (round % N, (3 * round + 1) % N) else reply


@pytest.mark.parametrize(
    ("which", "sum", "own"),
    [
        ("scaffold:option=1", "c", "c_i"),
        ("scaffold:option=2", "c", "c_i"),
        ("feddyn:alpha=1", "h", "g_i"),
    ],
)
@pytest.mark.parametrize("chosen", ["md:m=4", "uniform:m=4", "full"])
def test_what_the_server_keeps_is_the_sum_of_what_is_on_the_disks_of_clients(
    chosen: str, which: str, sum: str, own: str, tmp_path: Path
) -> None:
    strategy = play(Losing(app(tmp_path), N), chosen, algorithm=which, quorum=0.3)
    kept = remembered(strategy, tmp_path, algorithm(which), own)
    assert imbalance(strategy, sum, kept) <= 1e-12
    assert np.abs(kept).max() > 1e-2


@pytest.mark.parametrize(
    ("which", "down", "up"),
    [("scaffold", 2 * D, 2 * D), ("feddyn", D, D), ("ifca:k=3", 3 * D, D + 1)],
)
def test_what_is_sent_is_booked(which: str, down: int, up: int, tmp_path: Path) -> None:
    grid = Weighing(app(tmp_path), N)
    cost = play(grid, algorithm=which).ledger.by_purpose()["training"]
    assert (cost.bytes_down, cost.bytes_up) == (grid.down, grid.up)
    each = cost.messages // 2
    assert (cost.bytes_down, cost.bytes_up) == (8 * down * each, 8 * up * each)


@pytest.mark.parametrize("said", [np.nan, -7.0, 1e50, 99.0])
def test_a_client_that_lies_about_its_cluster_ends_nothing(said: float, tmp_path: Path) -> None:
    class Lying(flower.InProcessGrid):  # type: ignore[misc,name-defined]
        def deliver(self, message: Any) -> Any:
            reply = super().deliver(message)
            if message.metadata.message_type == wire.TRAIN and self.partition[
                message.metadata.dst_node_id
            ] in (2, 5):
                reply.content[wire.PAYLOADS] = wire.to_record({"cluster": np.array([said])})
            return reply

    strategy = play(Lying(app(tmp_path), N), "full", algorithm="ifca:k=3", dropouts="none")
    assert strategy.gate.counts.total() == (0 if abs(said) < 100 else 2 * ROUNDS)
    assert all(np.isfinite(model["theta"]).all() for model in strategy.models)


class Own:
    """A client without loss and without gradient."""

    size = 10

    def __init__(self, context: Any) -> None: ...

    def update(self, model: Any, work: Any) -> Any:
        raise AssertionError


@pytest.mark.parametrize(
    ("which", "lacks"), [("ifca:k=2", "loss"), ("scaffold:option=1", "gradient")]
)
def test_what_a_client_lacks_is_said_before_the_first_round(
    which: str, lacks: str, tmp_path: Path
) -> None:
    with pytest.raises(TooFewClients, match=lacks):
        play(flower.InProcessGrid(app(tmp_path, Own), N), algorithm=which)


def test_a_client_evaluates_the_model_that_fits_it(tmp_path: Path) -> None:
    from flwr.app import Message, MetricRecord, RecordDict

    own = app(tmp_path)

    @own.evaluate()
    def evaluate(message: Any, context: Any) -> Any:
        theta = wire.from_record(message.content.array_records[wire.ARRAYS])["theta"]
        mine = task().losses(theta, np.array([int(context.node_config["partition-id"])]))
        return Message(RecordDict({"m": MetricRecord({"loss": float(mine[0])})}), reply_to=message)

    strategy = flower.CohortStrategy(
        "full", clients=N, seed=3, limits=QUICK, algorithm="ifca:k=3", evaluate="everyone"
    )
    grid = flower.InProcessGrid(own, N)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=3)
    models = np.stack([model["theta"] for model in strategy.models])
    best = task().client_losses(models).min(axis=0)
    told = float(result.evaluate_metrics_clientapp[3]["loss"])
    assert told == pytest.approx(task().importance @ best, rel=1e-12)
