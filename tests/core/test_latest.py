from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort.core.errors import BadInput
from fedcohort.core.latest import Latest

N, D = 9, 3
CLIENTS = st.lists(st.integers(0, N - 1), min_size=1, max_size=4, unique=True)


@given(st.lists(CLIENTS, max_size=30), st.randoms(use_true_random=False))
def test_a_table_is_the_plain_array_that_is_written_in_place(rounds, random):
    table, plain = Latest.nothing(N, D), np.zeros((N, D), np.float32)
    for clients in rounds:
        rows = np.array([[random.uniform(-1, 1) for _ in range(D)] for _ in clients])
        before, copy = table, plain.copy()
        table = table.replaced(np.array(clients), rows)
        plain[clients] = rows
        np.testing.assert_array_equal(table.rows(np.arange(N)), plain)
        np.testing.assert_array_equal(before.rows(np.arange(N)), copy)  # a value does not change
    weights = np.arange(N) / 7
    np.testing.assert_allclose(
        table.weighted_sum(weights), weights @ plain.astype(float), atol=1e-12
    )
    came_from = np.array([4, -1, 0])
    moved = table.moved(came_from).rows(np.arange(3))
    np.testing.assert_array_equal(moved[[0, 2]], plain[[4, 0]])
    assert not moved[1].any()


def test_most_rounds_share_the_large_table():
    n, k, rounds = 1000, 10, 100
    table, rng, shared = Latest.nothing(n, 2), np.random.default_rng(0), 0
    for _ in range(rounds):
        clients = rng.choice(n, k, replace=False)
        after = table.replaced(clients, np.ones((k, 2)))
        shared += after.kept is table.kept
        table = after
        assert len(table.owners) <= 150
    assert shared >= 90


def test_the_first_row_decides_on_the_dimension():
    table = Latest.nothing(2).replaced(np.array([0]), np.ones((1, 4)))
    assert table.dimension == 4
    with pytest.raises(BadInput, match=r"must have 4 numbers like those before it; got \(5,\)"):
        table.replaced(np.array([1]), np.ones((1, 5)))
    with pytest.raises(BadInput, match="must have 4 numbers"):
        table.replaced(np.array([1]), np.ones(1))
