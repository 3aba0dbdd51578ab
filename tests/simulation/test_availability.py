from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.random import stream
from fedcohort.simulation import Always, Cyclic, Random, availability


def test_always() -> None:
    assert Always().available(5, 3, stream(0, "x")) is None


def test_cyclic_serves_every_client_once_a_cycle() -> None:
    model = Cyclic(groups=3, stay=2)
    seen = [model.available(7, round, stream(0, "x", round)) for round in range(6)]
    assert [s.tolist() for s in seen if s is not None][::2] == [[0, 3, 6], [1, 4], [2, 5]]
    for a, b in zip(seen[::2], seen[1::2], strict=True):
        np.testing.assert_array_equal(a, b)


def test_random_has_the_given_frequencies() -> None:
    """Exact binomial tails at level 1e-6 per client."""
    chances = (0.0, 0.2, 0.9, 1.0)
    counts = np.zeros(4, dtype=int)
    rounds = 5000
    for round in range(rounds):
        there = Random(chances).available(4, round, stream(1, "availability", round))
        counts[there] += 1
    assert counts[0] == 0
    assert counts[3] == rounds
    for count, chance in zip(counts[1:3], chances[1:3], strict=True):
        assert stats.binomtest(int(count), rounds, chance).pvalue > 1e-6
    assert stats.binomtest(int(counts[1]), rounds, 0.25).pvalue < 1e-6  # a planted defect


@pytest.mark.parametrize("bad", [-0.1, 1.5, float("nan"), (0.5, 2.0)])
def test_bad_probability(bad: Any) -> None:
    with pytest.raises(BadInput, match=r"'probability' .* must be in \[0, 1\]"):
        Random(bad)


def test_bad_settings() -> None:
    with pytest.raises(BadInput, match="one probability per client"):
        Random((0.5, 0.5)).available(3, 0, stream(0, "x"))
    with pytest.raises(BadParameter, match="'groups' parameter of cyclic"):
        Cyclic(groups=0)
    with pytest.raises(UnknownName, match=r"parameter of cyclic named 'group'.*'groups'"):
        availability("cyclic", group=2)
    with pytest.raises(UnknownName, match="Did you mean 'cyclic'"):
        availability("cylic")
