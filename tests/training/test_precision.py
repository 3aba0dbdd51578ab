"""Vectors of an algorithm travel as the model does, and a tally stays the sum over the clients."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort.training import LocalWork, Payload, Scaffold, algorithm
from fedcohort.training._algorithms import reported, weighed_by_samples

pytest.importorskip("flwr")
from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.weighed import Weighing, imbalance, remembered, with_folders

N, D = 6, 5
WORK = LocalWork(steps=3, lr=0.1, batch=None)
MINIMA = np.random.Generator(np.random.Philox(0)).standard_normal((N, D))


class Own:
    """Quadratics in the precision of the model, with noise."""

    def __init__(self, context: Any) -> None:
        self.number = int(context.node_config["partition-id"])
        self.size = 10 * (self.number + 1)

    def loss(self, model: Any) -> float:
        here = np.concatenate([model["a"], model["b"]])
        return float(np.square(here - MINIMA[self.number]).sum())

    def update(self, model: Any, work: flower.Work) -> Any:
        rule, rng = work.rule(WORK), work.rng("train")
        here = {name: np.array(array) for name, array in model.items()}
        for _ in range(rule.work.steps):
            for name, part in (("a", slice(0, 2)), ("b", slice(2, D))):
                noise = rng.standard_normal(here[name].shape).astype(here[name].dtype)
                step = here[name] - MINIMA[self.number, part].astype(here[name].dtype) + noise
                if rule.drift is not None:
                    assert rule.drift[name].dtype == here[name].dtype
                    step = step + rule.drift[name]
                here[name] = here[name] - here[name].dtype.type(rule.work.lr) * step
        return {name: here[name] - model[name] for name in model}


def play(folder: Path, dtype: Any, rounds: int, which: str = "scaffold") -> tuple[Any, Weighing]:
    grid = Weighing(flower.client_app(Own, policy=with_folders(folder), simulated=True), N)
    limits = flower.Limits(population=0.2, poll=0.01)
    strategy = flower.CohortStrategy("md:m=3", clients=N, seed=3, limits=limits, algorithm=which)
    first = wire.to_record({"a": np.zeros(2, dtype), "b": np.zeros(D - 2, dtype)})
    strategy.start(grid, first, num_rounds=rounds)
    return strategy, grid


@pytest.mark.parametrize("dtype", [np.float32, pytest.param(np.float64, marks=pytest.mark.slow)])
def test_a_tally_is_the_sum_over_the_clients_after_200_rounds(dtype: Any, tmp_path: Path) -> None:
    strategy, _ = play(tmp_path, dtype, 200)
    assert np.abs(strategy.session.state.algorithm["c"]).max() > 0.01
    assert imbalance(strategy, "c", remembered(strategy, tmp_path, Scaffold(), "c_i")) <= 1e-13


def test_memory_that_is_more_precise_than_what_was_sent_would_be_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Scaffold, "payloads", (Payload("c", "tally"),))
    strategy, _ = play(tmp_path, np.float32, 50)
    assert (
        1e-10 < imbalance(strategy, "c", remembered(strategy, tmp_path, Scaffold(), "c_i")) < 1e-5
    )


@pytest.mark.parametrize(
    ("which", "down", "up"),
    [("sgd", 1, D), ("scaffold", 2, 2 * D), ("feddyn", 1, D), ("ifca:k=3", 3, D + 1)],
)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_what_is_sent_is_booked(which: str, down: int, up: int, dtype: Any, tmp_path: Path) -> None:
    strategy, grid = play(tmp_path, dtype, 3, which)
    cost = strategy.ledger.by_purpose()["training"]
    assert (cost.bytes_down, cost.bytes_up) == (grid.down, grid.up)
    if dtype != np.float16:  # whose vectors travel in 32 bits
        size, each = np.dtype(dtype).itemsize, cost.messages // 2
        assert (cost.bytes_down, cost.bytes_up) == (size * D * down * each, size * up * each)


def test_a_client_that_makes_no_step_remembers_what_it_did() -> None:
    kept = {"c_i": np.array([[1 / 3], [1 / 3]])}
    server, updates = {"c": np.array([0.1])}, np.array([[0.7], [0.0]])
    payloads, proposals = reported(
        algorithm("scaffold"), WORK, server, kept, updates, np.array([3, 0]), np.float32
    )
    assert payloads["c"].dtype == np.float32
    assert proposals["c_i"].dtype == np.float64
    assert payloads["c"][1] == 0
    assert proposals["c_i"][1] == 1 / 3
    assert proposals["c_i"][0] == 1 / 3 + float(payloads["c"][0, 0])


def test_sums_over_samples_stay_in_the_precision() -> None:
    class Mean(type(algorithm("sgd"))):  # type: ignore[misc]
        payloads = (Payload("g", "estimate"),)

    rows = weighed_by_samples(Mean(), {"g": np.ones((2, 3), np.float32)}, np.array([4, 5]))["g"]
    assert rows.dtype == np.float32
    assert rows[:, 0].tolist() == [4, 5]


def test_vectors_that_leave_the_range_stay_finite(tmp_path: Path) -> None:
    strategy, _ = play(tmp_path, np.float32, 1)
    session = strategy.session
    session.state.algorithm["c"][:] = 1e300
    (record,) = session.vectors().values()
    assert np.isfinite(wire.from_record(record)["c"]).all()


def test_layers_are_shared_by_the_names_of_the_arrays(tmp_path: Path) -> None:
    """Also by a server that was started again: which they are is in its folder."""
    clients = flower.client_app(Own, policy=with_folders(tmp_path), simulated=True)
    grid = flower.InProcessGrid(clients, N)
    first = wire.to_record({"a": np.zeros(2, np.float32), "b": np.zeros(D - 2, np.float32)})

    def models(rounds: int) -> list[dict[str, Any]]:
        strategy = flower.CohortStrategy(
            "md:m=4", clients=N, seed=3, limits=flower.Limits(population=0.2, poll=0.01),
            algorithm="ifca:k=3,shared=b", folder=tmp_path / "server",
        )  # fmt: skip
        strategy.start(grid, first, num_rounds=rounds)
        return list(strategy.models)

    for rounds in (2, 4):
        one, *others = models(rounds)
        assert np.abs(one["b"]).max() > 0.01
        for other in others:
            assert other["b"].tolist() == one["b"].tolist()
            assert np.abs(other["a"] - one["a"]).max() > 1e-3
