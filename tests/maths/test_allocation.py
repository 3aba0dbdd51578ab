from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths._groups import (
    dispersion,
    largest_remainder,
    neyman_allocation,
    paper_allocation,
    proportional_allocation,
    unknown_draws,
)

F = Fraction

# sizes, deviations, m, proportional, Neyman by largest remainder, paper, optimal integers
GOLDEN = [
    ([10, 30, 60], ["5", "1", "1/2"], 20, [2, 6, 12], [9, 6, 5], [10, 6, 4], [9, 6, 5]),
    ([4, 6, 10], ["3", "1", "1"], 6, [1, 2, 3], [3, 1, 2], [4, 1, 1], [3, 1, 2]),
    ([2, 8, 10], ["10", "1", "1"], 8, [1, 3, 4], [2, 3, 3], [2, 3, 3], [2, 3, 3]),
    ([5, 5, 5], ["1", "1", "1"], 7, [3, 2, 2], [3, 2, 2], [3, 2, 2], [3, 2, 2]),
    ([1, 4, 5], ["0", "2", "1"], 4, [1, 1, 2], [1, 2, 1], [1, 2, 1], [1, 2, 1]),
    (
        [12, 20, 8, 10],
        ["2", "1", "4", "0"],
        10,
        [2, 4, 2, 2],
        [3, 2, 4, 1],
        [2, 1, 6, 1],
        [3, 2, 4, 1],
    ),
]


def variance(sizes, deviations, counts):
    N = sum(sizes)
    return sum(
        F(size, N) ** 2 * F(s) ** 2 * (F(1, count) - F(1, size))
        for size, s, count in zip(sizes, deviations, counts, strict=True)
    )


def best_by_force(sizes, deviations, m):
    choices = product(*(range(1, size + 1) for size in sizes))
    return min(variance(sizes, deviations, c) for c in choices if sum(c) == m)


@pytest.mark.parametrize("number", [F, float], ids=["exact", "float"])
@pytest.mark.parametrize(("sizes", "sd", "m", "proportional", "rounded", "paper", "best"), GOLDEN)
def test_golden(sizes, sd, m, proportional, rounded, paper, best, number):
    s = np.array([number(F(x)) for x in sd])
    assert proportional_allocation(sizes, m).tolist() == proportional
    assert largest_remainder(np.array(sizes) * s, sizes, m).tolist() == rounded
    assert paper_allocation(sizes, s**2, m).tolist() == paper
    assert neyman_allocation(sizes, s, m).tolist() == best


def test_golden_variances():
    sizes, s = [10, 30, 60], [F(5), F(1), F(1, 2)]
    assert variance(sizes, s, proportional_allocation(sizes, 20).tolist()) == F(59, 500)
    assert variance(sizes, s, neyman_allocation(sizes, s, 20).tolist()) == F(563, 18000)


def test_the_example_of_equation_5_as_the_scheme_runs_it():
    # Whole m_h and the finite-population correction: the printed rule is then not proportional.
    sizes, s = [10, 30, 60], [F(5), F(1), F(1, 2)]
    printed = paper_allocation(sizes, np.array(s) ** 2, 20).tolist()
    assert float(variance(sizes, s, printed)) == pytest.approx(0.033)


@given(st.integers(2, 60), st.data())
def test_the_unknown_have_their_share_and_both_parts_enough_clients(n, data):
    unknown, m = data.draw(st.integers(1, n - 1)), data.draw(st.integers(2, n))
    kept = unknown_draws(unknown, n, m)
    assert max(1, m * unknown // n) <= kept <= min(unknown, m - 1)
    assert 1 <= m - kept <= n - unknown


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 50)), min_size=1, max_size=5), st.data()
)
def test_two_readings_allocate_alike(cases, data):
    sizes, squares = [c[0] for c in cases], np.array([c[1] for c in cases])
    m = data.draw(st.integers(len(sizes), sum(sizes)))
    one, other = (
        paper_allocation(sizes, dispersion(sizes, squares, how), m)
        for how in ("variance", "mean-pair")
    )
    np.testing.assert_array_equal(one, other)


def test_golden_dispersion():
    points = np.array([[F(0), F(0)], [F(2), F(0)], [F(0), F(4)], [F(2), F(4)]], dtype=object)
    s2 = F(20, 3)  # sum of squared deviations / (N - 1)
    pairs = sum(((a - b) ** 2).sum() for a in points for b in points)
    assert pairs == 160
    assert dispersion([4], [s2], "pairs")[0] == F(160, 3) == pairs / 3
    assert dispersion([4], [s2], "mean-pair")[0] == F(40, 3) == pairs / 12
    assert dispersion([4], [s2], "variance")[0] == F(20, 3)


