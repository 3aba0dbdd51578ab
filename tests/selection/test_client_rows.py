from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadInput
from fedcohort.selection._client_rows import LatestRows, fits

N, D = 9, 3
CLIENTS = st.lists(st.integers(0, N - 1), min_size=1, max_size=4, unique=True)


@given(st.lists(CLIENTS, max_size=30), st.randoms(use_true_random=False))
def test_a_table_is_the_plain_array_that_is_written_in_place(rounds, random):
    table, plain = LatestRows.nothing(N, D), np.zeros((N, D), np.float32)
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
    table, rng, shared = LatestRows.nothing(n, 2), np.random.default_rng(0), 0
    for _ in range(rounds):
        clients = rng.choice(n, k, replace=False)
        after = table.replaced(clients, np.ones((k, 2)))
        shared += after.kept is table.kept
        table = after
        assert len(table.owners) <= 150
    assert shared >= 90


def test_the_first_row_decides_on_the_dimension():
    table = LatestRows.nothing(2).replaced(np.array([0]), np.ones((1, 4)))
    assert table.dimension == 4
    with pytest.raises(BadInput, match=r"must have 4 numbers like those before it; got 5\."):
        table.replaced(np.array([1]), np.ones((1, 5)))


@pytest.mark.parametrize("table", [LatestRows.nothing(2), LatestRows.nothing(2, 4)])
@pytest.mark.parametrize(
    "rows",
    [np.ones(1), np.ones((1, 2, 2)), np.ones((1, 0)), 1j * np.ones((1, 4)), np.array([["a"] * 4])],
)
def test_what_is_no_table_of_numbers_is_refused_in_one_sentence(table, rows):
    with pytest.raises(BadInput, match=r"a table of real numbers, one row per client .* got ") as e:
        table.replaced(np.array([1]), rows)
    assert str(e.value).endswith(f"got {rows.dtype} of shape {rows.shape}.")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_fit_if_they_and_their_squares_do(dtype):
    rows = np.array([[1, 2], [np.nan, 0], [np.inf, 1], [2e18, 0], [-6e17, 6e17], [1e17, 0]], dtype)
    assert fits(rows).tolist() == [True, False, False, False, False, True]
    assert fits(np.array([[1e308, 1e308], [0, 0]])).tolist() == [False, True]
    assert fits(np.array([1.0, np.nan])).tolist() == [True, False]  # one number per client
    assert fits(np.empty((0, 3))).tolist() == []
