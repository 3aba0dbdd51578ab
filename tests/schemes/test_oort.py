"""Oort: scores by hand, and none of the faults of the published code."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Replies, RoundContext, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput
from fedcohort.maths import every_path
from fedcohort.schemes.oort import Utilities, mean_square
from fedcohort.training import LocalWork, Softmax

NAN = float("nan")


def state(losses: list[float], last: list[int], round: int, **more: Any) -> Utilities:
    return Utilities(
        np.array(losses), np.array(last), round,
        **{"relaxed": 0, "window": 0.0, "before": 0.0, **more},
    )  # fmt: skip


def test_scores_by_hand() -> None:
    """Sizes 1, 2, 5 of losses 4, 1, 1: utilities 4, 2, 5 eighths; T = 10, client 2 takes 20."""
    oort = scheme("oort", m=1, clip=1.0)
    federation, latency = Federation.from_sizes([1, 2, 5]), np.array([1.0, 10.0, 20.0])
    known = state([4.0, 1.0, 1.0], [3, 1, 2], 7)
    found = oort.scores(known, federation, np.arange(3), 10.0, latency)
    doubt = [math.sqrt(0.1 * math.log(8) / last) for last in (3, 1, 2)]
    want = [2 / 3 + doubt[0], 0 + doubt[1], (1 + doubt[2]) * (10 / 20) ** 2]
    np.testing.assert_allclose(found, want, rtol=1e-12)


def test_utilities_are_clipped_at_a_quantile() -> None:
    oort = scheme("oort", m=1, clip=0.5)
    known = state([1.0, 2.0, 900.0], [1, 1, 1], 1)
    found = oort.scores(known, Federation.from_sizes([1] * 3), np.arange(3), math.inf, np.zeros(3))
    assert found[1] == found[2] > found[0]  # the median is the most that counts


def test_only_those_near_the_edge_are_drawn_by_score() -> None:
    oort = scheme("oort", m=2, explore=0.0, least=0.0)
    federation = Federation.from_sizes([1] * 5)
    known = state([10.0, 9.9, 9.8, 5.0, 1.0], [1] * 5, 1)
    chances: dict[tuple[int, ...], Fraction] = {}
    for chance, cohort in every_path(
        lambda rng: oort.select(known, federation, RoundContext(), rng)
    ):
        who = tuple(cohort.clients.tolist())
        chances[who] = chances.get(who, Fraction(0)) + chance
    assert set(chances) == {(0, 1), (0, 2), (1, 2)}  # 3 and 4 are below 95 % of the second best
    assert chances[0, 1] > chances[1, 2]


def test_the_share_of_new_clients_falls_to_its_least() -> None:
    """floor(epsilon m) of 100 clients are new while there are new ones: 0.9 * 0.98^r >= 0.2."""
    oort, federation = scheme("oort", m=10), Federation.from_sizes([1] * 400)
    for round in (5, 20, 60, 100, 200):
        half = [1.0] * 200 + [NAN] * 200
        cohort = oort.select(
            state(half, [1] * 200 + [0] * 200, round), federation, RoundContext(), _rng()
        )
        new = int((cohort.clients >= 200).sum())
        assert new == math.floor(10 * max(0.9 * 0.98**round, 0.2))


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def played(n: int, m: int, rounds: int, available: Any = None, **given: Any) -> list[np.ndarray]:
    """Cohorts of a run in which losses fall as clients train, and devices differ."""
    rng = _rng(1)
    latency, losses = np.exp(rng.standard_normal(n)), 1 + rng.random(n)
    selector = Selector(scheme("oort", m=m, **given), Federation.from_sizes([10] * n), seed=0)
    out = []
    for _ in range(rounds):
        here = None if available is None else np.flatnonzero(rng.random(n) < available)
        cohort = selector.select(here, latency=latency)
        assert len(cohort) == (m if here is None else min(m, len(here)))
        assert here is None or set(cohort.clients.tolist()) <= set(here.tolist())
        told = (losses[cohort.clients] * 0.99 ** len(out)) ** 2
        selector.observe(Replies(cohort.clients, {"squared_losses": told}))
        out.append(cohort.clients)
    return out


def longest_stay(cohorts: list[np.ndarray]) -> int:
    """The most rounds in a row in which a client trains."""
    stays: dict[int, int] = {}
    longest = 0
    for clients in cohorts:
        stays = {c: stays.get(c, 0) + 1 for c in clients.tolist()}
        longest = max(longest, *stays.values())
    return longest


def test_who_was_explored_last_does_not_return_for_ever() -> None:
    """The published code never clears its list: one client trains in 132 of 200 rounds."""
    n, m, rounds = 120, 10, 200
    cohorts = played(n, m, rounds)
    seen = [set(np.concatenate(cohorts[: k + 1]).tolist()) for k in range(rounds)]
    done = next(k for k in range(rounds) if len(seen[k]) == n)
    assert done < 150  # all are explored, and the rest of the run can show the fault
    new = [c for c in cohorts[done].tolist() if c not in seen[done - 1]]
    after = np.array([sum(c in cohort for c in new) for cohort in cohorts[done + 1 :]])
    assert after.mean() < len(new) / 2
    assert longest_stay(cohorts) < 25
    # the planted mistake: the last explored are added to every later cohort
    stuck = [np.union1d(each, new) if k > done else each for k, each in enumerate(cohorts)]
    assert longest_stay(stuck) > 25


def test_absent_clients_are_never_chosen_and_cohorts_are_full() -> None:
    """The published code takes 60 absent ones at 80 % availability, and cohorts of 22 to 30."""
    played(100, 10, 150, available=0.8)
    played(40, 10, 60, available=0.15)  # sometimes fewer than m are there


def test_new_clients_are_drawn_by_speed() -> None:
    oort, federation = scheme("oort", m=1), Federation.from_sizes([1] * 3)
    context = RoundContext(0, None, np.array([1.0, 2.0, 4.0]))
    start = oort.start(federation, None)
    found = {
        int(cohort.clients[0]): float(chance)
        for chance, cohort in every_path(lambda rng: oort.select(start, federation, context, rng))
    }
    np.testing.assert_allclose([found[i] for i in range(3)], [4 / 7, 2 / 7, 1 / 7], rtol=1e-9)


def test_the_pacer_allows_for_more_time_when_utility_falls() -> None:
    oort, federation = scheme("oort", m=1, window=2), Federation.from_sizes([1] * 2)
    known = oort.start(federation, None)
    context = RoundContext(0, None, np.array([1.0, 9.0]))
    assert oort._fast_enough(known, context) == pytest.approx(1 + 0.3 * 8)
    from fedcohort import Cohort

    for told, relaxed in ((4.0, 0), (4.0, 0), (1.0, 0), (1.0, 1), (9.0, 1), (9.0, 1), (1.0, 1),
                          (1.0, 2)):  # fmt: skip
        replies = Replies(np.array([0]), {"squared_losses": np.array([told])})
        known = oort.observe(known, federation, Cohort.equal([0]), replies)
        assert known.relaxed == relaxed
    assert oort._fast_enough(known, context) == pytest.approx(1 + 0.4 * 8)
    assert oort._fast_enough(replace(known, relaxed=14), context) == math.inf
    assert oort._fast_enough(known, RoundContext()) == math.inf


def test_clients_tell_the_squares_of_their_losses() -> None:
    class Some:
        def sample_losses(self) -> Any:
            return [3.0, 4.0]

    class Nobody:
        def sample_losses(self) -> Any:
            return []

    assert mean_square(Some()) == 12.5  # type: ignore[arg-type]
    assert mean_square(Nobody()) == 0.0  # type: ignore[arg-type]


def test_a_run_prefers_fast_clients_and_keeps_what_was_told() -> None:
    rng = _rng(2)
    x, y = rng.normal(size=(400, 3)), np.arange(400) % 2
    task = Softmax(x, y, x, y, list(np.arange(400).reshape(40, 10)), 2)
    words = {"rounds": 60, "work": LocalWork(steps=2, batch=5), "devices": "lognormal:sigma=1.5"}
    slow = simulate(task, "uniform:m=5", **words).time.sum()
    for losses in ("samples", "mean"):
        trace = simulate(task, f"oort:m=5,losses={losses}", **words)
        assert trace.time.sum() < 0.7 * slow
        assert (trace.distinct == 5).all()


def test_forged_states_are_refused() -> None:
    with pytest.raises(BadInput, match="outside its range"):
        state([1.0], [1], 3, relaxed=4).check_coherent()
    with pytest.raises(BadInput, match="lacks the round"):
        state([1.0], [0], 3).check_coherent()
