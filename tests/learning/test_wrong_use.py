"""Whoever passes something else than a task is told what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from fedcohort import Problem, compare, data, flower, simulate
from fedcohort.core.errors import BadInput
from fedcohort.learning import ClientData, Dense, LearningTask, LocalWork, Softmax, TorchModel

DIGITS = data.load("digits")
HELD = ClientData.divide(np.eye(4), [0, 1, 0, 1], None, None, [[0, 1], [2, 3]], 2)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (nn.Linear(4, 2), "Got the torch module Linear instead: write LearningTask.*TorchModel"),
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
