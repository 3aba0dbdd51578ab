"""Any torch module is a model: it trains as the numpy ones, and keeps what torch's layers keep."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort import compare, flower, scheme, schemes, simulate
from fedcohort._internal.errors import BadInput, FedcohortError
from fedcohort._internal.types import Array, Ints
from fedcohort.privacy import ClientPolicy
from fedcohort.training import (
    Batched,
    ClientData,
    Dense,
    LearningTask,
    LocalWork,
    PlainLoop,
    TorchCohort,
    TorchLoop,
    TorchModel,
    Trainer,
)
from fedcohort.training._algorithms import ALGORITHMS

SIZES = [30, 7, 0, 61, 1, 45]
CLIENTS = np.array([4, 2, 0, 3, 5, 1])
WORKS = {
    "steps": LocalWork(steps=13, batch=10, lr=0.1),
    "epochs": LocalWork(epochs=2, batch=8, lr=0.1, mu=0.5),
    "decay": LocalWork(steps=20, batch=10, lr=0.1, mu=0.5, decay=0.3),
    "all data": LocalWork(steps=4, batch=None, lr=0.1),
}


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def rngs(clients: Ints = CLIENTS) -> list[np.random.Generator]:
    return [philox(int(i)) for i in clients]


def data_of(shape: tuple[int, ...], dtype: type = np.float64, classes: int = 4) -> ClientData:
    rng, total = philox(0), sum(SIZES)
    x = rng.standard_normal((total + 20, *shape)).astype(dtype) / 3
    y = rng.integers(0, classes, len(x))
    clients = np.split(philox(1).permutation(total), np.cumsum(SIZES)[:-1])
    return ClientData.divide(x[:total], y[:total], x[total:], y[total:], clients, classes)


def dense(widths: tuple[int, ...]) -> nn.Sequential:
    torch.manual_seed(0)
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1]).double()


def image_net(batch_norm: bool = True, dropout: float = 0.3) -> nn.Sequential:
    torch.manual_seed(0)
    norm = [nn.BatchNorm2d(4)] if batch_norm else []
    return nn.Sequential(
        nn.Conv2d(1, 4, 3), *norm, nn.ReLU(), nn.Flatten(), nn.Dropout(dropout), nn.Linear(64, 4)
    )


def image_task(net: nn.Module | None = None) -> LearningTask:
    return LearningTask(TorchModel(net or image_net()), data_of((1, 6, 6), np.float32))


# The same numbers as the models of numpy


@pytest.mark.parametrize("drifts", [False, True])
@pytest.mark.parametrize("data_rate", [1.0, 0.4])
@pytest.mark.parametrize("work", WORKS.values(), ids=WORKS.keys())
@pytest.mark.parametrize("trainer", [TorchLoop(), TorchCohort(), PlainLoop()], ids=str)
@pytest.mark.parametrize("widths", [(12, 4), (12, 9, 4)], ids=["softmax", "mlp"])
def test_torch_follows_numpy(
    widths: tuple[int, ...], trainer: Trainer, work: LocalWork, data_rate: float, drifts: bool
) -> None:
    data, net = data_of((12,)), dense(widths)
    ours = LearningTask(Dense(widths, np.dtype(np.float64)), data, Batched())
    theirs = LearningTask(TorchModel(net), data, trainer)
    theta = theirs.initial(0)
    drift = 0.3 * philox(4).standard_normal((6, len(theta))) if drifts else None
    moved = theirs.updates(theta, CLIENTS, work, rngs(), data_rate, drift)
    expected = ours.updates(theta, CLIENTS, work, rngs(), data_rate, drift)
    np.testing.assert_allclose(moved, expected, rtol=1e-9, atol=1e-12)
    assert np.abs(moved[3]).max() > 1e-3


def test_questions_are_answered_as_by_numpy() -> None:
    data, widths = data_of((12,)), (12, 9, 4)
    ours = LearningTask(Dense(widths, np.dtype(np.float64)), data)
    theirs = LearningTask(TorchModel(dense(widths)), data)
    theta = theirs.initial(0)
    thetas = theta + philox(2).standard_normal((3, len(theta)))
    close: Callable[..., None] = lambda one, other: np.testing.assert_allclose(one, other, 1e-9)  # noqa: E731
    close(theirs.losses(theta, CLIENTS), ours.losses(theta, CLIENTS))
    close(theirs.sample_losses(theta, 3), ours.sample_losses(theta, 3))
    close(
        theirs.batch_losses(theta, CLIENTS, 5, rngs()), ours.batch_losses(theta, CLIENTS, 5, rngs())
    )
    close(theirs.client_losses(thetas), ours.client_losses(thetas))
    for one, other in zip(
        theirs.gradient_sums(theta, CLIENTS, rngs(), 0.5),
        ours.gradient_sums(theta, CLIENTS, rngs(), 0.5),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    for name in ("train_loss", "test_loss", "accuracy"):
        close(getattr(theirs.evaluate(thetas), name), getattr(ours.evaluate(thetas), name))
    np.testing.assert_array_equal(theirs.predictions(theta), ours.predictions(theta))
    np.testing.assert_array_equal(
        theirs.feature_histograms(CLIENTS, 4), ours.feature_histograms(CLIENTS, 4)
    )


def test_which_trainer_is_taken() -> None:
    data = data_of((12,))
    assert isinstance(LearningTask(TorchModel(dense((12, 9, 4))), data).trainer, TorchCohort)
    assert isinstance(LearningTask(TorchModel(dense((12, 5000, 4))), data).trainer, TorchLoop)
    with_dropout = nn.Sequential(nn.Dropout(0.5), nn.Linear(12, 4))
    assert isinstance(LearningTask(TorchModel(with_dropout), data).trainer, TorchLoop)
    assert isinstance(image_task().trainer, TorchLoop)


class Hidden(nn.Module):
    """Randomness that no layer shows."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(12, 4)

    def forward(self, x: Tensor) -> Tensor:
        return functional.dropout(self.linear(x), 0.5, self.training)


