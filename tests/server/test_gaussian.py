"""Noise on sums of clipped answers: what is bounded, what is refused, what it promises."""

from __future__ import annotations

import os
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from fedcohort import simulate
from fedcohort._internal.errors import BadInput, BudgetSpent, NoEntropy
from fedcohort.privacy._accounting import gaussian_epsilon
from fedcohort.schemes import SCHEMES, schemes
from fedcohort.selection import Cohort
from fedcohort.server import AsDrawn, Gaussian, Hajek, Plain, Redraw
from fedcohort.server import _noise_budget as private
from fedcohort.server._noise import Released, from_the_system
from fedcohort.server._noise_budget import Budget
from fedcohort.simulation import DropOuts, Random
from fedcohort.training import LocalWork, Quadratic

QUIET = {"noise": 1e-12, "seed": 0}
WORK = LocalWork(steps=1, lr=0.5, batch=None)


def task(n=6):
    return Quadratic(np.linspace(-1, 1, n)[:, None], sizes=[2] * n)


def step(private, cohort, updates, memory=None):
    start = Released() if memory is None else memory
    return private.direction(start, cohort, cohort.clients, np.asarray(updates, dtype=float))


@given(
    st.floats(-1e150, 1e150),
    st.floats(-1e150, 1e150),
    st.integers(1, 3),
    st.floats(0, 1e6),
)
def test_no_answer_moves_the_sum_by_more_than_the_noise_is_for(x, y, draws, weight):
    """The client is there or sends nothing: at most weight * clip for every draw of it."""
    private = Gaussian(clip=0.7, weight=0.2, **QUIET)
    cohort = Cohort.of([1, 4], [weight, 0.1], [draws, 1])
    there = step(private, cohort, [[x, y], [0.3, 0.1]])[0]
    gone = step(private, cohort, [[0.0, 0.0], [0.3, 0.1]])[0]
    assert np.linalg.norm(there - gone) <= 0.7 * 0.2 * draws * (1 + 1e-9)


def test_short_answers_of_light_draws_are_summed_as_they_are():
    cohort = Cohort.of([0, 2], [0.25, 0.5], [1, 2])
    updates = [[0.1, 0.2], [0.3, -0.1]]
    plain = Plain().direction(None, cohort, cohort.clients, np.array(updates))[0]
    found = step(Gaussian(clip=1.0, weight=0.25, **QUIET), cohort, updates)[0]
    np.testing.assert_allclose(found, plain, atol=1e-10)


def test_answers_in_blocks_are_summed_like_answers_at_once():
    private = Gaussian(clip=1.0, weight=0.25, quantile=0.5, noise=1.0, seed=0)
    cohort = Cohort.of([0, 2, 3], [0.25, 0.25, 0.5], [1, 1, 2])
    rows = np.array([[0.125, 0.5], [0.25, -0.5], [0.0, 4.0]])
    empty = private.begin(private.start(np.full(4, 0.25), 2), cohort)
    once, blocks = private.add(empty, cohort.clients, cohort.weights, rows), empty
    for one in range(3):
        part = slice(one, one + 1)
        blocks = private.add(blocks, cohort.clients[part], cohort.weights[part], rows[part])
    for account in (once, blocks):
        assert account.total.tolist() == [0.09375, 0.5]
        assert (account.balance, account.answered) == (0.0, 3)


def test_nobody_drawn_gives_noise_too():
    """A sum without noise in a round that drew nobody would tell that nobody was drawn."""
    private = Gaussian(clip=2.0, noise=3.0, weight=0.5, seed=1)
    direction, _ = private.finish(private.begin(Released(), Cohort.empty()), 4_000)
    assert kstest(direction / 3.0, "norm").pvalue > 1e-6
    assert kstest(direction / 3.0 * 1.2, "norm").pvalue < 1e-6  # a wrong deviation is seen


def test_the_noise_of_the_system_is_normal_and_never_the_same():
    first, second = from_the_system(4_000), from_the_system(4_000)
    assert not np.any(first == second)
    assert kstest(np.concatenate([first, second]), "norm").pvalue > 1e-6
    a, b = (step(Gaussian(), Cohort.of([0], [1.0]), [[0.0]])[0] for _ in range(2))
    assert a != b


def test_without_entropy_there_is_no_sum(monkeypatch):
    def broken(number):
        raise OSError("no entropy")

    monkeypatch.setattr(os, "urandom", broken)
    with pytest.raises(NoEntropy):
        step(Gaussian(), Cohort.of([0], [1.0]), [[0.0]])


