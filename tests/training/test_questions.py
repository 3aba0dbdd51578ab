"""What clients of a task can tell beside their loss: a batch, features, private counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Ask, Signal, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.random import stream
from fedcohort.schemes._data_groups import PRIVATE_LABEL_HISTOGRAM
from fedcohort.simulation import MLP, Quadratic, Softmax
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.training import LocalWork


def softmax() -> Softmax:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    x = rng.uniform(size=(90, 4))
    clients = [np.arange(0, 50), np.arange(50, 90), np.arange(0)]
    return Softmax(x, y, x[:30], y[:30], clients, 3, dtype=np.float64)


def rngs(count: int) -> list[np.random.Generator]:
    return [stream(0, "batch", 0, i) for i in range(count)]


def test_a_batch_of_everything_is_the_loss() -> None:
    task = softmax()
    theta = np.random.default_rng(1).normal(size=task.dimension)
    everyone = np.arange(3)
    assert np.allclose(
        task.batch_losses(theta, everyone, 1000, rngs(3)), task.losses(theta, everyone)
    )


def test_a_batch_is_a_random_part_and_fair() -> None:
    # The mean over many batches is the loss: level 1e-6 by Hoeffding. A client that shows the
    # worse half of its batches is found out.
    task = softmax()
    theta = np.random.default_rng(1).normal(size=task.dimension)
    one = np.array([0])
    draws = [
        float(task.batch_losses(theta, one, 1, [stream(0, "batch", r)])[0]) for r in range(600)
    ]
    exact = float(task.losses(theta, one)[0])
    allowed = np.ptp(draws) * np.sqrt(np.log(2e6) / (2 * 600))
    assert abs(np.mean(draws) - exact) < allowed
    assert abs(np.mean(np.sort(draws)[300:]) - exact) > allowed


def test_quadratic_clients_have_one_loss() -> None:
    task = Quadratic([[0.0], [2.0]])
    assert task.batch_losses(np.zeros(1), np.arange(2), 1, rngs(2)).tolist() == [0.0, 2.0]


def test_predictions_give_the_accuracy() -> None:
    for make in (Softmax, MLP):
        rng = np.random.default_rng(0)
        x, y = rng.uniform(size=(60, 5)), rng.integers(0, 3, 60)
        task = make(x, y, x, y, [np.arange(60)], 3)
        theta = rng.normal(size=task.dimension)
        guess = task.predictions(theta)
        assert np.isclose((guess == y).mean(), task.evaluate(theta[None]).accuracy[0])


@pytest.mark.parametrize("bins", [0, -1, 2.5, True])
def test_bad_bins(bins: Any) -> None:
    with pytest.raises(BadParameter, match="'bins' parameter of Softmax"):
        softmax().feature_histograms(np.array([0]), bins)


def test_tasks_without_features_say_so() -> None:
    with pytest.raises(BadInput, match="'quadratic' has no features to count"):
        Quadratic([[0.0]]).feature_histograms(np.array([0]), 2)


def test_simulated_noise_can_be_repeated_and_differs_by_client() -> None:
    task = softmax()
    simulated = SimulatedClients(task, LocalWork(), 7, 0, np.zeros(task.dimension))
    ask = Ask(PRIVATE_LABEL_HISTOGRAM, np.array([0, 1]), {"epsilon": 0.5})
    first, second = simulated.answer(ask), simulated.answer(ask)
    assert np.array_equal(first, second)
    noise = first - task.label_histograms[:2]
    assert noise.any()
    assert not np.array_equal(noise[0], noise[1])


def test_a_client_tells_all_it_is_asked() -> None:
    task = softmax()
    simulated = SimulatedClients(task, LocalWork(), 0, 0, np.zeros(task.dimension))
    everything = Signal(
        "everything",
        "all of it",
        lambda client, batch: [client.loss(), client.loss(batch), client.feature_counts(2).sum()],
    )
    told = simulated.answer(Ask(everything, np.array([1]), {"batch": 5}))
    assert np.allclose(told, [[np.log(3), np.log(3), 40 * 4]])


@pytest.mark.parametrize("name", ["cpow-d", "haccs", "static-client", "best-loss-x"])
def test_runs(name: str) -> None:
    task = softmax()
    options = {"m": 1} if name == "haccs" else {"m": 1, "d": 2}
    trace = simulate(task, scheme(name, **options), rounds=3)
    assert trace.distinct.tolist() == [1, 1, 1]