def test_hidden_randomness_is_not_computed_side_by_side() -> None:
    task = LearningTask(TorchModel(Hidden()), data_of((12,), np.float32))
    assert isinstance(task.trainer, TorchLoop)


# What torch's layers keep


def test_dropout_follows_from_the_generator_alone() -> None:
    task = image_task()
    theta, work = task.initial(0), LocalWork(steps=5, batch=10)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    together = task.updates(theta, CLIENTS, work, rngs())
    torch.manual_seed(6)
    alone = task.updates(theta, CLIENTS[3:4], work, rngs(CLIENTS[3:4]))
    np.testing.assert_array_equal(together[3], alone[0])
    other = task.updates(theta, CLIENTS[3:4], work, [philox(99)])
    assert np.abs(other - alone).max() > 1e-4
    torch.manual_seed(5)
    task.updates(theta, CLIENTS, work, rngs())
    assert torch.equal(torch.random.get_rng_state(), before)  # the user's own draws go on


def test_without_dropout_the_mask_is_what_differs() -> None:
    work = LocalWork(steps=5, batch=None)
    rows = []
    for chance in (0.0, 0.3):
        task = image_task(image_net(dropout=chance))
        same = [philox(1), philox(2)]  # all data in every step: no batches differ
        rows.append([task.updates(task.initial(0), np.array([3]), work, [rng]) for rng in same])
    np.testing.assert_array_equal(*rows[0])
    assert np.abs(rows[1][0] - rows[1][1]).max() > 1e-4


def test_running_statistics_are_part_of_the_model() -> None:
    task = image_task()
    names = list(task.layers)
    assert names[-2:] == ["1.running_mean", "1.running_var"]
    assert task.layers["1.running_var"] == (4,)
    moved = task.updates(task.initial(0), np.array([3]), LocalWork(steps=7), rngs(np.array([3])))
    assert np.abs(moved[0, -8:]).min() > 0
    sums, _ = task.gradient_sums(task.initial(0), np.array([3]), rngs(np.array([3])))
    assert np.abs(sums[0, -8:]).max() == 0
    assert np.abs(sums[0, :-8]).max() > 0


def test_batch_norm_follows_torchs_own_loop() -> None:
    task, net = image_task(image_net(dropout=0.0)), image_net(dropout=0.0)
    work = LocalWork(steps=6, batch=None, lr=0.1, decay=0.01)
    theta = task.initial(0)
    moved = task.updates(theta, np.array([3]), work, [philox(0)])[0]
    x, y = task.data.samples(task.data.part(3))
    optimiser = torch.optim.SGD(net.parameters(), lr=0.1, weight_decay=0.01)
    for _ in range(6):
        optimiser.zero_grad()
        functional.cross_entropy(net(torch.from_numpy(x)), torch.from_numpy(y)).backward()
        optimiser.step()
    buffers = [net[1].running_mean, net[1].running_var]
    flat = torch.cat([each.detach().reshape(-1) for each in [*net.parameters(), *buffers]])
    np.testing.assert_allclose(theta + moved, flat.numpy(), rtol=1e-4, atol=1e-5)


