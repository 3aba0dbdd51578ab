"""Sets of clients, against those of numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcohort.selection._cohort import ascending, missing_from

SOME = arrays(np.int64, st.integers(0, 12), elements=st.integers(0, 9))


@given(SOME)
def test_ascending_is_what_numpy_calls_unique(clients: np.ndarray) -> None:
    assert ascending(clients).tolist() == np.unique(clients).tolist()
    assert ascending(clients).dtype == np.int64


@given(SOME, SOME)
def test_missing_are_those_of_the_set_difference(known: np.ndarray, clients: np.ndarray) -> None:
    found = missing_from(np.unique(known), clients)
    assert found.tolist() == np.setdiff1d(clients, known).tolist()


@given(SOME)
def test_nobody_is_missing_from_the_same(clients: np.ndarray) -> None:
    same = np.unique(clients)
    assert len(missing_from(same, same)) == 0
    assert ascending(same) is same  # no copy where nothing is to be done
