from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from fedcohort._internal.errors import BadParameter
from fedcohort.training import LocalWork


def test_defaults_are_fifty_steps_of_fifty() -> None:
    work = LocalWork()
    assert (work.steps, work.epochs, work.batch, work.lr) == (50, None, 50, 0.01)
    assert (work.decay, work.mu) == (0.0, 0.0)


def test_epochs_alone_replace_the_default_steps() -> None:
    assert LocalWork(epochs=3).steps is None


def test_steps_and_epochs_exclude_each_other() -> None:
    with pytest.raises(BadParameter, match="'epochs' parameter of LocalWork must be None"):
        LocalWork(steps=5, epochs=1)


@pytest.mark.parametrize("name", ["steps", "epochs", "batch"])
@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3", math.nan])
def test_counts_are_integers_of_at_least_one(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{name}' parameter of LocalWork must be an integer"):
        LocalWork(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["lr", "decay", "mu"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf, "1", True, None, 1j])
def test_rates_are_finite_numbers(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{name}' parameter of LocalWork must be a finite"):
        LocalWork(**{name: value})  # type: ignore[arg-type]


def test_step_size_zero_is_refused_and_no_decay_is_fine() -> None:
    with pytest.raises(BadParameter, match="above 0"):
        LocalWork(lr=0)
    assert (LocalWork(decay=0).decay, LocalWork(mu=0).mu) == (0, 0)


def test_numpy_numbers_are_numbers() -> None:
    work = LocalWork(steps=np.int64(3), lr=np.float32(0.5))  # type: ignore[arg-type]
    assert work == LocalWork(steps=3, lr=0.5)


@pytest.mark.parametrize(
    ("work", "size", "steps", "batch"),
    [
        (LocalWork(steps=7), 3, 7, 3),
        (LocalWork(steps=7), 0, 0, 0),
        (LocalWork(epochs=2, batch=50), 120, 6, 50),
        (LocalWork(epochs=2, batch=50), 100, 4, 50),
        (LocalWork(epochs=2, batch=50), 10, 2, 10),
        (LocalWork(epochs=2, batch=None), 120, 2, 120),
        (LocalWork(epochs=2, batch=None), 0, 0, 0),
    ],
)
def test_steps_and_batch_of_a_client(work: LocalWork, size: int, steps: int, batch: int) -> None:
    assert work.steps_for(size) == steps
    assert work.batch_for(size) == batch


def test_it_is_a_value() -> None:
    assert LocalWork(lr=0.1) == dataclasses.replace(LocalWork(), lr=0.1)
    with pytest.raises(dataclasses.FrozenInstanceError):
        LocalWork().lr = 1.0  # type: ignore[misc]
