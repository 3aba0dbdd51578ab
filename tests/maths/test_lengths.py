from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths._inclusion import (
    capped,
    chances_by_length,
    guessed_lengths,
    lengths,
    relative,
)


def test_lengths_are_found_in_double_precision():
    rows = np.array([[3e-30, 4e-30], [3e17, 4e17]], np.float32)  # squares of 1e-60 are 0 in float32
    np.testing.assert_allclose(lengths(rows), [5e-30, 5e17], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_only_rows_beyond_the_cap_are_cut(kind):
    rows = np.array([[1.0, 0.0], [0.0, -2.0], [0.0, 0.0], [300.0, 400.0], [3.0, 0.0]], kind)
    cut = capped(rows, 4.0)  # the median of 1, 2, 500, 3 is 2.5
    assert cut.dtype == kind
    np.testing.assert_allclose(cut[3], [6.0, 8.0], rtol=1e-6)
    others = [0, 1, 2, 4]
    np.testing.assert_array_equal(cut[others], rows[others])
    small = kind(2.0**-20)  # the unit does not matter
    np.testing.assert_array_equal(capped(rows * small, 4.0), cut * small)
    assert capped(rows, None) is rows
    assert capped(rows, 1e6) is rows
    assert capped(rows[2:3], 4.0) is not None  # nothing but zeros: no median


def test_an_unknown_length_is_the_mean_of_the_others():
    rows = np.array([[1.0], [0.0], [3.0]])
    known = np.array([True, False, True])
    assert guessed_lengths(rows, known).tolist() == [1.0, 2.0, 3.0]
    assert guessed_lengths(rows, ~np.ones(3, dtype=bool)).tolist() == [1.0] * 3


@given(st.integers(1, 2**70), st.integers(1, 50))
def test_equal_parts_are_exactly_one(part, n):
    assert relative(np.array([part] * n, dtype=object)).tolist() == [1.0] * n


def test_relative_parts_have_mean_one():
    parts = np.random.default_rng(0).integers(1, 1000, 40)
    found = relative(parts)
    assert found.mean() == pytest.approx(1.0)
    np.testing.assert_allclose(found / found[0], parts / parts[0])


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=20), st.floats(0, 1))
def test_chances_sum_to_one_and_keep_the_floor(norms, floor):
    chances = chances_by_length(np.array(norms), floor)
    assert chances.sum() == pytest.approx(1.0)
    assert (chances >= floor / len(norms) * (1 - 1e-12)).all()


def test_chances_by_hand():
    assert chances_by_length(np.zeros(4), 0.3).tolist() == [0.25] * 4
    np.testing.assert_allclose(chances_by_length(np.array([0.0, 1.0, 3.0]), 0.0), [0, 0.25, 0.75])
