from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.maths._groups import exact_masses, pour, split_large
from fedcohort.maths._tree import cut


def rows_of(clients, segments, n, m):
    """The dense r' of a layout, checking that no segment crosses a border."""
    M = sum(segments.tolist()) // m
    dense, filled = [[0] * n for _ in range(m)], 0
    for client, mass in zip(clients.tolist(), segments.tolist(), strict=True):
        assert mass > 0
        assert filled // M == (filled + mass - 1) // M
        dense[filled // M][client] += mass
        filled += mass
    return dense


def labels_of(groups, n):
    labels = np.zeros(n, dtype=np.int64)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def one_by_one(labels, masses, m, authors=False):
    """The slow twin: the corrected loop of the specification, word for word.

    In the order of the authors' code the same groups are kept, but listed and poured by
    increasing mass.
    """
    n, M = len(masses), sum(masses) // m
    alone = [i for i in range(n) for _ in range(masses[i] // M)]
    rest = [mass % M for mass in masses]
    dense = [[M if i == j else 0 for i in range(n)] for j in alone]
    groups = [[i for i in range(n) if labels[i] == g] for g in range(max(labels) + 1)]
    groups.sort(key=lambda g: sum(rest[i] for i in g) * (1 if authors else -1))
    free = m - len(alone)
    if authors:  # the heaviest come last
        groups = groups[-free:] + groups[:-free]
    kept = [[rest[i] if i in group else 0 for i in range(n)] for group in groups[:free]]
    k = 0
    for i in [i for group in groups[free:] for i in group]:
        u = rest[i]
        while u > 0:
            t = min(M - sum(kept[k]), u)
            kept[k][i] += t
            u -= t
            if sum(kept[k]) == M:
                k += 1
    return dense + kept


GOLDEN = [
    # sizes, m, groups, paper's order, authors' order
    (
        [1] * 6,
        3,
        [[0, 1], [2, 3], [4, 5]],
        [[3, 3, 0, 0, 0, 0], [0, 0, 3, 3, 0, 0], [0, 0, 0, 0, 3, 3]],
        [[3, 3, 0, 0, 0, 0], [0, 0, 3, 3, 0, 0], [0, 0, 0, 0, 3, 3]],
    ),
    (
        [1] * 6,
        2,
        [[0, 1], [2, 3], [4], [5]],
        [[2, 2, 0, 0, 2, 0], [0, 0, 2, 2, 0, 2]],
        [[2, 2, 0, 0, 2, 0], [0, 0, 2, 2, 0, 2]],
    ),
    (
        [4, 3, 3, 2, 2, 1, 1],
        2,
        [[0, 1], [2, 3], [4, 5], [6]],
        [[8, 6, 0, 0, 2, 0, 0], [0, 0, 6, 4, 2, 2, 2]],
        [[0, 0, 6, 4, 4, 0, 2], [8, 6, 0, 0, 0, 2, 0]],
    ),
    (
        [5, 3, 2, 4, 4, 2],
        2,
        [[0, 1, 2], [3], [4], [5]],
        [[10, 6, 4, 0, 0, 0], [0, 0, 0, 8, 8, 4]],
        [[0, 0, 0, 8, 8, 4], [10, 6, 4, 0, 0, 0]],
    ),
    (
        [6, 2, 2, 5, 5, 4],
        4,
        [[0], [3], [4], [5], [1], [2]],
        [[24, 0, 0, 0, 0, 0], [0, 4, 0, 20, 0, 0], [0, 4, 0, 0, 20, 0], [0, 0, 8, 0, 0, 16]],
        [[0, 8, 0, 0, 0, 16], [0, 0, 4, 20, 0, 0], [0, 0, 4, 0, 20, 0], [24, 0, 0, 0, 0, 0]],
    ),
]


# In the last case client 0 has mass exactly M: a dedicated row for us, hence the first one, and
# the last group of the authors. The rows are the same.
@pytest.mark.parametrize(("sizes", "m", "groups", "paper", "authors"), GOLDEN)
def test_golden_allocation(sizes, m, groups, paper, authors):
    labels, masses = labels_of(groups, len(sizes)), exact_masses(sizes, m)
    assert rows_of(*pour(labels, masses, m), len(sizes), m) == paper
    found = one_by_one(labels.tolist(), masses.tolist(), m, authors=True)
    assert sorted(found) == sorted(authors)
    if all(mass < sum(sizes) for mass in masses):
        assert found == authors


@pytest.mark.parametrize(
    ("sizes", "m", "groups", "expected"),
    [
        ([10, 3, 2, 1], 3, [[0], [1], [2, 3]], [[16, 0, 0, 0], [14, 0, 2, 0], [0, 9, 4, 3]]),
        (
            [40, 40, 10, 10],
            4,
            [[0], [1], [2], [3]],
            [[100, 0, 0, 0], [0, 100, 0, 0], [60, 0, 40, 0], [0, 60, 0, 40]],
        ),
        (
            [50, 20, 20, 10],
            4,
            [[1], [2], [3]],
            [[100, 0, 0, 0], [100, 0, 0, 0], [0, 80, 0, 20], [0, 0, 80, 20]],
        ),
    ],
)
def test_golden_large_clients(sizes, m, groups, expected):
    labels = labels_of(groups, len(sizes))
    assert rows_of(*pour(labels, exact_masses(sizes, m), m), len(sizes), m) == expected


def literal(labels, masses, m):
    """Lines 4 to 19 as printed; large clients first, as the text has it."""
    n, M = len(masses), sum(masses) // m
    alone = [i for i in range(n) for _ in range(masses[i] // M)]
    u = [mass % M for mass in masses]
    groups = [[i for i in range(n) if labels[i] == g] for g in range(max(labels) + 1)]
    groups.sort(key=lambda group: -sum(u[i] for i in group))
    free = m - len(alone)
    rows = [[u[i] if i in group else 0 for i in range(n)] for group in groups[:free]]
    q, k = [sum(row) for row in rows], 0
    waiting = [i for group in groups[free:] for i in group if u[i]]
    while waiting:
        i = waiting[0]
        a, b = divmod(q[k] + u[i], M)
        if a == 0:
            rows[k][i] = b  # line 12
            waiting.pop(0)
        else:
            rows[k][i] = M - q[k]
            u[i] -= rows[k][i]
            if u[i] == 0:
                waiting.pop(0)
            k += 1
    return [[M * (i == j) for i in range(n)] for j in alone] + rows


def in_proportion(rows):
    return [[Fraction(mass, sum(row)) for mass in row] for row in rows]


def test_line_12_as_printed():
    labels, masses = labels_of([[0], [1], [2], [3]], 4), exact_masses([4, 6, 1, 1], 2)
    assert rows_of(*pour(labels, masses, 2), 4, 2) == [[0, 12, 0, 0], [8, 0, 2, 2]]
    assert literal(labels, masses.tolist(), 2) == [[0, 12, 0, 0], [8, 0, 10, 10]]
    printed = rows_of(*pour(labels, masses, 2, as_printed=True), 4, 2)
    assert in_proportion(printed) == in_proportion([[0, 12, 0, 0], [8, 0, 10, 10]])


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12).filter(any), st.integers(1, 5),
       st.integers(0, 2**32))  # fmt: skip
def test_as_printed_for_any_sizes(sizes, m, seed):
    labels, masses = random_case(sizes, m, seed)
    clients, segments = pour(labels, masses, m, as_printed=True)
    dense = rows_of(clients, segments, len(sizes), m)
    assert in_proportion(dense) == in_proportion(literal(labels, masses.tolist(), m))


def random_case(sizes, m, seed):
    """Groups from the cut of a random tree, as a scheme has them."""
    rng = np.random.default_rng(seed)
    masses = exact_masses(np.array(sizes, dtype=object), m)
    alive, merges = list(range(len(sizes))), []
    for node in range(len(sizes), 2 * len(sizes) - 1):
        merges.append([alive.pop(int(rng.integers(len(alive)))) for _ in range(2)])
        alive.append(node)
    _, rest = split_large(masses, sum(sizes))
    return cut(np.array(merges).reshape(-1, 2), rest, sum(sizes)), masses


def test_what_a_client_fills_alone_and_the_rest_are_exact():
    masses = np.array([2**62 - 1, 2**61, 5, 0])
    full, rest = split_large(masses, 2**61)
    assert full.tolist() == [1, 1, 0, 0]
    assert rest.tolist() == [2**61 - 1, 0, 5, 0]


size_lists = st.lists(
    st.one_of(st.integers(0, 10), st.integers(0, 10**4), st.integers(0, 2**63)),
    min_size=1,
    max_size=12,
).filter(any)


@given(size_lists, st.integers(1, 15), st.integers(0, 2**32))
def test_unbiased_for_any_sizes(sizes, m, seed):
    labels, masses = random_case(sizes, m, seed)
    assert masses.dtype == (np.int64 if m * sum(sizes) < 2**63 else object)
    clients, segments = pour(labels, masses, m)
    assert clients.dtype == np.int64
    assert segments.dtype == masses.dtype
    assert len(clients) <= len(sizes) + 2 * m
    dense = rows_of(clients, segments, len(sizes), m)
    M = sum(sizes)
    assert [sum(row) for row in dense] == [M] * m
    r = [[Fraction(mass, M) for mass in row] for row in dense]
    assert [sum(column) for column in zip(*r, strict=True)] == [Fraction(m * s, M) for s in sizes]
    assert dense == one_by_one(labels.tolist(), masses.tolist(), m)
    # No client shares more rows than it must: its whole rows are its own.
    for i, size in enumerate(sizes):
        assert sum(row[i] == M for row in dense) >= m * size // M


def test_a_group_stays_together_where_it_can():
    labels = np.repeat(np.arange(5), 20)
    clients, segments = pour(labels, exact_masses([3] * 100, 5), 5)
    dense = np.array(rows_of(clients, segments, 100, 5))
    np.testing.assert_array_equal(dense > 0, labels == np.arange(5)[:, None])


def test_one_client_fills_everything():
    clients, segments = pour([0], exact_masses([7], 3), 3)
    assert clients.tolist() == [0, 0, 0]
    assert segments.tolist() == [7, 7, 7]


def test_bad_arguments():
    masses = exact_masses([1, 2, 3], 2)
    with pytest.raises(ValueError, match="groups must be 3 numbers"):
        pour([0, 1], masses, 2)
    with pytest.raises(ValueError, match="group 0 weighs 8; cut"):
        pour([0, 0, 0, 0], exact_masses([1, 1, 1, 1], 2), 2)
    with pytest.raises(ValueError, match="positive multiple of m = 5"):
        pour([0, 1, 2], masses, 5)
    for sizes in ([1.5, 2.0], [[1, 2]], [-1, 2], [0, 0], [True, True]):
        with pytest.raises(ValueError, match="sizes must be"):
            exact_masses(sizes, 2)
    with pytest.raises(TypeError):
        exact_masses(np.array([1.5, 2], dtype=object), 2)
    with pytest.raises(ValueError, match="m >= 1"):
        exact_masses([1, 2], 0)
