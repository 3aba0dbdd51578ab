"""Bounds on what a round tells, against exact mixtures of Gaussians of tiny designs."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import lcm

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from fedcohort.designs import (
    Bernoulli,
    ConditionalPoisson,
    Cube,
    Everyone,
    Pivotal,
    Rows,
    Sampford,
    Simple,
    Stratified,
    Systematic,
)
from fedcohort.privacy._accounting import ADJACENCIES, Part, Rounds, epsilon
from fedcohort.selection import Shares
from fedcohort.selection._design import Participation
from helpers.mixtures import STEP, density, neighbours, profile

pytest.importorskip("dp_accounting")

ROUNDING = 3e-5  # of the rectangle rule, at the kink of a hockey stick
LOSSES = np.linspace(-2.5, 2.5, 21)
EQUAL, UNEQUAL = Shares.of(np.array([1, 1, 1])), Shares.of(np.array([3, 2, 1]))
FOUR = Shares.of(np.array([1, 2, 3, 4]))

DESIGNS = {
    "poisson": Bernoulli(UNEQUAL, np.array([3, 2, 1]), 5),
    "fixed size": Simple(EQUAL, 1),
    "fixed size, two of four": Simple(FOUR, 2),
    "md": Rows.alike(UNEQUAL, 2),
    "clustered": Rows.along(np.array([3, 2, 1, 0]), FOUR, 3),
    "clustered, dedicated": Rows.along(np.array([3, 2, 1, 0]), FOUR, 3, dedicate=True),
    "hansen-hurwitz": Rows.hansen_hurwitz(EQUAL, UNEQUAL, 2),
    "everyone": Everyone(UNEQUAL),
    "pivotal": Pivotal.proportional(FOUR, 2, np.array([2, 0, 3, 1])),
    "pivotal, one is sure": Pivotal.proportional(
        Shares.of(np.array([5, 1, 2, 1])), 2, np.arange(4)
    ),
    "sampford": Sampford.proportional(FOUR, 2),
    "conditional Poisson": ConditionalPoisson.proportional(FOUR, 2),
    "systematic": Systematic.proportional(FOUR, 2, np.arange(4)),
    "cube": Cube.proportional(FOUR, 2, np.array([[1.0], [-1.0], [0.5], [-0.5]])),
    "strata": Stratified(
        4,
        (np.array([0, 3]), np.array([1, 2])),
        (Simple(Shares.of(np.array([1, 4])), 1), Rows.alike(Shares.of(np.array([2, 3])), 2)),
        (Fraction(1, 2), Fraction(1, 2)),
    ),
}


def part_of(known: Participation, client: int, deviation: float = 1.0) -> Part:
    tails = known.at_least[client]
    chances = tails - np.append(tails[1:], 0.0)
    return Part(
        tuple(chances.tolist()),
        known.weight[client] / deviation,
        known.displaced[client] / deviation,
    )


def excess(design, adjacency, known, deviation=0.3):
    """By how much any exact profile passes its bound: over clients, others' answers, orders."""
    outcomes, worst = list(design.enumerate()), -np.inf
    for client in range(design.n):
        part = part_of(known, client, deviation)
        bounds = part.profiles(adjacency, LOSSES)
        seen = part.seen(adjacency, LOSSES)
        for one, other in neighbours(design.n, client, adjacency):
            first, second = (density(outcomes, answers, deviation) for answers in (one, other))
            orders = [profile(first, second, LOSSES), profile(second, first, LOSSES)]
            for bound, exact in zip(bounds * (2 // len(bounds)), orders, strict=True):
                worst = max(worst, float((exact - bound).max()), float((exact - seen).max()))
    return worst


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", DESIGNS)
def test_no_exact_profile_passes_the_bound(name, adjacency):
    design = DESIGNS[name]
    assert excess(design, adjacency, design.participation()) < ROUNDING


@pytest.mark.parametrize(
    ("name", "adjacency"),
    [
        ("fixed size", "add-remove"),
        ("md", "add-remove"),
        ("clustered", "add-remove"),
        ("hansen-hurwitz", "add-remove"),
        ("strata", "add-remove"),
        ("pivotal", "add-remove"),
        ("systematic", "add-remove"),
        ("fixed size", "replace-one"),
        ("strata", "replace-one"),
    ],
)
def test_forgetting_who_gives_way_is_caught(name, adjacency):
    """The planted defect: a cohort of fixed size priced as if clients were independent."""
    known = DESIGNS[name].participation()
    wrong = replace(known, displaced=np.zeros(len(known.weight)))
    assert excess(DESIGNS[name], adjacency, wrong) > 1e-3


def unmatched(design, client):
    """How much of the cohorts without a client cannot be made of those with it, by one swap.

    A flow from the cohorts with it, over one swap, to those without, in whole numbers.
    """
    cohorts = [(p, set(c.clients.tolist())) for p, c in design.enumerate()]
    inside = [(p, s) for p, s in cohorts if client in s]
    without = [(p, s) for p, s in cohorts if client not in s]
    chance = sum(p for p, _ in inside)
    masses = [p / chance for p, _ in inside] + [p / (1 - chance) for p, _ in without]
    scale = lcm(*(mass.denominator for mass in masses))
    flow = np.zeros((len(cohorts) + 2,) * 2, dtype=np.int64)
    flow[-2, : len(inside)] = [int(mass * scale) for mass in masses[: len(inside)]]
    flow[len(inside) : -2, -1] = [int(mass * scale) for mass in masses[len(inside) :]]
    for i, (_, one) in enumerate(inside):
        for j, (_, other) in enumerate(without):
            if len(other - one) == 1:
                flow[i, len(inside) + j] = scale
    assert flow.max() < 2**31
    return (
        1
        - maximum_flow(csr_array(flow.astype(np.int32)), len(cohorts), len(cohorts) + 1).flow_value
        / scale
    )


@pytest.mark.parametrize("sizes", [[1, 2, 3, 4], [3, 1, 4, 1, 5], [2, 2, 1, 3, 3, 1]])
def test_of_pivotal_and_sampford_cohorts_one_swap_makes_those_without_a_client(sizes):
    """Exactly, by a flow of whole numbers; of systematic ones it does not (the planted defect)."""
    shares, m = Shares.of(np.array(sizes)), len(sizes) // 2
    sampford = Sampford.proportional(shares, m)
    for order in (np.arange(len(sizes)), np.arange(len(sizes))[::-1]):
        along = Pivotal.proportional(shares, m, order)
        assert [unmatched(along, client) for client in along.open] == [0] * len(along.open)
    assert [unmatched(sampford, client) for client in sampford.open] == [0] * len(sampford.open)
    steps = Systematic.proportional(shares, m, np.arange(len(sizes)))
    assert max(unmatched(steps, client) for client in steps.open) > 0.1


def test_forgetting_repeated_draws_is_caught():
    known = DESIGNS["md"].participation()
    wrong = replace(known, at_least=known.at_least[:, :1])
    assert excess(DESIGNS["md"], "add-remove", wrong) > 1e-3


def test_independent_clients_pay_exactly_what_can_be_told():
    design = DESIGNS["poisson"]
    outcomes = list(design.enumerate())
    for client in range(design.n):
        for adjacency in ADJACENCIES:
            one, other = [0] * 3, [0] * 3
            one[client], other[client] = 1, 0 if adjacency == "add-remove" else -1
            first, second = density(outcomes, one), density(outcomes, other)
            exact = [profile(first, second, LOSSES), profile(second, first, LOSSES)]
            bounds = part_of(design.participation(), client).profiles(adjacency, LOSSES)
            for bound, found in zip(bounds, exact, strict=False):
                np.testing.assert_allclose(bound, found, atol=ROUNDING)


@pytest.mark.parametrize("angle", [0.4, 0.7, 0.9, 1.0])
def test_the_opposite_answer_is_the_worst_in_the_plane_too(angle):
    """Replace-one for independent clients: any two answers of the unit disc."""
    axis = np.linspace(-7, 7, 141)
    x, y = np.meshgrid(axis, axis)
    losses, q, d = np.array([0.0, 0.2, 1.0]), 0.3, 1.5

    def mixed(across, up):
        return (1 - q) * np.exp(-(x**2 + y**2) / 2) + q * np.exp(
            -((x - across) ** 2 + (y - up) ** 2) / 2
        )

    first, second = mixed(d, 0.0), mixed(d * np.cos(np.pi * angle), d * np.sin(np.pi * angle))
    scale = (axis[1] - axis[0]) ** 2 / (2 * np.pi)
    bound = Part((q,), d, 0.0).profiles("replace-one", losses)[0]
    for loss, most in zip(losses, bound, strict=True):
        told = np.maximum(0.0, first - np.exp(loss) * second).sum() * scale
        assert told <= most + 1e-3
        assert angle < 1 or told >= most - 1e-3


def test_fixed_size_is_tight_where_all_others_are_opposite():
    """Replace-one: 1 among -1, against -1 among -1, is the pair that the bound is made of."""
    design = DESIGNS["fixed size"]
    outcomes, losses = list(design.enumerate()), np.linspace(0, 2.5, 11)
    first, second = density(outcomes, [1, -1, -1]), density(outcomes, [-1, -1, -1])
    bound = part_of(design.participation(), 0).profiles("replace-one", losses)[0]
    np.testing.assert_allclose(bound, profile(first, second, losses), atol=ROUNDING)


@pytest.mark.parametrize("name", ["poisson", "fixed size", "md", "clustered"])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_two_rounds_cost_no_more_than_composed(name, adjacency):
    """In two dimensions: the second round may be anything, here the same neighbours again."""
    design, delta, coarse = DESIGNS[name], 1e-2, slice(None, None, 8)
    outcomes = list(design.enumerate())
    for client in range(0, design.n, 2):
        part = part_of(design.participation(), client)
        total = epsilon([Rounds(part, 2)], delta, adjacency, points=4_000)
        for one, other in list(neighbours(design.n, client, adjacency))[::4]:
            first, second = (density(outcomes, answers)[coarse] for answers in (one, other))
            for p, q in ((first, second), (second, first)):
                both, none = np.outer(p, p), np.outer(q, q)
                told = np.maximum(0.0, both - np.exp(total) * none).sum() * (8 * STEP) ** 2
                assert told <= delta + 1e-4


def test_the_grid_holds_every_mass():
    total = density(DESIGNS["md"].enumerate(), [1, -1, 1]).sum() * STEP
    assert total == pytest.approx(1, abs=1e-12)


def test_no_coupling_known_leaves_who_took_part_open():
    part = Part((0.1,), 1.0, np.inf)
    (only,) = part.profiles("add-remove", LOSSES)
    np.testing.assert_array_equal(only, part.seen("add-remove", LOSSES))


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_more_chance_weight_or_displacement_never_costs_less(adjacency):
    rng = np.random.default_rng(3)
    for _ in range(60):
        tails = np.sort(rng.random(3))[::-1] * rng.choice([0.05, 1.0])
        weight, displaced = rng.random(2) * 2
        if rng.random() < 0.3:
            tails, displaced = tails[:1], 0.0
        more = np.minimum(1.0, tails * (1 + rng.random(len(tails))))
        more = np.sort(more)[::-1]
        small = Part(tuple(tails - np.append(tails[1:], 0)), weight, displaced)
        large = Part(tuple(more - np.append(more[1:], 0)), weight * 1.2, displaced * 1.2)
        for a, b in zip(
            small.profiles(adjacency, LOSSES), large.profiles(adjacency, LOSSES), strict=True
        ):
            assert np.all(a <= b + 1e-9)
