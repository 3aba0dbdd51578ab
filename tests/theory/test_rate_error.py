"""Lemma 3.1 and Corollary 3.1 of FedSampling: all answers of small cases, and where they fail."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadInput, BadParameter, TooLarge
from fedcohort.privacy import SizeReport
from fedcohort.privacy import _size_estimate as estimator
from fedcohort.theory import rate_error

F = Fraction


def law(size, alpha, M):
    """Chances of the answers 1, ..., M - 1 of a client."""
    clipped = min(max(size, 1), M - 1)
    return [(1 - alpha) / (M - 1) + (alpha if r == clipped else 0) for r in range(1, M)]


def estimates(sizes, alpha, M):
    """(chance, N~) of every list of answers, in Fractions."""
    laws = [law(size, alpha, M) for size in sizes]
    for answers in product(range(1, M), repeat=len(sizes)):
        chance = F(1)
        for own, answer in zip(laws, answers, strict=True):
            chance *= own[answer - 1]
        yield chance, (sum(answers) - (1 - alpha) * F(M * len(sizes), 2)) / alpha


def by_enumeration(sizes, K, alpha, M, floor):
    """(mean, variance, squared error, samples, chance of the floor, chance of 0 or less)."""
    N = sum(sizes)
    out = [F(0)] * 6
    for chance, estimate in estimates(sizes, alpha, M):
        rate = min(F(1), K / max(estimate, floor))
        values = (
            estimate, estimate**2, (rate - F(K, N)) ** 2, N * rate, estimate < floor, estimate <= 0
        )  # fmt: skip
        out = [total + chance * value for total, value in zip(out, values, strict=True)]
    out[1] -= out[0] ** 2
    return out


@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=4).filter(any),
    st.integers(1, 6),
    st.fractions(F(1, 10), F(1), max_denominator=20),
    st.integers(3, 6),
)
def test_it_is_the_sum_over_all_answers(sizes, K, alpha, M):
    found = rate_error(sizes, K, float(alpha), M)
    exact = by_enumeration(sizes, K, alpha, M, F(len(sizes)))
    assert exact[0] == sum(min(max(size, 1), M - 1) for size in sizes)  # clipped: E1.1, E1.2
    told = (found.mean, found.variance, found.squared, found.samples)
    assert told == pytest.approx([float(value) for value in exact[:4]], rel=1e-9, abs=1e-12)
    assert found.leading == pytest.approx(K**2 * float(exact[1]) / sum(sizes) ** 4, abs=1e-12)
    assert found.samples_squared == pytest.approx(sum(sizes) ** 2 * float(exact[2]), abs=1e-12)
    on_the_edge = any(v in (0, len(sizes)) for _, v in estimates(sizes, alpha, M))
    if not on_the_edge:  # rounding cannot decide there
        assert (found.floored, found.impossible) == pytest.approx(
            (float(exact[4]), float(exact[5])), abs=1e-12
        )


def test_the_variance_is_that_of_the_mechanism():
    report = SizeReport(6, 1.0, mechanism="paper")
    sizes = [1, 2, 2, 5, 9]
    exact = estimator.variance_of_total(sizes, report)
    assert rate_error(sizes, 3, float(report.alpha), 6).variance == pytest.approx(float(exact))


def test_many_clients_reach_the_leading_term():
    """Exact over K^2 Var/N^4, and the error of the sample count falls as 1/|C|."""
    found = [rate_error([2, 3, 1, 2] * times, 100, 0.5, 6) for times in (25, 250, 2500)]
    off = [abs(each.ratio - 1) for each in found]
    assert off[0] > 5 * off[1] > 20 * off[2]
    assert off[2] < 0.002
    squares = [each.samples_squared for each in found]
    assert squares[0] / squares[1] == pytest.approx(10, rel=0.15)
    assert squares[1] / squares[2] == pytest.approx(10, rel=0.02)


def test_more_samples_than_wanted_take_part():
    """E1.5: N E[K/N~] is above K (Jensen), and tends to it."""
    found = [rate_error([2, 3, 1, 2] * times, 100, 0.5, 6).samples for times in (100, 1000)]
    assert found[0] > found[1] > 100


def test_without_a_floor_the_expectation_does_not_exist():
    """E1.4: N~ = 0 has a positive chance, so that E(K/N~)^2 is infinite."""
    alpha, M, sizes = F(1, 5), 3, [1] * 5  # e^eps = 3/2
    nothing = sum(chance for chance, estimate in estimates(sizes, alpha, M) if estimate == 0)
    assert nothing > F(1, 100)
    assert rate_error(sizes, 2, 0.2, M).impossible > float(nothing)


@pytest.mark.parametrize("clients", [2, 5, 50])
def test_inequality_12_fails_for_the_fourth_moment(clients):
    """E1.4: von Bahr and Esseen's is for orders 1 to 2; it holds for 2, and not for 4."""
    alpha, M, size = F(1, 2), 6, 2
    own = law(size, alpha, M)
    mean = sum(r * q for r, q in enumerate(own, 1))
    second, fourth = (sum((r - mean) ** k * q for r, q in enumerate(own, 1)) for k in (2, 4))
    of_the_sum = {
        2: clients * second,
        4: clients * fourth + 3 * clients * (clients - 1) * second**2,
    }
    assert of_the_sum[2] < (2 * clients - 1) * second
    assert of_the_sum[4] > (2 * clients - 1) * fourth
    if clients == 2:  # the moments of the sum, by enumeration
        found = sum(
            chance * (alpha * (estimate - clients * size)) ** 4
            for chance, estimate in estimates([size] * clients, alpha, M)
        )
        assert found == of_the_sum[4]


def test_corollary_3_1_fails_where_sizes_are_clipped():
    """A tenth of the clients has 20 samples and M = 6: the limit is K^2 (N / E N~ - 1)^2."""
    K, sizes = 100, [2] * 9 + [20]  # N = 38, told 23
    limit = K**2 * (38 / 23 - 1) ** 2
    found = [rate_error(sizes * times, K, 0.5, 6).samples_squared for times in (10, 100, 1000)]
    assert found[2] == pytest.approx(limit, rel=0.01)
    assert min(found) > 0.8 * limit
    # and yet the squared error of the rate tends to 0, as (3) says: so does the rate itself
    assert rate_error(sizes * 1000, K, 0.5, 6).squared < 1e-4


def test_the_planted_defect_is_caught():
    """Var(N~) without 1/alpha^2 is not the leading term."""
    found = rate_error([2, 3, 1, 2] * 2500, 100, 0.5, 6)
    assert abs(found.squared / (found.leading * 0.5**2) - 1) > 2


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("alpha", ([1, 2], 1, 0.0, 5)),
        ("threshold", ([1, 2], 1, 0.5, 2)),
        ("samples", ([1, 2], 0, 0.5, 5)),
        ("floor", ([1, 2], 1, 0.5, 5, 0.0)),
        ("sizes", ([1.5, 2], 1, 0.5, 5)),
        ("all 0", ([0, 0], 1, 0.5, 5)),
    ],
)
def test_bad_input(words, given):
    with pytest.raises((BadInput, BadParameter), match=words):
        rate_error(*given)


def test_too_many_sums_are_refused():
    with pytest.raises(TooLarge, match="variance_of_total"):
        rate_error(np.ones(50_000), 10, 0.5, 300)