def test_the_decay_does_not_touch_running_statistics() -> None:
    task, work = image_task(), LocalWork(steps=3, batch=10)
    theta, drift = task.initial(0), np.ones((1, task.dimension))
    alone = np.array([3])
    plain = task.updates(theta, alone, replace(work, lr=1e-12), rngs(alone))
    pushed = task.updates(
        theta, alone, replace(work, lr=1e-12, decay=9.0, mu=9.0), rngs(alone), 1.0, drift
    )
    np.testing.assert_allclose(plain[0, -8:], pushed[0, -8:], rtol=1e-6)
    assert np.abs(plain[0, -8:]).max() > 1e-3


def test_counts_of_batches_begin_anew_for_every_client() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36, momentum=None), nn.Linear(36, 4))
    task, work = image_task(net), LocalWork(steps=3, batch=10)
    rows = task.updates(task.initial(0), np.array([3, 0]), work, [philox(3), philox(0)])
    alone = task.updates(task.initial(0), np.array([0]), work, [philox(0)])
    np.testing.assert_array_equal(rows[1], alone[0])


def test_a_batch_of_one_is_not_normalised_by_itself() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(36), nn.Linear(36, 4))
    task = image_task(net)
    moved = task.updates(
        task.initial(0), np.array([4, 3]), LocalWork(epochs=1, batch=10), [philox(0)] * 2
    )
    assert np.isfinite(moved).all()  # one sample; and 61, whose last batch is one
    assert np.abs(moved[0, :-72]).max() > 0
    assert np.abs(moved[0, -72:]).max() == 0


def test_a_variance_below_zero_is_zero() -> None:
    task = image_task()
    theta = task.initial(0)
    theta[-4:] = -3.0
    assert np.isfinite(task.losses(theta, CLIENTS)).all()
    assert np.isfinite(task.updates(theta, CLIENTS, LocalWork(steps=1), rngs())).all()


def test_integer_inputs_are_looked_up() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(9, 5), nn.Flatten(), nn.Linear(15, 4))
    x = philox(0).integers(0, 9, (60, 3)).astype(np.uint8)
    y = x[:, 0].astype(np.int64) % 4
    data = ClientData.divide(x, y, x, y, np.split(np.arange(60), 3), 4)
    task = LearningTask(TorchModel(net), data)
    trace = simulate(task, "full", rounds=5, work=LocalWork(steps=20, batch=10, lr=0.5))
    assert trace.train_loss[-1] < trace.train_loss[0] - 0.2


def test_frozen_parameters_stay_and_are_not_sent() -> None:
    net = dense((12, 9, 4)).float()
    for each in net[0].parameters():
        each.requires_grad = False
    task = LearningTask(TorchModel(net), data_of((12,), np.float32))
    assert list(task.layers) == ["2.weight", "2.bias"]
    assert task.dimension == 40
    assert simulate(task, "full", rounds=2).model.shape == (40,)


def test_regression_has_no_classes() -> None:
    x = philox(0).standard_normal((60, 3)).astype(np.float32)
    y = x @ np.array([1.0, 2.0, 3.0]) + 1
    data = ClientData.divide(x[:50], y[:50], x[50:], y[50:], np.split(np.arange(50), 5))
    task = LearningTask(TorchModel(nn.Linear(3, 1), nn.MSELoss()), data)
    trace = simulate(task, "full", rounds=30, work=LocalWork(steps=10, batch=None, lr=0.1))
    assert trace.test_loss[-1] < 1e-4
    assert np.isnan(trace.accuracy).all()
    np.testing.assert_allclose(trace.model, [1, 2, 3, 1], atol=0.02)
    with pytest.raises(BadInput, match="does not tell classes"):
        task.predictions(trace.model)


# One task everywhere


@pytest.mark.parametrize("name", sorted(schemes.SCHEMES))
def test_every_scheme_chooses_on_a_torch_task(name: str) -> None:
    fields = schemes.SCHEMES[name].__dataclass_fields__
    sized = {
        key: value for key, value in {"m": 2, "d": 4, "K": 40, "strata": 2}.items() if key in fields
    }
    if "mechanism" in fields:
        sized["mechanism"] = "exact"
    task = LearningTask(TorchModel(image_net()), data_of((1, 6, 6), np.float32))
    chosen = scheme(name, **sized)
    trace = simulate(task, chosen, rounds=2, work=LocalWork(steps=2, batch=8, lr=0.05))
    assert np.isfinite(trace.train_loss).all()


