from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Cohort, Replies
from fedcohort._internal.errors import BadInput


def test_any_order_is_brought_into_one() -> None:
    cohort = Cohort.of([4, 1], [0.3, 0.7], [1, 2])
    assert cohort.clients.tolist() == [1, 4]
    assert cohort.weights.tolist() == [0.7, 0.3]
    assert cohort.draws.tolist() == [2, 1]
    assert cohort == Cohort.of([1, 4], [0.7, 0.3], [2, 1])
    assert cohort != Cohort.of([1, 4], [0.7, 0.3])
    assert cohort != "cohort"


def test_nobody_and_all_alike() -> None:
    assert len(Cohort.empty()) == len(Cohort.equal([])) == 0
    assert Cohort.equal([3, 1]).weights.tolist() == [0.5, 0.5]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([1, 1], 0.5), r"must be distinct; got 1 more than once\. Give it once, with the sum"),
        (([3, 2, 0, 3], 0.5), "must be distinct; got 3 more than once"),
        (([-1, 1], 0.5), "must be positions of at least 0; got -1"),
        (([1, -1], 0.5), "must be positions of at least 0; got -1"),
        (([0.5, 1], 0.5), "must be positions"),
        (([[0, 1]], 0.5), "must be positions"),
        (([0, 1], [0.5, np.nan]), "finite"),
        (([0, 1], np.inf), "finite"),
        (([0, 1], 0.5, 1, 0.0), "data_rate"),
        (([0, 1], 0.5, 1, 1.5), "data_rate"),
        (([0, 1], 0.5, 1, np.nan), "data_rate"),
    ],
)
def test_refused(arguments: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words) as raised:
        Cohort.of(*arguments)
    assert "use Cohort.of" not in str(raised.value)


def test_lengths_must_agree() -> None:
    with pytest.raises(BadInput, match="2 clients, 1 weights, 2 draws"):
        Cohort(np.array([0, 1]), np.array([1.0]), np.array([1, 1]))
    with pytest.raises(BadInput, match="one row of 'loss' per client; got 1 rows for 2"):
        Replies(np.array([0, 1]), {"loss": np.array([1.0])})
