"""Exact probabilities of the ways to end a draw."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fedcohort.maths._cube import _best_law, _solved


def test_a_system_with_one_solution_is_solved_exactly() -> None:
    assert _solved([[0, 2], [3, 1]], [4, 5]) == [Fraction(1), Fraction(2)]
    assert _solved([[1, 1], [1, -1], [2, 0]], [3, 1, 4]) == [Fraction(2), Fraction(1)]
    assert _solved([[3]], [1]) == [Fraction(1, 3)]


def test_many_solutions_and_none_are_told() -> None:
    assert _solved([[1, 1], [2, 2]], [1, 2]) is None
    assert _solved([[1, 0], [0, 1], [1, 1]], [1, 1, 3]) is None


@pytest.mark.parametrize("whole", [2, 2**31, 2**62, 10**30])
def test_the_best_law_keeps_chances_and_balance_whatever_one_is_written_as(whole: int) -> None:
    """Four clients at a half, two by two alike: one of each kind is balanced, and possible."""
    columns = np.array([1.0, 1.0, -1.0, -1.0])
    law = _best_law((whole // 2,) * 4, whole, 2, columns.tobytes())
    assert law is not None
    ways, chances = law
    total = sum(chances)
    for client in range(4):
        held = sum(c for way, c in zip(ways, chances, strict=True) if client in way)
        assert Fraction(held, total) == Fraction(1, 2)
    assert all(columns[list(way)].sum() == 0 for way in ways)
