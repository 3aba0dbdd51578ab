from __future__ import annotations

import math

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.training import LocalWork, Quadratic
from fedcohort.training.trainers import _plain as plain


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def example(noise: float = 0.0) -> Quadratic:
    minima = philox(0).standard_normal((4, 3))
    return Quadratic(minima, sizes=[5, 12, 0, 40], noise=noise)


@pytest.mark.parametrize("noise", [0.0, 0.5])
@pytest.mark.parametrize("data_rate", [1.0, 0.3])
@pytest.mark.parametrize(
    "work",
    [
        LocalWork(steps=7, lr=0.1),
        LocalWork(steps=1, lr=1.0),
        LocalWork(steps=6, lr=0.2, decay=0.3, mu=0.7),
        LocalWork(epochs=2, batch=5, lr=0.1, mu=2.0),
        LocalWork(epochs=3, batch=None, lr=0.1, decay=1.0),
        LocalWork(steps=5, lr=2.5),  # overshoots, as it should
    ],
)
def test_closed_form_is_gradient_descent(work: LocalWork, data_rate: float, noise: float) -> None:
    task = example(noise)
    theta = philox(1).standard_normal(3)
    clients = np.array([3, 0, 2, 1])
    fast = task.updates(theta, clients, work, [philox(i) for i in clients], data_rate)
    for row, client in zip(fast, clients, strict=True):
        size = int(task.sizes[client])
        slow = plain.quadratic_update(
            theta, task.minima[client], noise, size, work, philox(client), data_rate
        )
        np.testing.assert_allclose(row, slow, rtol=1e-12, atol=1e-13)


def test_phi() -> None:
    task = example()
    theta = np.ones(3)
    moved = task.updates(theta, np.array([1]), LocalWork(steps=9, lr=0.1), [philox(0)])
    phi = 1 - 0.9**9
    np.testing.assert_allclose(moved[0], -phi * (theta - task.minima[1]), rtol=1e-14)


def test_losses_and_evaluation_agree() -> None:
    task = example()
    thetas = philox(2).standard_normal((5, 3)) + 1e3  # far away: nothing may cancel
    by_client = task.client_losses(thetas)
    assert by_client.shape == (5, 4)
    np.testing.assert_allclose(by_client[:, 2], 0)  # no samples
    evaluation = task.evaluate(thetas)
    np.testing.assert_allclose(evaluation.train_loss, by_client @ task.importance, rtol=1e-13)
    assert np.isnan(evaluation.test_loss).all()
    assert np.isnan(evaluation.accuracy).all()


def test_the_optimum_is_the_weighted_mean_and_minimises() -> None:
    task = Quadratic([[0.0], [4.0]], sizes=[3, 1])
    assert task.optimum == [1.0]
    around = np.array([[0.99], [1.0], [1.01]])
    assert task.evaluate(around).train_loss.argmin() == 1
    weighted = Quadratic([[0.0], [4.0]], sizes=[3, 1], importance=[0.5, 0.5])
    assert weighted.optimum == [2.0]


def test_gradient_sums_count_participants() -> None:
    task = example()
    theta = np.ones(3)
    clients = np.array([3, 2])
    sums, counts = task.gradient_sums(theta, clients, [philox(1), philox(2)], data_rate=0.5)
    assert counts[1] == 0
    assert 0 < counts[0] < 40
    np.testing.assert_allclose(sums, counts[:, None] * (theta - task.minima[clients]))


def test_noise_of_a_gradient_sum_is_that_of_the_mean() -> None:
    task = Quadratic(np.zeros((1, 2000)), sizes=[10], noise=2.0)
    sums, counts = task.gradient_sums(np.zeros(2000), np.array([0]), [philox(0)])
    assert abs(np.std(sums / counts[:, None]) - 2.0) < 5 * 2.0 / math.sqrt(2 * 2000)


def test_a_diverging_client_gives_a_row_that_is_not_finite() -> None:
    task = example()
    work = LocalWork(steps=10_000, lr=10.0)
    moved = task.updates(np.ones(3), np.array([0]), work, [philox(0)])
    assert not np.isfinite(moved).all()


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"minima": [1.0, 2.0]}, r"'minima' .* \(n, d\) array"),
        ({"minima": np.zeros((0, 2))}, "'minima'"),
        ({"minima": [[math.nan]]}, "finite"),
        ({"minima": [[1.0]], "sizes": [-1]}, "'sizes'"),
        ({"minima": [[1.0]], "sizes": [1.5]}, "'sizes'"),
        ({"minima": [[1.0]], "sizes": [1, 2]}, "'sizes'"),
        ({"minima": [[1.0]], "sizes": [0]}, "must hold a sample"),
        ({"minima": [[1.0]], "importance": [0.5]}, "sum to 1"),
        ({"minima": [[1.0]], "importance": [math.nan]}, "'importance'"),
        ({"minima": [[1.0], [1.0]], "importance": [1.5, -0.5]}, "'importance'"),
        ({"minima": [[1.0]], "importance": "a"}, "'importance'"),
        ({"minima": [[1.0]], "importance": [[1.0], [1.0, 2.0]]}, "'importance'"),
        ({"minima": [[1.0]], "noise": -1.0}, "'noise'"),
        ({"minima": [[1.0]], "noise": math.nan}, "'noise'"),
    ],
)
def test_bad_input(arguments: dict[str, object], match: str) -> None:
    with pytest.raises((BadInput, BadParameter), match=match):
        Quadratic(**arguments)  # type: ignore[arg-type]
