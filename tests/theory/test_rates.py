"""Theorems 1 and 2 of clustered sampling: the terms, that they bound, and what is printed."""

from __future__ import annotations

from fractions import Fraction
from math import inf, sqrt

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.designs import Rows, Simple
from fedcohort.selection import Shares
from fedcohort.theory import Training, clustered_rate, expected_gradients, printed_rate

SHARES = Shares.of(np.array([5, 4, 3, 2, 1]))
P = SHARES.floats
MINIMA = np.array([[1, 0], [0, 2], [-1, 1], [2, -1], [-2, -2]], dtype=float)
OPTIMUM = P @ MINIMA
KAPPA = 2 * float(((MINIMA - OPTIMUM) ** 2).sum(axis=1).max())


def laws(m=2):
    return {"md": Rows.alike(SHARES, m), "clustered": Rows.along(np.arange(5), SHARES, m)}


def training(steps, rounds, start, noise=0.0):
    gap = 0.5 * float(((np.asarray(start) - OPTIMUM) ** 2).sum())
    return Training(
        eta_l=1, steps=steps, rounds=rounds, gap=gap, noise=noise, dissimilarity=KAPPA, beta=2
    )


def test_every_term_by_hand():
    m, N, T, L, sigma, kappa, beta, gap = 2, 3, 10**6, 1.5, 0.7, 0.4, 1.2, 3.0
    t = Training(
        eta_l=9, steps=N, rounds=T, smoothness=L, gap=gap, noise=sigma, dissimilarity=kappa,
        beta=beta,
    )  # fmt: skip
    found = clustered_rate(laws(m)["md"], t)
    c, squares = 2, float(P @ P)  # noisy steps follow each other: doubled
    left = 1 - 4 * 1.5 * c * L * beta * sqrt(N / (m * T))
    second = 1 + (m - 1) * squares  # m sum E omega^2 of MD
    assert found.eta_l == sqrt(m / (N * T))
    assert list(found.orders) == pytest.approx(
        [
            (4 * gap + 2 * c * L * sigma * second + 3 * c * L * sigma * (N - 1) / N)
            / sqrt(m * N * T) / left,
            6 * c * L * kappa * sqrt(N / (m * T)) / left,
            3 * c * L**2 * (sigma / N + 2 * kappa) * m * (N - 1) / T / left,
        ]
    )  # fmt: skip
    assert found.total == pytest.approx(sum(found.orders))


@pytest.mark.parametrize("name", ["md", "clustered"])
@pytest.mark.parametrize(("steps", "rounds"), [(1, 3_000), (4, 10_000), (16, 40_000)])
@pytest.mark.parametrize("noise", [0.0, 2.0])
def test_it_is_a_bound(name, steps, rounds, noise):
    """Against the exact mean of all runs."""
    start = np.array([3.0, -4.0])
    t = training(steps, rounds, start, noise)
    found = clustered_rate(laws()[name], t)
    assert found.bound.valid
    run = Training(**(t.__dict__ | {"eta_l": found.eta_l}))
    measured = expected_gradients(laws()[name], MINIMA, start, run).mean()
    assert 0 < measured <= found.total


def test_without_the_sampling_term_it_is_none():
    """The planted defect: what is printed has no term of order sqrt(N / (m T))."""
    t = training(2, 20_000, OPTIMUM)  # nothing to gain: all that is left is what sampling adds
    found = clustered_rate(laws(1)["md"], t)
    run = Training(**(t.__dict__ | {"eta_l": found.eta_l}))
    measured = expected_gradients(laws(1)["md"], MINIMA, OPTIMUM, run).mean()
    assert found.orders.start_and_noise + found.orders.drift < measured <= found.total


def long_run(steps, rounds, m=1):
    """(1/T) sum E z^2 of two clients at -1 and 1 from z = 1: z' = (1-g) z +- g, in closed form."""
    g = 1 - (1 - sqrt(m / (steps * rounds))) ** steps
    kept, rest = (1 - g) ** 2, g / (2 - g) / m
    return rest + (1 - rest) * (1 - kept**rounds) / (rounds * (1 - kept))


def test_the_closed_form_is_the_exact_mean():
    two = Rows.alike(Shares.of(np.array([1, 1])), 1)
    for steps in (1, 3):
        t = Training(eta_l=sqrt(1 / (steps * 200)), steps=steps, rounds=200)
        exact = expected_gradients(two, [[-1.0], [1.0]], [1.0], t).mean()
        assert long_run(steps, 200) == pytest.approx(exact)


def test_no_constant_repairs_the_printed_rate():
    """With T = N^5 what happens is about N/2 times 1/sqrt(m N T) + m N / T, for every N.

    With the missing term of order sqrt(N / (m T)) the ratio stays below 1.
    """
    sizes = [4, 8, 16, 32, 64]
    ratios = [long_run(N, N**5) / printed_rate(1, N, N**5) for N in sizes]
    assert np.all(np.array(ratios) > 0.4 * np.array(sizes))
    assert ratios[-1] / ratios[0] > 10
    repaired = [long_run(N, N**5) / (printed_rate(1, N, N**5) + N**-2.0) for N in sizes]
    assert max(repaired) < 1


@pytest.mark.parametrize("name", ["md", "clustered"])
def test_lemma_5_by_enumeration(name):
    """(25) with beta^2 = 1 and the true kappa^2, in Fractions; halved it fails."""
    m, rng = 2, np.random.default_rng(3)
    p = [Fraction(s, 15) for s in (5, 4, 3, 2, 1)]
    law = laws(m)[name]
    failed = 0
    for _ in range(30):
        gradients = [Fraction(int(v), 7) for v in rng.integers(-20, 20, 5)]
        off = [Fraction(int(v), 70) for v in rng.integers(-5, 5, 5)]
        z = [g + v for g, v in zip(gradients, off, strict=True)]
        left = sum(
            (
                chance * sum(w * z[i] for i, w in zip(c.clients, c.weights, strict=True)) ** 2
                for chance, c in law.enumerate()
            ),
            Fraction(0),
        )
        mean = sum(a * b for a, b in zip(p, gradients, strict=True))
        squares = sum(a * b**2 for a, b in zip(p, gradients, strict=True))  # |grad L|^2 + kappa^2
        astray = sum(a * b**2 for a, b in zip(p, off, strict=True))
        right = 3 * astray + 3 * mean**2 + Fraction(3, m) * squares
        assert left <= right
        failed += left > right / 4
    assert failed > 0


def test_what_it_is_not_about():
    t = Training(eta_l=1, steps=2, rounds=100)
    with pytest.raises(BadInput, match="Simple is none"):
        clustered_rate(Simple(SHARES, 2), t)
    with pytest.raises(BadParameter, match="eta_g"):
        clustered_rate(laws()["md"], Training(eta_l=1, steps=2, rounds=100, eta_g=0.5))
    few = clustered_rate(laws()["md"], Training(eta_l=1, steps=2, rounds=3))
    assert few.total == inf
    assert few.orders.sampling == inf
