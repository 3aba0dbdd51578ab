"""Momentum, clipping, schedules and fresh batches: the same in every trainer as in a plain loop."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from math import comb

import numpy as np
import pytest
import torch
from scipy.stats import chi2
from torch import nn
from torch.nn import functional

from fedcohort import simulate
from fedcohort._internal.errors import BadParameter, UnknownName
from fedcohort._internal.types import Array, Ints
from fedcohort.training import (
    Batched,
    ClientData,
    Dense,
    LearningTask,
    LocalWork,
    Quadratic,
    Scaffold,
    TorchCohort,
    TorchLoop,
    TorchModel,
)
from fedcohort.training._task import batches
from fedcohort.training.trainers import _batched as batched
from fedcohort.training.trainers import _plain as plain

SIZES = [30, 7, 0, 61, 1, 45]
CLIENTS = np.array([4, 2, 0, 3, 5, 1])
WORKS = {
    "momentum": LocalWork(steps=13, batch=10, lr=0.1, momentum=0.9),
    "all terms": LocalWork(epochs=3, batch=8, lr=0.1, momentum=0.5, mu=0.5, decay=0.3),
    "clip": LocalWork(steps=13, batch=10, lr=0.1, clip=0.2),
    "clip and momentum": LocalWork(steps=9, batch=10, lr=0.1, clip=0.2, momentum=0.7, mu=0.2),
    "fresh": LocalWork(steps=13, batch=10, lr=0.1, batches="fresh"),
}


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def rngs(clients: Ints = CLIENTS) -> list[np.random.Generator]:
    return [philox(int(i)) for i in clients]


def data_of(classes: int = 4) -> ClientData:
    rng, total = philox(0), sum(SIZES)
    x, y = rng.standard_normal((total, 12)) / 3, rng.integers(0, classes, total)
    clients = np.split(philox(1).permutation(total), np.cumsum(SIZES)[:-1])
    return ClientData.divide(x, y, None, None, clients, classes)


def net(widths: tuple[int, ...]) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


WIDTHS = ((12, 4), (12, 9, 4), (12, 9, 6, 4))
TRAINERS = ("gram", "direct", "torch loop", "torch cohort")
CASES = [
    (WIDTHS[(i + j) % 3], how, work, (1.0, 0.4)[(i // 2 + j + drifts) % 2], drifts)
    for i, how in enumerate(TRAINERS)
    for j, work in enumerate((*WORKS.values(), LocalWork(steps=7, batch=9)))
    for drifts in (False, True)
]
"""Every pair of two settings is there."""


def test_every_pair_of_settings_is_tried() -> None:
    seen = {
        (a, b, str(case[a]), str(case[b])) for case in CASES for a in range(5) for b in range(a)
    }
    each = [{str(case[a]) for case in CASES} for a in range(5)]
    assert [len(values) for values in each] == [3, 4, 6, 2, 2]
    assert len(seen) == sum(len(each[a]) * len(each[b]) for a in range(5) for b in range(a))


@pytest.mark.parametrize(("widths", "how", "work", "data_rate", "drifts"), CASES, ids=str)
def test_every_trainer_follows_the_plain_loop(
    widths: tuple[int, ...],
    how: str,
    work: LocalWork,
    data_rate: float,
    drifts: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(batched, "gram_pays", lambda *_: how == "gram")
    data, model = data_of(), Dense(widths, np.dtype(np.float64))
    trainers = {"torch loop": TorchLoop(), "torch cohort": TorchCohort()}
    task = LearningTask(
        TorchModel(net(widths)) if "torch" in how else model, data, trainers.get(how)
    )
    assert "torch" in how or isinstance(task.trainer, Batched)
    theta = model.initial(0)
    drift = 0.3 * philox(4).standard_normal((6, len(theta))) if drifts else None
    moved = task.updates(theta, CLIENTS, work, rngs(), data_rate, drift)
    for place, client in enumerate(CLIENTS):
        x, y = data.samples(data.part(client))
        own = 0.0 if drift is None else drift[place]
        slow = plain.update(model, theta, x, y, work, philox(client), data_rate, own)
        np.testing.assert_allclose(moved[place], slow, rtol=1e-8, atol=1e-11)


def test_the_terms_are_no_small_thing() -> None:
    task, plainly = (
        LearningTask(Dense((12, 9, 4)), data_of()),
        LocalWork(steps=13, batch=10, lr=0.1),
    )
    base = task.updates(task.initial(0), CLIENTS, plainly, rngs())
    for name in ("momentum", "clip", "fresh"):
        moved = task.updates(task.initial(0), CLIENTS, WORKS[name], rngs())
        assert np.abs(moved - base)[3].max() > 1e-3, name


@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
@pytest.mark.parametrize("noise", [0.0, 0.7])
def test_quadratics(work: LocalWork, noise: float) -> None:
    task = Quadratic(philox(0).standard_normal((6, 5)), sizes=SIZES, noise=noise)
    theta, drift = np.ones(5), philox(4).standard_normal((6, 5))
    moved = task.updates(theta, CLIENTS, work, rngs(), 0.6, drift)
    for row, own, client in zip(moved, drift, CLIENTS, strict=True):
        minimum, size = task.minima[client], SIZES[client]
        slow = plain.quadratic_update(theta, minimum, noise, size, work, philox(client), 0.6, own)
        np.testing.assert_allclose(row, slow, rtol=1e-10, atol=1e-12)


def test_it_is_the_momentum_and_the_clipping_of_torch() -> None:
    data, work = (
        data_of(),
        LocalWork(steps=8, batch=None, lr=0.1, momentum=0.9, decay=0.01, clip=0.3),
    )
    module = net((12, 9, 4))
    task = LearningTask(Dense((12, 9, 4), np.dtype(np.float64)), data)
    flat = nn.utils.parameters_to_vector(module.parameters()).detach().numpy().copy()
    moved = task.updates(flat, np.array([3]), work, [philox(0)])[0]
    x, y = (torch.from_numpy(each) for each in data.samples(data.part(3)))
    sgd = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, weight_decay=0.01)
    for _ in range(8):
        sgd.zero_grad()
        functional.cross_entropy(module(x), y).backward()
        nn.utils.clip_grad_norm_(module.parameters(), 0.3)
        sgd.step()
    end = nn.utils.parameters_to_vector(module.parameters()).detach().numpy()
    np.testing.assert_allclose(
        flat + moved, end, rtol=1e-5, atol=1e-6
    )  # torch adds 1e-6 to lengths


# Fresh batches


def taken(rng: np.random.Generator, size: int, work: LocalWork) -> list[Array]:
    rows, lengths = batches(rng, size, work)
    return [row[:length] for row, length in zip(rows, lengths, strict=True)]


def chances(work: LocalWork, size: int, draws: int) -> tuple[float, float]:
    """The statistic of equal chances of the pairs of the second batch, and its 1e-6 tail."""
    pairs = {pair: i for i, pair in enumerate(combinations(range(size), 2))}
    counts = np.zeros(len(pairs))
    for seed in range(draws):
        first, second = taken(philox(seed), size, work)
        if set(first.tolist()) & set(second.tolist()) or work.batches == "fresh":
            counts[pairs[tuple(sorted(second.tolist()))]] += 1
    expected = draws / len(pairs)
    statistic = float(((counts - expected) ** 2 / expected).sum())
    return statistic, float(chi2.ppf(1 - 1e-6, len(pairs) - 1))


@pytest.mark.parametrize("ordered", [True, False])
def test_every_set_is_as_likely_whatever_was_drawn_before(
    ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedcohort.training._task._SORTED", 64 if ordered else 0)
    work = LocalWork(steps=2, batch=2, batches="fresh")
    statistic, limit = chances(work, 5, 4000)
    assert statistic < limit
    shares = np.zeros((comb(5, 2), comb(5, 2)))
    pairs = {pair: i for i, pair in enumerate(combinations(range(5), 2))}
    for seed in range(4000):
        one, other = (pairs[tuple(sorted(each.tolist()))] for each in taken(philox(seed), 5, work))
        shares[one, other] += 1
    expected = 4000 / shares.size
    assert ((shares - expected) ** 2 / expected).sum() < chi2.ppf(1 - 1e-6, shares.size - 1)


def test_passes_are_not_fresh() -> None:
    work = LocalWork(steps=2, batch=2)  # the planted defect: the second batch avoids the first
    statistic, limit = chances(work, 5, 4000)
    assert statistic > limit


def test_every_fresh_batch_is_full() -> None:
    work = LocalWork(epochs=2, batch=50, batches="fresh")
    assert [len(each) for each in taken(philox(0), 51, work)] == [50] * 4
    assert [len(each) for each in taken(philox(0), 20, work)] == [20] * 2
    large = LocalWork(steps=3, batch=2, batches="fresh")
    for each in taken(philox(0), 100_000, large):
        assert len(set(each.tolist())) == 2


def variance(work: LocalWork) -> float:
    """Of one client's update: n_i = 51, batches of 50."""
    x, y = philox(0).standard_normal((51, 4)), philox(1).integers(0, 2, 51)
    data = ClientData.divide(x, y, None, None, [np.arange(51)], 2)
    task = LearningTask(Dense((4, 2), np.dtype(np.float64), "zero"), data)
    rows = [task.updates(np.zeros(10), np.array([0]), work, [philox(s)])[0] for s in range(60)]
    return float(np.var(rows, axis=0).sum())


