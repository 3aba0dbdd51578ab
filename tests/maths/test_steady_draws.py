"""Weights that differ by rounding give the same cohort: with probability 1 - n m e / 2.

Every weight is multiplied by 1 - e or 1 + e. At e = 1e-9 a cohort of m = 10 out of n = 100 may
change with probability 5e-7. That is tested from the edges themselves (exactly), by cohorts at
e = 1e-9 (hardly one may differ) and by cohorts at e where the bound can be seen; one-sided
binomial tests, level 1e-6.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

import fedcohort
from fedcohort import Federation, Selector
from fedcohort.designs import Bernoulli, Rows, Stratified
from fedcohort.maths import below, weighted_without_replacement
from fedcohort.maths._draws import as_integers, steadily_below
from fedcohort.selection import Cohort, Shares
from fedcohort.server import Attendance, Redraw
from fedcohort.server._dropouts import settle

N, M, SMALL, LEVEL = 100, 10, 1e-9, 1e-6

SKEWED = np.ldexp(1.0 + np.arange(N) % 7, -(np.arange(N) // 5))  # heavy ones are taken soon
WEIGHTS = {
    f"{kind}, total {where}": base / base.sum() * total
    for kind, base in {
        "equal": np.ones(N),
        "rising": np.arange(1.0, N + 1),
        "skewed": SKEWED,
        "half in one": np.concatenate([[N - 1.0], np.ones(N - 1)]),
    }.items()
    for where, total in {
        "1/2": 0.5,
        "below 1": 1.0 - 2.0**-40,
        "above 8": 8.0 + 2.0**-40,
        "7": 7.0,
    }.items()
}
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def generator(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def noisy(weights: np.ndarray, e: float, seed: int) -> np.ndarray:
    return weights * (1.0 + e * generator(seed + 10**6).choice([-1.0, 1.0], len(weights)))


def one_by_one(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    return weighted_without_replacement(rng, weights, M)


def with_replacement(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    return drawn(Rows.alike(Shares.of_floats(weights), M), rng)


def half_of_them(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    return drawn(Rows.alike(Shares.of_floats(weights).among(np.arange(0, N, 2)), M), rng)


def along_a_line(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    return drawn(Rows.along(np.arange(N), Shares.of_floats(weights), M), rng)


def coins(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    shares = Shares.of_floats(weights)
    return drawn(Bernoulli.of_floats(shares, np.minimum(1.0, M * shares.floats)), rng)


def drawn(law, rng: np.random.Generator) -> np.ndarray:
    cohort = law.draw(rng)
    return np.repeat(cohort.clients, cohort.draws)


def old_one_by_one(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """As it was: the number of bits and the rebuilding hang on the total."""
    return weighted_without_replacement(rng, as_integers(weights), M)


def old_with_replacement(rng: np.random.Generator, weights: np.ndarray) -> np.ndarray:
    """As it was: the whole lies at a power of two, a bit above or below."""
    parts = np.rint(weights / weights.sum() * 2**52).astype(np.int64)
    return drawn(Rows.alike(Shares.of(parts), M), rng)


STEADY = [one_by_one, with_replacement, half_of_them, along_a_line, coins]


def changes(draw: Draw, weights: np.ndarray, e: float, runs: int) -> int:
    """How many of so many cohorts differ."""
    return sum(
        not np.array_equal(
            draw(generator(seed), weights), draw(generator(seed), noisy(weights, e, seed))
        )
        for seed in range(runs)
    )


def credible(seen: int, runs: int, e: float) -> bool:
    """Whether so many may have changed if each does with probability at most n m e / 2."""
    return bool(binom.sf(seen - 1, runs, N * M * e / 2) > LEVEL)


@pytest.mark.parametrize("draw", STEADY)
@pytest.mark.parametrize("name", WEIGHTS)
def test_a_rounding_error_does_not_change_a_cohort(draw: Draw, name: str) -> None:
    runs = 100
    assert credible(changes(draw, WEIGHTS[name], SMALL, runs), runs, SMALL)


@pytest.mark.parametrize("e", [1e-5, 1e-4])
@pytest.mark.parametrize("draw", STEADY)
@pytest.mark.parametrize("name", ["equal, total 1/2", "half in one, total below 1"])
def test_changes_are_as_rare_as_they_are_small(draw: Draw, name: str, e: float) -> None:
    runs = 600
    assert credible(changes(draw, WEIGHTS[name], e, runs), runs, e)


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (old_one_by_one, "rising, total 1/2"),
        (old_one_by_one, "half in one, total below 1"),
        (old_with_replacement, "rising, total 7"),
    ],
)
def test_the_old_draws_jump(draw: Draw, name: str) -> None:
    runs = 100
    assert not credible(changes(draw, WEIGHTS[name], SMALL, runs), runs, SMALL)


@pytest.mark.parametrize("name", WEIGHTS)
def test_the_edges_move_by_half_of_the_error(name: str) -> None:
    """Exactly: the chance of a point between an edge and where it moved to, in m draws."""
    weights = WEIGHTS[name]
    for seed in range(5):
        other = noisy(weights, SMALL, seed)
        left = np.sort(generator(seed).permutation(N)[M - 1 :])  # before the last draw
        for pair in [
            (as_integers(weights), as_integers(other)),
            (as_integers(weights)[left], as_integers(other)[left]),
            (Shares.of_floats(weights).parts, Shares.of_floats(other).parts),
        ]:
            here, there = ([int(edge) for edge in np.cumsum(part)] for part in pair)
            moved = sum(
                abs(Fraction(a, here[-1]) - Fraction(b, there[-1]))
                for a, b in zip(here, there, strict=True)
            )
            assert M * moved <= N * M * SMALL / 2 < 1e-6


@pytest.mark.parametrize("n", [1, 3, N, 5000])
def test_shares_of_floats_always_have_the_same_number_of_bits(n: int) -> None:
    for seed in range(20):
        values = generator(seed).random(n) ** (1 + seed) + 1e-300
        assert Shares.of_floats(values).whole.bit_length() == 52


@pytest.mark.parametrize("bound", [1, 2, 3, 1000, 2**61 - 1, 2**61, 2**61 + 1, 2**62])
def test_steady_integers_move_with_their_bound(bound: int) -> None:
    for seed in range(50):
        here = steadily_below(generator(seed), bound)
        there = steadily_below(generator(seed), bound + 1)
        assert 0 <= here < bound
        assert abs(Fraction(here, bound) - Fraction(there, bound + 1)) <= Fraction(2, bound)


def test_plain_integers_do_not() -> None:
    def share(bound: int, seed: int) -> float:
        return float(below(generator(seed), bound, 1)[0]) / bound

    assert any(abs(share(2**61, seed) - share(2**61 + 1, seed)) > 0.1 for seed in range(50))


def test_steady_integers_are_uniform() -> None:
    """Chi-square over the values below 7, level 1e-6 (chi2.isf(1e-6, 6) = 38.3)."""
    rng = generator(3)
    seen = np.bincount([steadily_below(rng, 7) for _ in range(7000)], minlength=7)
    assert ((seen - 1000.0) ** 2 / 1000.0).sum() < 38.3


@pytest.mark.parametrize("name", ["md", "poisson", "pow-d", "clustered-size", "binomial"])
@pytest.mark.parametrize("some", [None, np.arange(0, N, 2)])
def test_schemes_do_not_care_about_the_last_digits_of_importance(name: str, some) -> None:
    fields = fedcohort.schemes.SCHEMES[name].__dataclass_fields__
    asked = {"m": M, "d": 20, "cap": True}
    scheme = fedcohort.scheme(name, **{key: asked[key] for key in asked if key in fields})
    base = np.arange(1.0, N + 1)
    base /= base.sum()
    for seed in range(30):
        other = noisy(base, SMALL, seed)
        cohorts = [
            Selector(scheme, Federation(importance=p / p.sum()), seed).select(
                some, ask=lambda ask: ask.clients.astype(np.float64)
            )
            for p in (base, other)
        ]
        np.testing.assert_array_equal(cohorts[0].clients, cohorts[1].clients)
        np.testing.assert_allclose(cohorts[0].weights, cohorts[1].weights, rtol=5e-9)


def test_who_stands_in_does_not_hang_on_the_last_digits() -> None:
    """A stratum of four, two of which are lost: half of its mass is left to draw from."""

    def stands_in(lengths: np.ndarray, seed: int) -> list[int]:
        part = Rows.hansen_hurwitz(Shares.of_floats(lengths), Shares.of(np.ones(4, dtype=int)), 2)
        strata = (np.arange(4), np.arange(4, 8))
        law = Stratified(8, strata, (part, part), (Fraction(1, 2),) * 2)
        cohort = Cohort.of([0, 1], [0.5, 0.5])
        nobody = np.array([], dtype=np.int64)
        return next(
            settle(Redraw(attempts=1), cohort, law, Attendance.of(8), generator(seed), nobody)
        ).tolist()

    for seed in range(200):
        assert stands_in(np.ones(4), seed) == stands_in(noisy(np.ones(4), SMALL, seed), seed)