def test_noise_of_a_simulation_differs_from_round_to_round_and_repeats():
    private, cohort = Gaussian(seed=3), Cohort.of([0], [1.0])
    first, memory = step(private, cohort, [[0.0]])
    second, _ = step(private, cohort, [[0.0]], memory)
    assert first != second
    assert first == step(private, cohort, [[0.0]])[0]


def test_a_spent_budget_ends_the_run():
    private = Gaussian(rounds=2, seed=0)
    simulate(task(), "binomial:m=2", rounds=2, work=WORK, aggregator=private)
    with pytest.raises(BudgetSpent, match="may release 2"):
        simulate(task(), "binomial:m=2", rounds=3, work=WORK, aggregator=private)


@pytest.mark.parametrize(
    ("scheme", "more", "match"),
    [
        ("uniform:m=2", {"dropouts": DropOuts(Random(0.9), Hajek())}, "drop-out rule 'none'"),
        ("uniform:m=2", {"dropouts": DropOuts(Random(0.9), Redraw())}, "drop-out rule 'none'"),
        ("uniform:m=2", {"dropouts": DropOuts(Random(0.9), AsDrawn(), 0.5)}, "quorum"),
        ("uniform:m=2", {"dropouts": DropOuts(Random(0.9), Hajek())}, "capped=true"),
        ("uniform:m=2", {"algorithm": "scaffold"}, "sends more"),
        ("rpow-d:m=2", {}, "listens to loss"),
        ("clustered-similarity:m=2", {}, "listens to update"),
        ("uniform:m=2", {"hardened": True}, "hardening by rate-cap and clip goes by that"),
        ("uniform:m=2", {"hardened": "clip"}, "hardening by clip goes by that"),
    ],
)
def test_what_has_no_bound_is_refused_with_a_sentence(scheme, more, match):
    with pytest.raises(BadInput, match=match):
        simulate(task(), scheme, rounds=1, work=WORK, aggregator="gaussian:seed=0", **more)


def test_what_the_refusal_of_guards_names_goes_with_noise():
    told = simulate(
        task(),
        "uniform:m=2",
        rounds=2,
        work=WORK,
        aggregator="gaussian:seed=0",
        hardened="size-cap+rate-cap:step=false+losses+explore",
    )
    assert np.isfinite(told.train_loss).all()
    assert [spec.partition(":")[0] for spec in told.settings["hardened"]] == [
        "size-cap",
        "rate-cap",
        "losses",
        "explore",
    ]


def test_the_trace_tells_what_was_promised():
    pytest.importorskip("dp_accounting")
    from fedcohort.privacy import price

    private = Gaussian(noise=2.0, weight=0.5, seed=0)
    told = simulate(task(), "binomial:m=2", rounds=4, work=WORK, aggregator=private).settings
    wanted = price("binomial:m=2", [2] * 6, 4, 2.0, 1e-5)
    assert told["privacy"]["epsilon"] == pytest.approx(wanted.epsilon)
    assert told["privacy"]["guarantee"] == wanted.guarantee()
    twice = Gaussian(noise=1.0, weight=1.0, seed=0)  # the same noise, said otherwise
    again = simulate(task(), "binomial:m=2", rounds=4, work=WORK, aggregator=twice).settings
    assert again["privacy"]["epsilon"] == pytest.approx(wanted.epsilon)
    plain = simulate(task(), "binomial:m=2", rounds=1, work=WORK).settings
    assert "privacy" not in plain


def test_clients_that_are_away_leave_no_amplification():
    pytest.importorskip("dp_accounting")
    private, away = Gaussian(noise=2.0, weight=0.5, seed=0), Random(0.8)
    run = {"rounds": 4, "work": WORK, "aggregator": private, "availability": away}
    told = simulate(task(), "binomial:m=2", **run).settings["privacy"]
    assert (
        told["epsilon"]
        > simulate(task(), "binomial:m=2", rounds=4, work=WORK, aggregator=private).settings[
            "privacy"
        ]["epsilon"]
    )
    assert simulate(task(), "md:m=2", **run).settings["privacy"]["epsilon"] is None


# -- calibrated by the largest weight ----------------------------------------------------------


@pytest.mark.parametrize(
    ("scheme", "wanted"),
    [
        ("uniform:m=2", 6 / 2 * 6 / 21),  # n p_i / m of the largest
        ("md:m=3", 1 / 3),
        ("binomial:m=2", 6 / 2 * 6 / 21),
        ("full", 6 / 21),
        ("pow-d:m=2", 1.0),  # no law says what a draw weighs
    ],
)
def test_noise_is_for_the_largest_weight_of_the_law(scheme, wanted):
    sizes = np.arange(1, 7)
    unequal = Quadratic(np.linspace(-1, 1, 6)[:, None], sizes=sizes)
    trace = simulate(unequal, scheme, rounds=1, work=WORK, aggregator="gaussian:clip=2,seed=0")
    assert "weight=" in trace.settings["aggregator"]
    assert trace.settings["privacy"]["deviation"] == pytest.approx(2 * wanted)


