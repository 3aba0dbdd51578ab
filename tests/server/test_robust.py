"""Robust aggregators against slow twins, and against clients that send anything."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedcohort
from fedcohort import Cohort
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.server import Krum, Median, Plain, TrimmedMean, aggregator
from fedcohort.server import _aggregators as _robust
from fedcohort.training import Quadratic

ROBUST = [Median(), TrimmedMean(share=0.2), Krum(f=2)]
TABLES = st.lists(
    st.tuples(st.integers(1, 9), st.integers(-50, 50), st.integers(-50, 50)), min_size=1, max_size=9
)


def direction(how: object, weights: list[float], rows: list[list[float]]) -> np.ndarray:
    cohort = Cohort.of(np.arange(len(rows)), weights)
    return how.direction(None, cohort, cohort.clients, np.array(rows, dtype=float))[0]


def slow_trimmed(weights: list[int], values: list[int], share: Fraction) -> Fraction:
    """One unit of weight at a time, laid end to end: the middle of it."""
    total, out, at = sum(weights), Fraction(0), Fraction(0)
    for value, weight in sorted(zip(values, weights, strict=True)):
        low, high = at, at + Fraction(weight, total)
        inside = max(Fraction(0), min(high, 1 - share) - max(low, share))
        out, at = out + inside * value, high
    return total * out / (1 - 2 * share)


@given(TABLES, st.sampled_from([0.0, 0.125, 0.25]))
def test_the_trimmed_mean_cuts_weight_off_both_ends(
    table: list[tuple[int, int, int]], share: float
) -> None:
    weights, *columns = map(list, zip(*table, strict=True))
    found = direction(TrimmedMean(share=share), weights, [list(row[1:]) for row in table])
    expected = [float(slow_trimmed(weights, column, Fraction(share))) for column in columns]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    if share == 0:
        plain = direction(Plain(), weights, [list(row[1:]) for row in table])
        np.testing.assert_allclose(found, plain, atol=1e-9)


@given(TABLES)
def test_the_median_is_that_of_every_unit_of_weight(table: list[tuple[int, int, int]]) -> None:
    weights, *columns = map(list, zip(*table, strict=True))
    found = direction(Median(), weights, [list(row[1:]) for row in table])
    expected = [sum(weights) * np.median(np.repeat(column, weights)) for column in columns]
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)


def slow_krum(rows: np.ndarray, f: int) -> list[int]:
    k, scores = len(rows), []
    for i in range(k):
        apart = sorted(float(np.sum((rows[i] - rows[j]) ** 2)) for j in range(k) if j != i)
        scores.append(sum(apart[: max(1, k - f - 2)]))
    return sorted(range(k), key=lambda i: scores[i])[: k - f]


@pytest.mark.parametrize("seed", range(5))
def test_krum_keeps_those_with_near_neighbours(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, weights = rng.normal(size=(9, 4)), rng.uniform(0.5, 2, 9)
    rows[:2] += 1e6
    kept = slow_krum(rows, 2)
    assert not {0, 1} & set(kept)
    expected = weights.sum() * (weights[kept] @ rows[kept]) / weights[kept].sum()
    np.testing.assert_allclose(direction(Krum(f=2), weights, rows.tolist()), expected)
    best = slow_krum(rows, 2)[0]
    first = direction(Krum(f=2, keep=1), weights, rows.tolist())
    np.testing.assert_allclose(first, weights.sum() * rows[best])


@pytest.mark.parametrize("how", ROBUST, ids=lambda how: how.name)
@pytest.mark.parametrize("lie", [1e9, -1e9, 1e200])
def test_two_of_ten_can_say_what_they_like(how: object, lie: float) -> None:
    rng = np.random.default_rng(0)
    honest = rng.normal(size=(8, 3))
    found = direction(how, [0.1] * 10, [*honest.tolist(), [lie] * 3, [lie] * 3])
    assert np.all(found >= honest.min(axis=0))
    assert np.all(found <= honest.max(axis=0))
    assert (
        np.abs(direction(Plain(), [0.1] * 10, [*honest.tolist(), [lie] * 3, [lie] * 3])).max() > 1e8
    )


def test_krum_counts_those_it_keeps_alike_where_none_has_weight() -> None:
    rows = [[1.0], [2.0], [3.0], [1e6]]
    assert direction(Krum(f=1), [0.0, 0.0, 0.0, 0.5], rows).tolist() == [0.5 * 2.0]


@pytest.mark.parametrize("how", ROBUST, ids=lambda how: how.name)
def test_answers_that_are_alike_give_the_step_of_the_plain_sum(how: object) -> None:
    rows, weights = [[1.5, -2.0]] * 5, [0.1, 0.2, 0.3, 0.1, 0.5]
    np.testing.assert_allclose(direction(how, weights, rows), direction(Plain(), weights, rows))


@pytest.mark.parametrize("how", ROBUST, ids=lambda how: how.name)
def test_blocks_are_a_whole_and_nobody_is_no_step(how: object, monkeypatch: object) -> None:
    rng = np.random.default_rng(1)
    rows, cohort = rng.normal(size=(7, 5)), Cohort.of(np.arange(7), rng.uniform(1, 2, 7))
    whole = how.direction(None, cohort, cohort.clients, rows)[0]
    account = how.begin(None, cohort)
    for part in (slice(0, 3), slice(3, 4), slice(4, 7)):
        account = how.add(account, cohort.clients[part], cohort.weights[part], rows[part])
    np.testing.assert_array_equal(how.finish(account, 5)[0], whole)
    monkeypatch.setattr(_robust, "NUMBERS_AT_ONCE", 8)  # a column at a time
    np.testing.assert_array_equal(how.finish(account, 5)[0], whole)
    assert how.finish(how.begin(None, Cohort.empty()), 5)[0].tolist() == [0.0] * 5
    one = how.add(how.begin(None, cohort), cohort.clients[:1], cohort.weights[:1], rows[:1])
    np.testing.assert_allclose(how.finish(one, 5)[0], cohort.weights[0] * rows[0])


def test_words_and_refusals() -> None:
    assert aggregator("trimmed-mean:share=0.1") == TrimmedMean(share=0.1)
    assert aggregator("krum:f=2") == Krum(f=2)
    with pytest.raises(BadParameter, match=r"below 0\.5.*Use 'median'"):
        TrimmedMean(share=0.5)
    task = Quadratic(np.eye(4), sizes=[5] * 4)
    with pytest.raises(BadInput, match="compares updates"):
        fedcohort.simulate(task, "fedsampling:K=5,mechanism=exact", rounds=1, aggregator="median")
    with pytest.raises(BadInput, match="'ifca' has several models; use 'plain'"):
        fedcohort.simulate(task, "md", rounds=1, aggregator="median", algorithm="ifca")
    trace = fedcohort.simulate(task, "uniform:m=3", rounds=3, aggregator="krum")
    assert np.isfinite(trace.model).all()
