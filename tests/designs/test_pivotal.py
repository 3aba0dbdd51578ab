from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.random import stream
from fedcohort.designs import LocalPivotal, Pivotal, Rows, Systematic
from fedcohort.designs import _balanced as pivotal
from fedcohort.designs._balanced import duel
from fedcohort.maths import every_path
from fedcohort.maths._draws import Tickets
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments
from helpers.examples import few

SIZES = st.lists(st.integers(0, 9), min_size=1, max_size=7).filter(any)


def line(*sizes: int, m: int) -> Pivotal:
    return Pivotal.proportional(Shares.of(np.array(sizes)), m, np.arange(len(sizes)))


@given(SIZES, st.data())
def test_all_that_a_line_says_is_so(sizes: list[int], data: st.DataObject) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, len(shares.support)))
    order = np.array(data.draw(st.permutations(range(len(sizes)))))
    holds(Pivotal.proportional(shares, m, order), m)


@few(25)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any), st.data())
def test_all_that_neighbours_say_is_so(sizes: list[int], data: st.DataObject) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, len(shares.support)))
    places = data.draw(st.lists(st.integers(0, 4), min_size=len(sizes), max_size=len(sizes)))
    design = LocalPivotal.proportional(shares, m, np.array(places, dtype=np.float64)[:, None])
    assert design.second_moments == "exact, by enumeration"
    holds(design, m)


def holds(design: Any, m: int) -> None:
    """Exactly unbiased, of fixed size, and of no more variance than MD sampling."""
    check_design(design)
    outcomes = list(design.enumerate())
    found = enumerated_moments(outcomes, design.n)
    assert list(found.mean) == [design.target.fraction(i) for i in range(design.n)]
    assert {len(cohort) for _, cohort in outcomes} == {m}
    assert {sum(cohort.weights) for _, cohort in outcomes} == {1}
    gap = Rows.alike(design.target, m).covariance() - design.covariance()
    assert np.linalg.eigvalsh(gap).min() > -1e-12  # for every weighted sum of the clients


@given(st.data())
def test_a_duel_keeps_means_and_sum_and_decides(data: st.DataObject) -> None:
    whole = data.draw(st.integers(2, 2**70))
    one, other = (data.draw(st.integers(1, whole - 1)) for _ in range(2))
    paths = list(every_path(lambda rng: duel(Tickets(rng), one, other, whole)))
    for place, mass in enumerate((one, other)):
        assert sum(chance * after[place] for chance, after in paths) == mass
    assert all(sum(after) == one + other for _, after in paths)
    assert all({0, whole} & set(after) for _, after in paths)


def test_where_systematic_sampling_fails_pivotal_does_not() -> None:
    values = np.array([1.0, -1.0, 1.0, -1.0])
    shares = Shares.of(np.ones(4, dtype=np.int64))
    assert Systematic.proportional(shares, 2, np.arange(4)).aggregate_variance(values) == 1.0
    assert line(1, 1, 1, 1, m=2).aggregate_variance(values) == pytest.approx(0.5)  # as MD
    apart = LocalPivotal.proportional(shares, 2, values[:, None])
    assert apart.aggregate_variance(values) == pytest.approx(0.0)  # one of each, always


def test_a_worked_example() -> None:
    # Chances 1/2, 1/2, 1/2, 1/2: one of the first two, one of the last two.
    outcomes = {
        tuple(c.clients.tolist()): chance for chance, c in line(1, 1, 1, 1, m=2).enumerate()
    }
    assert outcomes == dict.fromkeys([(0, 2), (0, 3), (1, 2), (1, 3)], Fraction(1, 4))
    # Chances 2/3 each: 0 and 1 meet, one is in and the other goes on with 1/3 against client 2.
    thirds = {tuple(c.clients.tolist()): chance for chance, c in line(1, 1, 1, m=2).enumerate()}
    assert thirds == dict.fromkeys([(0, 1), (0, 2), (1, 2)], Fraction(1, 3))


