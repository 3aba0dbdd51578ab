"""The bound beside runs: both curves against what is known exactly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort.simulation import simulate
from fedcohort.theory import convergence_bound
from fedcohort.theory.simulated import bound_beside_runs, full_gradient
from fedcohort.training import LocalWork, Quadratic, Softmax

MINIMA = np.array([[1, 0], [0, 2], [-1, 1], [2, -1], [-2, -2]], dtype=float)
TASK = Quadratic(MINIMA, sizes=[5, 4, 3, 2, 1])
WORK = LocalWork(steps=2, batch=None, lr=0.005)


def test_full_participation_has_no_chance_in_it():
    found = bound_beside_runs(TASK, "full", WORK, 30, seeds=(0, 1))
    assert found.measured == pytest.approx(np.tile(found.expected, (2, 1)))
    first = float(TASK.optimum @ TASK.optimum)
    assert found.measured[0, 0] == pytest.approx(first)
    assert found.holds


@pytest.mark.parametrize("scheme", ["md:m=2", "uniform:m=2", "clustered-size:m=2"])
def test_runs_are_those_of_the_simulator(scheme):
    """The models are followed by hand, from the cohorts of `simulate` with the same seed."""
    trace = simulate(TASK, scheme, rounds=6, seed=3, work=WORK)
    theta, squares = np.zeros(2), []
    phi = 1 - (1 - WORK.lr) ** WORK.steps
    for round in range(6):
        squares.append(float(((theta - TASK.optimum) ** 2).sum()))
        cohort = trace.cohort(round)
        theta = theta + phi * cohort.weights @ (MINIMA[cohort.clients] - theta)
    found = bound_beside_runs(TASK, scheme, WORK, 6, seeds=(1, 3))
    assert found.measured[1] == pytest.approx(np.cumsum(squares) / np.arange(1, 7))
    assert not np.allclose(found.measured[0], found.measured[1])
    assert found.holds


def test_each_point_is_the_theorem_of_so_many_rounds():
    found = bound_beside_runs(TASK, "md:m=2", WORK, 40)
    law_bound = [
        convergence_bound(_law(), replace(found.training, rounds=t)).total for t in range(1, 41)
    ]
    assert found.bound == pytest.approx(law_bound)
    assert found.holds
    assert list(found.columns()) == ["rounds", "bound", "measured", "expected"]


def _law():
    from fedcohort import scheme
    from fedcohort.simulation._engine import federation_of

    return scheme("md", m=2).law(federation_of(TASK))


def test_a_bound_that_is_none_is_seen():
    found = bound_beside_runs(TASK, "md:m=2", WORK, 40)
    assert not replace(found, bound=found.expected * 0.99).holds
    assert not replace(found, bound=found.measured.mean(axis=0) * 0.99, expected=None).holds


def test_large_steps_have_no_bound():
    found = bound_beside_runs(TASK, "md:m=2", LocalWork(steps=2, batch=None, lr=0.5), 5)
    assert np.all(found.bound == np.inf)
    assert not found.details.valid


def softmax():
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    return Softmax(x, y, None, None, np.split(np.arange(60), [10, 30]), 3, dtype=np.float64)


def test_softmax_stays_below_its_bound():
    work = LocalWork(steps=3, batch=5, lr=0.002, batches="fresh")
    found = bound_beside_runs(softmax(), "md:m=2", work, 60, seeds=(0, 1, 2))
    assert found.details.valid
    assert found.expected is None
    assert found.measured.shape == (3, 60)
    assert found.holds
    assert found.measured[0, 0] == pytest.approx(
        float((full_gradient(softmax(), np.zeros(15)) ** 2).sum())
    )


def test_the_full_gradient_is_the_slope_of_the_loss():
    task, rng = softmax(), np.random.default_rng(0)
    theta, step = rng.normal(size=15), 1e-5 * rng.normal(size=15)
    up, down = task.evaluate(np.array([theta + step, theta - step])).train_loss
    assert full_gradient(task, theta) @ step == pytest.approx((up - down) / 2, rel=1e-6)


def test_schemes_without_a_law_are_refused():
    with pytest.raises(BadInput, match=r"pow-d depends on what\s+clients answer"):
        bound_beside_runs(TASK, "pow-d:m=2,d=3", WORK, 5)