@pytest.mark.parametrize("rule", [Hajek(), Redraw()])
def test_capped_weights_go_with_rules_that_reweigh_at_a_price(rule):
    pytest.importorskip("dp_accounting")
    from fedcohort.privacy import price

    run = {"rounds": 5, "work": WORK, "dropouts": DropOuts(Random(0.7), rule)}
    words = "gaussian:clip=1,noise=2,weight=0.5,capped=true,seed=0"
    trace = simulate(task(), "uniform:m=2", aggregator=words, **run)
    plain = price("uniform:m=2", [2] * 6, 5, 2.0, 1e-5)
    told = trace.settings["privacy"]
    # Reweighed, the others tell who took part; who may stand in for others is not amplified.
    wanted = plain.unamplified if rule.attempts else plain.seen
    assert told["epsilon"] == pytest.approx(wanted)
    assert "capped" in trace.settings["aggregator"]


@given(st.floats(0, 1e6), st.integers(1, 4))
def test_a_capped_client_counts_once_whatever_it_weighs(weight, draws):
    private = Gaussian(clip=1.0, weight=0.2, capped=True, **QUIET)
    cohort = Cohort.of([1], [weight], [draws])
    moved = step(private, cohort, [[3.0, 4.0]])[0]
    assert np.linalg.norm(moved) <= 0.2 * (1 + 1e-9)


def labelled():
    """Eleven clients with a label each; the first has most of the data."""
    unequal = Quadratic(np.linspace(-1, 1, 11)[:, None], sizes=[200] + [7] * 10)
    unequal.label_histograms = unequal.sizes[:, None] * np.eye(6, dtype=int)[np.arange(11) % 6]
    unequal.classes = 6
    return unequal


def exact_epsilon(trace, noise=4.0, clip=0.5):
    """Of the worst-off client, if the weights of all rounds are known."""
    weights = np.zeros((trace.rounds, len(trace.importance)))
    for r in range(trace.rounds):
        cohort = trace.cohort(r)
        weights[r, cohort.clients] = cohort.weights
    sensitivity = np.sqrt((weights**2).sum(axis=0).max()) * clip
    deviation = trace.settings["privacy"]["deviation"]
    return gaussian_epsilon(sensitivity / deviation, 1e-5)


@pytest.mark.parametrize("weight", ["", ",weight=0.1666667"])
def test_a_scheme_that_queries_clients_keeps_its_budget_however_often_it_draws_one(weight):
    pytest.importorskip("dp_accounting")
    words = f"gaussian:clip=0.5,noise=4.0,epsilon=4.3,seed=0{weight}"
    most = {}  # draws of one client in a round
    for name, cls in schemes().items():
        scheme = SCHEMES.build(name, otherwise={"m": 6})
        if not scheme.asks or scheme.listens or cls.counts_samples:
            continue  # it has a law, is refused, or weighs samples
        trace = simulate(labelled(), scheme, rounds=15, work=WORK, aggregator=words)
        reported = trace.settings["privacy"]["epsilon"]
        assert exact_epsilon(trace) <= reported * (1 + 1e-9), name
        assert reported <= 4.3, name
        most[name] = trace.cohort_draws.max()
    assert most["target"] > 1
    assert len(most) > 10


# -- budgets -----------------------------------------------------------------------------------


def test_a_budget_in_epsilon_allows_as_many_rounds_as_it_pays_for():
    pytest.importorskip("dp_accounting")
    from fedcohort.privacy import price

    words = "gaussian:noise=3,epsilon=1.5,seed=0"
    costs = [price("binomial:m=2", [2] * 6, t, 3.0, 1e-5).epsilon for t in range(1, 40)]
    most = sum(cost <= 1.5 for cost in costs)
    assert 1 < most < 39
    trace = simulate(task(), "binomial:m=2", rounds=most, work=WORK, aggregator=words)
    assert trace.settings["privacy"]["epsilon"] == pytest.approx(costs[most - 1])
    with pytest.raises(BudgetSpent, match=f"after {most} rounds"):
        simulate(task(), "binomial:m=2", rounds=most + 1, work=WORK, aggregator=words)


