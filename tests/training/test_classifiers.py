from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Array, Ints
from fedcohort.training import MLP, LocalWork, Softmax
from fedcohort.training import _learning_task as learning_task
from fedcohort.training.trainers import _batched as batched
from fedcohort.training.trainers import _batched as training
from fedcohort.training.trainers import _first_layer as layers
from fedcohort.training.trainers import _plain as plain
from helpers.twins import gradient_sum, mean_loss, samples_of

KINDS = [Softmax, MLP]
SIZES = [30, 30, 7, 0, 61, 1, 200]
TOTAL = sum(SIZES)
CLASSES = 4


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def data(features: int) -> tuple[Array, Ints, Array, Ints, list[Ints], int]:
    rng = philox(7)
    total = sum(SIZES)
    x = rng.standard_normal((total + 20, features)) / math.sqrt(features)
    y = rng.integers(0, CLASSES, total + 20)
    x[np.arange(len(y)), y] += 1
    order = rng.permutation(total)  # clients hold scattered rows
    clients = np.split(order, np.cumsum(SIZES)[:-1])
    return x[:total], y[:total], x[total:], y[total:], clients, CLASSES


def build(kind: type[Softmax] | type[MLP], features: int = 40, **options: Any) -> Softmax | MLP:
    if kind is MLP:
        options = {"hidden": 9, **options}
    return kind(*data(features), **{"dtype": np.float64, **options})


def model(task: Softmax | MLP) -> Array:
    return task.initial(0) + 0.1 * philox(3).standard_normal(task.dimension)


def local(task: Softmax | MLP, client: int) -> tuple[Array, Ints]:
    return samples_of(task, client)


WORKS = {
    "steps": LocalWork(steps=13, batch=10, lr=0.1),
    "one step": LocalWork(steps=1, batch=10, lr=0.1),
    "epochs": LocalWork(epochs=3, batch=10, lr=0.1),
    "all data": LocalWork(steps=9, batch=None, lr=0.1),
    "all data, epochs": LocalWork(epochs=4, batch=None, lr=0.1),
    "decay": LocalWork(steps=20, batch=10, lr=0.1, decay=0.3),
    "proximal": LocalWork(steps=20, batch=10, lr=0.1, mu=0.5),
    "both": LocalWork(epochs=3, batch=8, lr=0.1, mu=0.5, decay=0.3),
    "forgets at once": LocalWork(steps=5, batch=10, lr=0.5, mu=1.0, decay=1.0),
    "single samples": LocalWork(epochs=2, batch=1, lr=0.1),
}


