"""Noise on sums of clipped answers: what is bounded, what is refused, what it promises."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from fedcohort import simulate
from fedcohort.core.cohort import Cohort
from fedcohort.core.errors import BadInput, BudgetSpent, NoEntropy
from fedcohort.learning import LocalWork, Quadratic
from fedcohort.server.aggregators import Gaussian, Plain, Released
from fedcohort.server.aggregators.gaussian import from_the_system
from fedcohort.server.dropouts import AsDrawn, Hajek, Redraw
from fedcohort.simulation import Random
from fedcohort.simulation.dropouts import DropOuts

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
    from fedcohort.theory import price

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
