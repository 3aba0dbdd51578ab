"""Exact shares: sums beyond 64 bits, chances at most 1."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fedcohort.selection import Shares
from fedcohort.selection._federation import capped, exact_multiple, exact_sum

HUGE = 2**62


@pytest.mark.parametrize(
    "parts",
    [
        np.array([], dtype=np.int64),
        np.array([], dtype=object),
        np.array([7]),
        np.array([3, 4]),
        np.array([HUGE, HUGE, HUGE, 5]),
        np.array([2**63 - 1, 2**63 - 1]),
        np.array([2**62 - 1, 2**62, 1]),
        np.array([2**70, 1, 2**65], dtype=object),
        np.array([2**100], dtype=object),
    ],
    ids=str,
)
def test_a_sum_is_that_of_whole_numbers(parts: np.ndarray) -> None:
    assert exact_sum(parts) == sum(int(part) for part in parts)


def test_a_multiple_leaves_64_bits_where_it_must() -> None:
    parts = np.array([2**61, 3])
    assert exact_multiple(parts, 3, 2**63 - 1).dtype == np.int64
    beyond = exact_multiple(parts, 8, 2**63)
    assert beyond.dtype == object
    assert beyond.tolist() == [2**64, 24]
    assert exact_multiple(parts.astype(object), 2, 10).tolist() == [2**62, 6]


def by_definition(parts: list[int], m: int) -> list[Fraction]:
    """Whoever is due more than 1 is taken, one after another; the rest shares what is left."""
    out, left = [Fraction(0)] * len(parts), {i for i, part in enumerate(parts) if part}
    budget = min(m, len(left))
    while left:
        mass = sum(parts[i] for i in left)
        first = max(left, key=lambda i: parts[i])
        if budget * parts[first] < mass:
            for i in left:
                out[i] = Fraction(budget * parts[i], mass)
            return out
        out[first], budget = Fraction(1), budget - 1
        left.remove(first)
        if not budget:
            return out
    return out


@pytest.mark.parametrize(
    ("parts", "m"),
    [([1], 1), ([1, 1], 1), ([0, 1], 1), ([5, 1, 1, 1], 2), ([1, 1, 2], 2), ([9, 5, 1, 0], 3)]
    + [([1, 2, 3, 4, 100], m) for m in (1, 2, 3, 4, 5)]
    + [([HUGE, HUGE - 1, 7], 2), ([0, 3, 0, 2], 3)],
)
def test_chances_are_at_most_one_and_sum_to_m(parts: list[int], m: int) -> None:
    chances, whole = capped(Shares.of(np.array(parts)), m)
    assert [Fraction(int(chance), whole) for chance in chances] == by_definition(parts, m)
    assert sum(map(int, chances)) == min(m, sum(part > 0 for part in parts)) * whole


def test_nobody_has_a_share_of_nothing() -> None:
    shares = Shares.of(np.array([2, 0, 1]))
    assert shares.support.tolist() == [0, 2]
    assert shares.among(np.array([1])).floats.tolist() == [0.0, 0.0, 0.0]
    assert capped(shares.among(np.array([1])), 2)[0].tolist() == [0, 0, 0]
    assert shares.among(np.array([0, 1])).fraction(0) == 1


def test_floats_keep_the_smallest_and_stay_away_from_powers_of_two() -> None:
    shares = Shares.of_floats(np.array([1.0, 1e-30, 0.0]))
    assert shares.rounded
    assert shares.parts[1] == 1
    assert shares.parts[2] == 0
    assert shares.weights is shares.floats
    half = shares.among(np.array([0]))
    assert half.rounded
    assert 2**51 < half.whole < 2**52
    assert Shares.of(np.array([2, 1])).weights.tolist() == [2, 1]
