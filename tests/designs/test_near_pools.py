from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.random import stream
from fedcohort.designs import Cube, FixedSize, LocalPivotal, Pivotal, Systematic
from fedcohort.designs._pools import NEAREST, WHOLE, NearPools
from fedcohort.maths import every_path
from fedcohort.selection import Shares
from fedcohort.selection._design import Pools
from fedcohort.server import Attendance, Redraw
from helpers.settling import complete

SIZES = Shares.of(np.array([5, 4, 3, 2, 1, 1, 3, 2]))
PLACES = np.array([0.0, 0.1, 0.3, 0.6, 1.0, 1.5, 2.1, 2.8])[:, None]
DESIGNS = {
    "systematic": Systematic.proportional(SIZES, 3, np.arange(8)),
    "pivotal": Pivotal.proportional(SIZES, 3, np.arange(8)),
    "local pivotal": LocalPivotal.proportional(SIZES, 3, PLACES),
    "cube": Cube.balancing(SIZES, 3, PLACES, 1),
}


def test_neighbours_on_a_line_stand_in() -> None:
    order = np.array([4, 2, 0, 5, 1, 3, 6])
    chances = np.array([0.5, 0.5, 0.5, 0.5, 0.5, 1.0, 0.0])  # 5 is sure, 6 never there
    pools = NearPools.along(order, chances)
    # Five undecided clients for 2.5 draws: four of them, around the place of each.
    assert pools.of(0).clients.tolist() == [4, 2, 0, 1]
    assert pools.of(3).clients.tolist() == [2, 0, 1, 3]
    assert pools.of(5).clients.tolist() == [4, 2, 0, 1]
    assert pools.of(0).chances.tolist() == [0.5] * 4
    assert not pools.of(0).again
    values = np.array([1.0, 0.0, 1.0, 0.0, 1.0, 9.0, 9.0])
    assert pools.average(values)[0] == pytest.approx(2 / 3)  # nobody stands in for itself


def test_neighbours_in_space_stand_in() -> None:
    points = np.array([[0.0], [0.1], [5.0], [5.1], [5.2], [0.05]])
    chances = np.array([0.5, 0.5, 1 / 3, 1 / 3, 1 / 3, 1.0])
    pools = NearPools.around(points, chances)  # five for two draws: twice three, at most five
    assert pools.near.shape == (6, 5)
    assert set(pools.of(5).clients[:2].tolist()) == {0, 1}
    assert pools.of(2).clients.tolist() == [2, 3, 4, 1, 0]
    assert NearPools.around(points[:, :0], chances).near.shape == (6, 5)


def test_no_pool_is_large_and_none_is_needed_where_all_are_sure() -> None:
    many = NearPools.along(np.arange(1_000), np.full(1_000, 0.001))
    assert many.near.shape == (1_000, NEAREST)
    for build in (
        lambda: NearPools.along(np.arange(3), np.ones(3)),
        lambda: NearPools.around(np.ones((3, 1)), np.ones(3)),
    ):
        assert len(build().of(1).clients) == 0
        assert build().average(np.arange(3.0)).tolist() == [1.0, 1.0, 1.0]


# -- the redraw ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DESIGNS)
def test_stand_ins_are_drawn_at_once_with_exactly_the_chances_of_neighbours(name: str) -> None:
    design = DESIGNS[name]
    pools, lost, free = design.pools(), [1, 6], np.array([1, 0, 1, 1, 0, 1, 0, 1], dtype=bool)
    wanted = np.zeros(8, dtype=object)
    for client in lost:
        near = pools.of(client)
        mass = np.where(free[near.clients], near.chances, 0.0)
        np.add.at(wanted, near.clients, mass / mass.sum())
    found = np.full(8, Fraction(0), dtype=object)
    for chance, pair in every_path(lambda rng: pools.together(lost, free, rng), 100_000):
        assert len(set(pair)) == 2  # two different ones, whoever they are
        assert free[pair].all()
        found[pair] += chance
    assert sum(found) == 2  # exactly
    np.testing.assert_allclose(found.astype(float), wanted.astype(float), atol=8 / WHOLE + 1e-12)


