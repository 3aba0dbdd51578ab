from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.random import stream
from fedcohort.designs import Rows
from fedcohort.selection import Shares
from fedcohort.selection._design import MATRIX_LIMIT
from fedcohort.testing._claims import check_design
from helpers.examples import few

SIZES = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any)
DRAWS = st.integers(1, 7)


def shares_of(sizes: list[int]) -> Shares:
    return Shares.of(np.array(sizes, dtype=np.int64))


def by_decreasing(shares: Shares) -> np.ndarray:
    return np.argsort(-shares.parts, kind="stable")


def one_after_the_other(order: list[int], sizes: list[int], m: int) -> list[list[int]]:
    """Algorithm 1 as a plain loop (with the corrections to the printed one): the slow twin."""
    whole = sum(sizes)
    rows = [[0] * len(sizes) for _ in range(m)]
    k = filled = 0
    for i in order:
        left = m * sizes[i]
        while left > 0:
            taken = min(left, whole - filled)
            rows[k][i] += taken
            left, filled = left - taken, filled + taken
            if filled == whole:
                k, filled = k + 1, 0
    return rows


def dense(rows: Rows) -> list[list[int]]:
    out = [[0] * rows.n for _ in range(rows.rows)]
    for k, i, mass in zip(*(column.tolist() for column in rows.entries), strict=True):
        out[k][i] += mass
    return out


@given(SIZES, DRAWS)
def test_the_line_cut_into_rows_is_algorithm_1(sizes: list[int], m: int) -> None:
    shares = shares_of(sizes)
    order = by_decreasing(shares)
    rows = Rows.along(order, shares, m)
    found = dense(rows)
    assert found == one_after_the_other(order.tolist(), sizes, m)
    assert [sum(row) for row in found] == [shares.whole] * m  # every row is a distribution
    assert [sum(column) for column in zip(*found, strict=True)] == [m * s for s in sizes]
    assert len(rows.entries.mass) <= len(sizes) + m - 1


@given(SIZES, DRAWS)
def test_a_client_is_in_at_most_floor_m_p_plus_2_rows(sizes: list[int], m: int) -> None:
    shares = shares_of(sizes)
    found = dense(Rows.along(by_decreasing(shares), shares, m))
    for i, size in enumerate(sizes):
        assert sum(row[i] > 0 for row in found) <= m * size // shares.whole + 2


@given(SIZES, DRAWS, st.integers(0, 2**32))
def test_any_clustered_sampling_varies_no_more_than_md_and_chooses_as_often(
    sizes: list[int], m: int, seed: int
) -> None:
    # Proposition 1 and nothing else: every client in one to three pieces, in any order.
    rng, shares = np.random.default_rng(seed), shares_of(sizes)
    pieces = [
        (i, mass)
        for i, size in enumerate(sizes)
        for mass in np.diff([0, *np.sort(rng.integers(0, m * size + 1, 2)), m * size])
    ]
    clients, masses = np.array(pieces)[rng.permutation(len(pieces))].T
    rows, md = Rows.segments(clients, masses, shares.whole, len(sizes)), Rows.alike(shares, m)
    np.testing.assert_allclose(rows.mean(), shares.floats, atol=1e-12)
    assert np.all(rows.variance() <= md.variance() + 1e-12)
    assert np.all(rows.inclusion() >= md.inclusion() - 1e-12)


def test_one_client_varies_as_under_md_though_the_rows_differ() -> None:
    # (17) and (23) name equal rows as the only case of equality; per client, r_ki = p_i is enough.
    rows = Rows.segments(np.array([0, 1, 0, 2]), np.array([2, 2, 2, 2]), 4, 3)
    md = Rows.alike(Shares.of(np.array([2, 1, 1])), 2)
    assert rows.variance()[0] == md.variance()[0]
    assert rows.inclusion()[0] == md.inclusion()[0]
    assert np.all(rows.variance()[1:] < md.variance()[1:])