strata = st.lists(
    st.tuples(st.integers(1, 5), st.fractions(0, 3, max_denominator=4)), min_size=1, max_size=4
)


@given(strata, st.data())
def test_neyman_is_the_optimum(cases, data):
    sizes, s = [c[0] for c in cases], [c[1] for c in cases]
    m = data.draw(st.integers(len(sizes), sum(sizes)))
    counts = neyman_allocation(sizes, s, m).tolist()
    assert sum(counts) == m
    assert all(1 <= c <= size for c, size in zip(counts, sizes, strict=True))
    assert variance(sizes, s, counts) == best_by_force(sizes, s, m)
    as_floats = neyman_allocation(sizes, np.array(s, dtype=float), m).tolist()
    assert variance(sizes, s, as_floats) == best_by_force(sizes, s, m)


@given(strata, st.data())
def test_every_allocation_keeps_its_bounds(cases, data):
    sizes, s = [c[0] for c in cases], [c[1] for c in cases]
    m = data.draw(st.integers(len(sizes), sum(sizes)))
    for counts in (
        proportional_allocation(sizes, m),
        paper_allocation(sizes, s, m),
        largest_remainder(np.array(s, dtype=float), sizes, m),
    ):
        assert counts.sum() == m
        assert np.all((counts >= 1) & (counts <= sizes))
    if all(m * size >= sum(sizes) for size in sizes):  # the lower bound does not bind
        exact = [F(m * size, sum(sizes)) for size in sizes]
        found = proportional_allocation(sizes, m).tolist()
        assert all(abs(a - b) < 1 for a, b in zip(found, exact, strict=True))


def test_variance_in_place_of_deviation_gains_nothing():
    # Equation (5) with S_h a variance: the variance of the proportional allocation (no rounding).
    sizes, s, m = [10, 30, 60], [F(5), F(1), F(1, 2)], 20
    weights = [size * x**2 for size, x in zip(sizes, s, strict=True)]

    def without_correction(shares):
        return sum(
            F(size, 100) ** 2 * x**2 * sum(shares) / (m * share)
            for size, x, share in zip(sizes, s, shares, strict=True)
        )

    assert without_correction(weights) == without_correction([F(n) for n in sizes]) == F(59, 400)
    neyman = [size * x for size, x in zip(sizes, s, strict=True)]
    assert without_correction(neyman) == F(121, 2000)


def test_no_deviation_anywhere_is_proportional():
    assert neyman_allocation([12, 20, 8, 10], [0.0] * 4, 10).tolist() == [2, 4, 2, 2]
    assert paper_allocation([12, 20, 8, 10], [0.0] * 4, 10).tolist() == [2, 4, 2, 2]


@pytest.mark.parametrize("scale", [1e-300, 1.0, 1e300])
def test_scale_does_not_matter(scale):
    s = np.array([2.0, 1.0, 4.0, 0.0]) * scale
    assert neyman_allocation([12, 20, 8, 10], s, 10).tolist() == [3, 2, 4, 1]


def test_sums_beyond_64_bits_are_exact():
    sizes = [2**40, 2**40 - 1, 5]
    counts = proportional_allocation(sizes, 2**30)
    assert counts.sum() == 2**30
    assert counts.tolist() == [2**29, 2**29 - 1, 1]


def test_ten_thousand_draws_are_quick():
    rng = np.random.default_rng(0)
    sizes, s = rng.integers(1000, 5000, 50), rng.random(50)
    counts = neyman_allocation(sizes, s, 10_000)
    ideal = 10_000 * sizes * s / (sizes * s).sum()
    assert np.all(np.abs(counts - ideal) < 2)  # neither bound binds, so it is Neyman's own


@pytest.mark.parametrize(
    ("sizes", "s", "m", "message"),
    [
        ([3, 3], [1.0, 1.0], 1, "m must be from 2"),
        ([3, 3], [1.0, 1.0], 7, "to 6, everybody"),
        ([3, 0], [1.0, 1.0], 2, "sizes must be"),
        ([3.5, 2], [1.0, 1.0], 2, "sizes must be"),
        ([], [], 0, "sizes must be"),
        ([[3, 3]], [1.0, 1.0], 2, "sizes must be"),
        ([3, 3], [1.0, float("nan")], 2, "deviations must be"),
        ([3, 3], [1.0, float("inf")], 2, "deviations must be"),
        ([3, 3], [1.0, -1.0], 2, "deviations must be"),
        ([3, 3], [1.0], 2, "deviations must be"),
    ],
)
def test_bad_arguments(sizes, s, m, message):
    with pytest.raises(ValueError, match=message):
        neyman_allocation(sizes, s, m)


def test_unknown_reading():
    with pytest.raises(ValueError, match="reading must be one of"):
        dispersion([2], [1.0], "all")