@pytest.mark.parametrize(
    "options",
    [
        {"optimiser": "adam"},
        {"aggregator": "memory"},
        *({"algorithm": name} for name in sorted(ALGORITHMS)),
    ],
    ids=str,
)
def test_every_part_of_a_run_takes_it(options: dict[str, str]) -> None:
    net = image_net(batch_norm=options.get("algorithm") != "feddyn")
    trace = simulate(image_task(net), "uniform:m=3", rounds=3, work=LocalWork(steps=2), **options)
    assert np.isfinite(trace.train_loss).all()


def test_feddyn_refuses_running_statistics_everywhere(tmp_path: Path) -> None:
    """Its step would take them for weights: the loss went from 1.4 to 20 in three rounds."""
    task, work, n = image_task(), LocalWork(steps=2), len(CLIENTS)
    with pytest.raises(BadInput, match=r"'feddyn' needs .* has 8 running statistics.*GroupNorm"):
        simulate(task, "uniform:m=3", rounds=1, work=work, algorithm="feddyn")
    policy = ClientPolicy(folder=tmp_path)
    app = flower.client_app(flower.task_client(task, work), simulated=True, policy=policy)
    strategy = flower.CohortStrategy("uniform:m=3", clients=n, seed=1, algorithm="feddyn")
    with pytest.raises(FedcohortError, match="has 8 running statistics"):
        strategy.start(flower.InProcessGrid(app, n), flower.first_model(task, 1), num_rounds=1)


def test_workers_compute_the_same(tmp_path) -> None:
    torch.manual_seed(1)
    task, work = image_task(), LocalWork(steps=2, batch=8)
    there = compare(task, "md:m=2", rounds=2, seeds=2, jobs=2, work=work, folder=tmp_path / "a")
    here = simulate(task, "md:m=2", rounds=2, seed=1, work=work)
    np.testing.assert_allclose(there.traces[1].model, here.model, rtol=0, atol=1e-7)
    assert here.settings["versions"]["torch"] == torch.__version__


def test_a_task_survives_pickling() -> None:
    task = image_task()
    task.losses(task.initial(0), CLIENTS)
    again = pickle.loads(pickle.dumps(task))  # noqa: S301
    assert again.fingerprint() == task.fingerprint()
    np.testing.assert_array_equal(again.initial(0), task.initial(0))


def test_a_module_starts_as_it_is_and_a_class_by_the_seed() -> None:
    net = image_net()
    with torch.no_grad():
        net[-1].bias.fill_(7.0)
    as_it_is = TorchModel(net)
    assert np.count_nonzero(as_it_is.initial(3) == 7.0) == 4
    np.testing.assert_array_equal(as_it_is.initial(0), as_it_is.initial(1))
    with torch.no_grad():
        net[-1].bias.fill_(8.0)  # the user's own module goes on to change
    made = TorchModel(lambda: nn.Linear(3, 2))
    before = torch.random.get_rng_state()
    np.testing.assert_array_equal(made.initial(1), made.initial(1))
    assert torch.equal(torch.random.get_rng_state(), before)
    assert np.abs(made.initial(0) - made.initial(1)).max() > 1e-3


def test_threads_are_bounded_and_given_back() -> None:
    seen: list[int] = []

    def loss(outputs: Tensor, targets: Tensor) -> Tensor:
        seen.append(torch.get_num_threads())
        return functional.cross_entropy(outputs, targets, reduction="none")

    torch.set_num_threads(2)
    task = LearningTask(TorchModel(image_net(), loss), data_of((1, 6, 6), np.float32))
    task.updates(task.initial(0), CLIENTS, LocalWork(steps=1), rngs())
    assert set(seen) == {1}
    assert torch.get_num_threads() == 2


# Fingerprints


def half(outputs: Tensor, targets: Tensor) -> Tensor:
    return 0.5 * functional.cross_entropy(outputs, targets, reduction="none")


def other_weights() -> nn.Sequential:
    net = image_net()
    with torch.no_grad():
        net[0].weight[0, 0, 0, 0] += 1e-6
    return net


