"""SCAFFOLD beside an independent implementation, and its control variates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import LocalWork, scheme, simulate
from fedcohort._internal.errors import BadParameter
from fedcohort._internal.random import stream
from fedcohort.server import Plain, Redraw, Sgd
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, DropOuts, Random
from fedcohort.simulation._engine import Simulation
from fedcohort.training import ClientData, Dense, LearningTask, Quadratic, Scaffold, algorithm
from fedcohort.training._task import batches
from helpers.examples import few

SIZES = np.array([30, 7, 61, 2, 20, 11])
CLASSES, FEATURES, ROUNDS, SEED = 3, 4, 50, 7
WORK = LocalWork(steps=6, batch=5, lr=0.2)


def data() -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    rng = np.random.Generator(np.random.Philox(0))
    x, y = rng.standard_normal((SIZES.sum(), FEATURES)), rng.integers(0, CLASSES, SIZES.sum())
    y[x[:, 0] > 0.5] = 0
    return x, y, np.split(np.arange(len(y)), np.cumsum(SIZES)[:-1])


def task() -> LearningTask:
    x, y, clients = data()
    model = Dense((FEATURES, CLASSES), start="zero", dtype=np.dtype(np.float64))
    return LearningTask(model, ClientData.divide(x, y, x[:9], y[:9], clients, CLASSES))


def gradient(theta: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Of the mean cross entropy of softmax regression: weights (classes, features), biases."""
    weights, biases = theta[:-CLASSES].reshape(CLASSES, FEATURES), theta[-CLASSES:]
    chances = np.exp(x @ weights.T + biases)
    chances /= chances.sum(axis=1, keepdims=True)
    errors = (chances - np.eye(CLASSES)[y]) / len(y)
    return np.concatenate([(errors.T @ x).ravel(), errors.sum(axis=0)])


def plain_scaffold(cohorts: list[Any], option: int, eta_g: float) -> np.ndarray:
    """Algorithm 1 of the paper, client by client, as one would write it down."""
    x, y, clients = data()
    importance = SIZES / SIZES.sum()
    model = np.zeros(FEATURES * CLASSES + CLASSES)
    c, own = np.zeros_like(model), [np.zeros_like(model) for _ in clients]
    for number, cohort in enumerate(cohorts):
        step, change = np.zeros_like(model), np.zeros_like(model)
        for i, weight in zip(cohort.clients.tolist(), cohort.weights.tolist(), strict=True):
            xs, ys = x[clients[i]], y[clients[i]]
            rows, lengths = batches(stream(SEED, "train", number, i), len(ys), WORK, 1.0)
            local = model.copy()
            for chosen, length in zip(rows, lengths, strict=True):
                some = chosen[:length]
                local = local - WORK.lr * (gradient(local, xs[some], ys[some]) - own[i] + c)
            if option == 1:
                new = gradient(model, xs, ys)
            else:
                new = own[i] - c + (model - local) / (len(rows) * WORK.lr)
            step += weight * (local - model)
            change += importance[i] * (new - own[i])
            own[i] = new
        model, c = model + eta_g * step, c + change
    return model


@pytest.mark.parametrize("option", [1, 2])
@pytest.mark.parametrize(("chosen", "eta_g"), [("md:m=3", 1.0), ("uniform:m=3", 0.7)])
def test_it_is_the_algorithm_of_the_paper(option: int, chosen: str, eta_g: float) -> None:
    trace = simulate(
        task(), chosen, rounds=ROUNDS, seed=SEED, work=WORK,
        algorithm=f"scaffold:option={option}", optimiser=Sgd(eta_g=eta_g),
    )  # fmt: skip
    cohorts = [trace.cohort(number) for number in range(ROUNDS)]
    expected = plain_scaffold(cohorts, option, eta_g)
    np.testing.assert_allclose(trace.model, expected, rtol=1e-6, atol=1e-6)
    other = plain_scaffold(cohorts, 3 - option, eta_g)
    assert np.abs(other - expected).max() > 1e-3  # the options differ, and it shows


def imbalance(run: Simulation) -> float:
    """|c - sum p_i c_i| beside the largest c_i."""
    c, p = run.state.algorithm["c"], run.state.federation.importance
    own = np.zeros((len(p), len(c)))
    for i, kept in run.kept.items():
        own[i] = kept["c_i"]
    return float(np.abs(c - p @ own).max()) / max(1e-300, float(np.abs(own).max()))


@few(25)
@given(
    sizes=st.lists(st.integers(1, 1000), min_size=4, max_size=7),
    option=st.integers(1, 2),
    chosen=st.sampled_from(["md:m=2", "uniform:m=2", "poisson:m=2", "fedavg:m=2", "full"]),
    answering=st.floats(0.2, 1.0),
    quorum=st.sampled_from([0.0, 0.6]),
    seed=st.integers(0, 2**32),
)
def test_control_variates_are_the_sum_over_the_clients(
    sizes: list[int], option: int, chosen: str, answering: float, quorum: float, seed: int
) -> None:
    """Whoever was drawn, whatever the weights, whoever did not answer, in void rounds."""
    rng = np.random.Generator(np.random.Philox(seed))
    problem = Quadratic(10 * rng.standard_normal((len(sizes), 3)), sizes=sizes, noise=0.5)
    dropouts = DropOuts(Random(answering), Redraw(attempts=1), quorum)
    which = Scaffold(option)
    setup = Setup(scheme(chosen), seed, Sgd(), Plain(), dropouts.rule, quorum, which)
    run = Simulation(problem, setup, LocalWork(steps=3, lr=0.1, batch=None), Always(), dropouts)
    for _ in range(12):
        run.play()
        assert imbalance(run) <= 1e-12


def test_both_options_stop_at_the_optimum() -> None:
    rng = np.random.Generator(np.random.Philox(0))
    problem = Quadratic(rng.standard_normal((6, 5)), sizes=[1, 2, 3, 4, 5, 6])
    work = LocalWork(steps=10, lr=0.1, batch=None, mu=0.5)
    for option in (1, 2):
        found = simulate(problem, "md:m=2", rounds=300, work=work, algorithm=Scaffold(option)).model
        np.testing.assert_allclose(found, problem.optimum, atol=1e-6)


def test_the_option_is_one_or_two(tmp_path: Path) -> None:
    assert algorithm("scaffold:option=1") == Scaffold(1)
    assert algorithm("scaffold") == Scaffold(2)
    with pytest.raises(BadParameter, match="'option' parameter of scaffold must be an int in"):
        algorithm("scaffold:option=3")