@pytest.mark.parametrize("data_rate", [1.0, 0.4])
@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
@pytest.mark.parametrize("form", ["direct", "gram", "chosen"])
@pytest.mark.parametrize("kind", KINDS)
def test_fast_training_agrees_with_the_plain_loop(
    kind: type[Softmax] | type[MLP],
    form: str,
    work: LocalWork,
    data_rate: float,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if form != "chosen":
        monkeypatch.setattr(batched, "gram_pays", lambda *_: form == "gram")
    task = build(kind)
    theta = model(task)
    clients = np.array([4, 2, 0, 3, 6, 5, 1])
    moved = task.updates(theta, clients, work, [philox(i) for i in clients], data_rate)
    assert moved.shape == (7, task.dimension)
    for row, client in zip(moved, clients, strict=True):
        x, y = local(task, client)
        slow = plain.update(task.model, theta, x, y, work, philox(client), data_rate)
        np.testing.assert_allclose(row, slow, rtol=1e-9, atol=1e-12)
    assert not moved[3].any()  # no samples
    assert moved[0].any()


@pytest.mark.parametrize("gather", [1, 1 << 9, 1 << 12])
def test_samples_are_fetched_for_any_number_of_steps_at_once(
    gather: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = build(MLP, gram_bytes=0)
    work = LocalWork(epochs=2, batch=3, lr=0.1)
    clients = np.arange(7)
    expected = task.updates(model(task), clients, work, [philox(i) for i in clients])
    monkeypatch.setattr(layers, "_GATHER_BYTES", gather)
    moved = task.updates(model(task), clients, work, [philox(i) for i in clients])
    np.testing.assert_allclose(moved, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gram_bytes", [0, 1 << 20])
def test_a_client_does_not_depend_on_the_others(
    kind: type[Softmax] | type[MLP], gram_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = build(kind, gram_bytes=gram_bytes)
    theta, work = model(task), LocalWork(epochs=3, batch=10, lr=0.1)
    together = task.updates(theta, np.arange(7), work, [philox(i) for i in range(7)])
    monkeypatch.setattr(batched, "_TRAIN_BYTES", 1)  # groups of one
    apart = task.updates(theta, np.arange(7), work, [philox(i) for i in range(7)])
    np.testing.assert_allclose(together, apart, rtol=1e-10, atol=1e-13)
    alone = task.updates(theta, np.array([4]), work, [philox(4)])
    np.testing.assert_allclose(together[4], alone[0], rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
def test_single_precision_is_close(kind: type[Softmax] | type[MLP]) -> None:
    work = LocalWork(steps=50, batch=10, lr=0.1, decay=0.01, mu=0.1)
    single, double = build(kind, dtype=np.float32), build(kind)
    rngs = [philox(0)]
    assert single.updates(model(single), np.array([4]), work, rngs).dtype == np.float32
    moved = single.updates(model(single), np.array([4]), work, [philox(1)])
    exact = double.updates(model(double), np.array([4]), work, [philox(1)])
    np.testing.assert_allclose(moved, exact, atol=2e-6)


def test_clients_that_train_together_have_batches_of_like_width() -> None:
    shapes = [(3, 10), (9, 50), (2, 40), (7, 8), (5, 50), (1, 5)]  # steps, width
    drawn = [(i, np.zeros(s, dtype=np.int64), np.full(s[0], s[1])) for i, s in enumerate(shapes)]
    together = [[item[0] for item in group] for group in training.groups(drawn, lambda *_: 9)]
    assert together == [[1, 4, 2], [3, 0], [5]]
    alone = list(training.groups(drawn, lambda *_: 1))
    assert sorted(len(group) for group in alone) == [1] * 6


def test_which_form_pays() -> None:
    assert layers.gram_pays(500, 2500, 785)
    assert not layers.gram_pays(500, 50, 785)  # a single step
    assert not layers.gram_pays(2000, 10_000, 785)  # more samples than features
    assert not layers.gram_pays(100, 500, 61)


def test_gram_matrices_keep_to_their_memory() -> None:
    task = build(Softmax, gram_bytes=(30**2 * 2 + 7**2 + 1) * 8)
    fits = [task._computation.grams.fits(client) for client in range(7)]
    assert fits == [True, True, True, True, False, True, False]
    x, _ = local(task, 2)
    np.testing.assert_allclose(task._computation.grams.of(2), x @ x.T + 1)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_gradient_is_the_derivative_of_the_loss(kind: type[Softmax] | type[MLP]) -> None:
    task = build(kind, features=6)
    theta = model(task)
    x, y = local(task, 4)
    gradient = task.model.gradient(theta, x, y)
    step = 1e-6
    for i in range(task.dimension):
        shift = step * (np.arange(task.dimension) == i)
        above = mean_loss(task.model, theta + shift, x, y)
        below = mean_loss(task.model, theta - shift, x, y)
        assert gradient[i] == pytest.approx((above - below) / (2 * step), abs=1e-8)


@pytest.mark.parametrize("data_rate", [1.0, 0.4])
@pytest.mark.parametrize("kind", KINDS)
def test_gradient_sums(kind: type[Softmax] | type[MLP], data_rate: float) -> None:
    task = build(kind)
    theta = model(task)
    clients = np.array([6, 3, 2])
    sums, counts = task.gradient_sums(theta, clients, [philox(i) for i in clients], data_rate)
    for row, count, client in zip(sums, counts, clients, strict=True):
        x, y = local(task, client)
        slow, number = gradient_sum(task.model, theta, x, y, philox(client), data_rate)
        assert count == number
        np.testing.assert_allclose(row, slow, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_losses_and_evaluation(
    kind: type[Softmax] | type[MLP], small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if small:  # many tiles, few models at a time, no merging
        monkeypatch.setattr(batched, "_TILE", 64)
        monkeypatch.setattr(batched, "_WIDE", 20)
        monkeypatch.setattr(learning_task, "_MERGE", 1)
    task = build(kind)
    thetas = np.stack([model(task) * scale for scale in (0.0, 1.0, -2.0, 5.0, 1e3)])
    x_test, y_test = data(40)[2:4]
    slow = np.zeros((5, 7))
    for t, theta in enumerate(thetas):
        for client in np.flatnonzero(task.sizes):
            slow[t, client] = mean_loss(task.model, theta, *local(task, client))
        losses = task.losses(theta, np.array([6, 3, 0, 1, 0]))
        np.testing.assert_allclose(losses, slow[t, [6, 3, 0, 1, 0]], rtol=1e-10)
    np.testing.assert_allclose(task.client_losses(thetas), slow, rtol=1e-10)
    evaluation = task.evaluate(thetas)
    np.testing.assert_allclose(evaluation.train_loss, slow @ task.importance, rtol=1e-10)
    for t, theta in enumerate(thetas):
        scores = task.model.scores(theta, x_test)
        assert evaluation.accuracy[t] == (scores.argmax(axis=1) == y_test).mean()
        expected = mean_loss(task.model, theta, x_test, y_test)
        assert evaluation.test_loss[t] == pytest.approx(expected, rel=1e-10)


def test_importance_replaces_sizes() -> None:
    importance = np.array([0.5, 0, 0, 0.25, 0, 0.25, 0])
    task = build(Softmax, importance=importance)
    theta = model(task)
    expected = importance @ task.client_losses(theta[None])[0]
    assert task.evaluate(theta[None]).train_loss[0] == pytest.approx(expected)
    by_size = build(Softmax)
    np.testing.assert_allclose(by_size.importance, np.array(SIZES) / sum(SIZES))


def test_without_a_test_set() -> None:
    x, y, _, _, clients, classes = data(5)
    task = Softmax(x, y, None, None, clients, classes)
    evaluation = task.evaluate(task.initial(0)[None])
    assert evaluation.train_loss[0] == pytest.approx(math.log(CLASSES))
    assert np.isnan(evaluation.test_loss).all()
    assert np.isnan(evaluation.accuracy).all()


def test_label_histograms_count_labels() -> None:
    task = build(Softmax)
    y, clients = data(40)[1], data(40)[4]
    for row, held in zip(task.label_histograms, clients, strict=True):
        assert row.tolist() == [(y[held] == label).sum() for label in range(CLASSES)]


def test_images_are_flattened_and_clients_may_share_samples() -> None:
    x, y = np.arange(24.0).reshape(4, 2, 3), np.array([0, 1, 1, 0])
    task = Softmax(x, y, x, y, [[0, 1], [1, 2, 3]], 2)
    assert task.dimension == 2 * 7
    assert task.sizes.tolist() == [2, 3]


def test_initial_models() -> None:
    task = build(MLP, hidden=200)
    theta = task.initial(3)
    assert theta.shape == (task.dimension,) == (200 * 41 + CLASSES * 201,)
    assert (theta == task.initial(3)).all()
    assert (theta != task.initial(4)).any()
    first, second = theta[: 200 * 41], theta[200 * 41 :]
    assert 0.99 / math.sqrt(40) < np.abs(first).max() <= 1 / math.sqrt(40)
    assert 0.9 / math.sqrt(200) < np.abs(second).max() <= 1 / math.sqrt(200)
    assert not build(Softmax).initial(3).any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_flat_model_has_the_order_of_torch(kind: type[Softmax] | type[MLP]) -> None:
    task = build(kind, dtype=np.float32)
    linear = [torch.nn.Linear(*widths) for widths in itertools.pairwise(task.model.widths)]
    hidden = [torch.nn.ReLU(), linear[-1]] if kind is MLP else []
    network = torch.nn.Sequential(linear[0], *hidden)
    theta = torch.nn.utils.parameters_to_vector(network.parameters()).detach().numpy()
    x, y = local(task, 4)
    scores = network(torch.from_numpy(np.ascontiguousarray(x)))
    expected = torch.nn.functional.cross_entropy(scores, torch.from_numpy(y)).detach()
    assert task.losses(theta, np.array([4]))[0] == pytest.approx(float(expected), rel=1e-5)


def test_ties_go_to_the_first_class() -> None:
    scores = philox(0).integers(0, 3, (4, 5, 300)).astype(np.float32)  # many ties
    y = philox(1).integers(0, 5, 300)
    assert (batched._correct(scores, y) == (scores.argmax(axis=1) == y)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_from_partition(kind: type[Softmax] | type[MLP]) -> None:
    @dataclasses.dataclass(frozen=True)
    class Data:
        x_train: Array
        y_train: Array
        x_test: Array
        y_test: Array
        classes: int

    @dataclasses.dataclass(frozen=True)
    class Parts:
        clients: tuple[Array, ...]

    x, y, x_test, y_test, clients, classes = data(40)
    task = kind.from_partition(
        Data(x, y, x_test, y_test, classes), Parts(tuple(clients)), dtype=np.float64
    )
    assert task.sizes.tolist() == SIZES
    assert task.classes == CLASSES


@pytest.mark.parametrize("kind", KINDS)
def test_divergence_is_visible_and_harms_no_other_row(kind: type[Softmax] | type[MLP]) -> None:
    x, y, x_test, y_test, clients, classes = data(40)
    x[clients[0]] *= 1e20
    task = kind(x, y, x_test, y_test, clients, classes)
    theta = model(task)
    moved = task.updates(theta, np.array([0, 1]), LocalWork(lr=1.0), [philox(0), philox(1)])
    assert not np.isfinite(moved[0]).all()
    assert np.isfinite(moved[1]).all()
    huge = np.array([[1e30], [1e300]]) * philox(0).standard_normal(task.dimension)
    assert task.evaluate(huge).train_loss.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"x_train": math.nan}, "'x_train' must be finite"),
        ({"x_train": math.inf}, "'x_train' must be finite"),
        ({"x_train": 1e300}, "'x_train' must be finite"),  # overflows single precision
        ({"x_test": math.nan}, "'x_test' must be finite"),
        ({"y_train": 4}, r"'y_train' must be labels in \[0, 4\)"),
        ({"y_train": -1}, "'y_train' must be labels"),
        ({"y_test": 9}, "'y_test' must be labels"),
    ],
)
def test_bad_values(change: dict[str, float], match: str) -> None:
    x, y, x_test, y_test, clients, classes = data(5)
    arrays = {"x_train": x, "y_train": y, "x_test": x_test, "y_test": y_test}
    for name, value in change.items():
        arrays[name][(3,) * arrays[name].ndim] = value
    with pytest.raises(BadInput, match=match):
        Softmax(**arrays, clients=clients, classes=classes)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"x_train": np.zeros((3, 5))}, "'x_train' must have one row per label"),
        ({"x_train": np.zeros((TOTAL, 5)).astype(str)}, "must hold numbers"),
        ({"x_train": np.zeros((TOTAL, 0)), "x_test": np.zeros((20, 0))}, "must hold numbers"),
        ({"x_test": np.zeros((20, 4))}, r"'x_test' must have shape \(20, 5\)"),
        ({"y_train": np.zeros(TOTAL)}, "'y_train' must be a vector of integers"),
        ({"y_train": np.zeros((TOTAL, 1), dtype=int)}, "'y_train' must be a vector of integers"),
        ({"clients": []}, "'clients'"),
        ({"clients": [[0, TOTAL]]}, rf"client 0 must be positions in \[0, {TOTAL}\)"),
        ({"clients": [[0], [-1]]}, "client 1 must be positions"),
        ({"clients": [[0.5]]}, "client 0 must be a vector of positions"),
        ({"clients": [[], []]}, "holds a sample"),
        ({"classes": 1}, "'classes'"),
        ({"classes": 2.5}, "'classes'"),
        ({"gram_bytes": -1}, "'gram_bytes'"),
        ({"hidden": 0}, "'hidden'"),
        ({"hidden": 2.5}, "'hidden'"),
        ({"hidden": True}, "'hidden'"),
        ({"importance": [1.0]}, "'importance'"),
    ],
)
def test_bad_shapes_and_settings(change: dict[str, Any], match: str) -> None:
    names = ["x_train", "y_train", "x_test", "y_test", "clients", "classes"]
    with pytest.raises((BadInput, BadParameter), match=match):
        MLP(**{**dict(zip(names, data(5), strict=True)), **change})


