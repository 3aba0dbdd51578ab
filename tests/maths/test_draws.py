"""The draws themselves: exact along every path, and fair in the real generator.

Statistical tests use a fixed stream and exact tails at level 1e-6; next to each stands a planted
defect that the same test rejects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, permutations
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, chisquare

from fedcohort._internal.random import stream
from fedcohort.maths import below, distinct, every_path, permutation, pick
from fedcohort.maths._draws import coins

LEVEL = 1e-6
DRAWS = 40_000


def law(function: Callable[[Any], Any]) -> dict[Any, Fraction]:
    found: dict[Any, Fraction] = {}
    for chance, outcome in every_path(function):
        found[outcome] = found.get(outcome, Fraction(0)) + chance
    return found


def p_value(seen: Counter[Any], expected: dict[Any, Fraction]) -> float:
    """Of the chi-square test; an outcome that cannot be gives 0, one that must be gives 1."""
    if not seen.keys() <= expected.keys():
        return 0.0
    if len(expected) == 1:
        return 1.0
    total = sum(seen.values())
    counts = [seen[outcome] for outcome in expected]
    return float(chisquare(counts, [float(p) * total for p in expected.values()]).pvalue)


def rng() -> np.random.Generator:
    return stream(20_240_501, "test of draws")


# below


@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 31, 64, 65])
def test_below_is_fair(bound: int) -> None:
    seen = Counter(below(rng(), bound, DRAWS).tolist())
    assert p_value(seen, {i: Fraction(1, bound) for i in range(bound)}) > LEVEL


def test_the_remainder_of_a_small_word_is_not_fair() -> None:
    words = rng().bit_generator.random_raw(DRAWS) >> np.uint64(60)  # 4 bits
    seen = Counter((words % np.uint64(6)).tolist())
    assert p_value(seen, {i: Fraction(1, 6) for i in range(6)}) < LEVEL


@pytest.mark.parametrize("bound", [2**62 + 1, 2**63 - 1, 2**63, 2**63 + 1, 2**64, 2**64 + 7, 3**60])
def test_below_of_large_bounds(bound: int) -> None:
    drawn = [int(value) for value in below(rng(), bound, 4_000)]
    assert min(drawn) >= 0
    assert max(drawn) < bound
    third = sum(3 * value < bound for value in drawn)
    assert binomtest(third, len(drawn), -(-bound // 3) / bound).pvalue > LEVEL
    odd = sum(value & 1 for value in drawn)
    assert binomtest(odd, len(drawn), (bound // 2) / bound).pvalue > LEVEL


def test_nothing_is_below_zero() -> None:
    with pytest.raises(ValueError, match="nothing is below 0"):
        below(rng(), 0, 1)


# distinct


@pytest.mark.parametrize(("n", "m"), [(1, 1), (5, 0), (5, 2), (5, 3), (6, 3), (7, 6), (4, 4)])
def test_distinct_is_uniform_over_all_sets(n: int, m: int) -> None:
    wanted = {s: Fraction(1, comb(n, m)) for s in combinations(range(n), m)}
    assert law(lambda r: tuple(distinct(r, n, m).tolist())) == wanted
    generator = rng()
    seen = Counter(tuple(distinct(generator, n, m).tolist()) for _ in range(4_000))
    assert p_value(seen, wanted) > LEVEL


def test_the_smallest_of_too_many_is_not_uniform() -> None:
    generator = rng()

    def cut_too_early(n: int, m: int) -> tuple[int, ...]:
        drawn = np.unique(below(generator, n, 2 * m))  # sorted, so the large ones are lost
        return tuple(drawn[:m].tolist()) if drawn.size >= m else cut_too_early(n, m)

    seen = Counter(cut_too_early(5, 2) for _ in range(4_000))
    assert p_value(seen, {s: Fraction(1, 10) for s in combinations(range(5), 2)}) < LEVEL


def test_distinct_costs_m_whatever_n() -> None:
    chosen = distinct(rng(), 10**15, 1_000)
    assert chosen.size == np.unique(chosen).size == 1_000
    assert np.all(np.diff(chosen) > 0)


def test_too_many_distinct_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot choose 4 distinct of 3"):
        distinct(rng(), 3, 4)


# coins


PARTS = [0, 1, 3, 7, 500, 999, 1000]


def test_coins_are_exact() -> None:
    parts = np.array([1, 2, 3])
    found = law(lambda r: tuple(coins(r, parts, 3).tolist()))
    assert sum(found.values()) == 1
    for i, part in enumerate([1, 2, 3]):
        assert sum(p for shown, p in found.items() if shown[i]) == Fraction(part, 3)


def test_coins_are_fair() -> None:
    generator = rng()
    shown = np.sum([coins(generator, np.array(PARTS), 1000) for _ in range(DRAWS)], axis=0)
    for part, number in zip(PARTS, shown, strict=True):
        assert binomtest(int(number), DRAWS, part / 1000).pvalue > LEVEL
    assert shown[0] == 0
    assert shown[-1] == DRAWS


def test_coins_one_too_likely_are_noticed() -> None:
    generator = rng()
    shown = sum(int(coins(generator, np.array([3 + 1]), 20)[0]) for _ in range(DRAWS))
    assert binomtest(shown, DRAWS, 3 / 20).pvalue < LEVEL


def test_coins_with_a_huge_denominator() -> None:
    whole = 3 * 2**70
    parts = np.array([2**70, 0, whole], dtype=object)
    generator = rng()
    shown = np.sum([coins(generator, parts, whole) for _ in range(3_000)], axis=0)
    assert shown[1:].tolist() == [0, 3_000]
    assert binomtest(int(shown[0]), 3_000, 1 / 3).pvalue > LEVEL


# permutation


def test_permutation_is_uniform() -> None:
    wanted = {order: Fraction(1, 24) for order in permutations(range(4))}
    assert law(lambda r: tuple(permutation(r, 4).tolist())) == wanted
    generator = rng()
    seen = Counter(tuple(permutation(generator, 4).tolist()) for _ in range(8_000))
    assert p_value(seen, wanted) > LEVEL


def test_the_naive_shuffle_is_not_uniform() -> None:
    generator = rng()

    def naive() -> tuple[int, ...]:
        order = [0, 1, 2, 3]
        for i, j in enumerate(below(generator, 4, 4).tolist()):  # j from all, not from i up
            order[i], order[j] = order[j], order[i]
        return tuple(order)

    seen = Counter(naive() for _ in range(8_000))
    assert p_value(seen, {order: Fraction(1, 24) for order in permutations(range(4))}) < LEVEL


# pick


ENDS = np.array([3, 3, 10, 14, 20])  # segment 1 is empty; segment 2 crosses the cut at 5 and 10
WIDTH = 5


def rows_law(row: int) -> dict[int, Fraction]:
    masses = {0: {0: 3, 2: 2}, 1: {2: 5}, 2: {3: 4, 4: 1}, 3: {4: 5}}[row]
    return {segment: Fraction(mass, WIDTH) for segment, mass in masses.items()}


@pytest.mark.parametrize("row", range(4))
def test_pick_follows_the_lengths(row: int) -> None:
    assert law(lambda r: int(pick(r, ENDS, WIDTH, np.array([row]))[0])) == rows_law(row)
    seen = Counter(pick(rng(), ENDS, WIDTH, np.full(DRAWS, row)).tolist())
    assert p_value(seen, rows_law(row)) > LEVEL


def test_the_wrong_side_of_a_cut_is_noticed() -> None:
    keys = below(rng(), WIDTH, DRAWS)  # row 0
    seen = Counter(np.searchsorted(ENDS, keys, side="left").tolist())  # off by one
    assert p_value(seen, rows_law(0)) < LEVEL


def test_pick_beyond_64_bits() -> None:
    scale = 2**66
    ends = np.array([int(end) * scale for end in ENDS], dtype=object)
    rows = np.repeat(np.arange(4), 2_000)
    drawn = pick(rng(), ends, WIDTH * scale, rows)
    for row in range(4):
        assert p_value(Counter(drawn[rows == row].tolist()), rows_law(row)) > LEVEL


# stability

# Written down once: a new numpy must not change a single cohort.
BELOW = [379, 103, 399, 307, 379, 813]
BIG = [760141873399403683840686452472, 426927898940927446833249581487]
DISTINCT = [14, 33, 38, 57, 71]
PERMUTATION = [2, 1, 3, 6, 7, 5, 4, 0]
COINS = [1, 7, 13, 15, 18, 19]
PICK = [0, 2, 3, 4]


def test_the_words_behind_a_seed_are_fixed() -> None:
    assert below(stream(0, "select", 0), 1_000, 6).tolist() == BELOW
    assert below(stream(7, "select", 3), 10**30, 2).tolist() == BIG
    assert distinct(stream(0, "select", 1), 100, 5).tolist() == DISTINCT
    assert permutation(stream(0, "select", 2), 8).tolist() == PERMUTATION
    assert np.flatnonzero(coins(stream(0, "select", 3), np.full(20, 3), 10)).tolist() == COINS
    assert pick(stream(0, "select", 4), ENDS, WIDTH, np.arange(4)).tolist() == PICK
