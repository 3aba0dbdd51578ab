from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.random import stream
from fedcohort.designs import Rows, Systematic
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any)


def line(*sizes: int, m: int, order: list[int] | None = None) -> Systematic:
    shares = Shares.of(np.array(sizes))
    return Systematic.proportional(shares, m, np.array(order or range(len(sizes))))


@given(SIZES, st.data())
def test_all_that_it_says_is_so(sizes: list[int], data: st.DataObject) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, len(shares.support)))
    order = np.array(data.draw(st.permutations(range(len(sizes)))))
    design = Systematic.proportional(shares, m, order)
    check_design(design)
    outcomes = list(design.enumerate())
    mean = enumerated_moments(outcomes, design.n).mean
    assert list(mean) == [shares.fraction(i) for i in range(design.n)]
    assert {len(cohort) for _, cohort in outcomes} == {m}
    assert {sum(cohort.weights) for _, cohort in outcomes} == {1}
    assert len(outcomes) <= design.n


def test_values_that_alternate_vary_twice_as_much_as_under_md() -> None:
    values = np.array([1.0, -1.0, 1.0, -1.0])
    design = line(1, 1, 1, 1, m=2)
    assert design.aggregate_variance(values) == 1.0
    md = Rows.alike(Shares.of(np.ones(4, dtype=np.int64)), 2)
    assert md.aggregate_variance(values) == 0.5
    # In an order that puts the like together nothing varies at all.
    assert line(1, 1, 1, 1, m=2, order=[0, 2, 1, 3]).aggregate_variance(values) == 0.0


def test_large_clients_are_sure() -> None:
    design = line(20, 6, 1, 1, 1, m=3)
    # 3 * 20 >= 29, then 2 * 6 >= 9: both are sure, one of the three others is drawn.
    assert design.sure.tolist() == [0, 1]
    assert design.inclusion().tolist() == [1.0, 1.0, 1 / 3, 1 / 3, 1 / 3]
    weights = {tuple(cohort.weights) for _, cohort in design.enumerate()}
    assert weights == {(Fraction(20, 29), Fraction(6, 29), Fraction(3, 29))}


@pytest.mark.parametrize("scale", [2**40, 2**58, 2**62, 2**70])
def test_totals_of_any_size_are_exact(scale: int) -> None:
    sizes = [5 * scale + 1, 4 * scale, 3 * scale, 2 * scale, scale]
    parts = np.array(sizes, dtype=object if scale >= 2**60 else np.int64)
    shares = Shares.of(parts)
    design = Systematic.proportional(shares, 3, np.arange(5))
    mean = enumerated_moments(design.enumerate(), 5).mean
    assert list(mean) == [Fraction(size, sum(sizes)) for size in sizes]
    assert len(design.draw(stream(0, "x"))) == 3
    near = line(5, 4, 3, 2, 1, m=3).covariance()
    np.testing.assert_allclose(design.covariance(), near, atol=1e-9)


def test_importances_that_were_rounded_leave_a_steady_whole() -> None:
    shares = Shares.of_floats(np.array([0.6, 0.1, 0.1, 0.1, 0.1]))
    design = Systematic.proportional(shares, 2, np.arange(5))
    assert design.sure.tolist() == [0]
    assert design.whole.bit_length() == shares.whole.bit_length() == 52
    np.testing.assert_allclose(design.mean(), shares.floats, rtol=1e-15)
    assert design.draw(stream(0, "x")).weights.sum() == pytest.approx(1.0, abs=1e-15)


def test_a_large_line_is_drawn_quickly_and_knows_its_covariance() -> None:
    sizes = 1 + stream(0, "sizes").integers(0, 1_000, 20_000)
    design = Systematic.proportional(Shares.of(sizes), 50, np.arange(20_000))
    cohort = design.draw(stream(0, "x"))
    assert len(cohort) == 50
    assert cohort.weights.sum() == pytest.approx(1.0)
    assert design.weight_sum_variance() == pytest.approx(0.0, abs=1e-18)
    # Along a trend the aggregate varies about 1 / m as much as under MD sampling.
    trend = np.arange(20_000.0)
    md = Rows.alike(design.target, 50).aggregate_variance(trend)
    assert design.aggregate_variance(trend) < 0.03 * md
