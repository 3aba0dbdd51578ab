from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedcohort.core.errors import BadInput
from fedcohort.report import significance
from fedcohort.report.significance import holm, paired, sign_flip_p, smallest_p

WHOLE = st.lists(st.integers(-20, 20), min_size=1, max_size=8)


def slow_p(gaps: list[int]) -> Fraction:
    """Count sign patterns one by one, in whole numbers."""
    seen = abs(sum(gaps))
    patterns = list(product((-1, 1), repeat=len(gaps)))
    hits = sum(abs(sum(s * g for s, g in zip(signs, gaps, strict=True))) >= seen
               for signs in patterns)  # fmt: skip
    return Fraction(hits, len(patterns))


@given(WHOLE)
def test_the_fast_test_counts_like_the_slow_one(gaps):
    assert sign_flip_p(np.array(gaps, dtype=float)) == float(slow_p(gaps))


@given(WHOLE)
def test_swapping_the_two_schemes_changes_the_sign_only(gaps):
    one, other = paired(gaps, np.zeros(len(gaps))), paired(np.zeros(len(gaps)), gaps)
    assert one.p == other.p
    assert one.difference == -other.difference


@pytest.mark.parametrize("level", [0.05, 0.1, 0.25])
def test_under_the_null_hypothesis_p_is_below_a_level_at_most_that_often(level):
    sizes = np.array([1.0, 2.0, 3.5, 5.0, 8.0, 8.0, 9.0])
    patterns = np.array(list(product((-1.0, 1.0), repeat=len(sizes))))
    p = np.array([sign_flip_p(signs * sizes) for signs in patterns])
    assert np.mean(p <= level) <= level


def test_a_planted_difference_reaches_the_smallest_p_there_is():
    for s in range(1, 8):
        assert paired(np.arange(s) + 5.0, np.arange(s)).p == smallest_p(s)


def test_the_interval_and_p_of_t_are_those_of_scipy():
    rng = np.random.default_rng(0)
    x, y = rng.normal(1, 1, 7), rng.normal(0, 1, 7)
    result, theirs = paired(x, y), stats.ttest_rel(x, y)
    interval = theirs.confidence_interval(0.95)
    assert result.p_t == pytest.approx(theirs.pvalue, abs=1e-12)
    assert (result.low, result.high) == pytest.approx((interval.low, interval.high), abs=1e-12)


def test_many_seeds_are_sampled_and_agree_with_the_exact_count(monkeypatch):
    gaps = np.random.default_rng(1).normal(0.4, 1, 12)
    exact = sign_flip_p(gaps)
    monkeypatch.setattr(significance, "EXACT_SEEDS", 4)
    # 100,000 draws: 5 standard errors (level 1e-6)
    assert abs(sign_flip_p(gaps) - exact) < 5 * np.sqrt(exact * (1 - exact) / 100_000) + 1e-5


def test_no_difference_and_no_pairs():
    assert paired([1.0, 2.0], [1.0, 2.0]).p == 1
    assert paired([1.0, 2.0], [1.0, 2.0]).p_t == 1
    assert np.isnan(paired([np.nan], [1.0]).p)
    assert paired([], []).pairs == 0
    with pytest.raises(BadInput, match="two equal rows"):
        paired([1.0], [1.0, 2.0])


def test_holm_never_lowers_keeps_the_order_and_leaves_out_what_is_missing():
    p = np.array([0.2, np.nan, 0.01, 0.04])
    out = holm(p)
    assert np.isnan(out[1])
    assert out[[2, 3, 0]].tolist() == pytest.approx([0.03, 0.08, 0.2])
    assert (out[[0, 2, 3]] >= p[[0, 2, 3]]).all()
