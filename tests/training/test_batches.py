from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2

from fedcohort._internal.errors import TooLarge
from fedcohort._internal.types import Ints
from fedcohort.training import LocalWork
from fedcohort.training._task import batches, participants

LEVEL = 1e-6


def philox(seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def as_lists(rows: Ints, lengths: Ints) -> list[list[int]]:
    return [batch[:length].tolist() for batch, length in zip(rows, lengths, strict=True)]


@given(
    size=st.integers(0, 40),
    batch=st.none() | st.integers(1, 50),
    steps=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_each_pass_visits_everyone_once(
    size: int, batch: int | None, steps: int, seed: int
) -> None:
    work = LocalWork(steps=steps, batch=batch)
    drawn = as_lists(*batches(philox(seed), size, work))
    assert len(drawn) == (steps if size else 0)
    if not size:
        return
    per_pass = math.ceil(size / work.batch_for(size))
    for first in range(0, steps, per_pass):
        one_pass = drawn[first : first + per_pass]
        visited = list(itertools.chain(*one_pass))
        assert len(set(visited)) == len(visited)
        if len(one_pass) == per_pass:
            assert sorted(visited) == list(range(size))
            assert {len(rows) for rows in one_pass[:-1]} <= {work.batch_for(size)}


@given(size=st.integers(1, 40), batch=st.integers(1, 50), epochs=st.integers(1, 4))
def test_epochs_are_whole_passes(size: int, batch: int, epochs: int) -> None:
    drawn = as_lists(*batches(philox(0), size, LocalWork(epochs=epochs, batch=batch)))
    assert sorted(itertools.chain(*drawn)) == sorted(list(range(size)) * epochs)


def test_fewer_steps_are_the_first_of_more() -> None:
    few = as_lists(*batches(philox(5), 23, LocalWork(steps=3, batch=10)))
    more = as_lists(*batches(philox(5), 23, LocalWork(steps=3 * 7, batch=10)))
    assert more[:3] == few


def test_passes_differ() -> None:
    drawn = as_lists(*batches(philox(1), 30, LocalWork(steps=2, batch=29)))
    assert drawn[0] != batches(philox(2), 30, LocalWork(steps=2, batch=29))[0][0].tolist()
    rows, _ = batches(philox(1), 30, LocalWork(epochs=2, batch=10))
    assert rows[:3].tolist() != rows[3:].tolist()


def chi_square_of_orders(orders: Ints) -> float:
    """Against the uniform law of all orders; the returned number is the p-value."""
    codes = [tuple(order) for order in orders.tolist()]
    counts = [codes.count(order) for order in itertools.permutations(range(orders.shape[1]))]
    expected = len(codes) / len(counts)
    statistic = sum((count - expected) ** 2 / expected for count in counts)
    return float(chi2.sf(statistic, len(counts) - 1))


def test_orders_are_uniform() -> None:
    # Level 1e-6: all 24 orders of four samples, 4,800 passes.
    rows, _ = batches(philox(3), 4, LocalWork(epochs=4800, batch=1))
    orders = rows.reshape(-1, 4)
    assert chi_square_of_orders(orders) > LEVEL
    planted = orders.copy()
    planted[:300] = [0, 1, 2, 3]  # one pass in sixteen is not shuffled
    assert chi_square_of_orders(planted) < LEVEL


def test_participants_take_part_with_the_given_probability() -> None:
    # Level 1e-6, two-sided, 20,000 samples.
    count = len(participants(philox(4), 20_000, 0.3))
    low, high = binom.ppf([LEVEL / 2, 1 - LEVEL / 2], 20_000, 0.3)
    assert low <= count <= high
    assert not low <= len(participants(philox(4), 20_000, 0.33)) <= high


def test_full_participation_draws_nothing() -> None:
    rng = philox(0)
    assert participants(rng, 5, 1.0).tolist() == [0, 1, 2, 3, 4]
    assert rng.bit_generator.random_raw() == philox(0).bit_generator.random_raw()


@pytest.mark.parametrize("batch", [None, 3, 100])
def test_training_uses_participants_only(batch: int | None) -> None:
    chosen = set(participants(philox(8), 40, 0.4).tolist())
    rows, lengths = batches(philox(8), 40, LocalWork(epochs=2, batch=batch), 0.4)
    assert set(itertools.chain(*as_lists(rows, lengths))) == chosen


def test_nobody_takes_part() -> None:
    rows, lengths = batches(philox(0), 3, LocalWork(), 1e-12)
    assert rows.size == lengths.size == 0


@pytest.mark.parametrize(
    "work", [{"steps": 10**14}, {"epochs": 10**13}, {"steps": 10**13, "batch": 5}]
)
def test_steps_that_no_memory_holds_are_refused_before_they_are_drawn(work: dict[str, int]) -> None:
    with pytest.raises(TooLarge, match="samples each would not fit in memory: lower 'steps'"):
        batches(philox(0), 5, LocalWork(**{"batch": 2, **work}))
