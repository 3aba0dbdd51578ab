"""Lists of candidates against the obvious way."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths import every_path
from fedcohort.maths._groups import (
    by_rank,
    by_weight,
    candidate_lists,
    draw_groups,
    group_mean_weights,
    group_means,
    without,
)


def test_zero_weights_come_last_and_uniformly() -> None:
    weights = np.array([0, 3, 0, 0])
    chances: dict[tuple[int, ...], Fraction] = {}
    for chance, drawn in every_path(lambda rng: by_weight(rng, weights)(np.arange(4), 2)):
        chances[tuple(drawn.tolist())] = chances.get(tuple(drawn.tolist()), Fraction(0)) + chance
    assert chances == {(1, 0): Fraction(1, 3), (1, 2): Fraction(1, 3), (1, 3): Fraction(1, 3)}


def test_none_for_none_and_all_for_many() -> None:
    rng = np.random.default_rng(0)
    for take in (by_weight(rng, np.ones(4)), by_rank(rng, np.ones(4))):
        for k, length in ((-1, 0), (0, 0), (9, 4)):
            assert len(take(np.arange(4), k)) == length
        assert len(take(np.arange(0), 2)) == 0


def test_groups_are_drawn_once_each_and_only_those_here() -> None:
    labels = np.array([0, 0, 1, 2, 2])
    here = np.array([0, 3, 4])
    for seed in range(20):
        drawn = draw_groups(np.random.default_rng(seed), labels, here, np.array([1, 1, 1]), 3)
        assert sorted(drawn.tolist()) == [0, 2]


def slow_lists(
    taken: list[int], labels: list[int], here: list[int], z: int, least: int, values: list[float]
) -> list[list[int]]:
    """By rank, in loops; values differ."""
    free = [i for i in here if labels[i] not in taken]
    found: list[list[int]] = []
    for group in taken:
        best = sorted((i for i in here if labels[i] == group), key=lambda i: -values[i])[:z]
        for i in sorted(free, key=lambda i: -values[i])[: z - len(best)]:
            free.remove(i)
            best.append(i)
        found.append(best)
    listed = [i for one in found for i in one]
    rest = sorted((i for i in here if i not in listed), key=lambda i: -values[i])
    found.append(rest[: max(0, least - len(listed))])
    return [one for one in found if one]


@given(st.data())
def test_lists_as_the_slow_twin_makes_them(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    labels = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    here = sorted(data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True)))
    values = data.draw(st.permutations([float(i) for i in range(n)]))
    groups = sorted({labels[i] for i in here})
    taken = data.draw(st.lists(st.sampled_from(groups), min_size=1, unique=True))
    z, least = data.draw(st.integers(1, 4)), data.draw(st.integers(1, n))
    take = by_rank(np.random.default_rng(0), np.array(values))
    found = candidate_lists(np.array(taken), np.array(labels), np.array(here), z, least, take)
    assert [one.tolist() for one in found] == slow_lists(taken, labels, here, z, least, values)
    listed = np.concatenate(found)
    assert len(set(listed.tolist())) == len(listed)


@given(st.data())
def test_means_are_exact(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 10))
    labels = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    parts = np.array(data.draw(st.lists(st.integers(1, 10**6), min_size=n, max_size=n)))
    here = np.array(sorted(data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))))
    weights = group_mean_weights(parts, labels, here)
    means = group_means(parts.astype(float), labels, here)
    exact = {
        g: Fraction(int(parts[here][labels[here] == g].sum()), int((labels[here] == g).sum()))
        for g in labels[here].tolist()
    }
    for g, mean in exact.items():
        assert means[g] == float(mean)
        for other, value in exact.items():
            assert Fraction(int(weights[g]), int(weights[other])) == mean / value
    assert sum(w > 0 for w in weights) == len(exact)


def test_without() -> None:
    assert without(np.array([2, 4, 7]), np.array([4])).tolist() == [2, 7]
    assert without(np.array([2, 4]), np.array([4, 2])).tolist() == []