def test_stand_ins_where_there_are_few_or_none() -> None:
    pools, rng = DESIGNS["pivotal"].pools(), stream(0, "x")
    nobody = np.zeros(8, dtype=bool)
    assert pools.together([1, 6], nobody, rng) == [None, None]
    only = nobody.copy()
    only[2] = True
    assert pools.together([1, 3], only, rng) is None  # one for two: one after the other
    assert NearPools(pools.near, pools.chances).together([1], ~nobody, rng) is None


def test_stand_ins_keep_the_sums_that_are_balanced() -> None:
    """Four of eight are missing; drawn at once, stand-ins balance what single ones do not."""
    features = np.array([1.0, 1, -1, 1, -1, -1, 1, -1] * 5)[:, None]
    design = Cube.balancing(Shares.of(np.ones(40, dtype=np.int64)), 8, features, 1)
    near = np.tile(np.arange(40), (40, 1))  # everybody is everybody's neighbour
    at_once = NearPools(near, design.inclusion(), design.drawn_with)
    free, rng, sums = np.ones(40, dtype=bool), stream(0, "x"), []
    free[:8] = False
    for _ in range(50):
        sums.append(float(features[at_once.together([0, 1, 2, 3], free, rng)].sum()))
    assert set(sums) == {0.0}
    alone = [features[rng.choice(np.arange(8, 40), 4, replace=False)].sum() for _ in range(50)]
    assert np.var(alone) > 2.0  # the planted defect: each by itself


def mean_weights(design: FixedSize, answers: Any, rounds: int) -> tuple[Any, Any]:
    """(n,) the mean weight of every client after drop-outs and stand-ins, and its error."""
    n, rng = design.n, stream(3, "rounds")
    seen = Attendance(np.full(n, 10**6), np.rint(answers * 10**6).astype(np.int64))
    weights = np.zeros((rounds, n))
    for row in weights:
        up = rng.random(n) < answers
        cohort = design.draw(rng)
        ended = complete(Redraw(), cohort, design, seen, lambda who, up=up: who[up[who]], rng)
        row[ended.cohort.clients] = ended.cohort.weights
    return weights.mean(axis=0), weights.std(axis=0) / rounds**0.5


def test_weights_after_a_redraw_are_right_whoever_may_stand_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from scipy.stats import chi2

    rng = stream(0, "federation")
    parts = np.rint(300 * np.exp(rng.standard_normal(100))).astype(np.int64) + 1
    parts[0] = parts.sum() // 7  # is sure, and stands in for nobody
    sizes = Shares.of(parts)
    design = Pivotal.proportional(sizes, 10, np.argsort(-sizes.floats))
    answers = np.where(rng.random(100) < 0.5, 0.95, 0.45)

    mean, error = mean_weights(design, answers, 800)
    squares = ((mean - sizes.floats) / np.maximum(error, 1e-6))[1:] ** 2
    assert squares.sum() < chi2.isf(1e-6, 99)
    # Weights are scaled to sum to 1, which does not leave the largest quite alone.
    assert mean[0] == pytest.approx(sizes.floats[0], rel=0.1)
    monkeypatch.setattr(NearPools, "visits", Pools.visits)  # as if pools did not overlap
    mean, _ = mean_weights(design, answers, 200)
    assert mean[0] < 0.8 * sizes.floats[0]


def test_who_is_sure_stands_in_for_nobody_and_weighs_accordingly() -> None:
    design = Pivotal.proportional(Shares.of(np.array([20, 6, 1, 1, 1])), 3, np.arange(5))
    visits = design.pools().visits(np.full(5, 0.5), 3)
    assert visits[:2].tolist() == [1.0, 1.0]
    assert (visits[2:] > 1.0).all()
    assert design.pools().visits(np.ones(5), 3).tolist() == [1.0] * 5
