from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.random import stream
from fedcohort.designs import Cube, Rows
from fedcohort.designs._balanced import components
from fedcohort.maths import _cube as flight
from fedcohort.maths._cube import WHOLE, fly, fly_nearby, land_by_dropping, scaled, undecided
from fedcohort.maths._draws import coins_each
from fedcohort.selection import Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments, moments
from fedcohort.theory._moments import estimated_variance
from helpers.examples import few

FEATURES = np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.3], [0.2, 0.9], [0.7, 0.7]])


def holds(design: Cube, m: int) -> None:
    """Exactly unbiased, of fixed size, and all that it says is so."""
    check_design(design)
    outcomes = list(design.enumerate())
    mean = enumerated_moments(outcomes, design.n).mean
    assert list(mean) == [design.target.fraction(i) for i in range(design.n)]
    assert {len(cohort) for _, cohort in outcomes} == {m}


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("program", [False, True])
def test_every_path_is_unbiased(m: int, program: bool) -> None:
    shares = Shares.of(np.array([5, 4, 3, 2, 1]))
    holds(Cube.balancing(shares, m, FEATURES, m - 1, program), m)


def test_neighbours_too() -> None:
    shares = Shares.of(np.array([3, 2, 2, 1]))
    holds(Cube.balancing(shares, 2, FEATURES[:4], 1, False, True), 2)


@few(10)
@given(st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any), st.data())
def test_any_sizes_and_features(sizes: list[int], data: st.DataObject) -> None:
    shares = Shares.of(np.array(sizes, dtype=np.int64))
    m = data.draw(st.integers(1, min(3, len(shares.support))))
    rows = st.lists(st.integers(-2, 2), min_size=len(sizes), max_size=len(sizes))
    features = np.array([data.draw(rows), data.draw(rows)], dtype=np.float64).T
    holds(Cube.balancing(shares, m, features, 2), m)


def test_equal_clients_in_two_groups_are_drawn_from_both() -> None:
    features = np.array([1.0, 1, -1, 1, -1, -1, 1, -1])[:, None]  # in no order
    design = Cube.balancing(Shares.of(np.ones(8, dtype=np.int64)), 4, features, 1)
    rng = stream(0, "x")
    sums = {float(features[design.draw(rng).clients].sum()) for _ in range(50)}
    assert sums == {0.0}


@pytest.mark.parametrize("scale", [1, 2**58, 2**70])
def test_totals_of_any_size_are_exact(scale: int) -> None:
    sizes = [5 * scale + 1, 4 * scale, 3 * scale, 2 * scale]
    shares = Shares.of(np.array(sizes, dtype=object if scale >= 2**60 else np.int64))
    design = Cube.balancing(shares, 2, FEATURES[:4], 1)
    mean = enumerated_moments(design.enumerate(), 4).mean
    assert list(mean) == [Fraction(size, sum(sizes)) for size in sizes]
    assert len(design.draw(stream(0, "x"))) == 2


def large(n: int = 300, m: int = 10, **more: Any) -> Cube:
    rng = stream(0, "federation")
    features = rng.dirichlet(np.full(10, 0.3), n)
    return Cube.balancing(Shares.of(rng.integers(1, 200, n)), m, features, m - 1, **more)


def test_the_flight_keeps_the_sums_and_the_means() -> None:
    design = large()
    masses, whole, columns = design._start
    assert WHOLE / 2 < whole <= WHOLE
    after = fly(stream(1, "x"), masses, whole, columns)
    assert int(undecided(after, whole).sum()) <= columns.shape[1]
    assert sum(after.tolist()) == sum(masses.tolist())  # exactly
    np.testing.assert_allclose((after / whole) @ columns, (masses / whole) @ columns, atol=1e-3)
    landed = land_by_dropping(stream(2, "x"), after, whole, columns)
    assert not undecided(landed, whole).any()
    parts, big = scaled(np.array([1, 2]), 2**63)
    assert parts.dtype == object
    assert big == 2**63


