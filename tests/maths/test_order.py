"""Leaves of a tree in an order in which neighbours are near."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort.maths import _cube as order


def walked(points: np.ndarray, line: np.ndarray) -> float:
    return float(np.abs(np.diff(points[line, 0])).sum())


def test_points_on_a_line_are_walked_from_end_to_end() -> None:
    points = np.random.default_rng(3).normal(size=(40, 1))
    line = order.leaf_order(points)
    assert sorted(line) == list(range(40))
    assert walked(points, line) == pytest.approx(float(np.ptp(points)))


def test_beyond_the_limit_branches_stay_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    points = np.random.default_rng(3).normal(size=(40, 1))
    best = order.leaf_order(points)
    monkeypatch.setattr(order, "OPTIMAL", 40)
    assert order.leaf_order(points).tolist() == best.tolist()
    monkeypatch.setattr(order, "OPTIMAL", 39)
    assert walked(points, order.leaf_order(points)) > walked(points, best)


def test_nothing_to_turn() -> None:
    assert order.leaf_order(np.array([[5.0], [1.0]])).tolist() == [0, 1]
    assert order.leaf_order(np.empty((4, 0))).tolist() == [0, 1, 2, 3]
    three = order.leaf_order(np.array([[0.0], [9.0], [1.0]])).tolist()
    assert three in ([0, 2, 1], [1, 2, 0])
    far = np.array([[0.0], [1.0], [9.0]])
    assert order.leaf_order(far[[0, 2, 1]]).tolist() != [0, 1, 2]
