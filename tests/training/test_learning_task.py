"""Any model, any data: what is not batched is trained by the plain loop, and does all the same."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Problem, compare, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.types import Array, Floats
from fedcohort.data import Partition
from fedcohort.training import (
    MLP,
    Batched,
    ClientData,
    Dense,
    LearningTask,
    LocalWork,
    Model,
    PlainLoop,
    Quadratic,
    Softmax,
    cut,
)

SIZES = [30, 7, 0, 61, 1]
EVERYONE = np.arange(5)
WORK = LocalWork(epochs=2, batch=10, lr=0.1, mu=0.3, decay=0.1)


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def rngs() -> list[np.random.Generator]:
    return [philox(i) for i in range(5)]


def held(total: int = sum(SIZES)) -> list[Array]:
    return np.split(philox(1).permutation(total), np.cumsum(SIZES)[:-1])


def labelled(**changes: Any) -> ClientData:
    x, y = philox(0).standard_normal((119, 4, 3)) / 3, philox(2).integers(0, 4, 119)
    given = {"x_train": x[:99], "y_train": y[:99], "x_test": x[99:], "y_test": y[99:]}
    return ClientData.divide(**{**given, "clients": held(), "classes": 4, **changes})


@dataclass(frozen=True)
class Line(Model):
    """Least squares on integer tokens: no classes, and an embedding that is looked up."""

    words: int
    _: KW_ONLY
    ridge: float = 0.0
    name = "line"

    @property
    def layers(self) -> Mapping[str, tuple[int, ...]]:
        return {"embedding": (self.words,), "offset": (1,)}

    def initial(self, seed: int) -> Floats:
        return np.zeros(self.dimension)

    def _errors(self, theta: Array, x: Array, y: Array) -> Array:
        return np.asarray(theta[x].mean(axis=1) + theta[-1] - y)

    def sample_losses(self, theta: Array, x: Array, y: Array) -> Array:
        return 0.5 * self._errors(theta, x, y) ** 2 + 0.5 * self.ridge * theta @ theta

    def gradient(self, theta: Array, x: Array, y: Array) -> Array:
        errors = self._errors(theta, x, y) / len(y)
        gradient = self.ridge * theta
        np.add.at(gradient, x, errors[:, None] / x.shape[1])
        gradient[-1] += errors.sum()
        return gradient

    @classmethod
    def for_data(cls, data: ClientData, **settings: Any) -> Line:
        return cls(int(data.x_train.max()) + 1, **settings)


def tokens(**changes: Any) -> ClientData:
    x = philox(0).integers(0, 7, (99, 5))
    y = np.array([0.0, 1, -1, 2, 0.5, 0, 3])[x].mean(axis=1) + 1
    given = {"x_train": x, "y_train": y, "x_test": x[:9], "y_test": y[:9], "clients": held()}
    return ClientData.divide(**{**given, **changes})


@pytest.mark.parametrize("widths", [(12, 4), (12, 9, 4)])
def test_the_plain_loop_and_the_batched_trainer_agree(widths: tuple[int, ...]) -> None:
    model = Dense(widths, np.dtype(np.float64))
    fast, slow = (LearningTask(model, labelled(), each) for each in (Batched(), PlainLoop()))
    theta = fast.initial(0) + 0.3 * philox(5).standard_normal(fast.dimension)
    thetas, drift = np.stack([theta, -theta, 0 * theta]), 0.1 * np.ones((5, fast.dimension))

    def told(task: LearningTask) -> list[Array]:
        evaluation = task.evaluate(thetas)
        sums, counts = task.gradient_sums(theta, EVERYONE, rngs(), 0.5)
        pooled = task.pooled()
        return [
            task.updates(theta, EVERYONE, WORK, rngs(), 0.7, drift),
            task.updates(theta, EVERYONE, WORK, rngs()),
            sums,
            counts,
            task.losses(theta, EVERYONE),
            task.batch_losses(theta, EVERYONE, 6, rngs()),
            *(task.sample_losses(theta, client) for client in range(5)),
            task.client_losses(thetas),
            evaluation.train_loss,
            evaluation.test_loss,
            evaluation.accuracy,
            task.predictions(theta),
            task.feature_histograms(EVERYONE, 6),
            np.asarray(task.label_histograms),
            pooled.updates(theta, np.array([0]), WORK, [philox(0)]),
            pooled.losses(theta, np.array([0])),
        ]

    for one, other in zip(told(fast), told(slow), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_deep_networks_are_trained_side_by_side_as_one_by_one() -> None:
    task = LearningTask(Dense((12, 8, 6, 4)), labelled())
    assert isinstance(task.trainer, Batched)
    alone = LearningTask(Dense((12, 8, 6, 4)), labelled(), PlainLoop())
    moved = [each.updates(task.initial(0), EVERYONE, WORK, rngs()) for each in (task, alone)]
    np.testing.assert_allclose(*moved, rtol=1e-4, atol=1e-6)
    assert list(task.layers)[-1] == "output.bias"
    theta = task.initial(0)
    moved = task.updates(theta, EVERYONE, replace(WORK, epochs=30), rngs())
    assert moved.dtype == np.float32
    before, after = (task.losses(each, EVERYONE) for each in (theta, theta + moved[0]))
    assert after[0] < before[0]


def test_a_model_of_its_own_learns_tokens() -> None:
    task = LearningTask(Line(7), tokens())
    assert (task.label_histograms, task.classes, task.dimension) == (None, None, 8)
    trace = simulate(
        task, scheme("md", m=3), rounds=60, work=LocalWork(steps=20, batch=None, lr=0.5)
    )
    assert trace.train_loss[-1] < 0.05 * trace.train_loss[0]
    assert np.isfinite(trace.test_loss).all()
    assert np.isnan(trace.accuracy).all()
    with pytest.raises(BadInput, match="'line' does not tell classes"):
        task.predictions(task.initial(0))
    with pytest.raises(BadInput, match="'line' has no features to count"):
        task.feature_histograms(EVERYONE, 2)


def test_the_gradient_of_a_model_of_its_own() -> None:
    model, (x, y) = Line(7, ridge=0.2), tokens().samples(slice(20))
    theta = philox(3).standard_normal(8)
    for i, slope in enumerate(model.gradient(theta, x, y)):
        shift = 1e-6 * (np.arange(8) == i)
        two = [model.sample_losses(theta + s * shift, x, y).mean() for s in (1, -1)]
        assert slope == pytest.approx((two[0] - two[1]) / 2e-6, abs=1e-8)


def test_a_model_is_made_to_the_size_of_the_data() -> None:
    @dataclass(frozen=True)
    class Text:
        x_train = tokens().x_train
        y_train = tokens().y_train
        x_test = None
        y_test = None
        classes: Any = None

    task = Line.from_partition(Text(), Partition(tuple(held())), ridge=0.1, importance=[0.2] * 5)
    assert task.model == Line(7, ridge=0.1)
    assert task.importance.tolist() == [0.2] * 5
    assert np.isnan(task.evaluate(task.initial(0)[None]).test_loss).all()


def test_memory_mapped_samples_are_not_copied(tmp_path: Path) -> None:
    file = tmp_path / "images.npy"
    np.save(file, philox(0).integers(0, 256, (99, 4, 3)).astype(np.uint8))
    images = np.load(file, mmap_mode="r", allow_pickle=False)
    data = labelled(x_train=images)
    assert data.x_train is images
    task = LearningTask(Dense((12, 4)), data, PlainLoop())
    assert task.data.x_train is images
    x, y = data.samples(data.part(3))
    assert (x == images[held()[3]]).all()
    assert len(y) == 61
    fast = LearningTask(Dense((12, 4)), data)  # lays samples out, in the type of the model
    assert fast.data.x_train.dtype == np.float32
    assert fast.data.x_train.base is not None  # a view of that one copy
    np.testing.assert_array_equal(fast.data.samples(fast.data.part(3))[0], x)


def test_test_samples_of_a_client() -> None:
    own = [[0, 1], [2], [], [3, 4, 5], [19]]
    data = labelled(test_clients=own)
    x, y = data.test_samples(3)
    assert (x == data.x_test[3:6]).all()
    assert (y == data.y_test[3:6]).all()
    assert [len(data.test_samples(i)[1]) for i in range(5)] == [2, 1, 0, 3, 1]
    assert len(labelled().test_samples(0)[1]) == 0
    task = LearningTask(Dense((12, 4)), data)  # in whatever layout
    np.testing.assert_allclose(task.data.test_samples(3)[0], x, rtol=1e-6)
    with pytest.raises(BadParameter, match=r"'test_clients'.*5 arrays, one per client"):
        labelled(test_clients=own[:4])
    with pytest.raises(BadInput, match=r"test samples of client 4 must be positions in \[0, 20\)"):
        labelled(test_clients=[*own[:4], [20]])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"y_train": np.full(99, np.nan)}, "'y_train' must be finite"),
        ({"y_train": np.array(1.0)}, "'y_train' must have a row per sample"),
        ({"y_train": np.zeros(98)}, "'x_train' must have one row per label"),
        ({"x_train": np.zeros((99, 5)).astype(object)}, "'x_train' must hold numbers"),
    ],
)
def test_bad_data_without_classes(change: dict[str, Any], match: str) -> None:
    with pytest.raises(BadInput, match=match):
        tokens(**change)


def test_what_nobody_holds_need_not_be_finite() -> None:
    x = np.zeros((99, 12))
    x[held()[1]] = np.nan
    rest = [*held()[:1], np.zeros(0), *held()[2:]]
    assert labelled(x_train=x, x_test=None, clients=rest).total == 92
    with pytest.raises(BadInput, match="'x_train' must be finite"):
        labelled(x_train=x, x_test=None)


def test_misfits_get_a_sentence() -> None:
    with pytest.raises(BadInput, match=r"takes 13 features and tells 4 .* the data have 12 and 4"):
        LearningTask(Dense((13, 4)), labelled())
    with pytest.raises(BadInput, match=r"'dense' .* the data have none"):
        LearningTask(Dense((5, 4)), tokens())
    with pytest.raises(BadInput, match=r"'line' .* by Batched.*it trains dense networks"):
        LearningTask(Line(7), tokens(), Batched())
    with pytest.raises(BadParameter, match="'gram_bytes' parameter of Batched"):
        Batched(gram_bytes=-1)


def test_fingerprints_of_models_data_and_trainers() -> None:
    class Same(Line):
        pass

    x = tokens().x_train
    tasks = [
        LearningTask(Line(7), tokens()),
        LearningTask(Line(7, ridge=0.1), tokens()),
        LearningTask(Same(7), tokens()),
        LearningTask(Line(7), tokens(x_train=6 - x)),
        LearningTask(Line(7), tokens(clients=held()[::-1])),
        LearningTask(Line(7), tokens(test_clients=[[0]] * 5)),
        LearningTask(Line(7), tokens(), importance=[0.2] * 5),
        LearningTask(Dense((12, 4)), labelled()),
        LearningTask(Dense((12, 4)), labelled(), PlainLoop()),
        LearningTask(Dense((12, 4)), labelled(), Batched(0)),
    ]
    assert len({task.fingerprint() for task in tasks}) == len(tasks)
    assert tasks[0].fingerprint() == LearningTask(Line(7), tokens()).fingerprint()


def test_samples_are_sent_to_other_processes_once() -> None:
    x = philox(0).standard_normal((99, 1000)).astype(np.float32)
    task = Softmax(x, np.arange(99) % 4, x[:9], np.arange(9) % 4, held(), 4)
    assert task.data.samples(slice(3))[0].shape == (3, 1000)
    sent = pickle.dumps(task)
    assert len(sent) < 1.05 * (x.nbytes + x[:9].nbytes)
    again = pickle.loads(sent)  # noqa: S301 - our own
    assert again.fingerprint() == task.fingerprint()


def test_named_layers_cut_models_updates_and_gradients() -> None:
    x, y = np.eye(4), np.array([0, 1, 0, 1])
    task = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, hidden=3)
    assert dict(task.layers) == {
        "hidden1.weight": (3, 4),
        "hidden1.bias": (3,),
        "output.weight": (2, 3),
        "output.bias": (2,),
    }
    theta = task.initial(0)
    parts = cut(theta, task.layers)
    assert sum(part.size for part in parts.values()) == task.dimension
    assert np.concatenate([part.ravel() for part in parts.values()]).tolist() == theta.tolist()
    rows = cut(np.stack([theta, -theta]), task.layers)
    assert rows["hidden1.weight"].shape == (2, 3, 4)
    assert (rows["output.bias"][1] == -parts["output.bias"]).all()
    assert list(Softmax(x, y, x, y, [[0, 1]], 2).layers) == ["output.weight", "output.bias"]
    assert Quadratic([[0.0, 1.0]]).layers == {"theta": (2,)}


def test_the_loss_sees_the_bias_of_the_last_layer() -> None:
    # What the layer is called is what the layer does: raising one bias favours its class.
    x, y = np.eye(4), np.array([0, 1, 0, 1])
    task = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, hidden=3)
    theta = task.initial(0)
    cut(theta, task.layers)["output.bias"][1] += 100
    assert task.predictions(theta).tolist() == [1, 1, 1, 1]


ONE_FILE = '''
"""Least squares on classes."""

from dataclasses import KW_ONLY, dataclass
from typing import Annotated

import numpy as np

from fedcohort._internal.parameters import Real
from fedcohort.training import Model


@dataclass(frozen=True)
class Squares(Model):
    """Least squares, one line per class."""

    features: int
    classes: int
    _: KW_ONLY
    ridge: Annotated[float, Real(0)] = 0.0
    name = "squares"

    @classmethod
    def for_data(cls, data, **settings):
        return cls(data.features, data.classes, **settings)

    @property
    def layers(self):
        return {"output.weight": (self.classes, self.features)}

    def initial(self, seed):
        return np.zeros(self.dimension)

    def _scores(self, theta, x):
        return x.reshape(len(x), -1) @ theta.reshape(self.classes, self.features).T

    def predictions(self, theta, x):
        return self._scores(theta, x).argmax(axis=1)

    def _errors(self, theta, x, y):
        return self._scores(theta, x) - np.eye(self.classes)[y]

    def sample_losses(self, theta, x, y):
        return 0.5 * (self._errors(theta, x, y) ** 2).sum(1) + 0.5 * self.ridge * theta @ theta

    def gradient(self, theta, x, y):
        slope = self._errors(theta, x, y).T @ x.reshape(len(x), -1) / len(y)
        return slope.ravel() + self.ridge * theta
'''


def test_a_model_is_one_file(tmp_path: Path) -> None:
    file = tmp_path / "squares_model.py"
    file.write_text(ONE_FILE)
    task = Problem("digits", "iid:n=5", model=f"{file}:ridge=0.001").task()
    assert isinstance(task, LearningTask)
    assert task.model == type(task.model)(64, 10, ridge=0.001)  # type: ignore[call-arg]
    work = LocalWork(steps=20, batch=20, lr=0.05)
    comparison = compare(task, ["uniform:m=2", "pow-d:m=2"], rounds=10, seeds=1, jobs=1, work=work)
    assert all(trace.accuracy[-1] > 0.8 for trace in comparison.traces)
    with pytest.raises(BadParameter, match="'ridge'"):
        Problem("digits", "iid:n=5", model=f"{file}:ridge=-1").task()
    with pytest.raises(BadInput, match="'features' of the model 'squares' is no setting"):
        Problem("digits", "iid:n=5", model=f"{file}:features=3").task()
    file.with_name("no_model.py").write_text("x = 1")
    with pytest.raises(BadInput, match="must define exactly one Model with a `name`; found none"):
        Problem(model=str(file.with_name("no_model.py"))).task()
