"""Conditional Poisson and Sampford sampling against their definitions, in fractions."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.random import stream
from fedcohort.designs import ConditionalPoisson, Sampford
from fedcohort.designs import _sequential as list_sequential
from fedcohort.designs._sequential import ListSequential, Ways
from fedcohort.maths._inclusion import inclusion_of, weights_for
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments

KINDS = [ConditionalPoisson, Sampford]
SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any)


def of(kind: type[ListSequential], *sizes: int, m: int) -> ListSequential:
    return kind.proportional(Shares.of(np.array(sizes)), m)


def law(design: ListSequential) -> dict[tuple[int, ...], Fraction]:
    return {tuple(cohort.clients.tolist()): chance for chance, cohort in design.enumerate()}


@pytest.mark.parametrize("kind", KINDS)
@given(sizes=SIZES, data=st.data())
def test_all_that_it_says_is_so(kind: Any, sizes: list[int], data: st.DataObject) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, len(shares.support)))
    design = kind.proportional(shares, m)
    check_design(design)  # the covariance, too, against every path through the draw
    outcomes = list(design.enumerate())
    mean = enumerated_moments(outcomes, design.n).mean
    assert list(mean) == [shares.fraction(i) for i in range(design.n)]  # to the last digit
    assert {len(cohort) for _, cohort in outcomes} == {m}
    for _, cohort in outcomes:
        assert float(sum(cohort.weights)) == pytest.approx(1.0, abs=1e-9)


def test_sampford_is_sampford() -> None:
    """P(S) ~ prod pi / (1 - pi) times sum (1 - pi); the chances are exactly m p."""
    sizes, m = [5, 4, 3, 2, 1], 2
    pi = [Fraction(m * size, 15) for size in sizes]
    wanted = {
        s: prod(pi[i] / (1 - pi[i]) for i in s) * sum(1 - pi[i] for i in s)
        for s in combinations(range(5), m)
    }
    total = sum(wanted.values())
    design = of(Sampford, *sizes, m=m)
    assert law(design) == {s: chance / total for s, chance in wanted.items()}
    assert [Fraction(int(part), design.whole) for part in design.parts] == pi


def test_conditional_poisson_is_poisson_given_the_number() -> None:
    sizes, m = [5, 4, 3, 2, 1], 3
    design = of(ConditionalPoisson, *sizes, m=m)
    inside = design.open.tolist()  # the first is sure
    takes = dict(zip(inside, design.ways.takes, strict=True))
    wanted = {(0, *s): prod(takes[i] for i in s) for s in combinations(inside, m - 1)}
    total = sum(wanted.values())
    assert law(design) == {s: Fraction(ways, total) for s, ways in wanted.items()}
    # No law with these chances has more entropy: move along what keeps them, and it falls.
    chances = np.array([float(chance) for chance in law(design).values()])
    member = np.array([[i in s for s in law(design)] for i in inside], dtype=float)
    _, _, keeps = np.linalg.svd(np.vstack([member, np.ones(len(chances))]))
    for direction in keeps[np.linalg.matrix_rank(member) :]:
        for step in (1e-3, -1e-3):
            moved = chances + step * direction
            if (moved > 0).all() and np.allclose(member @ moved, member @ chances):
                assert -(moved @ np.log(moved)) < -(chances @ np.log(chances))


def test_weights_are_found_also_for_large_and_small_chances() -> None:
    rng = stream(0, "x")
    for n, k in ((3, 1), (50, 7), (200, 150)):
        raw = rng.random(n) + 0.01
        chances = np.clip(raw * k / raw.sum(), 1e-4, 0.97)
        chances[0] += k - chances.sum()
        if not 0 < chances[0] < 1:
            continue
        np.testing.assert_allclose(inclusion_of(weights_for(chances, k), k), chances, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale", [2**40, 2**62, 2**70])
def test_totals_of_any_size_are_exact(kind: Any, scale: int) -> None:
    sizes = [5 * scale + 1, 4 * scale, 3 * scale, 2 * scale, scale]
    shares = Shares.of(np.array(sizes, dtype=object if scale >= 2**60 else np.int64))
    design = kind.proportional(shares, 3)
    mean = enumerated_moments(design.enumerate(), 5).mean
    assert list(mean) == [Fraction(size, sum(sizes)) for size in sizes]
    assert len(design.draw(stream(0, "x"))) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_clients_are_drawn_as_often_as_they_should_be(kind: Any) -> None:
    from scipy.stats import binom

    design = of(kind, *(1 + stream(0, "sizes").integers(0, 30, 40)), m=12)
    rng, rounds, counts = stream(1, "draws"), 2_000, np.zeros(40, dtype=np.int64)
    for _ in range(rounds):
        counts[design.draw(rng).clients] += 1
    level, chance = 1e-6 / 80, design.inclusion()
    np.testing.assert_allclose(chance, np.minimum(1, 12 * design.target.floats), atol=1e-11)
    assert np.all(binom.cdf(counts, rounds, chance) > level)
    assert np.all(binom.sf(counts - 1, rounds, chance) > level)


@pytest.mark.parametrize("kind", KINDS)
def test_many_clients_know_their_covariance(kind: Any) -> None:
    design = of(kind, *(1 + stream(0, "sizes").integers(0, 300, 200)), m=20)
    covariance = design.covariance()
    np.testing.assert_allclose(np.diag(covariance), design.variance(), rtol=1e-9)
    assert design.weight_sum_variance() == pytest.approx(0.0, abs=1e-12)
    assert (covariance - np.diag(np.diag(covariance))).max() < 1e-18  # negatively correlated
    assert design.second_moments == "exact"


def test_sampford_of_many_unequal_clients_is_rounded_and_unbiased() -> None:
    sizes = 1 + stream(0, "sizes").integers(0, 2**30, 300)
    design = of(Sampford, *sizes, m=10)
    np.testing.assert_allclose(design.inclusion(), 10 * design.target.floats, rtol=1e-8)
    np.testing.assert_allclose(design.mean(), design.target.floats, rtol=1e-14)
    assert sum(int(part) for part in design.parts) == 10 * design.whole


def test_a_table_that_would_not_fit_is_refused() -> None:
    with pytest.raises(TooLarge, match=r"would need a table of .* use pivotal"):
        _ = Ways(400, (1,) * 10_000).whole


@pytest.mark.parametrize(("marks", "cells"), [(None, 5 * 3), ((1,) * 5, 5 * 2 * 3)])
def test_a_table_that_just_fits_is_made(
    monkeypatch: pytest.MonkeyPatch, marks: Any, cells: int
) -> None:
    monkeypatch.setattr(list_sequential, "CELLS", cells)
    assert Ways(2, (1,) * 5, marks).whole == (10 if marks is None else 20)
    monkeypatch.setattr(list_sequential, "CELLS", cells - 1)
    with pytest.raises(TooLarge, match=f"a table of {cells} numbers"):
        _ = Ways(2, (1,) * 5, marks).whole


@pytest.mark.parametrize("kind", KINDS)
def test_a_cohort_with_a_client_and_one_without_differ_in_one_other(kind: Any) -> None:
    """The coupling that `participation` relies on exists: found by linear programming."""
    from scipy.optimize import linprog

    design = of(kind, 7, 5, 4, 3, 2, 1, m=3)
    for client in range(6):
        split: tuple[dict[Any, float], ...] = ({}, {})
        for cohort, chance in law(design).items():
            with_it = client in cohort
            split[with_it][frozenset(cohort) - {client}] = float(chance)
        without, inside = ({s: c / sum(side.values()) for s, c in side.items()} for side in split)
        if not without or not inside:
            continue
        pairs = [(a, b) for a in inside for b in without if a < b]
        rows = [[pair[0] == a for pair in pairs] for a in inside]
        rows += [[pair[1] == b for pair in pairs] for b in without]
        right = [*inside.values(), *without.values()]
        found = linprog(np.zeros(len(pairs)), A_eq=np.array(rows, float), b_eq=right)
        assert found.success
    told = design.participation()
    assert told.displaced.max() == pytest.approx(design.value.max())


@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_defect_is_caught(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tossed with half the chance: the code that draws no longer has the declared moments."""
    from fedcohort.maths._draws import Tickets

    whole = Tickets.heads
    monkeypatch.setattr(Tickets, "heads", lambda self, part, of: whole(self, part, 2 * of))
    with pytest.raises(AssertionError):
        check_design(of(kind, 5, 4, 3, 2, 1, m=2))
