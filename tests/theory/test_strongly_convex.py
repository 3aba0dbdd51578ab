"""Theorem 2 of HCSFed: Lemmas 4 and 5 by enumeration, where they fail, and the bound itself."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, scheme
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.designs import Rows, Simple, Stratified
from fedcohort.selection import Shares
from fedcohort.theory import (
    Smoothness,
    enumerated_moments,
    lemma_4,
    lemma_5,
    objective_gap,
    strongly_convex_bound,
)
from fedcohort.theory._pilot import Known
from fedcohort.theory._strata import hansen_hurwitz_variance, simple_random_variance

F = Fraction
UPDATES = np.array([[1.0, 0], [2, 1], [0, 3], [-1, 1], [4, -2], [0.5, 0.5]])
CLIENTS = Federation.from_sizes([1] * 6)


def hcsfed(**settings):
    """The law of a round after everybody answered with UPDATES."""
    chosen = scheme("hcsfed", m=4, strata=2, **settings)
    return Known(CLIENTS, updates=UPDATES).law(chosen, CLIENTS)


def strata(sizes, draws):
    """Draws with equal chances and replacement inside strata of clients that count alike."""
    n, ends = sum(sizes), np.cumsum(sizes)
    positions = tuple(np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True))
    parts = tuple(
        Rows.alike(Shares.of(np.ones(size, dtype=np.int64)), m)
        for size, m in zip(sizes, draws, strict=True)
    )
    return Stratified(n, positions, parts, tuple(F(size, n) for size in sizes))


# -- Lemma 4 -------------------------------------------------------------------------------------


def test_lemma_4_holds_for_our_weights_and_fails_for_the_printed_ones():
    assert lemma_4(hcsfed(), CLIENTS.importance) == pytest.approx(np.zeros(6), abs=1e-12)
    off = lemma_4(hcsfed(weights="paper", floor=0), CLIENTS.importance)
    assert np.abs(off).max() > 0.05
    with pytest.raises(BadInput, match=r"must be \(6,\)"):
        lemma_4(hcsfed(), [0.5, 0.5])


def test_lemma_4_by_enumeration():
    """E4.7, in Fractions: two draws by length of two clients, weights N/m p = 1/2 a draw."""
    q = [F(4, 5), F(1, 5)]  # lengths 4 and 1
    mean = [sum(c * q[i] for c in (F(1, 2), F(1, 2))) for i in range(2)]  # expected weights
    assert mean == q != [F(1, 2), F(1, 2)]
    design = Rows.hansen_hurwitz(Shares.of(np.array([4, 1])), Shares.of(np.array([1, 1])), 2)
    right = enumerated_moments(design.enumerate(), 2)
    assert list(right.mean) == [F(1, 2), F(1, 2)]


# -- Lemma 5 -------------------------------------------------------------------------------------


def designs():
    equal = Shares.of(np.ones(6, dtype=np.int64))
    unequal = Shares.of(np.array([6, 5, 4, 3, 2, 1]))
    return {
        "md": Rows.alike(unequal, 3),
        "clustered": Rows.along(np.arange(6), unequal, 3),
        "uniform": Simple(equal, 2),
        "strata": strata([4, 2], [2, 1]),
        "hcsfed": hcsfed(),
    }


def test_lemma_5_has_the_closed_forms_of_li_et_al():
    found = {name: lemma_5(design) for name, design in designs().items()}
    assert found["md"] == pytest.approx(1 / 3)
    assert found["clustered"] == pytest.approx(1 / 3)
    assert found["uniform"] == pytest.approx((6 - 2) / (2 * 5))
    assert found["strata"] == pytest.approx(4 / 6 * 4 / 6 / 2 + 2 / 6 * 2 / 6 / 1)


@given(
    st.lists(st.lists(st.floats(-1, 1), min_size=2, max_size=2), min_size=6, max_size=6),
    st.sampled_from(sorted(designs())),
)
def test_lemma_5_holds(rows, name):
    x, design = np.array(rows), designs()[name]
    longest = float((x**2).sum(axis=1).max())
    assert design.aggregate_variance(x) <= lemma_5(design) * longest + 1e-12


def test_lemma_5_as_printed_fails_for_strata():
    """Strata of 8 and 1 clients, m = 2: unit updates that cancel out, all outcomes in Fractions.

    Each stratum needs a draw. The variance is 64/81: above 1/m, which the paper says it is at
    most, and above that of two clients at random; with 2 and 0 draws, which (5) prints, the last
    client is never drawn and Lemma 4 fails.
    """
    x = [F(1)] * 4 + [F(-1)] * 4 + [F(1)]
    design = strata([8, 1], [1, 1])
    moments = enumerated_moments(design.enumerate(), 9)
    assert list(moments.mean) == [F(1, 9)] * 9
    variance = sum(x[i] * moments.covariance[i, j] * x[j] for i in range(9) for j in range(9))
    assert variance == F(64, 81) > F(1, 2)
    groups = [0] * 8 + [1]
    assert hansen_hurwitz_variance(x, groups, [1, 1], [1] * 9) == variance  # hybrid: all lengths 1
    assert simple_random_variance(x, 2) < F(1, 2) < variance
    assert lemma_5(design) >= float(variance) - 1e-12


# -- Theorem 2 -----------------------------------------------------------------------------------

MINIMA = np.array([[1, 0], [0, 2], [-1, 1], [2, -1], [-2, -2], [0, 0]], dtype=float)
START = np.array([2.0, 2.0])


def exact_gap(design, tau, iterations, start=START):
    """E F(w_T) - F* of quadratic clients with steps 2 / (gamma + t), for weights that sum to 1.

    Local steps are gradient descent on 1/2 ||w - w_i*||^2, so a round covers g of the way.
    """
    p = design.mean()
    apart = MINIMA - p @ MINIMA
    spread = design.aggregate_variance(apart)
    square, shift, t = float(((start - p @ MINIMA) ** 2).sum()), max(8.0, tau), 1
    while t < iterations:
        g = 1 - np.prod([1 - 2 / (shift + t + k) for k in range(tau)])
        square = (1 - g) ** 2 * square + g**2 * spread
        t += tau
    return square / 2


def problem(design, tau):
    p = design.mean()
    optimum = p @ MINIMA
    points = np.vstack([MINIMA, START])  # models stay in their hull, as weights sum to 1
    longest = max(float(np.linalg.norm(a - b)) for a in points for b in points)
    at_optimum = 0.5 * ((MINIMA - optimum) ** 2).sum(axis=1)
    gap = objective_gap(p, at_optimum, np.zeros(len(p)))
    distance = float(np.linalg.norm(START - optimum))
    return Smoothness(L=1, mu=1, G=longest, sigma=0, tau=tau, distance=distance), gap


@pytest.mark.parametrize("name", ["md", "clustered", "uniform", "strata"])
@pytest.mark.parametrize("tau", [1, 5])
def test_it_is_a_bound(name, tau):
    design = designs()[name]
    constants, gap = problem(design, tau)
    for rounds in (1, 10, 300):
        T = 1 + tau * rounds
        bound = strongly_convex_bound(design, constants, gap, T)
        assert 0 < exact_gap(design, tau, T) <= bound.total


def test_without_the_sampling_term_it_is_no_bound():
    """The planted defect: everybody's gradients are bounded, and C is forgotten."""
    design = designs()["md"]
    start = design.mean() @ MINIMA + [0.1, 0.0]
    near = Smoothness(L=1, mu=1, G=problem(design, 1)[0].G, sigma=0, tau=1, distance=0.1)
    bound = strongly_convex_bound(design, near, 0.0, 3001)
    without = 0.5 * max(4 * sum(bound.noises[:3]), 9 * 0.1**2) / (8 + 3001)
    assert without < exact_gap(design, 1, 3001, start) <= bound.total