@given(st.lists(st.booleans(), min_size=1, max_size=300), st.integers(1, 400))
def test_a_budget_refuses_the_first_round_too_many_and_computes_few_prices(
    rounds: list[bool], allowance: int
) -> None:
    computed = []

    def within_budget(setup: object, federation: object, full: int, away: int = 0) -> bool:
        computed.append((full, away))
        return full + 3 * away <= allowance

    setup = SimpleNamespace(aggregator=Gaussian(epsilon=1.0, rounds=None, noise=1.0, seed=0))
    budget, number, away = Budget(), 0, 0
    with patch.object(private, "within_budget", within_budget):
        for everybody in rounds:
            fits = number - away + everybody + 3 * (away + (not everybody)) <= allowance
            memory = Released(number, away)
            state = SimpleNamespace(aggregator=memory, federation=budget)
            if not fits:
                with pytest.raises(BudgetSpent, match=f"after {number} rounds"):
                    budget.require(setup, state, everybody)
                break
            budget.require(setup, state, everybody)
            number, away = number + 1, away + (not everybody)
    assert len(computed) <= 12 + number // 2


# -- clipping that follows a quantile ----------------------------------------------------------


def shortened_share(lengths, clip):
    return float(np.mean(np.asarray(lengths) <= clip))


@pytest.mark.parametrize("quantile", [0.3, 0.5, 0.8])
def test_the_clip_follows_a_quantile_of_the_lengths(quantile):
    lengths = np.linspace(0.1, 10, 40)
    rows, cohort = lengths[:, None], Cohort.of(np.arange(40), np.full(40, 1 / 40))
    private = Gaussian(clip=0.01, noise=0.2, weight=1 / 40, quantile=quantile, seed=0)
    memory, seen = private.start(np.full(40, 1 / 40), 1), []
    for _ in range(150):
        _, memory = private.direction(memory, cohort, cohort.clients, rows)
        seen.append(shortened_share(lengths, memory.clip))
    assert np.mean(seen[-50:]) == pytest.approx(quantile, abs=0.05)
    fixed = Gaussian(clip=0.01, noise=0.2, weight=1 / 40, seed=0)
    assert fixed.direction(Released(), cohort, cohort.clients, rows)[1].clip in (0.0, 0.01)


@given(st.floats(-1e3, 1e3), st.floats(-1e3, 1e3))
def test_the_count_is_one_more_coordinate_within_the_same_noise(x, y):
    """An answer with its bit, in units of the noise, is no longer than 1 / noise."""
    private = Gaussian(clip=0.7, noise=2.0, weight=0.2, quantile=0.5, seed=0)
    cohort = Cohort.of([0], [0.2])
    account = private.begin(Released(), cohort)
    account = private.add(account, cohort.clients, cohort.weights, np.array([[x, y]]))
    per_bit = private.noise * private.most * private.widened / 0.3
    vector = [*(account.total / private.deviation), account.balance / per_bit]
    assert np.linalg.norm(vector) <= 1 / private.noise * (1 + 1e-9)


def test_the_count_has_noise_of_its_own():
    """That of a coordinate, which is released, could be taken off the count again."""
    private = Gaussian(clip=0.7, noise=2.0, weight=0.2, quantile=0.4, seed=0)
    nobody = private.begin(Released(), Cohort.empty())
    _, memory = private.finish(nobody, 3)
    fourth = private.finish(nobody, 4)[0][3] / private.deviation
    count = private.noise * private.most * private.widened / 0.3 * fourth
    assert memory.clip == pytest.approx(0.7 * np.exp(-0.2 * ((1 + count) / 2 - 0.4)), rel=1e-12)


def test_what_a_guard_clips_and_what_noise_clips_is_one_piece_of_code():
    from fedcohort.server._guards import Clip, Lengths

    rows = np.random.default_rng(0).normal(size=(7, 5)) * np.arange(1, 8)[:, None]
    cohort = Cohort.of(np.arange(7), np.full(7, 1 / 7))
    norms = np.linalg.norm(rows, axis=1)
    factors = Clip(times=None, length=4.0).factors(Lengths(np.full(5, np.nan)), norms)
    found = step(Gaussian(clip=4.0, weight=1.0, **QUIET), cohort, rows)[0]
    np.testing.assert_allclose(found, (rows * factors[:, None]).mean(axis=0), atol=1e-9)


def test_noise_of_clients_in_the_simulator_is_that_of_as_many_as_answered():
    private = Gaussian(clip=1.0, noise=3.0, weight=0.25, clients=2, seed=1)
    cohort = Cohort.of(np.arange(4), np.full(4, 0.25))
    found = step(private, cohort, np.zeros((4, 4_000)))[0]
    assert kstest(found / (3.0 * 0.25 * np.sqrt(2)), "norm").pvalue > 1e-6
    assert kstest(found / (3.0 * 0.25), "norm").pvalue < 1e-6
    alone = Cohort.of([0], [0.25])
    nothing, memory = step(private, alone, np.ones((1, 3)))
    assert not nothing.any()
    assert memory.number == 0
