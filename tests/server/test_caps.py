"""A claim about a size is held against the median."""

from __future__ import annotations

from fractions import Fraction
from statistics import median_low

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadParameter
from fedcohort.server._guards import cap_sizes

SIZES = st.lists(st.integers(0, 2**62), min_size=1, max_size=30)


@given(SIZES, st.integers(1, 1000))
def test_whoever_claims_more_than_the_cap_has_the_cap(sizes: list[int], times: int) -> None:
    capped, who = cap_sizes(sizes, times)
    cap = times * median_low([size for size in sizes if size > 0] or [2**62])
    assert capped == [min(size, cap) for size in sizes]
    assert who == [i for i, size in enumerate(sizes) if size > cap]
    assert cap_sizes(capped, times) == (capped, [])  # and a second look changes nothing


@given(SIZES)
def test_no_cap_is_no_cap(sizes: list[int]) -> None:
    assert cap_sizes(sizes, None) == (sizes, [])


@pytest.mark.parametrize("lie", [10**4, 10**9, 2**62])
@pytest.mark.parametrize("liars", [1, 10, 100])
def test_liars_gain_the_factor_and_no_more(lie: int, liars: int) -> None:
    n, times = 1000, 10
    capped, who = cap_sizes([lie] * liars + [100] * (n - liars), times)
    assert who == list(range(liars))
    assert Fraction(sum(capped[:liars]), sum(capped)) <= Fraction(times * liars, n)


def test_clients_without_data_do_not_lower_the_cap() -> None:
    assert cap_sizes([0] * 90 + [100] * 10, 10) == ([0] * 90 + [100] * 10, [])


@pytest.mark.parametrize("times", [0.5, 0, -1, float("nan"), float("inf"), "10", True])
def test_a_factor_that_is_none_is_one_sentence(times: object) -> None:
    with pytest.raises(BadParameter, match="The 'largest_size' parameter of"):
        cap_sizes([1, 2], times)  # type: ignore[arg-type]
