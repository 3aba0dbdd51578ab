"""K-Medoids against the definition, and against the package of its inventors."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths import _clusters as clustering
from fedcohort.maths._clusters import Medoids, build, fasterpam
from fedcohort.maths._distances import hellinger


def whole_distances(seed: int, n: int, most: int = 1000) -> np.ndarray:
    """Whole numbers, so that sums are exact and ties are ties."""
    upper = np.triu(np.random.default_rng(seed).integers(0, most, (n, n)), 1)
    return (upper + upper.T).astype(np.float64)


def loss(distances: np.ndarray, medoids: list[int]) -> float:
    return float(distances[medoids].min(axis=0).sum())


def slow_build(distances: np.ndarray, k: int) -> list[int]:
    chosen: list[int] = []
    for _ in range(k):
        others = [i for i in range(len(distances)) if i not in chosen]
        chosen.append(min(others, key=lambda i: loss(distances, [*chosen, i])))
    return chosen


def slow_swaps(distances: np.ndarray, start: list[int]) -> tuple[list[int], list[int]]:
    """Candidates in turn; the best swap of each is done if it helps, until none of all does.

    A point goes to a medoid that comes if that is nearer, and to the first of the nearest others
    if its own goes; otherwise it stays. Medoids, and the place of that of every point.
    """
    medoids, at, unchanged = list(start), 0, 0
    labels = [int(np.argmin(distances[medoids, p])) for p in range(len(distances))]
    while unchanged < len(distances):
        unchanged += 1
        if at not in medoids:
            swaps = [
                [at if i == j else m for j, m in enumerate(medoids)] for i in range(len(start))
            ]
            best = min(swaps, key=lambda swap: loss(distances, swap))
            if loss(distances, best) < loss(distances, medoids):
                medoids, unchanged, new = best, 0, best.index(at)
                for p, near in enumerate(distances[medoids].T):
                    others = np.where(np.arange(len(medoids)) == new, np.inf, near)
                    stays = int(np.argmin(others)) if labels[p] == new else labels[p]
                    labels[p] = new if near[new] < others[stays] else stays
        at = (at + 1) % len(distances)
    return medoids, labels


@given(st.integers(0, 10**6), st.integers(1, 12), st.data(), st.sampled_from([2, 5, 1000]))
def test_the_definition(seed: int, n: int, data: st.DataObject, most: int) -> None:
    distances = whole_distances(seed, n, most)
    k = data.draw(st.integers(1, n))
    start = build(distances, k)
    assert start.tolist() == slow_build(distances, k)
    if data.draw(st.booleans()):  # from where there is more to do
        start = np.random.default_rng(seed).permutation(n)[:k]
    found = fasterpam(distances, start)
    assert (found.medoids.tolist(), found.labels.tolist()) == slow_swaps(distances, start.tolist())
    assert found.loss == loss(distances, found.medoids.tolist())
    nearest = distances[found.medoids][found.labels, np.arange(n)]
    assert nearest.tolist() == distances[found.medoids].min(axis=0).tolist()


@pytest.mark.parametrize("most", [3, 6])
def test_ties_over_several_swaps(most: int) -> None:
    for seed in range(30):
        distances = whole_distances(seed, 12, most)
        start = np.random.default_rng(seed).permutation(12)[:4]
        found = fasterpam(distances, start)
        slow = slow_swaps(distances, start.tolist())
        assert (found.medoids.tolist(), found.labels.tolist()) == slow


@pytest.mark.parametrize("n", [40, 700])  # more than a block of candidates
def test_no_swap_helps_any_more(n: int) -> None:
    distances = whole_distances(3, n)
    start = build(distances, 5)
    found = fasterpam(distances, start)
    assert found.loss <= loss(distances, start.tolist())
    for i in range(5):
        rest = np.delete(distances[found.medoids], i, axis=0).min(axis=0)
        assert np.minimum(distances, rest).sum(axis=1).min() >= found.loss


def test_every_candidate_has_its_turn() -> None:
    """Also the first and the last one of a block: from anywhere in a star only the hub helps."""
    cases = [(n, hub) for n in (9, 24, 57) for hub in range(1, n)]
    for n, hub in [*cases, *((700, hub) for hub in range(502, 512))]:
        star = 2.0 * (1 - np.eye(n))
        star[hub] = star[:, hub] = 1
        star[hub, hub] = 0
        assert fasterpam(star, np.array([0])).medoids.tolist() == [hub]


def test_a_point_stays_unless_the_medoid_that_comes_is_nearer() -> None:
    line = np.array([0.0, 20.0, 10.0, 5.0, -1.0, 10.0])
    found = fasterpam(abs(line[:, None] - line), np.array([0, 1]))
    assert found.medoids.tolist() == [0, 2]
    assert found.labels.tolist() == [0, 1, 1, 0, 0, 1]  # 5 is as far from 0 as from 10


@pytest.mark.parametrize("scale", [2.0**-60, 2.0**60])
def test_the_unit_of_distance_does_not_matter(scale: float) -> None:
    distances = federation(0, 60, 0.3)
    start = np.arange(8)
    found, scaled = fasterpam(distances, start), fasterpam(distances * scale, start)
    assert scaled.medoids.tolist() == found.medoids.tolist() != start.tolist()
    assert scaled.loss == found.loss * scale


def test_it_is_often_the_best_of_all() -> None:
    best = 0
    for seed in range(20):
        distances = whole_distances(seed, 9)
        every = min(loss(distances, list(some)) for some in combinations(range(9), 3))
        found = fasterpam(distances, build(distances, 3)).loss
        assert found <= 1.25 * every
        best += found == every
    assert best >= 10


def federation(seed: int, n: int, alpha: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return hellinger(rng.multinomial(600, rng.dirichlet(np.full(10, alpha), n)))


def least_loss(distances: np.ndarray, labels: np.ndarray) -> float:
    """The loss of a clustering with the best medoid of every cluster."""
    groups = [labels == label for label in np.unique(labels)]
    return float(sum(distances[np.ix_(group, group)].sum(0).min() for group in groups))


@pytest.mark.parametrize("alpha", [0.05, 0.3, 1.0])
def test_the_package_finds_the_same_clusters(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    package = pytest.importorskip("kmedoids")

    def oracle(distances: np.ndarray, start: np.ndarray) -> Medoids:
        found = package.fasterpam(distances, start.copy(), n_cpu=1)
        return Medoids(found.medoids, np.asarray(found.labels).astype(np.int64), found.loss)

    losses, same = [], 0
    for seed in range(4):
        distances = federation(seed, 100, alpha)
        ours = clustering.kmedoids(distances)
        start = build(distances, 50)
        losses += [
            fasterpam(distances, start[:k]).loss / oracle(distances, start[:k]).loss
            for k in range(2, 26)
        ]
        with monkeypatch.context() as patch:
            patch.setattr(clustering, "build", lambda d, k: package.pam_build(d, k).medoids)
            patch.setattr(clustering, "fasterpam", oracle)
            theirs = clustering.kmedoids(distances)
        same += theirs.labels.tolist() == ours.labels.tolist()
        assert least_loss(distances, theirs.labels) == pytest.approx(
            least_loss(distances, ours.labels), rel=0.003
        )
    assert same >= 3  # where swaps tie, rounding decides which of two optima is found
    assert np.mean(losses) == pytest.approx(1, abs=0.003)  # where swaps tie they may differ
