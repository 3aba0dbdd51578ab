"""Corollary 1, its generalisation, and the thresholds: against the designs themselves."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, scheme
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.designs import Everyone, Rows, Simple
from fedcohort.selection import Shares
from fedcohort.theory import (
    closed_forms,
    compare_designs,
    crossing_share,
    enumerated_moments,
    moments,
    uniform_or_md,
)

F = Fraction
WEIGHT_STATISTICS = [  # sizes, m, {scheme: (Sigma, gamma)}, uniform better
    ([5, 4, 3, 2, 1], 2, {"md": (F(17, 45), F(1, 2)), "uniform": (F(11, 30), F(11, 24)),
      "binomial": (F(11, 30), F(11, 30)), "poisson": (F(23, 90), F(23, 90))}, True),
    ([5, 4, 3, 2, 1], 3, {"md": (F(34, 135), F(1, 3)), "uniform": (F(22, 135), F(11, 54)),
      "binomial": (F(22, 135), F(22, 135)), "poisson": (F(4, 45), F(4, 45))}, True),
    ([1, 1, 1, 1, 1], 2, {"md": (F(2, 5), F(1, 2)), "uniform": (F(3, 10), F(3, 8)),
      "binomial": (F(3, 10), F(3, 10)), "poisson": (F(3, 10), F(3, 10))}, True),
    ([6, 5, 4, 3, 2, 1], 2, {"md": (F(25, 63), F(1, 2)), "uniform": (F(26, 63), F(52, 105)),
      "binomial": (F(26, 63), F(26, 63)), "poisson": (F(37, 126), F(37, 126))}, False),
]  # fmt: skip


@pytest.mark.parametrize(("sizes", "m", "expected", "uniform_better"), WEIGHT_STATISTICS)
def test_golden_weight_statistics(sizes, m, expected, uniform_better):
    federation = Federation.from_sizes(sizes)
    squares = sum(F(s, sum(sizes)) ** 2 for s in sizes)
    forms = closed_forms(len(sizes), m, float(squares))
    for name, (sigma, gamma) in expected.items():
        design = scheme(name, m=m).law(federation)
        exact = enumerated_moments(design.enumerate(), len(sizes))
        alpha = F(gamma - sigma) / squares
        assert sum(exact.variance) == sigma
        assert exact.weight_sum_variance == gamma - alpha
        assert forms[name] == pytest.approx(
            (float(sigma), float(alpha), float(gamma), float(gamma - alpha))
        )
        found = moments(design)
        assert (found.sigma, found.gamma) == pytest.approx((float(sigma), float(gamma)))
    both = compare_designs(
        scheme("uniform", m=m).law(federation), scheme("md", m=m).law(federation)
    )
    assert (both.better == 0) is uniform_better
    assert (squares <= F(1, len(sizes) - m + 1)) is uniform_better


@given(
    st.lists(st.integers(1, 30), min_size=2, max_size=9), st.integers(1, 9), st.integers(0, 2**32)
)
def test_corollary_1_as_an_equivalence(sizes, m, seed):
    m = min(m, len(sizes))
    n, shares = len(sizes), Shares.of(np.array(sizes))
    squares = sum(shares.fraction(i) ** 2 for i in range(n))
    sigma_md, sigma_u = (1 - squares) / m, (F(n, m) - 1) * squares
    gamma_md, gamma_u = F(1, m), sigma_u * (1 + F(1, n - 1))
    assert (sigma_u <= sigma_md) == (squares <= F(1, n - m + 1))
    if m < n:
        assert (gamma_u <= gamma_md) == (squares <= F(n - 1, n * (n - m)))
        limit = uniform_or_md(n, m)
        assert limit.sigma <= limit.gamma * (1 + 1e-12)  # (148): the first decides
    both = compare_designs(Simple(shares, m), Rows.alike(shares, m), dominance=False)
    if squares != F(1, n - m + 1):  # away from ties, floats decide as Fractions do
        assert (both.better == 0) == (sigma_u <= sigma_md)


def test_144_and_147_are_printed_the_wrong_way_round():
    # E2.4, one of many: p = (5, 4, 3, 2, 1)/15, m = 2 has sum p^2 = 11/45 <= 1/4, and there
    # Sigma_MD = 17/45 is the larger one, not the smaller.
    assert F(11, 45) <= F(1, 4)
    assert not F(17, 45) <= F(11, 30)


@pytest.mark.parametrize("n", [4, 6, 8])
def test_equal_importances_at_fixed_m_and_at_half_of_n(n):
    # Section 3.3 says that Sigma of uniform sampling falls with n. At fixed m it grows. With
    # m = n/2, as in Figure 2a, the difference to MD falls, as that figure says.
    def sigma(name, m):
        design = scheme(name, m=m).law(Federation.from_sizes([1] * n))
        return sum(enumerated_moments(design.enumerate(), n).variance)

    assert sigma("uniform", 2) == F(1, 2) - F(1, n)
    half = n // 2
    assert sigma("md", half) - sigma("uniform", half) == F(half - 1, half * n)


@given(st.integers(2, 9), st.integers(1, 8), st.integers(0, 2**32))
def test_equal_importances_have_one_ratio_for_any_updates(n, m, seed):
    m = min(m, n - 1)
    updates = np.random.default_rng(seed).standard_normal((n, 3))
    federation = Federation.from_sizes([1] * n)
    uniform, md = (
        scheme(name, m=m).law(federation).aggregate_variance(updates) for name in ("uniform", "md")
    )
    assert uniform / md == pytest.approx((n - m) / (n - 1))


def test_crossing_of_the_synthetic_example():
    r = crossing_share(10, 5)
    assert r == pytest.approx(0.344949, abs=1e-6)
    assert r == pytest.approx((1 + np.sqrt(6)) / 10)
    for share, better in ((0.3449, 0), (0.3450, None), (0.9, 1)):
        p = np.array([share] + [(1 - share) / 9] * 9)
        federation = Federation(importance=p)
        both = compare_designs(
            scheme("uniform", m=5).law(federation), scheme("md", m=5).law(federation)
        )
        assert both.better == better
    assert crossing_share(4, 4) == 1.0


@given(st.lists(st.integers(1, 40), min_size=2, max_size=10), st.integers(1, 5), st.randoms())
def test_clustered_dominates_md(sizes, m, random):
    shares, order = Shares.of(np.array(sizes)), list(range(len(sizes)))
    random.shuffle(order)
    clustered, md = Rows.along(np.array(order), shares, m), Rows.alike(shares, m)
    assert compare_designs(clustered, md).dominates == 0
    # equal rows are MD itself: then each dominates the other and the first is named
    assert compare_designs(md, clustered).dominates in (0, 1)


def test_dominance_is_about_all_updates():
    shares = Shares.of(np.array([9, 1, 1, 1]))
    uniform, md = Simple(shares, 2), Rows.alike(shares, 2)
    found = compare_designs(uniform, md)
    assert found.dominates is None
    same = np.ones((4, 1))
    assert uniform.aggregate_variance(same) > md.aggregate_variance(same) == 0
    large = np.array([[0.0], [1], [1], [-2]])
    assert uniform.aggregate_variance(large) < md.aggregate_variance(large)
    assert compare_designs(md, Everyone(shares)).dominates == 1


def test_a_design_without_gamma_is_compared_by_sigma():
    shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    found = compare_designs(Rows.along(np.arange(5), shares, 2), Simple(shares, 2))
    assert found.gamma_ratio is None
    assert found.better == 0
    assert found.sigma_ratio == pytest.approx(float(F(11, 30) / (F(1, 18) + F(43, 450) + F(3, 50)
                                              + F(11, 225) + F(13, 450))))  # fmt: skip
    assert compare_designs(Everyone(shares), Simple(shares, 2)).sigma_ratio == np.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: uniform_or_md(1, 1),
        lambda: uniform_or_md(5, 6),
        lambda: uniform_or_md(5, 0),
        lambda: crossing_share(5.5, 2),
        lambda: closed_forms(5, 2, 0.1),
        lambda: closed_forms(5, 2, float("nan")),
        lambda: compare_designs(
            Simple(Shares.of(np.array([1, 1])), 1), Simple(Shares.of(np.array([1])), 1)
        ),
    ],
)
def test_bad_input(call):
    with pytest.raises((BadParameter, BadInput)):
        call()
