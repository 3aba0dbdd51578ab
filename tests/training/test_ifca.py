"""IFCA: planted clusters are found, shared weights stay shared, one model is FedAvg."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, simulate
from fedcohort._internal.errors import BadParameter
from fedcohort._internal.random import stream
from fedcohort.training import IFCA, MLP, Quadratic, Softmax, algorithm, cut

N, D, K = 12, 6, 3
WORK = LocalWork(steps=5, lr=0.2, batch=None)
CENTRES = 4.0 * np.eye(K, D)
CLUSTER = np.arange(N) % K


LUCKY = 17
"""A seed with which each cluster takes a model of its own at first: 9 of the first 40 are so."""


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def planted(spread: float = 0.1) -> Quadratic:
    noise = spread * philox(1).standard_normal((N, D))
    return Quadratic(CENTRES[CLUSTER] + noise, sizes=np.arange(1, N + 1))


def models_of(trace: Any, k: int = K) -> np.ndarray:
    return np.asarray(trace.model).reshape(k, -1)


@pytest.mark.parametrize(
    "chosen",
    ["full", "md:m=6", "uniform:m=6", "clustered-size:m=6", "optimal:m=6", "pow-d:m=6,d=9"],
)
def test_planted_clusters_are_found(chosen: str) -> None:
    task = planted()
    trace = simulate(task, chosen, rounds=60, seed=LUCKY, work=WORK, algorithm="ifca:k=3")
    models = models_of(trace)
    gaps = ((models[:, None] - CENTRES[None]) ** 2).sum(axis=2)
    assert sorted(gaps.argmin(axis=1).tolist()) == [0, 1, 2], "a model for every cluster"
    assert gaps.min(axis=1).max() < 0.1
    taken = np.stack([task.losses(model, np.arange(N)) for model in models]).argmin(axis=0)
    groups = {tuple(np.flatnonzero(taken == j)) for j in range(K)}
    assert groups == {tuple(np.flatnonzero(j == CLUSTER)) for j in range(K)}
    np.testing.assert_allclose(trace.train_loss[-1], 0.0, atol=0.1)
    alone = simulate(task, chosen, rounds=60, seed=LUCKY, work=WORK)
    assert alone.train_loss[-1] > 20 * trace.train_loss[-1]
    assert len(trace.client_losses) == N
    assert trace.client_losses.max() < 0.5


@pytest.mark.parametrize("seed", range(12))
def test_they_are_found_where_each_begins_with_a_model_of_its_own(seed: int) -> None:
    """As the paper proves, and only then: IFCA never separates clusters that begin together."""
    task, which = planted(spread=0.01), IFCA(k=2)
    task = Quadratic(task.minima[CLUSTER < 2])
    start = [np.zeros(D), *which.start(np.zeros(D), stream(seed, "models")).values()]
    first = np.stack([task.losses(m, np.arange(8)) for m in start]).argmin(axis=0)
    trace = simulate(task, "full", rounds=30, seed=seed, work=WORK, algorithm=which)
    assert (trace.train_loss[-1] < 0.01) == (first[0] != first[1])


def test_with_everybody_each_model_is_the_mean_of_its_cluster() -> None:
    task = planted(spread=1.0)
    trace = simulate(task, "full", rounds=60, seed=LUCKY, work=WORK, algorithm="ifca:k=3")
    models, p = models_of(trace), task.importance
    taken = np.stack([task.losses(m, np.arange(N)) for m in models]).argmin(axis=0)
    for j in range(K):
        members = taken == j
        expected = p[members] @ task.minima[members] / p[members].sum()
        np.testing.assert_allclose(models[j], expected, atol=1e-6)


def test_clusters_of_labels_are_found_by_a_network() -> None:
    """Two groups that swap the labels: one model does no better than chance, two are right."""
    rng = philox(4)
    x = rng.standard_normal((400, 5))
    y = (x[:, 0] > 0).astype(np.int64)
    clients = np.split(np.arange(400), 8)
    for rows in clients[::2]:
        y[rows] = 1 - y[rows]
    task = Softmax(x, y, x[:10], y[:10], clients, 2)
    work = LocalWork(steps=10, batch=10, lr=0.3)
    two = simulate(task, "md:m=4", rounds=40, work=work, algorithm="ifca:k=2,spread=0.5")
    one = simulate(task, "md:m=4", rounds=40, work=work)
    assert two.train_loss[-1] < 0.25 < 0.6 < one.train_loss[-1]
    taken = np.stack([task.losses(m, np.arange(8)) for m in models_of(two, 2)]).argmin(axis=0)
    assert len({*taken[::2].tolist()}) == len({*taken[1::2].tolist()}) == 1
    assert taken[0] != taken[1]


@pytest.mark.parametrize("average", ["models", "gradients"])
def test_one_model_is_fedavg(average: str) -> None:
    task = planted()
    which = IFCA(k=1, average=average)
    options: dict[str, Any] = {"rounds": 6, "seed": 2, "work": WORK, "optimiser": "adam"}
    for chosen in ("md:m=4", *(["poisson:m=4"] if average == "gradients" else [])):
        one = simulate(task, chosen, algorithm=which, **options)
        plain = simulate(task, chosen, **options)
        np.testing.assert_allclose(one.model, plain.model, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("optimiser", ["sgd", "adam", "sgd:eta_g=0.5,momentum=0.5"])
def test_shared_weights_are_those_of_everybody(optimiser: str) -> None:
    rng = philox(0)
    x, y = rng.standard_normal((200, 5)), rng.integers(0, 3, 200)
    task = MLP(x, y, x[:20], y[:20], np.split(np.arange(200), 10), 3, hidden=4)
    first = next(iter(task.layers.values()))
    shared = int(np.prod(first))
    trace = simulate(
        task, "md:m=4", rounds=8, work=LocalWork(steps=3, batch=10, lr=0.2), optimiser=optimiser,
        algorithm=f"ifca:k=3,shared={shared},spread=0.5",
    )  # fmt: skip
    models = models_of(trace)
    assert np.ptp(models[:, :shared], axis=0).max() == 0
    assert np.ptp(models[:, shared:], axis=0).max() > 0.1
    start = task.initial(0)
    assert np.abs(models[0, :shared] - start[:shared]).max() > 1e-3  # and they learn


def small() -> MLP:
    rng = philox(0)
    x, y = rng.standard_normal((200, 5)), rng.integers(0, 3, 200)
    return MLP(x, y, x[:20], y[:20], np.split(np.arange(200), 10), 3, hidden=4)


def run(shared: str) -> np.ndarray:
    trace = simulate(
        small(), "md:m=4", rounds=4, work=LocalWork(steps=3, batch=10, lr=0.2),
        algorithm=f"ifca:k=3,shared={shared},spread=0.5",
    )  # fmt: skip
    return models_of(trace)


def test_layers_are_shared_by_name() -> None:
    layers = list(small().layers)
    first = int(np.prod(small().layers[layers[0]]))
    assert run(f"{layers[0]},").tobytes() == run(str(first)).tobytes()
    common = {name: np.ptp(part, axis=0).max() == 0 for name, part in parts(run(layers[2])).items()}
    assert common == {name: name == layers[2] for name in layers}  # one in the middle alone
    both = parts(run(f"{layers[1]},{layers[3]}"))
    assert [np.ptp(part, axis=0).max() == 0 for part in both.values()] == [False, True] * 2


def parts(models: np.ndarray) -> dict[str, np.ndarray]:
    return cut(models, small().layers)


def test_the_name_of_a_module_is_that_of_all_its_layers() -> None:
    layers = {"conv1.weight": (2, 2), "conv1.bias": (2,), "conv10.bias": (2,), "fc": (1,)}
    start = IFCA(shared=("conv1",)).start(np.zeros(9), stream(0, "models"), layers)
    assert start["shared"].tolist() == [1] * 6 + [0] * 3
    assert (start["model-1"] == 0).tolist() == [True] * 6 + [False] * 3
    assert (
        IFCA(shared=("fc", "conv10")).start(np.zeros(9), stream(0, "m"), layers)["shared"].tolist()
        == [0] * 6 + [1] * 3
    )


@pytest.mark.parametrize("word", ["conv1", "conv1,fc.weight", "0,", "7"])
def test_a_word_says_which(word: str) -> None:
    made = algorithm(f"ifca:k=2,shared={word}")
    assert made.shared == (7 if word == "7" else tuple(word.strip(",").split(",")))
    assert algorithm(made.spec) == made


def test_a_layer_that_is_not_there_is_one_sentence() -> None:
    with pytest.raises(BadParameter) as told:
        run("convolution")
    assert str(told.value) == (
        "The 'shared' parameter of ifca must be a number, or names of layers "
        f"({', '.join(small().layers)}). Got 'convolution' instead."
    )
    with pytest.raises(BadParameter, match="must be an int of at least 0, or a tuple of names"):
        algorithm("ifca:shared=-3")


def test_a_model_that_nobody_took_stays() -> None:
    task = Quadratic([[0.0], [0.1]], sizes=[1, 1])
    far = IFCA(k=2, spread=100.0)
    (start,) = far.start(np.zeros(1), stream(0, "models")).values()
    trace = simulate(task, "full", rounds=3, work=WORK, algorithm=far)
    assert models_of(trace, 2)[1] == start
    assert models_of(trace, 2)[0, 0] > 0.02


def test_k_models_go_down_and_one_goes_up() -> None:
    task, k = planted(), 3
    plain = simulate(task, "md:m=4", rounds=3, work=WORK)
    more = simulate(task, "md:m=4", rounds=3, work=WORK, algorithm=f"ifca:k={k}")
    for number in range(3):
        clients = len(plain.cohort(number))
        assert more.bytes_down[number] == clients * k * 4 * D
        assert more.bytes_up[number] == clients * 4 * (D + 1)
    assert more.disclosures[-1].discloses.endswith("'ifca' made of the local data, one number")


@pytest.mark.parametrize("said", [-5.0, 7.0, 1e99, 0.4])
def test_whatever_a_client_says_of_its_cluster_is_some_cluster(said: float) -> None:
    which = IFCA(k=2)
    rows = which.rows(np.ones((1, 3)), {"cluster": np.array([[said]])})
    assert rows.shape == (1, which.width(3))
    assert rows.sum() == 4
