"""The golden numbers "allocation": what each rule gives, as exact variances.

Without rounding and finite population correction, m_h ~ N_h s_h^2 (equation (5) of HCSFed, a
variance where a standard deviation is needed) is no better than m_h ~ N_h where all strata vary.
All that it gains is what it takes from strata that do not vary: it then has N_+ / N of the
variance, N_+ the clients of the others.
"""

from __future__ import annotations

from fractions import Fraction

import pytest

from fedcohort.maths._groups import (
    largest_remainder,
    neyman_allocation,
    proportional_allocation,
)

F = Fraction

# sizes, deviations, m; without correction: proportional, Neyman, by variance; with correction and
# whole draws: proportional, Neyman rounded, the integer optimum
GOLDEN = [
    ([10, 30, 60], "5 1 1/2", 20, "59/400 121/2000 59/400", "59/500 563/18000 563/18000"),
    ([4, 6, 10], "3 1 1", 6, "13/30 49/150 13/30", "43/120 41/200 41/200"),
    ([2, 8, 10], "10 1 1", 8, "109/80 361/800 109/80", "137/240 11/120 11/120"),
    ([5, 5, 5], "1 1 1", 7, "1/7 1/7 1/7", "11/135 11/135 11/135"),
    ([1, 4, 5], "0 2 1", 4, "21/40 169/400 189/400", "111/200 9/25 9/25"),
    ([12, 20, 8, 10], "2 1 4 0", 10, "49/125 722/3125 196/625", "176/625 113/625 113/625"),
]


def fractions(text):
    return [F(word) for word in text.split()]


def variance(sizes, deviations, draws, corrected):
    """A stratum that does not vary adds nothing, even without a draw."""
    N = sum(sizes)
    return sum(
        F(N_h, N) ** 2 * s**2 * (1 / F(m_h) - (F(1, N_h) if corrected else 0))
        for N_h, s, m_h in zip(sizes, deviations, draws, strict=True)
        if s
    )


@pytest.mark.parametrize(("sizes", "deviations", "m", "variances", "_"), GOLDEN)
def test_without_rounding_by_variance_gains_only_from_strata_that_do_not_vary(
    sizes, deviations, m, variances, _
):
    s = fractions(deviations)
    proportional, neyman, by_variance = (
        variance(sizes, s, [m * F(share) / sum(shares) for share in shares], corrected=False)
        for shares in (
            sizes,
            [N_h * x for N_h, x in zip(sizes, s, strict=True)],
            [N_h * x**2 for N_h, x in zip(sizes, s, strict=True)],
        )
    )
    assert [proportional, neyman, by_variance] == fractions(variances)
    varying = sum(N_h for N_h, x in zip(sizes, s, strict=True) if x)
    assert by_variance == proportional * F(varying, sum(sizes))
    assert neyman <= by_variance


@pytest.mark.parametrize(("sizes", "deviations", "m", "_", "variances"), GOLDEN)
def test_whole_draws_with_the_correction(sizes, deviations, m, _, variances):
    s = fractions(deviations)
    rounded = largest_remainder([N_h * x for N_h, x in zip(sizes, s, strict=True)], sizes, m)
    found = [
        variance(sizes, s, draws.tolist(), corrected=True)
        for draws in (
            proportional_allocation(sizes, m),
            rounded,
            neyman_allocation(sizes, s, m),
        )
    ]
    assert found == fractions(variances)