@pytest.mark.parametrize("kind", KINDS)
def test_bad_calls(kind: type[Softmax] | type[MLP]) -> None:
    task = build(kind)
    theta, work, rngs = model(task), LocalWork(), [philox(0)]
    one = np.array([0])
    with pytest.raises(BadInput, match="must have shape"):
        task.updates(theta[:-1], one, work, rngs)
    with pytest.raises(BadInput, match="must have shape"):
        task.evaluate(theta)
    with pytest.raises(BadInput, match=r"must be finite.*lower the step size"):
        task.updates(np.where(theta > 0, theta, np.nan), one, work, rngs)
    with pytest.raises(BadInput, match="must be finite"):
        task.evaluate(np.full((1, task.dimension), np.inf))
    with pytest.raises(BadInput, match=r"positions in \[0, 7\)"):
        task.losses(theta, np.array([7]))
    with pytest.raises(BadInput, match="vector of integer positions"):
        task.losses(theta, np.array([0.5]))
    with pytest.raises(BadInput, match="one generator per client"):
        task.updates(theta, np.array([0, 1]), work, rngs)
    for rate in (0.0, 1.5, math.nan):
        with pytest.raises(BadParameter, match="'data_rate'"):
            task.gradient_sums(theta, one, rngs, rate)


@pytest.mark.parametrize("kind", KINDS)
def test_nobody_and_nothing(kind: type[Softmax] | type[MLP]) -> None:
    task = build(kind)
    theta, nobody = model(task), np.array([], dtype=np.int64)
    assert task.updates(theta, nobody, LocalWork(), []).shape == (0, task.dimension)
    assert task.losses(theta, nobody).shape == (0,)
    assert task.gradient_sums(theta, nobody, [])[0].shape == (0, task.dimension)
    empty = np.array([3])
    assert task.losses(theta, empty).tolist() == [0.0]
    sums, counts = task.gradient_sums(theta, empty, [philox(0)])
    assert counts.tolist() == [0]
    assert not sums.any()
    assert task.evaluate(np.zeros((0, task.dimension))).train_loss.shape == (0,)
