"""The thesis' grid of K-Medoids: every start gives medoids, and the best score is kept."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort.maths._clusters import kmedoids
from fedcohort_papers.recipes.thesis._medoids import STARTS, metrics, searched

LINE = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 30.0])
DISTANCES = np.abs(LINE[:, None] - LINE)


@pytest.mark.parametrize("name", STARTS)
@pytest.mark.parametrize("distances", [DISTANCES, np.zeros((7, 7))], ids=["line", "all alike"])
def test_a_start_is_so_many_different_points(name: str, distances: np.ndarray) -> None:
    for k in range(1, 8):
        found = STARTS[name](distances, k, np.random.default_rng(k))
        assert len(set(found.tolist())) == k
        assert set(found.tolist()) <= set(range(7))


def test_the_heuristic_takes_those_in_the_middle() -> None:
    assert STARTS["heuristic"](DISTANCES, 2, np.random.default_rng(0)).tolist() == [3, 4]


def test_far_apart_goes_by_squares_of_distances() -> None:
    three = np.abs(np.subtract.outer([0.0, 1.0, 3.0], [0.0, 1.0, 3.0]))
    seconds: dict[int, list[int]] = {0: [], 1: [], 2: []}
    rng = np.random.default_rng(0)
    for _ in range(6000):
        first, second = STARTS["k-medoids++"](three, 2, rng).tolist()
        seconds[first].append(second)
    # From 0 the other two are 1 and 3 away: chances 1/10 and 9/10; of ~2,000, 6 sd is 0.04.
    assert np.mean(np.array(seconds[0]) == 2) == pytest.approx(0.9, abs=0.04)
    assert np.mean(np.array(seconds[1]) == 2) == pytest.approx(0.8, abs=0.055)


def test_euclidean_is_between_rows_of_the_distances() -> None:
    found = metrics(DISTANCES)
    assert np.array_equal(found["precomputed"], DISTANCES)
    slow = [[np.sqrt(((a - b) ** 2).sum()) for b in DISTANCES] for a in DISTANCES]
    assert np.allclose(found["euclidean"], slow)


def test_the_grid_has_what_the_schemes_find() -> None:
    found = searched(DISTANCES, np.random.default_rng(0))
    assert set(found) == {(m, s) for m in metrics(DISTANCES) for s in STARTS}
    assert found["precomputed", "build"] == kmedoids(DISTANCES).silhouette
    assert max(found.values()) >= found["precomputed", "build"]
