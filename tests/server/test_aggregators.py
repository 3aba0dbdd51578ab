from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.store import pack, unpack
from fedcohort.selection import Cohort, Replies
from fedcohort.server import Memory, Plain, aggregator
from fedcohort.server._memory import MemoryState
from fedcohort.theory import memory_variance, step_variance
from fedcohort.training import Quadratic

SIZES = [5, 4, 3, 2, 1]
D = 3
UNBIASED = ["md", "uniform", "clustered-size", "binomial"]


def remembered(federation: Federation, seed: int = 0) -> MemoryState:
    """A memory in which some clients were seen."""
    rng = np.random.default_rng(seed)
    memory = Memory().start(federation.importance, D)
    for clients in ([0, 2], [2, 3]):
        cohort = Cohort.equal(clients)
        _, memory = Memory().direction(
            memory, cohort, cohort.clients, rng.standard_normal((2, D)).astype(np.float32)
        )
    return memory


@pytest.mark.parametrize("name", UNBIASED)
def test_both_estimators_are_unbiased_and_vary_as_the_theory_says_over_all_outcomes(name):
    federation = Federation.from_sizes(SIZES)
    design = Selector(scheme(name, m=2), federation, seed=0).design()
    updates = np.random.default_rng(1).standard_normal((5, D))
    memory = remembered(federation)
    last = memory.latest.rows(np.arange(5)).astype(float)
    assert not last[1].any()
    assert last[2].any()
    target = federation.importance @ updates
    theory = step_variance(design, updates, last)
    for how, variance in ((Plain(), theory.plain), (Memory(), theory.memory)):
        steps, chances = [], []
        for chance, cohort in design.enumerate():
            weights = Cohort(cohort.clients, cohort.weights.astype(float), cohort.draws)
            step, _ = how.direction(memory, weights, cohort.clients, updates[cohort.clients])
            steps.append(step)
            chances.append(float(chance))
        mean = np.average(steps, axis=0, weights=chances)
        np.testing.assert_allclose(mean, target, atol=1e-12)
        spread = np.average(((np.array(steps) - mean) ** 2).sum(axis=1), weights=chances)
        assert spread == pytest.approx(variance, abs=1e-12)


def test_a_memory_of_wrong_weights_would_be_seen():
    """The planted defect: weights of 1/m for unequal clients drawn uniformly."""
    federation = Federation.from_sizes(SIZES)
    design = scheme("uniform", m=2).law(federation)
    mean = np.zeros(D)
    updates = np.random.default_rng(1).standard_normal((5, D))
    for chance, cohort in design.enumerate():
        step, _ = Memory().direction(
            remembered(federation),
            Cohort.equal(cohort.clients),
            cohort.clients,
            updates[cohort.clients],
        )
        mean += float(chance) * step
    assert np.abs(mean - federation.importance @ updates).max() > 1e-3


def test_exact_numbers_of_a_round_worked_by_hand():
    p = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)]
    y, delta, omega = [4, 0, 6], [5, 2, 6], Fraction(3, 2)
    wanted = sum(a * b for a, b in zip(p, y, strict=True)) + omega * (delta[1] - y[1])
    memory = Memory().start(np.array(p, dtype=float), 1)
    for i in (0, 2):
        _, memory = Memory().direction(
            memory, Cohort.of([i], 1.0), np.array([i]), np.array([[float(y[i])]])
        )
    step, after = Memory().direction(
        memory, Cohort.of([1], float(omega)), np.array([1]), np.array([[2.0]])
    )
    assert step[0] == pytest.approx(float(wanted))
    assert after.average[0] == pytest.approx(3 + 2 / 3)


def test_updates_that_repeat_have_no_variance_and_unrelated_ones_twice_as_much():
    design = scheme("md", m=2).law(Federation.from_sizes([1] * 200))
    rng = np.random.default_rng(0)
    now, then = rng.standard_normal((2, 200, 50))
    assert memory_variance(design, now, now) == 0.0
    assert step_variance(design, now, then).ratio == pytest.approx(2.0, rel=0.05)
    assert step_variance(design, now, 0 * now).ratio == 1.0
    # Twice is no bound: opposite updates, and longer ones.
    assert step_variance(design, now, -now).ratio == pytest.approx(4.0)
    assert step_variance(design, now, -2 * now).ratio == pytest.approx(9.0)
    assert step_variance(design, now, 2 * then).ratio == pytest.approx(5.0, rel=0.05)


@given(st.lists(st.sets(st.integers(0, 6), min_size=1, max_size=3), max_size=25))
def test_the_running_average_never_drifts_from_what_is_kept(rounds):
    p = np.arange(1, 8) / 28
    memory, rng = Memory().start(p, 2), np.random.default_rng(0)
    for clients in rounds:
        cohort = Cohort.equal(sorted(clients))
        updates = 1e3 * rng.standard_normal((len(clients), 2))  # float64: rounded when kept
        before, average = memory, memory.average.copy()
        _, memory = Memory().direction(memory, cohort, cohort.clients, updates)
        np.testing.assert_array_equal(before.average, average)  # a value does not change
        np.testing.assert_allclose(memory.average, memory.latest.weighted_sum(p), atol=1e-9)


def test_with_clients_away_the_target_is_that_of_those_who_are_there():
    federation = Federation.from_sizes(SIZES)
    here = federation.among([0, 2, 3])
    design = scheme("md", m=2).law(here)
    updates = np.random.default_rng(2).standard_normal((5, D))
    memory, mean = remembered(federation), np.zeros(D)
    for chance, cohort in design.enumerate():
        weights = Cohort(cohort.clients, cohort.weights.astype(float), cohort.draws)
        step, _ = Memory().direction(
            memory, weights, cohort.clients, updates[cohort.clients], here.importance
        )
        mean += float(chance) * step
    np.testing.assert_allclose(mean, here.importance @ updates, atol=1e-12)


