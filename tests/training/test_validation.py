"""What clients set aside to choose settings by; nothing of the test set is left."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import LocalWork, Problem, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.maths import every_path
from fedcohort.training import ClientData, Dense, LearningTask, PlainLoop, Quadratic
from fedcohort.training._client_data import hold_out, systematic

DIGITS = Problem("digits", "dirichlet-per-class:n=12,alpha=0.3", model="softmax")


@pytest.mark.parametrize("labels", [None, np.array([0, 1, 0, 1])])
def test_every_sample_has_the_same_chance(labels: np.ndarray | None) -> None:
    share = Fraction(2, 5)  # of 4 samples: 1.6
    chances = [Fraction(0)] * 4
    counts: Counter[int] = Counter()
    for probability, taken in every_path(lambda rng: systematic(rng, 4, share, labels)):
        counts[int(taken.sum())] += probability
        for sample in np.flatnonzero(taken):
            chances[sample] += probability
    assert chances == [share] * 4
    assert counts == {1: Fraction(2, 5), 2: Fraction(3, 5)}


@given(
    sizes=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    share=st.floats(0.05, 0.95),
    seed=st.integers(0, 5),
)
def test_what_is_set_aside(sizes: list[int], share: float, seed: int) -> None:
    starts = np.cumsum([0, *sizes])
    clients = [np.arange(a, b) for a, b in pairwise(starts)]
    labels = np.random.default_rng(seed).integers(0, 3, starts[-1])
    try:
        kept, aside = hold_out(clients, labels, share, seed)
    except BadInput:
        assert all(n < 2 or int(share * n) == 0 for n in sizes)
        return
    for rows, stay, go in zip(clients, kept, aside, strict=True):
        assert sorted([*stay, *go]) == rows.tolist()
        assert len(stay) >= min(1, len(rows))
        wish = min(share * len(rows), max(len(rows) - 1, 0))
        assert abs(len(go) - wish) < 1
        for label in range(3):  # as evenly as whole numbers allow
            exact = len(go) * np.sum(labels[rows] == label) / max(1, len(rows))
            assert abs(np.sum(labels[go] == label) - exact) < 1
    again = hold_out(clients[:1], labels, share, seed) if len(aside[0]) else ([kept[0]], [aside[0]])
    np.testing.assert_array_equal(again[1][0], aside[0])  # whoever else is there


def test_a_client_with_one_sample_trains_on_it() -> None:
    kept, aside = hold_out([np.array([0]), np.arange(1, 11)], None, 0.5)
    assert (len(kept[0]), len(aside[0])) == (1, 0)
    assert (len(kept[1]), len(aside[1])) == (5, 5)
    with pytest.raises(BadInput, match="no sample to validate on"):
        hold_out([np.array([0]), np.array([1])], None, 0.5)


def test_nothing_that_another_client_trains_on_is_validated_on() -> None:
    kept, aside = hold_out([np.arange(40), np.arange(20, 60)], None, 0.5, seed=3)
    assert not set(np.concatenate(kept).tolist()) & set(np.concatenate(aside).tolist())
    assert sum(map(len, aside)) < 40  # some were dropped: the test can fail
    shared = Problem("digits", "dirichlet-per-client:sizes=200-200-200,alpha=1,replace=true")
    data = Problem(shared.data, shared.partition, validation=0.3).task().data
    trained = {row.tobytes() for row in data.x_train}
    assert not any(row.tobytes() in trained for row in data.x_test)


@pytest.mark.parametrize("share", [0, 1, -0.1, float("nan"), True, "0.2"])
def test_a_share_of_all_or_nothing_is_refused(share: object) -> None:
    with pytest.raises(BadParameter, match=r"'share' parameter of a validation split .* in \(0, 1"):
        hold_out([np.arange(5)], None, share)  # type: ignore[arg-type]


def test_a_problem_and_its_task_set_the_same_aside() -> None:
    whole = DIGITS.task()
    by_task = whole.validation(0.2)
    by_problem = Problem(DIGITS.data, DIGITS.partition, validation=0.2).task()
    assert by_task.fingerprint() == by_problem.fingerprint() != whole.fingerprint()
    assert by_task.sizes.sum() + len(by_task.data.y_test) == whole.sizes.sum()
    assert len(by_task.data.y_test) == pytest.approx(0.2 * whole.sizes.sum(), abs=12)
    np.testing.assert_allclose(by_task.importance, by_task.sizes / by_task.sizes.sum())
    other = whole.validation(0.2, seed=1)
    assert other.fingerprint() != by_task.fingerprint()
    assert "validation" not in DIGITS.settings()
    assert Problem(**Problem("digits", "iid:n=3", validation=0.1).settings()).validation == 0.1


def test_importance_that_was_given_stays() -> None:
    task = Problem("digits", "iid:n=4", importance=[1, 2, 3, 4]).task()
    np.testing.assert_array_equal(task.validation().importance, task.importance)


def poisoned(task: LearningTask) -> LearningTask:
    """The same, with random labels and noise for the test set."""
    rng, data = np.random.default_rng(0), task.data
    labels = rng.permutation(data.y_test)
    noise = rng.permutation(data.x_test.ravel()).reshape(data.x_test.shape)
    bad = replace(data, x_test=noise, y_test=labels)
    return LearningTask(task.model, bad, task.trainer, task.importance)


def tasks() -> list[LearningTask]:
    few = DIGITS.task().subset(300)
    image = few.data.x_train.reshape(-1, 8, 8), few.data.x_test.reshape(-1, 8, 8)
    data = ClientData.divide(
        image[0],
        few.data.y_train,
        image[1],
        few.data.y_test,
        [np.arange(a, b) for a, b in pairwise(few.data.starts)],
        classes=10,
        test_clients=np.array_split(np.arange(len(few.data.y_test)), 12),
    )
    plain = LearningTask(Dense((64, 10)), data, PlainLoop())
    found = [LearningTask(few.model, few.data), plain]
    try:
        import torch
    except ImportError:
        return found
    from fedcohort.training import TorchModel

    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 10))
    return [*found, LearningTask(TorchModel(module, torch.nn.functional.cross_entropy), data)]


@pytest.mark.parametrize("task", tasks(), ids=lambda task: str(task.trainer))
def test_nothing_of_the_test_set_is_left(task: LearningTask) -> None:
    bad = poisoned(task)
    assert bad.fingerprint() != task.fingerprint()
    one, other = task.validation(0.3), bad.validation(0.3)
    assert one.fingerprint() == other.fingerprint()
    work = LocalWork(steps=2, batch=5, lr=0.1)
    runs = [simulate(each, "md:m=3", rounds=2, work=work) for each in (one, other)]
    np.testing.assert_array_equal(runs[0].accuracy, runs[1].accuracy)
    np.testing.assert_array_equal(runs[0].client_accuracy, runs[1].client_accuracy)
    assert (one.data.test_starts is None) == (task.data.test_starts is None)


def test_a_set_with_test_samples_of_its_own_keeps_them_per_client() -> None:
    if not (Path(os.environ.get("FEDCOHORT_DATA", "")) / "heart_disease_4sites.npz").is_file():
        pytest.skip("needs the heart disease data in FEDCOHORT_DATA")
    task = Problem("heart-disease", model="logistic", validation=0.25).task()
    counts = np.diff(task.data.test_starts)
    assert len(counts) == 4
    np.testing.assert_allclose(counts / (counts + task.sizes), 0.25, atol=0.01)


def test_a_task_without_samples_says_so() -> None:
    with pytest.raises(BadInput, match="no samples that could be set aside"):
        Quadratic([[0.0], [1.0]]).validation()
