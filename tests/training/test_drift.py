"""A vector of its own in every gradient of a client; updates block by block; losses per sample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Ints
from fedcohort.training import MLP, LocalWork, Quadratic, Softmax
from fedcohort.training.trainers import _batched as batched
from fedcohort.training.trainers import _plain as plain
from helpers.twins import mean_loss, samples_of

SIZES = [30, 7, 0, 61, 1, 200]
CLIENTS = np.array([4, 2, 0, 3, 5, 1])


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def rngs(clients: Ints = CLIENTS) -> list[np.random.Generator]:
    return [philox(int(i)) for i in clients]


def build(kind: type[Softmax] | type[MLP]) -> Softmax | MLP:
    rng = philox(0)
    x, y = rng.standard_normal((sum(SIZES), 40)) / 6, rng.integers(0, 4, sum(SIZES))
    clients = np.split(rng.permutation(len(y)), np.cumsum(SIZES)[:-1])
    return kind(x, y, None, None, clients, 4, dtype=np.float64)


WORKS = {
    "steps": LocalWork(steps=13, batch=10, lr=0.1),
    "feddyn": LocalWork(epochs=3, batch=8, lr=0.1, mu=0.5),
    "decay": LocalWork(steps=20, batch=10, lr=0.1, mu=0.5, decay=0.3),
    "forgets at once": LocalWork(steps=5, batch=10, lr=0.5, mu=1.0, decay=1.0),
    "all data": LocalWork(steps=4, batch=None, lr=0.1),
}


@pytest.mark.parametrize("data_rate", [1.0, 0.4])
@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
@pytest.mark.parametrize("gram", [False, True])
@pytest.mark.parametrize("kind", [Softmax, MLP])
def test_drift_agrees_with_the_plain_loop(
    kind: type[Softmax] | type[MLP],
    gram: bool,
    work: LocalWork,
    data_rate: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batched, "gram_pays", lambda *_: gram)
    task = build(kind)
    theta = task.initial(0) + 0.1 * philox(3).standard_normal(task.dimension)
    drift = 0.3 * philox(4).standard_normal((len(CLIENTS), task.dimension))
    moved = task.updates(theta, CLIENTS, work, rngs(), data_rate, drift)
    without = task.updates(theta, CLIENTS, work, rngs(), data_rate)
    for row, own, client in zip(moved, drift, CLIENTS, strict=True):
        x, y = samples_of(task, client)
        slow = plain.update(task.model, theta, x, y, work, philox(client), data_rate, own)
        np.testing.assert_allclose(row, slow, rtol=1e-9, atol=1e-12)
    assert np.abs(moved - without)[2].max() > 0.1  # it is no small thing
    nothing = task.updates(theta, CLIENTS, work, rngs(), data_rate, np.zeros_like(drift))
    np.testing.assert_allclose(nothing, without, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("noise", [0.0, 0.7])
@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
def test_drift_of_quadratics(work: LocalWork, noise: float) -> None:
    task = Quadratic(philox(0).standard_normal((6, 5)), sizes=SIZES, noise=noise)
    theta, drift = np.ones(5), philox(4).standard_normal((6, 5))
    moved = task.updates(theta, CLIENTS, work, rngs(), 0.6, drift)
    for row, own, client in zip(moved, drift, CLIENTS, strict=True):
        minimum, size = task.minima[client], SIZES[client]
        slow = plain.quadratic_update(theta, minimum, noise, size, work, philox(client), 0.6, own)
        np.testing.assert_allclose(row, slow, rtol=1e-10, atol=1e-12)


def test_scaffold_stands_still_where_all_control_variates_are_right() -> None:
    # With c_i the gradient of client i at the optimum, the drift c - c_i cancels it: the
    # optimum is a fixed point of local training, which it is not without.
    task = Quadratic(philox(0).standard_normal((6, 5)))
    own = task.optimum - task.minima
    drift = task.importance @ own - own
    work, everyone = LocalWork(steps=10, lr=0.1), np.arange(6)
    stays = task.updates(task.optimum, everyone, work, rngs(everyone), drift=drift)
    np.testing.assert_allclose(stays, 0, atol=1e-15)
    assert np.abs(task.updates(task.optimum, everyone, work, rngs(everyone))).max() > 0.1


@pytest.mark.parametrize("shape", [(5, 164), (6, 163), (164,)])
def test_drift_has_a_row_per_client(shape: tuple[int, ...]) -> None:
    task = build(Softmax)
    with pytest.raises(BadInput, match=r"'drift' must have one row per client: \(6, 164\)"):
        task.updates(task.initial(0), CLIENTS, LocalWork(), rngs(), drift=np.zeros(shape))


class Plainly(Quadratic):
    """A user's task that was written before there was a drift."""

    def updates(  # type: ignore[override]
        self,
        theta: Array,
        clients: Ints,
        work: LocalWork,
        rngs: Sequence[np.random.Generator],
        data_rate: float = 1.0,
    ) -> Array:
        return super().updates(theta, clients, replace(work, mu=0.0), rngs, data_rate)


def test_a_task_without_drift_trains_plainly_and_says_so() -> None:
    task, work = Plainly([[0.0], [1.0]]), LocalWork(steps=1, lr=1.0)
    both = np.arange(2)
    rows = task.local_updates(np.zeros(1), both, work, rngs(both))
    assert rows.tolist() == [[0.0], [1.0]]
    with pytest.raises(BadInput, match="'updates' must take 'drift'"):
        task.local_updates(np.zeros(1), both, work, rngs(both), drift=np.ones((2, 1)))


@pytest.mark.parametrize("kind", [Softmax, MLP])
def test_losses_of_single_samples(kind: type[Softmax] | type[MLP]) -> None:
    task = build(kind)
    theta = philox(3).standard_normal(task.dimension)
    for client in (0, 4, 5):
        x, y = samples_of(task, client)
        slow = [mean_loss(task.model, theta, x[[r]], y[[r]]) for r in range(len(y))]
        np.testing.assert_allclose(task.sample_losses(theta, client), slow, rtol=1e-10)
    assert task.sample_losses(theta, 2).shape == (0,)
    with pytest.raises(BadInput, match=r"positions in \[0, 6\)"):
        task.sample_losses(theta, 6)


def test_losses_of_single_samples_of_other_tasks() -> None:
    task = Quadratic([[0.0], [2.0]], sizes=[3, 0])
    assert task.sample_losses(np.ones(1), 0).tolist() == [0.5] * 3
    assert task.sample_losses(np.ones(1), 1).tolist() == []
    with pytest.raises(BadInput, match="'quadratic' does not tell the loss of single samples"):
        super(Quadratic, task).sample_losses(np.ones(1), 0)