def test_the_table_is_the_one_of_the_scheme():
    federation = Federation.from_sizes([1] * 30)
    for sketch, same in ((None, True), (2, False)):
        chooser = scheme("clustered-similarity", m=3, sketch=sketch)
        selector, memory = Selector(chooser, federation, seed=0), None
        memory, rng = Memory().start(federation.importance, D), np.random.default_rng(0)
        for _ in range(12):
            cohort = selector.select()
            updates = rng.standard_normal((len(cohort), D)).astype(np.float32)
            _, memory = Memory().direction(memory, cohort, cohort.clients, updates)
            selector.observe(Replies(cohort.clients, {"update": updates}))
            own = memory.latest.rows(np.arange(30))
            memory = Memory().shared(memory, selector.latest())
            np.testing.assert_array_equal(memory.latest.rows(np.arange(30)), own)
        assert (memory.latest is selector.latest()) is same


def test_a_memory_is_saved_without_the_table_of_the_scheme_and_gets_it_back():
    memory = remembered(Federation.from_sizes(SIZES))
    p, everyone = memory.importance, np.arange(5)
    table = memory.latest
    assert Memory().lean(memory, None) is memory
    assert Memory().lean(memory, table.moved(everyone)) is memory  # alike, but another table
    lean = Memory().lean(memory, table)
    assert (len(lean.latest), lean.latest.dimension) == (0, D)
    again = Memory().shared(lean, table)
    assert again.latest is table
    np.testing.assert_array_equal(again.average, memory.average)
    came_from = np.array([0, 1, 2, 3, 4, -1])
    more = np.append(p * 0.9, 0.1)
    scheme_moved = table.moved(came_from)
    wanted = Memory().moved(memory, more, came_from)
    for got in (
        Memory().moved(lean, more, came_from, scheme_moved),
        Memory().moved(memory, more, came_from, scheme_moved),
    ):
        assert got.latest is scheme_moved
        np.testing.assert_array_equal(got.average, wanted.average)
    forgotten = Memory().moved(lean, more, came_from)  # the scheme began anew
    assert (len(forgotten.latest), forgotten.latest.dimension) == (6, D)
    assert not forgotten.average.any()
    assert Plain().lean(None, table) is None


def test_strangers_have_no_weight():
    cohort = Cohort.of([1, 4], [0.25, 0.75])
    for how in (Plain(), Memory()):
        memory = how.start(np.full(6, 1 / 6), 1)
        for strangers in ([0], [2], [1, 5]):
            clients = np.array(strangers)
            with pytest.raises(BadInput, match=f"{strangers[-1]}.* are not among its 2 clients"):
                how.direction(memory, cohort, clients, np.ones((len(clients), 1)))
        assert how.direction(memory, cohort, np.array([4, 1]), np.ones((2, 1)))[0] == [1.0]


def test_memory_follows_clients_that_come_and_go():
    federation = Federation.from_sizes(SIZES)
    memory = remembered(federation)
    p = np.array([0.5, 0.25, 0.25])
    moved = Memory().moved(memory, p, np.array([2, -1, 0]))
    old = memory.latest.rows(np.array([2, 0]))
    np.testing.assert_array_equal(moved.latest.rows(np.array([0, 2])), old)
    np.testing.assert_allclose(moved.average, p[[0, 2]] @ old, rtol=1e-6)
    assert Plain().moved(None, p, np.array([0])) is None


def test_memory_can_be_saved():
    memory = remembered(Federation.from_sizes(SIZES))
    header, arrays = pack(memory, "memory.")
    loaded = unpack(MemoryState, header, arrays, "memory.")
    np.testing.assert_array_equal(
        loaded.latest.rows(np.arange(5)), memory.latest.rows(np.arange(5))
    )


def test_memory_steadies_a_run_side_by_side_with_the_plain_step():
    """Clients far apart, one step: their updates hardly change from round to round."""
    task = Quadratic(np.linspace(-5, 5, 20)[:, None])
    work = LocalWork(steps=1, lr=0.1, batch=None)
    spread = {}
    for how in (Plain(), Memory()):
        trace = simulate(task, scheme("uniform", m=2), rounds=300, work=work, aggregator=how)
        spread[how.name] = trace.train_loss[-100:].mean() - trace.train_loss.min()
    assert spread["memory"] < 0.1 * spread["plain"]


def test_names_and_refusals():
    assert isinstance(aggregator("memory"), Memory)
    with pytest.raises(UnknownName, match="Did you mean 'memory'"):
        aggregator("memroy")
    assert aggregator() == Plain()
    assert aggregator(how := Memory()) is how
    sums = Cohort.of([0], 1.0, per_sample=True)
    with pytest.raises(BadInput, match="use the plain estimator"):
        Memory().direction(Memory().start(np.ones(1), 1), sums, sums.clients, np.ones((1, 1)))
    design = scheme("md", m=1).law(Federation.from_sizes([1, 1]))
    with pytest.raises(BadInput, match="must have one shape"):
        step_variance(design, np.ones((2, 2)), np.ones((2, 3)))
    with pytest.raises(BadInput, match="'updates' must be finite numbers"):
        step_variance(design, [np.nan, 1.0], [0.0, 0.0])
    with pytest.raises(BadInput, match="one row of finite numbers for each of 2 clients"):
        step_variance(design, [1.0], [0.0])