@given(SIZES, DRAWS)
def test_dedicated_rows_come_first_and_lose_nothing(sizes: list[int], m: int) -> None:
    shares = shares_of(sizes)
    found = dense(Rows.along(by_decreasing(shares), shares, m, dedicate=True))
    assert [sum(row) for row in found] == [shares.whole] * m
    assert [sum(column) for column in zip(*found, strict=True)] == [m * s for s in sizes]
    for i, size in enumerate(sizes):
        assert sum(row[i] == shares.whole for row in found) >= m * size // shares.whole


@few(40)
@given(st.lists(st.integers(0, 9), min_size=1, max_size=5).filter(any), st.integers(1, 3))
def test_all_that_a_design_says_is_so(sizes: list[int], m: int) -> None:
    shares = shares_of(sizes)
    check_design(Rows.alike(shares, m))
    check_design(Rows.along(by_decreasing(shares), shares, m))
    check_design(Rows.along(by_decreasing(shares), shares, m, dedicate=True))
    chances = Shares.of(np.where(shares.parts > 0, 1 + np.arange(len(sizes)), 0))
    check_design(Rows.hansen_hurwitz(chances, shares, m))


def test_segments_given_row_by_row() -> None:
    # Two rows of width 6; client 0 has two segments in the first row and one in the second.
    clients, masses = np.array([0, 1, 0, 2, 0]), np.array([1, 3, 2, 5, 1])
    rows = Rows.segments(clients, masses, 6, 4)
    assert rows.rows == rows.draws == 2
    assert dense(rows) == [[3, 3, 0, 0], [1, 0, 5, 0]]
    check_design(rows)


def test_a_client_that_fills_its_row_piece_by_piece_is_never_missed() -> None:
    # 1/3 + 1/3 + 1/3 may exceed 1 in floats; its logarithm must not be NaN.
    for pieces in range(1, 50):
        rows = Rows.segments(np.zeros(pieces, np.int64), np.ones(pieces, np.int64), pieces, 2)
        np.testing.assert_allclose(rows.inclusion(), [1.0, 0.0], atol=1e-12)


def test_two_clients_that_meet_in_several_rows() -> None:
    # The variance of the number of distinct clients must multiply the rows in which they meet.
    clients = np.array([0, 1, 0, 1, 2, 0, 1, 2])
    masses = np.array([2, 4, 3, 3, 0, 1, 2, 3])
    check_design(Rows.segments(clients, masses, 6, 3))


@pytest.mark.parametrize("m", [1, 4])
@pytest.mark.parametrize("sizes", [[2**62] * 4, [2**62, 2**62 - 1, 3], [2**90, 1, 2**89]])
def test_sizes_beyond_64_bits_are_exact(sizes: list[int], m: int) -> None:
    parts = np.array(sizes, dtype=object if max(sizes) >= 2**63 else np.int64)
    shares = Shares.of(parts)
    assert shares.whole == sum(sizes)
    for rows in (
        Rows.alike(shares, m),
        Rows.along(by_decreasing(shares), shares, m),
        Rows.along(by_decreasing(shares), shares, m, dedicate=True),
    ):
        mass = [0] * len(sizes)
        for _, i, part in zip(*(column.tolist() for column in rows.entries), strict=True):
            mass[i] += part
        times = m if rows.rows == m else 1
        assert mass == [times * size for size in sizes]  # a float would lose the last units
        cohort = rows.draw(stream(0, "big"))
        assert cohort.draws.sum() == m
        check_design(rows)


def test_the_last_sample_of_2_to_the_62_counts() -> None:
    # 2**62 and 2**62 + 1 are the same float; the exact chances differ.
    shares = Shares.of(np.array([2**62, 2**62 + 1]))
    one, other = (shares.fraction(i) for i in range(2))
    assert other - one == Fraction(1, 2**63 + 1)
    outcomes = list(Rows.alike(shares, 1).enumerate())
    assert {chance for chance, _ in outcomes} == {one, other}