def test_the_flight_nearby_keeps_the_sums_and_ends_with_as_many_as_columns() -> None:
    masses, whole, columns = large(60, 10, nearby=True)._start
    points, rng = stream(0, "points").random((60, 2)), stream(1, "x")
    after = fly_nearby(rng, masses, whole, columns, points)
    left = np.flatnonzero(undecided(after, whole))
    assert 0 < len(left) <= columns.shape[1]
    assert sum(after.tolist()) == sum(masses.tolist())  # exactly
    np.testing.assert_allclose((after / whole) @ columns, (masses / whole) @ columns, atol=1e-3)
    few, some = np.full(3, whole // 3), columns[:3, :3]  # as many as columns: nobody moves
    for flown in (fly_nearby(rng, few, whole, some, points[:3]), fly(rng, few, whole, some)):
        assert flown.tolist() == few.tolist()


def test_clients_are_drawn_as_often_as_they_should_be() -> None:
    from scipy.stats import binom

    design = large(40, 6)
    rng, rounds, counts = stream(1, "draws"), 400, np.zeros(40, dtype=np.int64)
    for _ in range(rounds):
        counts[design.draw(rng).clients] += 1
    level, chance = 1e-6 / 80, design.inclusion()
    assert np.all(binom.cdf(counts, rounds, chance) > level)
    assert np.all(binom.sf(counts - 1, rounds, chance) > level)


def test_features_hardly_vary_and_the_estimate_says_so() -> None:
    design = large(100)
    assert moments(design).second_moments == "approximate (Deville and Tillé 2005)"
    np.testing.assert_allclose(np.diag(design.covariance()), design.variance(), rtol=1e-6)
    features = design.columns
    found = estimated_variance(design, features, 40, stream(3, "x"))
    md = Rows.alike(design.target, 10).aggregate_variance(features)
    assert found.high < 0.5 * md
    # What has nothing to do with the features varies as the approximation says.
    noise = stream(4, "x").standard_normal((100, 200))
    found = estimated_variance(design, noise, 40, stream(5, "x"))
    assert design.aggregate_variance(noise) == pytest.approx(found.variance, rel=0.25)


def test_components_are_the_widest_directions() -> None:
    rng = stream(0, "x")
    rows = rng.standard_normal((50, 3)) * [5.0, 1.0, 0.1]
    found = components(rows, np.ones(50), 2)
    assert found.shape == (50, 2)
    assert abs(np.corrcoef(found[:, 0], rows[:, 0])[0, 1]) > 0.99
    assert components(np.ones((5, 2)), np.ones(5), 2).shape == (5, 0)


def _snapped(rng: Any, now: Any, whole: int, moved: Any) -> None:
    """Who is near an end is put there, without asking chance."""
    now[now < 2**21] = 0
    now[now > whole - 2**21] = whole


def _fair(rng: Any, parts: Any, wholes: Any) -> Any:
    """Up as often as down, however far it goes."""
    return coins_each(rng, np.ones_like(parts), np.full_like(wholes, 2))


@pytest.mark.parametrize(("what", "broken"), [("settle", _snapped), ("coins_each", _fair)])
def test_a_planted_defect_is_caught(
    what: str, broken: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flight, what, broken)
    design = Cube.balancing(Shares.of(np.array([5, 4, 3, 2, 1])), 2, FEATURES, 1)
    mean = enumerated_moments(design.enumerate(), design.n).mean
    assert list(mean) != [design.target.fraction(i) for i in range(design.n)]


def test_a_flight_that_balances_nothing_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted defect: chances are exact, but the features are forgotten."""
    alone = lambda design: np.ones((len(design.open), 1))  # noqa: E731
    monkeypatch.setattr(Cube, "balanced_columns", alone)
    with pytest.raises(AssertionError):
        test_features_hardly_vary_and_the_estimate_says_so()
    with pytest.raises(AssertionError):
        test_equal_clients_in_two_groups_are_drawn_from_both()
