"""Modules and losses as people have them: what torch's own loop takes works, or a word says why."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from fedcohort import Problem, compare, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.training import ClientData, LearningTask, LocalWork, TorchModel

pytestmark = pytest.mark.filterwarnings("ignore::fedcohort._internal.errors.UnequalWork")

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 60)
X = RNG.normal(size=(60, 6)).astype(np.float32)
X[np.arange(60), Y] += 2
IMAGES = RNG.normal(size=(60, 1, 6, 6)).astype(np.float32)
TOKENS = RNG.integers(0, 20, (60, 7))
CLIENTS = [np.arange(20), np.array([20]), np.zeros(0, int), np.arange(21, 40)]
WORK = LocalWork(epochs=1, batch=8, lr=0.05)


def task_of(
    net: Any, loss: Any = functional.cross_entropy, x: Any = X, y: Any = Y, classes: int | None = 3
) -> LearningTask:
    held = ClientData.divide(x[:40], y[:40], x[40:].copy(), y[40:], CLIENTS, classes)
    return LearningTask(TorchModel(net, loss), held)


def linear(outputs: int = 3) -> nn.Module:
    torch.manual_seed(3)
    return nn.Linear(6, outputs)


# What a module may do


class Halves(nn.Module):
    """It changes what it is given, as `x /= 255` does."""

    def __init__(self, convolves: bool) -> None:
        super().__init__()
        self.part: nn.Module = nn.Conv2d(1, 3, 6) if convolves else nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        x /= 2
        found: Tensor = self.part(x).flatten(1)
        return found


@pytest.mark.parametrize("convolves", [False, True])
def test_a_module_that_changes_its_input_changes_no_data(convolves: bool) -> None:
    task = task_of(Halves(convolves), x=IMAGES if convolves else X)
    before, theta = task.data.x_test.copy(), task.initial(0)
    told = task.evaluate(np.stack([theta] * 3))
    np.testing.assert_array_equal(task.data.x_test, before)
    np.testing.assert_array_equal(told.test_loss, told.test_loss[0])
    np.testing.assert_array_equal(told.train_loss, told.train_loss[0])
    given = X[:9].copy() if not convolves else IMAGES[:9].copy()
    kept = given.copy()
    task.model.gradient(theta, given, Y[:9])
    task.model.sample_losses(theta, given, Y[:9])
    np.testing.assert_array_equal(given, kept)


class Noisy(nn.Module):
    """It draws in evaluation, too."""

    def __init__(self) -> None:
        super().__init__()
        self.part = nn.Linear(6, 3)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.part(functional.dropout(x, 0.5))
        return found


def test_what_is_drawn_in_evaluation_is_the_same_every_time() -> None:
    task = task_of(Noisy)
    theta, told = task.initial(0), []
    for seed in range(2):
        torch.manual_seed(seed)
        told.append(task.losses(theta, np.arange(4)))
    np.testing.assert_array_equal(told[0], told[1])


@pytest.mark.parametrize(
    ("net", "x", "y"),
    [
        (lambda: nn.Conv2d(1, 2, 3, padding=1), IMAGES, (IMAGES[:, 0] > 0).astype(int)),
        (lambda: Speaker(), TOKENS, np.roll(TOKENS, -1, axis=1)),
    ],
    ids=["a class for each pixel", "a token for each token"],
)
def test_many_targets_for_a_sample(net: Any, x: Any, y: Any) -> None:
    task = task_of(net, nn.CrossEntropyLoss(), x, y, None)
    trace = simulate(task, "pow-d:m=2,d=3", rounds=2, work=WORK)
    assert np.isfinite(trace.train_loss).all()
    with torch.no_grad():  # torch's own mean, over samples and places
        net = task.model.module()
        torch.nn.utils.vector_to_parameters(torch.tensor(task.initial(0)).float(), net.parameters())
        own = nn.CrossEntropyLoss()(net(torch.tensor(x[:20])), torch.tensor(y[:20]))
    assert task.losses(task.initial(0), np.array([0]))[0] == pytest.approx(float(own), rel=1e-5)


class Speaker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.read = nn.Embedding(20, 8), nn.LSTM(8, 8, batch_first=True)
        self.speak = nn.Linear(8, 20)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.speak(self.read(self.embed(x))[0])
        return found.transpose(1, 2)


# Losses of torch take what people give them


@pytest.mark.parametrize(
    ("net", "loss"),
    [
        (lambda: linear(1), nn.BCEWithLogitsLoss()),
        (lambda: nn.Sequential(linear(1), nn.Flatten(0)), nn.BCEWithLogitsLoss()),
        (lambda: linear(1), functional.binary_cross_entropy_with_logits),
        (lambda: nn.Sequential(linear(1), nn.Sigmoid()), nn.BCELoss()),
        (lambda: nn.Sequential(linear(1), nn.Sigmoid()), functional.binary_cross_entropy),
        (
            lambda: nn.Sequential(linear(1), nn.Sigmoid()),
            partial(functional.binary_cross_entropy, reduction="sum"),
        ),
    ],
)
def test_one_score_tells_two_classes(net: Callable[[], nn.Module], loss: Any) -> None:
    told, plain = Y > 0, linear(1)
    task = task_of(net(), loss, y=told.astype(int), classes=2)
    with torch.no_grad():
        score = plain(torch.tensor(X))[:, 0]
        losses = functional.binary_cross_entropy_with_logits(
            score, torch.tensor(told).float(), reduction="none"
        )
    theta = task.initial(0)
    np.testing.assert_allclose(task.sample_losses(theta, 0), losses[:20], rtol=1e-4)
    right = (score.numpy() > 0) == told
    assert task.evaluate(theta[None]).accuracy[0] == pytest.approx(right[40:].mean())
    assert 0 < right[40:].mean() < 1


@pytest.mark.parametrize("kind", [int, bool, np.float64])
def test_several_labels_of_any_type(kind: type) -> None:
    task = task_of(linear(), nn.BCEWithLogitsLoss(), y=(X[:, :3] > 0).astype(kind), classes=None)
    with torch.no_grad():
        own = nn.BCEWithLogitsLoss()(
            linear()(torch.tensor(X[:20])), torch.tensor(X[:20, :3] > 0.0).float()
        )
    assert task.losses(task.initial(0), np.array([0]))[0] == pytest.approx(float(own), rel=1e-5)


def test_labels_that_are_numbers_of_classes_stay_integers() -> None:
    y = np.tile([2, 0, -1], (60, 1))
    task = task_of(linear(), nn.MultiLabelMarginLoss(), y=y, classes=None)
    with torch.no_grad():
        own = nn.MultiLabelMarginLoss()(linear()(torch.tensor(X[:20])), torch.tensor(y[:20]))
    assert task.losses(task.initial(0), np.array([0]))[0] == pytest.approx(float(own), rel=1e-5)


def test_whole_numbers_are_a_regression_like_any_other() -> None:
    """Compared as (S, 1) with (S,), every output would be held against every target."""
    whole = task_of(linear(1), nn.MSELoss(), y=Y, classes=None)
    floats = task_of(linear(1), nn.MSELoss(), y=Y.astype(np.float32), classes=None)
    theta = whole.initial(0)
    np.testing.assert_array_equal(whole.sample_losses(theta, 0), floats.sample_losses(theta, 0))
    with torch.no_grad():
        own = (linear(1)(torch.tensor(X[:20]))[:, 0] - torch.tensor(Y[:20])) ** 2
    np.testing.assert_allclose(whole.sample_losses(theta, 0), own, rtol=1e-5)


@pytest.mark.parametrize(
    ("loss", "least"),
    [
        (nn.MSELoss(reduction="mean"), 1.0),
        (nn.MSELoss(reduction="sum"), 3.0),
        (partial(functional.mse_loss, reduction="sum"), 3.0),
        (functional.mse_loss, 1.0),
    ],
)
def test_a_loss_that_sums_does_so_over_a_sample(loss: Any, least: float) -> None:
    y = np.zeros((60, 3), np.float32)
    theta = task_of(linear(), y=y, loss=nn.MSELoss(), classes=None).initial(0)
    means = task_of(linear(), nn.MSELoss(), y=y, classes=None).sample_losses(theta, 0)
    told = task_of(linear(), loss, y=y, classes=None).sample_losses(theta, 0)
    np.testing.assert_allclose(told, least * means, rtol=1e-6)


def test_the_divergence_of_distributions_is_torchs() -> None:
    y = np.eye(3, dtype=np.float32)[Y] * 0.8 + 0.2 / 3
    net = nn.Sequential(linear(), nn.LogSoftmax(1))
    task = task_of(net, nn.KLDivLoss(reduction="batchmean"), y=y, classes=None)
    with torch.no_grad():
        own = nn.KLDivLoss(reduction="batchmean")(net(torch.tensor(X[:20])), torch.tensor(y[:20]))
    assert task.losses(task.initial(0), np.array([0]))[0] == pytest.approx(float(own), rel=1e-5)


def test_weights_of_classes_come_in_the_type_of_the_module() -> None:
    loss = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 3.0]))
    task = task_of(linear().double(), loss)
    assert task.model.dtype == np.float64
    assert np.isfinite(simulate(task, "md:m=2", rounds=1, work=WORK).train_loss).all()


# What is refused, and what to write instead


class Returns(nn.Linear):
    """A linear layer that also does something that it should not."""

    def __init__(self, what: str) -> None:
        super().__init__(6, 3)
        self.what, self.last = what, torch.zeros(3)

    def forward(self, x: Tensor) -> Any:
        scores = super().forward(x)
        if self.what == "more in training" and self.training:
            return scores, x
        if self.what == "what it had":
            scores = scores + self.last
            self.last = scores.detach().mean(0)
        if self.what == "what it had in training":
            scores = scores + self.last
            if self.training:
                self.last = scores.mean(0)
        if self.what == "no gradient":
            return scores.detach()
        return scores - scores.mean(0) if self.what == "less the mean of the batch" else scores


def own_square(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets) ** 2


class Scaled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return functional.cross_entropy(outputs * self.scale, targets, reduction="none")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda: task_of(nn.Sequential(linear(), nn.BatchNorm1d(3, track_running_stats=False))),
            "its BatchNorm keeps no running statistics.*GroupNorm",
        ),
        (lambda: task_of(Returns("more in training")), "alone, and in training returns a tuple"),
        (lambda: task_of(Returns("what it had")), "its module remembers .*begin every call anew"),
        (lambda: task_of(Returns("what it had in training")), "its module remembers"),
        (lambda: task_of(Returns("no gradient")), r"its training says.*leave out detach\(\)"),
        (lambda: task_of(Returns("less the mean of the batch")), "on the other samples of its bat"),
        (
            lambda: task_of(linear(1), own_square, y=Y, classes=None),
            "the loss of a sample must be its own",
        ),
        (
            lambda: task_of(linear(3), nn.MSELoss(), y=X[:, 0], classes=None),
            r"its loss says: Using a target size.*; give both one shape\.$",
        ),
        (lambda: task_of(linear(), Scaled()), "'loss' of TorchModel must have no parameters to tr"),
        (
            lambda: task_of(linear(1), nn.GaussianNLLLoss(), y=X[:, 0], classes=None),
            "'var'; a loss",
        ),
        (lambda: task_of(nn.Linear(6, 3).half()), "Got torch.float16 instead: write net.float"),
        (lambda: task_of(linear(1), y=Y), "it tells 2 classes, and the data have 3"),
        (
            lambda: task_of(nn.Sequential(linear(1), nn.Flatten(0)), nn.BCEWithLogitsLoss()),
            "it tells 2 classes, and the data have 3",
        ),
        (
            lambda: task_of(nn.Conv2d(1, 3, 6), x=np.moveaxis(IMAGES, 1, -1)),
            r"torch has channels first: write np.moveaxis\(x, -1, 1\)",
        ),
        (lambda: task_of(nn.Conv2d(1, 3, 6), x=IMAGES[:, 0]), r"write x\[:, None\]"),
        (
            lambda: task_of(nn.Sequential(nn.Embedding(19, 3), nn.Flatten()), x=TOKENS),
            "index out of range.*the tokens of these data go from 0 to 19",
        ),
        (
            lambda: task_of(nn.Embedding(20, 9), x=TOKENS, y=TOKENS % 9, classes=None),
            r"Expected target size.*return scores.movedim\(-1, 1\)",
        ),
        (lambda: task_of(linear(), x=(X * 9).astype(int)), r"write x.astype\(np.float32\)"),
    ],
)
def test_a_sentence_says_what_to_write(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(BadInput, match=words) as told:
        make()
    assert "\n" not in str(told.value)


def test_a_token_that_is_in_the_last_test_sample_alone_is_found() -> None:
    tokens = np.zeros((60, 7), np.int64)
    tokens[59, 6] = 5
    with pytest.raises(BadInput, match="the tokens of these data go from 0 to 5"):
        task_of(nn.Sequential(nn.Embedding(5, 3), nn.Flatten(), nn.Linear(21, 3)), x=tokens)


def test_rounding_is_no_dependence() -> None:
    """Scores of thousands: a loss of 0 is one of 1e-4 where the sum goes another way round."""
    task_of(nn.Sequential(nn.Linear(6, 500), nn.Linear(500, 3)), x=X * 1e4)


# A module of one's own on data by name


def test_a_problem_takes_a_model(tmp_path: Any) -> None:
    net = nn.Linear(64, 10)
    problem = Problem("digits", "iid:n=5", model=TorchModel(net), importance="equal")
    options: dict[str, Any] = {"rounds": 1, "seeds": 1, "jobs": 1, "folder": tmp_path / "run"}
    first = compare(problem, ["md:m=2"], partitions=2, **options)
    assert len(first.traces) == 2
    assert problem.settings()["model"] == "torch"
    np.testing.assert_array_equal(problem.task().importance, np.full(5, 0.2))
    less = TorchModel(nn.Linear(64, 10, bias=False))
    other = Problem("digits", "iid:n=5", model=less, importance="equal")
    with pytest.raises(BadInput, match="holds runs of another task"):
        compare(other, ["md:m=2"], partitions=2, **options)
    with pytest.raises(BadInput, match=r"of Problem must be a Model.*torch module.*TorchModel"):
        Problem("digits", model=net).task()  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="'model_options' of Problem go with"):
        Problem("digits", model=TorchModel(net), model_options={"depth": 2}).task()


# A model in a file of one's own


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("class Net(nn.Module): ...", r"found none: a torch module is returned by .*module\(\)"),
        (
            "@dataclass(frozen=True, eq=False)\nclass Mine(Network):\n    name = 'mine'\n"
            "    depth: int = 2\n    def module(self): return nn.Linear(64, 10)",
            "The field 'depth' of the model 'mine' is no setting: .* kw_only=True",
        ),
    ],
)
def test_a_file_without_a_model_or_a_setting(tmp_path: Any, source: str, words: str) -> None:
    file = tmp_path / f"mine_{len(source)}.py"  # modules of one name are refused
    head = "from dataclasses import dataclass\nfrom torch import nn\n"
    file.write_text(f"{head}from fedcohort.training import Network\n{source}\n")
    with pytest.raises(BadInput, match=words):
        Problem("digits", "iid:n=5", model=f"{file}:depth=3").task()


def test_ranges_of_functions_are_those_they_declare() -> None:
    with pytest.raises(BadParameter, match="'words' parameter of reuters must be an int of at lea"):
        Problem("reuters:words=0").task()