def test_a_batch_of_one_left_over_is_what_makes_passes_loud() -> None:
    work = LocalWork(steps=20, batch=50, lr=0.1)
    assert variance(work) > 100 * variance(replace(work, batches="fresh"))


# Schedules


def test_the_step_size_follows_the_round() -> None:
    task = Quadratic([[1.0]])
    work = LocalWork(steps=1, batch=None, lr=0.5, schedule="step:every=2,factor=0.5")
    trace = simulate(task, "full", rounds=4, work=work)
    left = 0.5 * 0.5 * 0.75 * 0.75  # what remains of the way after two rounds of 1/2 and of 1/4
    np.testing.assert_allclose(trace.model, [1 - left])
    assert trace.settings["work"]["schedule"] == "step:every=2,factor=0.5"


@pytest.mark.parametrize(
    ("word", "rates"),
    [
        ("constant", [0.4, 0.4, 0.4]),
        ("inverse:gamma=2", [0.4, 0.4 * 2 / 3, 0.2]),
        ("step:every=2", [0.4, 0.4, 0.2]),
        ("exponential:factor=0.5", [0.4, 0.2, 0.1]),
    ],
)
def test_schedules(word: str, rates: list[float]) -> None:
    work = LocalWork(lr=0.4, schedule=word, momentum=0.3)
    assert [work.at(t).lr for t in range(3)] == pytest.approx(rates)
    assert replace(work.at(1), lr=0.4) == replace(work, schedule="constant")
    assert work.at(100_000).lr > 0


