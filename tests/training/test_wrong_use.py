"""Whoever passes something else than a task is told what to write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from flwr.clientapp import ClientApp
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from fedcohort import Problem, compare, data, flower, simulate, tune
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.training import ClientData, Dense, LearningTask, LocalWork, Softmax, TorchModel

DIGITS = data.load("digits")
HELD = ClientData.divide(np.eye(4), [0, 1, 0, 1], None, None, [[0, 1], [2, 3]], 2)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (nn.Linear(4, 2), "Got the torch module Linear instead: write LearningTask.*TorchModel"),
        (nn.Linear, "Got the class Linear instead: write LearningTask.*TorchModel"),
        (TensorDataset(torch.eye(4)), "Got TensorDataset instead: take its samples as arrays and"),
        (DataLoader(TensorDataset(torch.eye(4))), "Got DataLoader instead: take its samples as ar"),
        (ClientApp(), "Got ClientApp instead: Flower runs its own apps, with a .*CohortStrategy"),
        (TorchModel(nn.Linear(4, 2)), "Got TorchModel instead: write LearningTask.model, ClientD"),
        (Dense((4, 2)), "Got Dense instead: write LearningTask"),
        (Softmax, "Got the class Softmax instead: Softmax is a class, so call it"),
        (HELD, "Got ClientData instead: write LearningTask.model, data"),
        (DIGITS, "Got Dataset instead: write Softmax.from_partition"),
        ("digits", "Got str instead: write fedcohort.Problem"),
        (np.eye(3), "Got ndarray instead: write LearningTask"),
        (None, "Got NoneType instead: write LearningTask"),
    ],
    ids=lambda value: value if isinstance(value, str) and " " in value else None,
)
@pytest.mark.parametrize(
    ("call", "owner"),
    [
        (lambda task: compare(task, ["md"], rounds=1), "compare"),
        (lambda task: simulate(task, "md", rounds=1), "simulate"),
        (lambda task: flower.task_client(task, LocalWork()), "task_client"),
    ],
    ids=["compare", "simulate", "task_client"],
)
def test_no_task(call: Callable[[Any], Any], owner: str, task: Any, words: str) -> None:
    with pytest.raises(BadInput, match=f"^The task of {owner} must be a Task. {words}") as told:
        call(task)
    assert "\n" not in str(told.value)


TASK = LearningTask(Dense((4, 2)), HELD)
MODULE = "^The task of {} must be a Task. Got the {} Linear instead: write LearningTask"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: compare(nn.Linear(4, 2), HELD, ["md"]), MODULE.format("compare", "torch module")),
        (lambda: compare(nn.Linear(4, 2)), MODULE.format("compare", "torch module")),
        (lambda: compare(nn.Linear, X, Y, ["md"]), MODULE.format("compare", "class")),
        (lambda: simulate(nn.Linear(4, 2), HELD, "md"), MODULE.format("simulate", "torch module")),
        (lambda: tune(nn.Linear(4, 2), HELD, ["md"]), MODULE.format("tune", "torch module")),
        (
            lambda: compare(TASK, ["md"], 10),
            r"^Write compare.task, .* rounds=50., .*too many posit",
        ),
        (lambda: compare(TASK, ["md"]), r"^Write compare.task, .*Got missing .*'rounds'"),
        (
            lambda: simulate(TASK, "md", rounds=1, lr=0.1),
            r"no 'lr', .* write work=LocalWork.lr=\.\.",
        ),
        (
            lambda: compare(TASK, ["md:m=1"], rounds=1, lr=0.1),
            "^Write compare.* no 'lr', .* work=LocalWork.lr=",
        ),
        (lambda: compare(TASK, ["md:m=1"], rounds=1, seed=1), "no 'seed'; the nearest is 'seeds'"),
        (lambda: compare(TASK, ["md:m=1"], rounds=1, optimizer="adam"), "nearest is 'optimiser'"),
        (lambda: tune(TASK, ["md:m=1"], {"lr": [1]}, rounds=1, seed=1), "^Write tune.* no 'seed'"),
        (lambda: simulate(TASK, "md", rounds=1, seeds=2), "no 'seeds'; the nearest is 'seed'"),
        (lambda: simulate(TASK, "md", rounds=1, cheese=2), "There is no 'cheese'"),
        (lambda: compare(["md"], TASK, rounds=1), "Got LearningTask instead: write the task first"),
    ],
)
def test_a_call_that_does_not_fit(call: Callable[[], Any], words: str) -> None:
    with pytest.raises(BadInput, match=words) as told:
        call()
    assert "\n" not in str(told.value)


def test_a_problem_is_no_task_of_one_run() -> None:
    with pytest.raises(BadInput, match="Got Problem instead: call its method task"):
        simulate(Problem("digits"), "md", rounds=1)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "held", "words"),
    [
        (nn.Linear(4, 2), HELD, "model of.*Got the torch module Linear instead: write .*TorchMod"),
        (nn.Linear, HELD, "Got the class Linear instead: write .*TorchModel"),
        ("cnn", HELD, "Got str instead: write fedcohort.Problem"),
        (Dense, HELD, "Got the class Dense instead: Dense is a class, so call it"),
        (Dense((4, 2)), np.eye(4), "data of.*Got ndarray instead: write ClientData.divide"),
        (Dense((4, 2)), DIGITS, "Got Dataset instead: write ClientData.from_partition"),
    ],
)
def test_no_parts_of_a_task(model: Any, held: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        LearningTask(model, held)


X, Y = np.eye(4, dtype=np.float32), np.array([0, 1, 0, 1])
ROWS = [[0, 1], [2, 3]]
NET = nn.Linear(4, 2)


class TwoOutputs(nn.Linear):
    def forward(self, x: Any) -> Any:
        return super().forward(x), x


class WithMask(nn.Linear):
    def forward(self, x: Any, mask: Any) -> Any:  # type: ignore[override]
        return super().forward(x)


def torch_task(net: Any = None, loss: Any = cross_entropy, x: Any = X, **settings: Any) -> Any:
    held = ClientData.divide(x, Y, None, None, ROWS, classes=2)
    return LearningTask(TorchModel(net or NET, loss, **settings), held)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: torch_task(loss=lambda s, y: cross_entropy(s, y)), "write it without taking the"),
        (lambda: torch_task(loss=lambda s, y: 0.5), "its loss says: it must give a tensor, and"),
        (lambda: torch_task(loss=lambda s, y: np.zeros(2)), "give a tensor, and gives a ndarray"),
        (lambda: torch_task(loss=lambda s: s.sum(1)), "its loss says: .*takes 1 positional"),
        (lambda: torch_task(loss=nn.CrossEntropyLoss), "the class .*: call it, CrossEntropyLoss"),
        (lambda: torch_task(loss="mse"), "must be a function of outputs and targets.* Got str"),
        (lambda: torch_task(nn.Linear), "Called, it says: .*'in_features'.*write lambda: Net"),
        (lambda: torch_task(nn.Linear(5, 2)), "its module says: mat1 and mat2 shapes"),
        (lambda: torch_task(nn.Flatten()), "must have parameters to train.* Got none"),
        (lambda: torch_task(nn.Linear(4, 2).half()), "all float32 or all float64. Got .*float16"),
        (lambda: torch_task(TwoOutputs(4, 2)), "a tensor of scores alone, and returns a tuple"),
        (lambda: torch_task(WithMask(4, 2)), "its module says: .*missing 1 required .*'mask'"),
        (
            lambda: torch_task(x=X.astype(np.uint8)),
            "are given as tokens, so .* divide images by 255",
        ),
        (lambda: torch_task(device="gpu"), "cannot be put on the device 'gpu'"),
    ],
)
def test_a_module_or_a_loss_that_does_not_fit(make: Callable[[], Any], words: str) -> None:
    with pytest.raises(BadInput, match=words) as told:
        make()
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("x", "y", "rows", "words"),
    [
        (X, Y.astype(float), ROWS, r"'y_train' must be .* write y_train.astype.int., or leave"),
        (X, np.eye(2)[Y], ROWS, r"write y_train.argmax.axis=1"),
        (X, Y[:, None], ROWS, r"write y_train.ravel"),
        (X, np.array(list("abab")), ROWS, r"write np.unique.y_train, return_inverse=True"),
        (TensorDataset(torch.eye(4), torch.zeros(4)), Y, ROWS, "Got TensorDataset instead"),
        (DataLoader(TensorDataset(torch.eye(4))), Y, ROWS, "np.stack.* Got DataLoader instead"),
        (torch.eye(4, requires_grad=True), Y, ROWS, r"such as x_train.detach.*Got Tensor instead"),
        (torch.eye(4, device="meta"), Y, ROWS, r"such as x_train.detach.*Got Tensor instead"),
        (X, torch.zeros(4, device="meta"), ROWS, r"such as y_train.detach.*Got Tensor instead"),
        (X, Y, {"a": [0, 1], "b": [2, 3]}, r"Got dict instead. Write list.clients.values"),
        (X, Y, [[], []], "^No client holds a sample: 'clients' must have the rows of 'x_train'"),
        (X[:0], Y[:0], [[]], "^No client holds a sample"),
        (X, Y, np.array([0, 0, 1, 1]), r"Of the owner of each row: .np.flatnonzero"),
    ],
)
def test_data_that_are_no_arrays(x: Any, y: Any, rows: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words) as told:
        ClientData.divide(x, y, None, None, rows, classes=2)
    assert "\n" not in str(told.value)


def test_a_head_with_more_outputs_than_classes_is_measured() -> None:
    held = ClientData.divide(X, Y, X, Y, ROWS, classes=2)
    task = LearningTask(TorchModel(nn.Linear(4, 7)), held)
    trace = simulate(task, "md:m=1", rounds=2, measures=["f1"])
    assert np.isfinite(trace.metrics["f1"][-1])
    assert trace.f1.shape == (2,)


def test_measures_that_are_none() -> None:
    with pytest.raises(BadParameter, match="The 'measures' parameter of simulate must be names"):
        simulate(TASK, "md:m=1", rounds=1, measures=3)  # type: ignore[arg-type]


def test_tensors_here_and_lists_are_arrays() -> None:
    given = ClientData.divide(torch.eye(4), torch.tensor(Y), None, None, ROWS, classes=2)
    np.testing.assert_array_equal(given.x_train, X)
    assert ClientData.divide(X.tolist(), Y.tolist(), None, None, ROWS, 2).sizes.tolist() == [2, 2]


@pytest.mark.parametrize("call", [compare, simulate, flower.task_client])
def test_work_that_is_none(call: Any) -> None:
    task = LearningTask(Dense((4, 2)), HELD)
    more = {} if call is flower.task_client else {"rounds": 1}
    scheme = [] if call is flower.task_client else [["md:m=1"] if call is compare else "md:m=1"]
    with pytest.raises(BadInput, match=f"^The work of {call.__name__} must be a LocalWork. Got di"):
        call(task, *scheme, work={"lr": 0.1}, **more)


def test_a_loss_without_a_name_may_be_kept_in_a_folder(tmp_path: Path) -> None:
    def task(power: int) -> LearningTask:
        return torch_task(loss=lambda s, y: cross_entropy(s, y, reduction="none") ** power)

    options: dict[str, Any] = {"rounds": 1, "seeds": 1, "jobs": 1, "folder": tmp_path / "run"}
    compare(task(1), ["md:m=1"], **options)
    compare(task(1), ["md:m=1"], **options)  # it is known again
    with pytest.raises(
        BadInput, match="holds runs of another task"
    ):  # and no other is taken for it
        compare(task(2), ["md:m=1"], **options)
