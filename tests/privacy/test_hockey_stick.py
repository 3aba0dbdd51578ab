"""Profiles of pairs of laws, against sup_S P(S) - a Q(S) summed up on a fine grid."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import norm

from fedcohort.privacy import _accounting as hockey_stick

GRID = np.linspace(-14.0, 14.0, 200_001)
STEP = GRID[1] - GRID[0]
LOSSES = np.array([0.0, 0.05, 0.4, 1.0, 2.5, 5.0])
CASES = [(0.5, 0.3), (0.1, 1.0), (0.9, 1.7), (0.02, 2.5), (1.0, 0.8)]
"""Chances and distances."""


def summed(ours: np.ndarray, theirs: np.ndarray, losses: np.ndarray = LOSSES) -> np.ndarray:
    return np.array([STEP * np.maximum(ours - np.exp(x) * theirs, 0.0).sum() for x in losses])


def mixture(chance: float, distance: float) -> np.ndarray:
    return (1 - chance) * norm.pdf(GRID) + chance * norm.pdf(GRID - distance)


@pytest.mark.parametrize("distance", [0.2, 1.0, 3.0])
def test_two_gaussians_in_either_order(distance: float) -> None:
    losses = np.array([-1.5, -0.1, *LOSSES])
    here, there = norm.pdf(GRID), norm.pdf(GRID - distance)
    found = hockey_stick.gaussian(distance, losses)
    np.testing.assert_allclose(found, summed(there, here, losses), atol=1e-7)
    np.testing.assert_allclose(found, summed(here, there, losses), atol=1e-7)


def test_equal_laws_and_laws_without_an_overlap() -> None:
    losses = np.array([-1.0, 0.0, 2.0])
    for same in (hockey_stick.nothing(losses), hockey_stick.gaussian(0.0, losses)):
        np.testing.assert_allclose(same, [1 - np.exp(-1), 0.0, 0.0])
    assert hockey_stick.gaussian(np.inf, losses).tolist() == [1.0, 1.0, 1.0]
    none = np.zeros(2)
    assert hockey_stick.amplified(none, 1.0, losses[1:]).tolist() == [0.0, 0.0]
    assert hockey_stick.drawn(none, 1.0, losses[1:]).tolist() == [0.0, 0.0]


PAIRS: list[tuple[Callable[..., np.ndarray], Callable[[float, float], tuple]]] = [
    (
        lambda q, d, x: hockey_stick.amplified(np.array([q]), d, x),
        lambda q, d: (mixture(q, d), norm.pdf(GRID)),
    ),
    (hockey_stick.mixture_second, lambda q, d: (norm.pdf(GRID), mixture(q, d))),
    (hockey_stick.opposite_mixtures, lambda q, d: (mixture(q, d), mixture(q, -d))),
]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("pair", PAIRS, ids=["amplified", "second", "opposite"])
def test_mixtures_are_exact(pair, case: tuple[float, float]) -> None:
    told, laws = pair
    np.testing.assert_allclose(told(*case, LOSSES), summed(*laws(*case)), atol=1e-7)


def test_a_number_that_is_seen_counts_case_by_case() -> None:
    found = hockey_stick.drawn(np.array([0.3, 0.0, 0.2]), 0.5, LOSSES)
    parts = 0.3 * hockey_stick.gaussian(0.5, LOSSES) + 0.2 * hockey_stick.gaussian(1.5, LOSSES)
    np.testing.assert_allclose(found, parts)


def test_the_hull_keeps_the_ends_and_leaves_out_what_is_on_or_above_a_chord() -> None:
    points, values = np.array([0.0, 1.0, 2.0, 4.0]), np.array([1.0, 0.5, 0.6, 0.0])
    assert hockey_stick.convex(points, values).tolist() == [0, 1, 3]
    line = np.array([3.0, 2.0, 1.0])
    assert hockey_stick.convex(np.arange(3.0), line).tolist() == [0, 2]
    assert hockey_stick.convex(points[:2], values[:2]).tolist() == [0, 1]
