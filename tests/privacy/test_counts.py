"""Private counts on a client: right law, and no randomness but the system's."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from fedcohort._internal.errors import (
    BadCheckpoint,
    BadParameter,
    BudgetExceeded,
    NoEntropy,
    PolicyRefused,
)
from fedcohort.maths._noise import law, scale_for
from fedcohort.privacy import ClientPolicy, PrivateCounts
from fedcohort.privacy import _client as module
from fedcohort.privacy._client import private_counts


def test_the_noise_follows_the_discrete_laplace_law() -> None:
    # Chi-square with the exact tail, level 1e-6; the law of another epsilon is rejected.
    drawn = private_counts(np.full(4000, 50), epsilon=1.0) - 50
    values = np.arange(-6, 7)
    found = np.array([*(np.sum(drawn == v) for v in values), np.sum(abs(drawn) > 6)])

    def pvalue(epsilon: float) -> float:
        p = law(scale_for(epsilon), values)
        expected = 4000 * np.array([*p, 1 - p.sum()])
        return float(chi2.sf(((found - expected) ** 2 / expected).sum(), len(values)))

    assert pvalue(1.0) > 1e-6
    assert pvalue(2.0) < 1e-6


def test_there_is_no_seed_and_no_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "rng" not in inspect.signature(private_counts).parameters
    assert "seed" not in inspect.signature(private_counts).parameters

    def broken(bound: int) -> int:
        raise NoEntropy("none")

    monkeypatch.setattr(module, "entropy_below", broken)
    with pytest.raises(NoEntropy):
        private_counts(np.array([1, 2]), 1.0)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, np.nan, np.inf, 21.0, "1"])
def test_bad_epsilon(epsilon: float) -> None:
    with pytest.raises(BadParameter, match="'epsilon' parameter of private_counts"):
        private_counts(np.array([1]), epsilon)


def test_the_smallest_and_the_largest_epsilon() -> None:
    for epsilon, beyond in ((1e-6, 0.99e-6), (20.0, 20.1)):
        assert private_counts(np.array([1]), epsilon).shape == (1,)
        with pytest.raises(BadParameter, match="'epsilon' parameter of private_counts"):
            private_counts(np.array([1]), beyond)


def test_bad_sensitivity_and_counts() -> None:
    with pytest.raises(BadParameter, match="sensitivity"):
        private_counts(np.array([1]), 1.0, 0)
    with pytest.raises(ValueError, match="at least 0"):
        private_counts(np.array([-1]), 1.0)


# -- on the disk, within a policy ----------------------------------------------------------------


def test_an_answer_is_repeated_and_paid_for_once(tmp_path: Path) -> None:
    client = PrivateCounts(tmp_path, ClientPolicy(ceiling=1.0))
    first = client.answer(np.array([5, 7]), "labels", 0.5, 2)
    again = PrivateCounts(tmp_path, ClientPolicy(ceiling=1.0))  # a restart, and other data
    np.testing.assert_array_equal(again.answer(np.array([900, 1]), "labels", 0.5, 2), first)
    client.answer(np.array([5, 7]), "features", 0.5, 2)
    with pytest.raises(BudgetExceeded):
        client.answer(np.array([5, 7]), "more", 0.5, 2)
    with pytest.raises(PolicyRefused, match="an epsilon"):
        PrivateCounts(tmp_path).answer(np.array([5]), "dear", 3.5, 2)


def test_a_lost_answer_is_not_drawn_anew(tmp_path: Path) -> None:
    client = PrivateCounts(tmp_path)
    client.answer(np.array([5]), "labels", 0.5, 2)
    (tmp_path / "answers.jsonl").unlink()
    with pytest.raises(BadCheckpoint, match=r"has lost 1 answer\(s\) that were sent"):
        client.answer(np.array([5]), "labels", 0.5, 2)


@pytest.mark.parametrize(("epsilon", "sensitivity"), [(0.5, 0), (1e-12, 2)])
def test_what_cannot_be_drawn_is_not_booked(
    tmp_path: Path, epsilon: float, sensitivity: int
) -> None:
    with pytest.raises(BadParameter):
        PrivateCounts(tmp_path).answer(np.array([5]), "labels", epsilon, sensitivity)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("sensitivity", [0, -1, 2.5, True, "2", None, 10**400, 2**31 + 1])
def test_a_sensitivity_is_checked_before_anything_is_booked(
    tmp_path: Path, sensitivity: Any
) -> None:
    client = PrivateCounts(tmp_path)
    with pytest.raises(BadParameter, match="'sensitivity' parameter") as caught:
        client.answer(np.array([1, 2]), "labels", 1.0, sensitivity)
    assert len(str(caught.value)) < 300
    assert client.spent == 0.0