def test_all_that_decides_a_result_is_in_the_fingerprint() -> None:
    models = [
        TorchModel(image_net()),
        TorchModel(image_net(dropout=0.2)),
        TorchModel(image_net(batch_norm=False)),
        TorchModel(other_weights()),
        TorchModel(image_net(), nn.CrossEntropyLoss(label_smoothing=0.1)),
        TorchModel(image_net(), nn.CrossEntropyLoss()),
        TorchModel(image_net(), half),
        TorchModel(image_net(), threads=2),
        TorchModel(image_net),
        TorchModel(other_weights),
    ]
    assert len({model.fingerprint() for model in models}) == len(models)
    assert TorchModel(image_net()).fingerprint() == models[0].fingerprint()
    data = data_of((1, 6, 6), np.float32)
    assert (
        LearningTask(models[0], data).fingerprint() != LearningTask(models[1], data).fingerprint()
    )


def test_a_computed_task_has_the_same_fingerprint() -> None:
    task = image_task()
    before = task.fingerprint()
    task.updates(task.initial(0), CLIENTS, LocalWork(steps=1), rngs())
    assert task.fingerprint() == before


# What cannot be


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (lambda: TorchModel("net"), "must be a torch.nn.Module"),
        (lambda: TorchModel(lambda: 3), "must be a torch.nn.Module.*Got int"),
        (
            lambda: TorchModel(nn.Linear(3, 4), loss="mse"),
            "'loss' of TorchModel must be a function",
        ),
        (lambda: TorchModel(nn.LazyLinear(3)), "lazy layers"),
        (lambda: TorchModel(nn.ReLU()), "must have parameters to train.*Got none"),
        (lambda: TorchModel(nn.Linear(3, 4).half()), "float32 or all float64.*float16"),
        (lambda: TorchModel(nn.Linear(3, 4), device="cuda:7"), "the device 'cuda:7'"),
        (lambda: TorchModel(nn.Linear(3, 4), threads=0), "'threads'"),
    ],
)
@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_no_model(model: Callable[[], TorchModel], words: str) -> None:
    with pytest.raises((BadInput, ValueError), match=words):
        model()


def mean_loss(outputs: Tensor, targets: Tensor) -> Tensor:
    return functional.cross_entropy(outputs, targets)


@pytest.mark.parametrize(
    ("net", "loss", "dtype", "words"),
    [
        (
            lambda: nn.Linear(5, 4),
            functional.cross_entropy,
            np.float32,
            "given float32 of shape .2, 12.*shapes",
        ),
        (
            lambda: nn.Linear(12, 3),
            functional.cross_entropy,
            np.float32,
            "it tells 3 classes, and the data have 4",
        ),
        (
            lambda: nn.Linear(12, 4),
            mean_loss,
            np.float32,
            "one number per sample.*without taking the mean",
        ),
        (lambda: nn.Linear(12, 4), functional.cross_entropy, np.int32, "divide images by 255"),
    ],
    ids=["shape", "classes", "mean", "integers"],
)
def test_no_task(net, loss, dtype: type, words: str) -> None:
    x = np.ones((8, 12), dtype)
    data = ClientData.divide(x, np.arange(8) % 4, None, None, [np.arange(8)], 4)
    with pytest.raises(BadInput, match=words):
        LearningTask(TorchModel(net(), loss), data)


def test_another_trainer_says_what_it_trains() -> None:
    data = data_of((12,))
    with pytest.raises(BadInput, match="it trains models of torch"):
        LearningTask(Dense((12, 4)), data, TorchLoop())
    with pytest.raises(BadInput, match="dense networks"):
        LearningTask(TorchModel(image_net()), data_of((1, 6, 6), np.float32), TorchCohort())


def test_a_diverged_client_is_its_own_trouble() -> None:
    task = LearningTask(TorchModel(dense((12, 9, 4)).float()), data_of((12,), np.float32))
    drift = np.zeros((6, task.dimension))
    drift[3] = np.inf
    moved = task.updates(task.initial(0), CLIENTS, LocalWork(steps=3), rngs(), 1.0, drift)
    assert not np.isfinite(moved[3]).all()
    assert np.isfinite(np.delete(moved, 3, axis=0)).all()


def test_a_large_cohort_trains_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    task, seen = image_task(), list[int]()
    train = task.updates

    def watched(theta: Array, clients: Ints, *rest: object) -> Array:
        seen.append(len(clients))
        return train(theta, clients, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(task, "updates", watched)
    monkeypatch.setattr("fedcohort.simulation._engine.BLOCK_BYTES", 8 * task.dimension * 2)
    simulate(task, "full", rounds=1, work=LocalWork(steps=1))
    assert max(seen) == 2
    assert sum(seen) == len(np.flatnonzero(task.sizes))