def test_a_clustered_design_is_bounded_by_the_covariance_of_md() -> None:
    shares = Shares.of(np.array([5, 4, 3, 2, 1, 6]))
    clustered = Rows.along(np.arange(6), shares, 3)
    md = Rows.alike(shares, 3)
    bound, exact = clustered.covariance_bound(), md.covariance_bound()
    assert bound is not None
    assert exact is not None
    assert bound.alpha == exact.alpha == 1 / 3
    assert ("MD sampling" in bound.how, "exact" in exact.how) == (True, True)
    np.testing.assert_allclose(bound.gamma, exact.gamma)
    p = shares.floats
    most = np.diag(bound.gamma) - bound.alpha * np.outer(p, p)
    np.testing.assert_allclose(md.covariance(), most)
    assert np.linalg.eigvalsh(most - clustered.covariance()).min() > -1e-12


def test_large_matrices_and_pairs_are_refused() -> None:
    n = MATRIX_LIMIT + 1
    rows = Rows.alike(Shares.of(np.arange(1, n + 1)), 3)
    with pytest.raises(TooLarge, match="covariance_times"):
        rows.covariance()
    assert rows.covariance_times(np.ones(n)).sum() == pytest.approx(0.0, abs=1e-12)
    with pytest.raises(TooLarge, match="inclusion"):
        rows.distinct()
    halves = Rows.along(np.arange(n), Shares.of(np.ones(n, dtype=np.int64)), 2)
    with pytest.raises(TooLarge, match="inclusion"):
        halves.distinct()
    with pytest.raises(TooLarge, match="lower m"):
        Rows.alike(Shares.of(np.ones(3, dtype=np.int64)), 10**12)


def test_too_many_outcomes_are_refused_before_they_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("fedcohort.designs._rows.OUTCOME_LIMIT", 1_000)
    with pytest.raises(TooLarge, match="outcomes"):
        Rows.alike(Shares.of(np.arange(1, 200)), 50).enumerate()


def test_equal_clients_share_the_pairs() -> None:
    # 20,000 clients of few sizes: the variance of the number of distinct clients is quick.
    rows = Rows.alike(Shares.of(1 + np.arange(20_000) % 3), 50)
    mean, variance = rows.distinct()
    assert mean == pytest.approx(rows.inclusion().sum())
    assert 0 < variance < 1


UNEVEN = [[10**18, 1], [1, 10**18, 3, 10**9], [2**62, 2**62, 1], [5 * 10**15, 1, 1], [1, 2**70, 7]]


@pytest.mark.parametrize("sizes", UNEVEN)
@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("dedicate", [None, False, True])
def test_tiny_clients_are_not_lost_beside_huge_ones(sizes: list[int], m: int, dedicate) -> None:
    """Inclusion and variance to 1e-12 of each, against Fractions."""
    large = max(sizes) >= 2**63
    shares = Shares.of(np.array(sizes, dtype=object if large else np.int64))
    order = np.argsort([-size for size in sizes], kind="stable")
    rows = Rows.alike(shares, m) if dedicate is None else Rows.along(order, shares, m, dedicate)
    masses, whole = dense(rows), sum(sizes)
    for i in range(len(sizes)):
        chances = [Fraction(row[i], whole) for row in masses for _ in range(rows.repeats)]
        missed = Fraction(1)
        for chance in chances:
            missed *= 1 - chance
        spread = sum((chance * (1 - chance) for chance in chances), Fraction(0)) / m**2
        assert rows.inclusion()[i] == pytest.approx(float(1 - missed), rel=1e-12, abs=0)
        assert rows.variance()[i] == pytest.approx(float(spread), rel=1e-12, abs=0)


def test_a_client_of_one_sample_beside_1e18_is_drawn_now_and_then() -> None:
    rows = Rows.alike(shares_of([10**18, 1]), 2)
    assert rows.inclusion()[1] == pytest.approx(2e-18, rel=1e-12)
    assert rows.variance() == pytest.approx([5e-19, 5e-19], rel=1e-12)
    assert rows.distinct().variance == pytest.approx(2e-18, rel=1e-12)