@pytest.mark.parametrize("scale", [2**40, 2**58, 2**70])
def test_totals_of_any_size_are_exact(scale: int) -> None:
    sizes = [5 * scale + 1, 4 * scale, 3 * scale, 2 * scale, scale]
    shares = Shares.of(np.array(sizes, dtype=object if scale >= 2**60 else np.int64))
    for design in (
        Pivotal.proportional(shares, 3, np.arange(5)),
        LocalPivotal.proportional(shares, 3, np.arange(5.0)[:, None]),
    ):
        mean = enumerated_moments(design.enumerate(), 5).mean
        assert list(mean) == [Fraction(size, sum(sizes)) for size in sizes]
        assert len(design.draw(stream(0, "x"))) == 3


def as_often_as_they_should_be(kind: str) -> bool:
    """Whether every client of forty is drawn as often as exact tails allow, at level 1e-6."""
    from scipy.stats import binom

    sizes = 1 + stream(0, "sizes").integers(0, 30, 40)
    shares, rng = Shares.of(sizes), stream(1, "draws")
    where = np.arange(40) if kind == "line" else rng.random((40, 2))
    design = (Pivotal if kind == "line" else LocalPivotal).proportional(shares, 12, where)
    rounds, counts = 3_000, np.zeros(40, dtype=np.int64)
    for _ in range(rounds):
        counts[design.draw(rng).clients] += 1
    chance = design.inclusion()
    level = 1e-6 / 80
    low, high = binom.cdf(counts, rounds, chance), binom.sf(counts - 1, rounds, chance)
    return bool(np.all(low > level) and np.all(high > level))


@pytest.mark.parametrize("kind", ["line", "neighbours"])
def test_clients_are_drawn_as_often_as_they_should_be(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert as_often_as_they_should_be(kind)

    def fair(tickets: Tickets, one: int, other: int, whole: int) -> tuple[int, int]:
        both = one + other  # the planted defect: both win as often, whatever their masses
        most = min(both, whole)
        return (most, both - most) if tickets.heads(1, 2) else (both - most, most)

    monkeypatch.setattr(pivotal, "duel", fair)
    assert not as_often_as_they_should_be(kind)


def test_the_nearest_of_those_left_is_met() -> None:
    points = np.array([[0.0, 0.0], [3.0, -1.0], [-1.0, -3.0], [4.0, 1.0], [3.0, -2.0]])
    design = LocalPivotal.proportional(Shares.of(np.ones(5, dtype=np.int64)), 2, points)
    for left, nearest in (([0, 1, 2, 3, 4], 4), ([0, 1, 2, 3], 3), ([2, 1, 0], 0), ([1, 2], 2)):
        assert design._nearest(1, left) == nearest


def test_neighbours_that_never_meet_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: unbiased, but whoever is farthest is met, and nothing is spread."""

    def farthest(design: LocalPivotal, one: int, left: list[int]) -> int:
        others = np.array([i for i in left if i != one])
        apart = ((design._inside[others] - design._inside[one]) ** 2).sum(axis=1)
        return int(others[np.argmax(apart)])

    none = property(lambda design: np.empty((len(design.open), 0), dtype=np.int64))
    monkeypatch.setattr(LocalPivotal, "_near", none)
    monkeypatch.setattr(LocalPivotal, "_nearest", farthest)
    with pytest.raises(AssertionError):
        test_many_clients_are_spread()


def test_many_clients_are_spread() -> None:
    """The approximate covariance says so, and is above what is found."""
    rng = stream(0, "points")
    points = rng.random((400, 2))
    design = LocalPivotal.proportional(Shares.of(np.ones(400, dtype=np.int64)), 40, points)
    assert design.second_moments == "approximate (Deville and Tillé 2005)"
    np.testing.assert_allclose(np.diag(design.covariance()), design.variance(), rtol=1e-9)
    assert design.weight_sum_variance() == pytest.approx(0.0, abs=1e-15)
    values = np.sin(3 * points[:, 0]) + points[:, 1]
    found = [float(values[design.draw(rng).clients].mean()) for _ in range(300)]
    md = Rows.alike(design.target, 40).aggregate_variance(values)
    assert np.var(found) < 0.3 * md
    assert np.var(found) < design.aggregate_variance(values) < md
