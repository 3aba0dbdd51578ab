"""How often clients are drawn, against enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.designs import Rows, Simple
from fedcohort.maths._inclusion import count_tails, largest_of_others
from fedcohort.privacy._accounting import convex, gaussian
from fedcohort.selection import Shares


@given(st.lists(st.floats(0, 1), min_size=1, max_size=3), st.integers(1, 3))
def test_tails_against_all_outcomes(chances, repeats):
    wanted = np.zeros(len(chances) * repeats + 1)
    each = [chance for chance in chances for _ in range(repeats)]
    for hits in product((0, 1), repeat=len(each)):
        wanted[sum(hits)] += np.prod([p if h else 1 - p for p, h in zip(each, hits, strict=True)])
    tails = count_tails(np.array([chances]), repeats)[0]
    exact = np.array([wanted[k:].sum() for k in range(1, len(wanted))])
    np.testing.assert_allclose(tails, exact[: len(tails)], atol=1e-12)
    assert np.all(exact[len(tails) :] < 1e-15)


@pytest.mark.parametrize(
    "design",
    [
        Rows.alike(Shares.of(np.array([3, 2, 1])), 3),
        Rows.along(np.array([1, 0, 2]), Shares.of(np.array([3, 2, 1])), 4),
        Simple(Shares.of(np.array([3, 0, 2, 1])), 2),
    ],
)
def test_participation_of_a_design_against_its_outcomes(design):
    counts = np.zeros((design.n, 6))
    for probability, cohort in design.enumerate():
        drawn = np.zeros(design.n, dtype=int)
        drawn[cohort.clients] = cohort.draws
        counts[np.arange(design.n), drawn] += float(probability)
    known = design.participation()
    for k in range(known.at_least.shape[1]):
        np.testing.assert_allclose(known.at_least[:, k], counts[:, k + 1 :].sum(axis=1), atol=1e-12)
    possible = known.at_least[:, 0] > 0
    assert np.all(known.displaced[possible] <= known.largest_weight)


def test_many_draws_are_cut_where_they_hardly_happen():
    tails = count_tails(np.full((2, 1), 0.001), 10_000)
    assert tails.shape[1] < 60
    assert tails[0, -1] < 1e-15


def test_the_others_of_a_client_alone_weigh_nothing():
    assert largest_of_others(np.array([2.0]), np.array([1])).tolist() == [0.0]
    assert largest_of_others(np.array([2.0, 2.0]), np.array([1, 1])).tolist() == [2.0, 2.0]


@given(st.lists(st.floats(0, 1), min_size=2, max_size=12))
def test_the_hull_is_convex_and_below_all_points(values):
    points = np.arange(len(values), dtype=float) ** 2
    values = np.array(values)
    kept = convex(points, values)
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    slopes = np.diff(values[kept]) / np.diff(points[kept])
    assert np.all(np.diff(slopes) > 0)
    assert np.all(np.interp(points, points[kept], values[kept]) <= values + 1e-12)


def test_the_gaussian_profile_turns_round():
    """H_a(P || Q) = 1 - a + a H_{1/a}(Q || P), and two normal laws are alike in both orders."""
    losses = np.linspace(-5, 5, 41)
    turned = 1 - np.exp(losses) + np.exp(losses) * gaussian(1.3, -losses)
    np.testing.assert_allclose(gaussian(1.3, losses), turned, atol=1e-12)
