"""The constants of a task: each against gradients of the task itself."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort.theory.simulated import assumptions
from fedcohort.training import MLP, LocalWork, Quadratic, Softmax

FRESH = LocalWork(steps=3, batch=2, lr=0.01, batches="fresh")


def softmax(classes=3):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(12, 4)), rng.integers(0, classes, 12)
    parts = [np.arange(5), np.arange(5, 9), np.arange(9, 12)]
    return Softmax(x, y, None, None, parts, classes, dtype=np.float64)


def gradients(task, theta):
    everyone = np.arange(len(task.sizes))
    sums, counts = task.gradient_sums(theta, everyone, [np.random.default_rng(0)] * len(everyone))
    return sums / counts[:, None]


@pytest.mark.parametrize("classes", [2, 3])
def test_softmax_is_that_smooth_and_not_smoother(classes):
    task = softmax(classes)
    found = assumptions(task, FRESH, 10)
    rng = np.random.default_rng(1)
    steepest = 0.0
    for scale in (1e-4, 1.0, 5.0):
        for _ in range(60):
            a = scale * rng.normal(size=task.dimension)
            b = a + 1e-4 * rng.normal(size=task.dimension)
            apart = np.linalg.norm(gradients(task, a) - gradients(task, b), axis=1)
            steepest = max(steepest, float(apart.max() / np.linalg.norm(a - b)))
    assert steepest <= found.smoothness * (1 + 1e-6)
    if classes == 2:  # at 0, along the top eigenvector, the bound is reached
        tops = []
        for client in range(3):
            x = task.data.samples(task.data.part(client))[0]
            x = np.hstack([x, np.ones((len(x), 1))])
            v = np.linalg.eigh(x.T @ x / len(x))[1][:, -1]
            step = 1e-6 * np.concatenate([v[:-1], -v[:-1], [v[-1], -v[-1]]])  # weights, then biases
            moved = gradients(task, step)[client] - gradients(task, 0 * step)[client]
            tops.append(np.linalg.norm(moved) / np.linalg.norm(step))
        assert max(tops) == pytest.approx(found.smoothness, rel=1e-5)


def test_no_client_has_a_longer_gradient():
    task = softmax()
    found = assumptions(task, FRESH, 10)
    rng = np.random.default_rng(2)
    longest = max(
        float((gradients(task, s * rng.normal(size=task.dimension)) ** 2).sum(axis=1).max())
        for s in np.repeat([0.1, 3.0, 100.0], 100)
    )
    assert longest <= found.dissimilarity
    assert found.dissimilarity < 20 * longest  # and not by far
    assert found.beta == 1


def test_batches_have_no_more_noise():
    """All batches of two of every client."""
    task, rng = softmax(), np.random.default_rng(3)
    found = assumptions(task, FRESH, 10)
    for scale in (0.0, 1.0, 30.0):
        theta = scale * rng.normal(size=task.dimension)
        for part in (range(5), range(5, 9), range(9, 12)):
            each = []
            for row in part:
                x, y = (v[row : row + 1] for v in task.data.samples(slice(0, 12)))
                one = Softmax(x, y, None, None, [[0]], 3, dtype=np.float64)
                each.append(gradients(one, theta)[0])
            rows = np.array(each)
            pairs = combinations(range(len(rows)), 2)
            batches = np.array([rows[list(pair)].mean(axis=0) for pair in pairs])
            noise = float(((batches - rows.mean(axis=0)) ** 2).sum(axis=1).mean())
            assert noise <= found.noise
    assert assumptions(task, LocalWork(steps=3, batch=None, lr=0.01), 10).noise == 0


def test_quadratic_clients():
    task = Quadratic([[1.0, 0.0], [0.0, 2.0], [-1.0, -1.0]], sizes=[2, 1, 1], noise=0.5)
    found = assumptions(task, FRESH, 10, eta_g=1.5)
    assert (found.smoothness, found.noise, found.eta_g) == (1.0, 0.5, 1.5)
    rng = np.random.default_rng(0)
    for _ in range(300):
        theta, w = rng.normal(scale=3, size=2), rng.dirichlet(np.ones(3))
        squares = ((theta - task.minima) ** 2).sum(axis=1)
        limit = found.beta * ((theta - task.optimum) ** 2).sum() + found.dissimilarity
        assert w @ squares <= limit


def test_refusals():
    task = softmax()
    for work in (
        LocalWork(epochs=1, lr=0.1),
        LocalWork(steps=2, lr=0.1, momentum=0.9),
        LocalWork(steps=2, lr=0.1, schedule="step:every=10"),
    ):
        with pytest.raises(BadInput, match="plain local steps"):
            assumptions(task, work, 10)
    with pytest.raises(BadInput, match="fresh"):
        assumptions(task, LocalWork(steps=2, batch=2, lr=0.1), 10)
    x, y = np.eye(4), np.array([0, 1, 0, 1])
    with pytest.raises(BadInput, match="neither"):
        assumptions(MLP(x, y, None, None, [[0, 1], [2, 3]], 2), FRESH, 10)