def test_by_hand():
    """gamma = 16, p equal: B + C = 4 * 1/6 + 6*2*0.5 + 8*4*9 + 4*0.4*9*9, all over mu^2."""
    given_ = Smoothness(L=2, mu=1, G=3, sigma=2, tau=3, distance=1)
    bound = strongly_convex_bound(designs()["uniform"], given_, 0.5, 84)
    noises = [4 / 6, 6.0, 288.0, 4 * 0.4 * 81]
    assert list(bound.noises) == pytest.approx(noises)
    assert bound.total == pytest.approx(4 * sum(noises) / 100)
    assert not bound.starting


def test_nothing_that_stays_can_be_subtracted():
    """E4.14: the corrected bound tends to 0, so (10), with terms that do not, ends below 0."""
    design = designs()["md"]
    constants, gap = problem(design, 1)
    late = [strongly_convex_bound(design, constants, gap, 10**k).total for k in (3, 6, 9)]
    assert late[0] > 100 * late[1] > 10_000 * late[2] > 0
    assert late[2] < 1e-5


def test_bad_input():
    design, (constants, _) = designs()["md"], problem(designs()["md"], 1)
    with pytest.raises(BadParameter, match="gap"):
        strongly_convex_bound(design, constants, -1.0, 10)
    with pytest.raises(BadParameter, match="iterations"):
        strongly_convex_bound(design, constants, 1.0, 0)
