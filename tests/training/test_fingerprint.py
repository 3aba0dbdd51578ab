"""Two tasks with one fingerprint are taken for the same; so it sees all, or refuses."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, compare, scheme
from fedcohort._internal.errors import BadInput
from fedcohort.training import MLP, Quadratic, Softmax


class Mine(Quadratic):
    """A task of a user's own, with all kinds of things that decide a result."""

    caches = ("_kept",)

    def __init__(self, hidden: object = 1, noise: float = 0.0) -> None:
        super().__init__([[0.0], [1.0]], noise=noise)
        self._hidden = hidden
        self._kept: dict[int, object] = {}

    @functools.cached_property
    def computed(self) -> int:
        return 1


def power(exponent: float) -> Callable[[float], float]:
    return lambda value: value**exponent


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 2),
        (np.zeros(2), np.ones(2)),
        (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
        (power(1), power(2)),
        (np.sin, np.cos),
        (Quadratic([[0.0]]), Quadratic([[1.0]])),
    ],
    ids=["number", "array", "object array", "closure", "function", "task"],
)
def test_what_a_private_attribute_holds_counts(one: Any, other: Any) -> None:
    assert Mine(one).fingerprint() == Mine(one).fingerprint()
    assert Mine(one).fingerprint() != Mine(other).fingerprint()


def test_declared_caches_do_not_count_and_what_is_cached_neither() -> None:
    used = Mine()
    used._kept[3] = threading.Lock()
    assert used.computed == 1
    assert used.fingerprint() == Mine().fingerprint()


def test_caches_of_a_base_class_stay_declared() -> None:
    class Own(Softmax):
        caches = ("_more",)

    x, y = np.eye(60, 80), np.arange(60) % 2
    work, both = LocalWork(steps=90, batch=30), np.arange(2)

    def own() -> Own:
        return Own(x, y, x, y, np.split(np.arange(60), 2), 2)

    task = own()
    task._more = threading.Lock()  # type: ignore[attr-defined]
    task.updates(task.initial(0), both, work, [np.random.default_rng(0)] * 2)  # Gram matrices
    assert task.fingerprint() == own().fingerprint()


def test_another_class_is_another_task() -> None:
    x, y = np.eye(4), np.array([0, 1, 0, 1])
    tasks = [kind(x, y, x, y, [[0, 1], [2, 3]], 2) for kind in (Softmax, MLP)]
    wider = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, hidden=51)
    double = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, dtype=np.float64)
    direct = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, gram_bytes=0)
    importance = MLP(x, y, x, y, [[0, 1], [2, 3]], 2, importance=[0.25, 0.75])
    all_of_them = (*tasks, wider, double, direct, importance)
    assert len({task.fingerprint() for task in all_of_them}) == 6


def test_what_cannot_be_told_apart_is_refused_before_the_first_run(tmp_path: Path) -> None:
    task = Mine(hidden={"model": threading.Lock()})
    with pytest.raises(BadInput, match=r"attribute '_hidden\['model'\]' of the task Mine must"):
        compare(task, [scheme("md", m=1)], rounds=1, seeds=1, jobs=1, folder=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()
    assert len(compare(task, [scheme("md", m=1)], rounds=1, seeds=1, jobs=1).traces) == 1
