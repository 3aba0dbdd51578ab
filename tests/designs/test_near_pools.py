from __future__ import annotations

import numpy as np
import pytest

from fedcohort.designs.pools import NEAREST, NearPools


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
    assert pools.average(values)[0] == pytest.approx(3 / 4)


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