def test_the_thesis_step_size() -> None:
    mu, gamma = 0.5, 8.0
    work = LocalWork(lr=1 / (mu * gamma), schedule=f"inverse:gamma={gamma}")
    for t in (0, 3, 40):
        assert work.at(t).lr == pytest.approx(1 / (mu * (t + gamma)))


@pytest.mark.parametrize(
    "bad",
    [
        {"momentum": 1.0},
        {"momentum": -0.1},
        {"momentum": "0.9"},
        {"clip": 0.0},
        {"clip": float("nan")},
        {"batches": "shuffled"},
        {"schedule": "step:every=0"},
    ],
    ids=str,
)
def test_out_of_range(bad: dict[str, object]) -> None:
    with pytest.raises(BadParameter):
        LocalWork(**bad)  # type: ignore[arg-type]


def test_an_unknown_schedule() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'constant'"):
        LocalWork(schedule="constent")


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_control_variates_are_gradients_with_momentum_too(momentum: float) -> None:
    task = Quadratic([[0.0, 1.0], [2.0, 4.0]])
    work = LocalWork(steps=7, lr=1e-7, momentum=momentum)  # so short that gradients stay
    theta = np.array([5.0, 5.0])
    moved = task.updates(theta, np.arange(2), work, [philox(0), philox(1)])
    nothing = {"c_i": np.zeros((2, 2))}
    _, kept = Scaffold().report(work, {"c": np.zeros(2)}, nothing, moved, np.array([7, 7]))
    np.testing.assert_allclose(kept["c_i"], theta - task.minima, rtol=1e-5)
