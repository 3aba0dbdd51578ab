"""TiFL: tiers, chances and credits by hand, and none of the faults of a published code."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort import Cohort, Federation, Replies, RoundContext, Selector, scheme, simulate
from fedcohort.maths import every_path
from fedcohort.schemes.latency import TierHistory
from fedcohort.training import LocalWork, Quadratic


def history(shown: list[float], trained: list[int] | None = None) -> TierHistory:
    n = len(shown)
    counts = np.zeros(n, dtype=np.int64) if trained is None else np.array(trained)
    return TierHistory(np.array(shown), np.array(shown), counts, 0)


def chances(known: TierHistory, latency: list[float], **given: Any) -> dict[Any, Fraction]:
    """Of every cohort, by enumeration."""
    n = len(latency)
    federation, context = Federation.from_sizes([1] * n), RoundContext(0, None, np.array(latency))
    tifl, found = scheme("tifl", **given), {}
    for chance, cohort in every_path(lambda rng: tifl.select(known, federation, context, rng)):
        who = tuple(cohort.clients.tolist())
        found[who] = found.get(who, Fraction(0)) + chance
    return found


NOTHING = [float("nan")] * 4


def test_a_tier_is_drawn_and_m_of_it() -> None:
    found = chances(history(NOTHING), [4.0, 1.0, 2.0, 3.0], m=1, tiers=2, policy="uniform")
    assert found == {(i,): Fraction(1, 4) for i in range(4)}
    pairs = chances(history(NOTHING), [4.0, 1.0, 2.0, 3.0], m=2, tiers=2, policy="uniform")
    assert pairs == {(1, 2): Fraction(1, 2), (0, 3): Fraction(1, 2)}
    fast = chances(history(NOTHING), [4.0, 1.0, 2.0, 3.0], m=2, tiers=2, policy="fast")
    assert fast == {(1, 2): Fraction(1)}


def test_tiers_of_high_loss_come_more_often() -> None:
    """Mean losses 1, 5 and 3 of three tiers: chances 1/6, 3/6 and 2/6."""
    known = history([1.0, 5.0, 3.0])
    found = chances(known, [1.0, 2.0, 3.0], m=1, tiers=3)
    assert found == {(0,): Fraction(1, 6), (1,): Fraction(1, 2), (2,): Fraction(1, 3)}
    even = chances(history([2.0, 2.0, 2.0]), [1.0, 2.0, 3.0], m=1, tiers=3)
    assert set(even.values()) == {Fraction(1, 3)}


@pytest.mark.parametrize(("n", "tiers"), [(7, 3), (5, 5), (3, 5), (11, 4), (1, 2)])
def test_any_number_of_clients_is_split(n: int, tiers: int) -> None:
    """A published code fails unless the number of tiers divides that of clients."""
    selector = Selector(
        scheme("tifl", m=min(2, n), tiers=tiers), Federation.from_sizes([1] * n), seed=0
    )
    seen = set()
    for _ in range(60):
        cohort = selector.select(latency=np.arange(n))
        assert len(cohort) == min(2, n)  # with replacement it would be fewer at times
        seen |= set(cohort.clients.tolist())
        selector.observe(Replies(cohort.clients, {"loss": np.ones(len(cohort))}))
    assert seen == set(range(n))


def test_a_tier_that_is_too_small_is_filled_from_faster_ones_first() -> None:
    found = chances(history([0.0, 0.0, 9.0]), [1.0, 2.0, 3.0], m=2, tiers=3)
    assert set(found) == {(1, 2), (0, 1)}  # the slow one takes 1 with it, never 0
    assert found[1, 2] == Fraction(3, 7)  # of parts 2, 2, 3


def test_credits_that_are_spent_end_nothing() -> None:
    """A published code draws for ever where the tiers with chances have no credits left."""
    latency = [1.0, 2.0, 3.0, 4.0]
    given = {"m": 2, "tiers": 2, "credits": 3}
    first = chances(history(NOTHING, [3, 3, 0, 0]), latency, **given)
    assert first == {(2, 3): Fraction(1)}  # the fast tier has had its three rounds
    anew = chances(history(NOTHING, [3, 3, 3, 3]), latency, **given)
    assert anew == {(0, 1): Fraction(1, 2), (2, 3): Fraction(1, 2)}
    selector = Selector(scheme("tifl", **given), Federation.from_sizes([1] * 4), seed=0)
    counts = np.zeros(4)
    for _ in range(30):
        cohort = selector.select(latency=latency)
        counts[cohort.clients] += 1
        assert abs(counts[:2].sum() - counts[2:].sum()) <= 2 * 3
        selector.observe(Replies(cohort.clients, {"loss": np.ones(2)}))


def test_chances_change_after_an_interval_without_progress() -> None:
    tifl, federation = scheme("tifl", m=1, interval=2), Federation.from_sizes([1] * 2)
    known = tifl.start(federation, None)

    def told(loss: float) -> list[float]:
        nonlocal known
        replies = Replies(np.array([0]), {"loss": np.array([loss])})
        known = tifl.observe(known, federation, Cohort.equal([0]), replies)
        return known.shown.tolist()

    assert np.isnan(told(9.0)).all()
    assert told(8.0)[0] == 8.0  # nothing was shown before
    assert told(7.0)[0] == 8.0
    assert told(6.0)[0] == 8.0  # better: chances stay
    assert told(9.0)[0] == 8.0
    assert told(8.5)[0] == 8.5  # no better
    assert known.trained.tolist() == [6, 0]


def test_only_those_who_are_there() -> None:
    selector = Selector(scheme("tifl", m=2, tiers=3), Federation.from_sizes([1] * 9), seed=0)
    rng = np.random.default_rng(0)
    for _ in range(100):
        here = np.flatnonzero(rng.random(9) < 0.5)
        cohort = selector.select(here, latency=np.arange(9))
        assert set(cohort.clients.tolist()) <= set(here.tolist())
        assert len(cohort) == min(2, len(here))
        selector.observe(Replies(cohort.clients, {"loss": np.ones(len(cohort))}))


def test_rounds_are_shorter_because_equals_wait_for_equals() -> None:
    task = Quadratic(np.random.default_rng(0).standard_normal((40, 2)), sizes=[10] * 40)
    words = {
        "rounds": 100,
        "work": LocalWork(steps=2, batch=5),
        "devices": "lognormal:sigma=1,profiled=true",
        "evaluate_every": 100,
    }
    plain = simulate(task, "uniform:m=8", **words).time
    tiers = simulate(task, "tifl:m=8,policy=uniform", **words).time
    assert tiers.sum() < 0.75 * plain.sum()
    fast = simulate(task, "tifl:m=8,policy=fast", **words)
    assert fast.time.sum() < 0.2 * plain.sum()
    assert (fast.participation > 0).sum() == 8
