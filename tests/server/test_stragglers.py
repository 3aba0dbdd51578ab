"""Rules for stragglers: when rounds end, who counts, and what their weights are worth."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, permutations

import numpy as np
import pytest

from fedcohort import Federation, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.server import AsDrawn, Attendance, Redraw, Survivors, straggler_rule
from fedcohort.server._stragglers import STRAGGLERS, Deadline, First, OverCommit, Wait, prepared
from fedcohort.simulation import Always, DropOuts
from fedcohort.training import LocalWork, Quadratic
from helpers.settling import complete

NOBODY = np.zeros(0)
SECONDS = np.array([4.0, 1.0, 9.0, 2.0])


@pytest.mark.parametrize(
    ("rule", "counts", "ended"),
    [
        (Wait(), [0, 1, 2, 3], 9.0),
        (Deadline(5.0), [0, 1, 3], 5.0),
        (Deadline(20.0), [0, 1, 2, 3], 9.0),  # all are there: nobody waits
        (Deadline(0.5), [], 0.5),
        (First(2), [1, 3], 2.0),
        (First(9), [0, 1, 2, 3], 9.0),
        (First(3, 3.0), [1, 3], 3.0),
    ],
)
def test_who_counts_and_when_it_ends(rule, counts, ended) -> None:
    closed = rule.close(SECONDS, NOBODY, 4)
    assert np.flatnonzero(closed.counts).tolist() == counts
    assert closed.seconds == ended


def test_who_has_left_is_waited_for_until_then() -> None:
    gone = np.array([30.0])
    assert Wait().close(SECONDS, gone, 5).seconds == 30.0
    assert Deadline(12.0).close(SECONDS, gone, 5).seconds == 12.0
    assert First(4).close(SECONDS, gone, 5).seconds == 9.0
    assert Wait().close(NOBODY, gone, 1).seconds == 30.0
    assert Wait().close(NOBODY, NOBODY, 0).seconds == 0.0


def test_of_answers_that_come_at_once_as_many_count_as_should() -> None:
    closed = First(2).close(np.array([3.0, 3.0, 3.0]), NOBODY, 3)
    assert closed.counts.tolist() == [True, True, False]


def test_over_commitment_invites_more_and_counts_m() -> None:
    assert [OverCommit(1.3).invited(m) for m in (1, 10, 20)] == [2, 13, 26]
    chooser, rule = prepared(scheme("md", m=10), OverCommit(1.3, 60.0))
    assert (chooser, rule) == (scheme("md", m=13), First(10, 60.0))
    assert prepared(scheme("full"), Wait()) == (scheme("full"), Wait())
    with pytest.raises(BadInput, match="full has no number 'm'"):
        prepared(scheme("full"), OverCommit())


@pytest.mark.parametrize("name", ["deadline:seconds=0", "first:k=0", "over-commit:factor=0.9"])
def test_bad_settings(name: str) -> None:
    with pytest.raises(BadParameter):
        straggler_rule(name)


def test_every_rule_is_found() -> None:
    assert set(STRAGGLERS) == {"wait", "deadline", "first", "over-commit"}


# -- what weights are worth ------------------------------------------------------------------


def expected_weights(sizes_of: int, invited: int, k: int, speed) -> list[Fraction]:
    """Mean weight of every client: all cohorts, and all orders in which devices are fast."""
    total = [Fraction(0)] * sizes_of
    ways = 0
    for cohort in combinations(range(sizes_of), invited):
        for order in speed(cohort):
            first = order[:k]
            for client in first:  # the mean of those who counted
                total[client] += Fraction(1, k)
            ways += 1
    return [each / ways for each in total]


def test_the_mean_of_the_first_is_unbiased_exactly_where_devices_are_alike() -> None:
    """5 clients of importance 1/5, uniform draws of 4, of which the first 2 count."""
    fair = expected_weights(5, 4, 2, lambda cohort: list(permutations(cohort)))
    assert fair == [Fraction(1, 5)] * 5
    slow = expected_weights(5, 4, 2, lambda cohort: [tuple(sorted(cohort))])
    assert slow[0] > Fraction(1, 5) > slow[3]  # the planted mistake: client 0 is always first
    assert slow[4] == 0  # and no weight repairs who never counts


def test_the_mean_of_the_first_is_biased_if_weights_differ() -> None:
    """Cohorts of 4 of 5 clients, whose weight is 5/4 of their importance; the first 2 count."""
    importance = [Fraction(size, 20) for size in (1, 2, 3, 4, 10)]
    mean, cohorts = [Fraction(0)] * 5, list(combinations(range(5), 4))
    for cohort in cohorts:
        weights = {client: importance[client] * 5 / 4 for client in cohort}
        pairs = list(combinations(cohort, 2))
        for first in pairs:
            factor = sum(weights.values()) / sum(weights[client] for client in first)
            for client in first:
                mean[client] += weights[client] * factor / len(pairs) / len(cohorts)
    assert mean[4] < importance[4] * Fraction(9, 10)
    assert mean[0] > importance[0] * Fraction(11, 10)
    law = scheme("uniform", m=4).law(Federation.from_sizes([1, 2, 3, 4, 10]))
    drawn = law.draw(_rng())
    done = complete(Survivors(), drawn, None, Attendance.of(5), lambda asked: asked[:2], _rng())
    assert done.cohort.weights.sum() == pytest.approx(drawn.weights.sum())  # the rule above


def test_settling_divides_by_the_share_that_counted() -> None:
    cohort = scheme("uniform", m=4).law(Federation.from_sizes([1] * 5)).draw(_rng())
    some = cohort.clients[:2]
    done = complete(Survivors(), cohort, None, Attendance.of(5), lambda asked: some, _rng())
    np.testing.assert_allclose(done.cohort.weights, cohort.weights[:2] * 4 / 2)


def _rng():
    return np.random.default_rng(0)


def task(n: int = 12) -> Quadratic:
    return Quadratic(np.random.default_rng(2).standard_normal((n, 2)), sizes=[10] * n)


def test_a_deadline_in_a_run() -> None:
    words = {"rounds": 40, "work": LocalWork(steps=5, batch=10), "devices": "lognormal:jitter=0.5"}
    free = simulate(task(), "md:m=4", **words)
    limit = float(np.median(free.time))
    ended = simulate(task(), "md:m=4", stragglers=f"deadline:seconds={limit}", **words)
    np.testing.assert_allclose(ended.time, np.minimum(free.time, limit))
    assert (ended.filled < 1).any()
    assert (ended.filled == 1).any()
    assert ended.settings["dropouts_rule"] == "hajek:scale=difference"
    assert set(ended.settings["withdrawn"]) == {c.value for c in scheme("md").claims
                                                if c.name != "SUMS_TO_ONE"}  # fmt: skip
    assert "withdrawn" not in free.settings


def test_weights_behind_a_deadline_come_back_to_the_importance() -> None:
    """Each client makes it with a chance of its own; learnt chances repair the mean weight."""
    words = {
        "rounds": 400,
        "work": LocalWork(steps=1, batch=1),
        "devices": "groups:slower=1,1.6,jitter=0.5,seconds=1,device_seed=0",
        "evaluate_every": 400,
        "stragglers": "deadline:seconds=1.8",
    }

    def mean(dropouts) -> np.ndarray:
        trace = simulate(task(6), "full", dropouts=dropouts, **words)
        weights = np.bincount(trace.cohort_clients, trace.cohort_weights, minlength=6)
        return weights / trace.rounds * 6  # 1 each if it is fair

    fair, plain = mean(None), mean(DropOuts(Always(), Survivors()))
    assert np.abs(plain - 1).mean() > 0.15  # slow clients count for less
    assert np.abs(fair - 1).mean() < 0.06  # and what is left is chance


def test_over_commitment_in_a_run() -> None:
    words = {"rounds": 30, "work": LocalWork(steps=5, batch=10), "devices": "lognormal:jitter=0.3"}
    plain = simulate(task(), "uniform:m=4", **words)
    more = simulate(task(), "uniform:m=4", stragglers="over-commit:factor=1.5", **words)
    assert more.settings["dropouts_rule"] == "hajek:scale=draws"
    assert (more.distinct == 4).all()
    assert (more.invited == 6).all()
    assert more.time.sum() < 0.7 * plain.time.sum()
    np.testing.assert_allclose(more.weight_sum, 1.0)


def test_late_clients_are_known_to_be_slow() -> None:
    trace = simulate(task(), "uniform:m=12", rounds=1, devices="lognormal", stragglers="first:k=3")
    takes = np.sort(trace.latencies["training"])
    assert len(np.unique(takes)) == 3  # the others take at least as long as the third
    assert (takes[2:] == trace.time[0]).all()


def test_rules_that_do_not_fit() -> None:
    words = {"rounds": 1, "devices": "equal", "stragglers": "first:k=1"}
    with pytest.raises(BadInput, match="late clients are not replaced"):
        simulate(task(), "md:m=2", dropouts=DropOuts(Always(), Redraw()), **words)


def test_noise_for_privacy_goes_with_no_rule_by_which_clients_compete() -> None:
    """One that is fast would change the sum twice: by its answer, and by the one it keeps out."""
    words = {"rounds": 1, "devices": "equal", "aggregator": "gaussian:clip=1,noise=1,seed=0",
             "dropouts": DropOuts(Always(), AsDrawn())}  # fmt: skip
    for rule in ("first:k=1", "over-commit"):
        with pytest.raises(BadInput, match="keeps another out"):
            simulate(task(), "md:m=2", stragglers=rule, **words)
    simulate(task(), "md:m=2", stragglers="deadline:seconds=9", **words)


def test_weights_behind_the_first_answers_are_less_biased_by_learnt_chances() -> None:
    """With unequal devices k / k' is wrong for everybody; no weight makes it right."""
    words = {
        "rounds": 400,
        "work": LocalWork(steps=1, batch=1),
        "devices": "groups:slower=1,1.6,jitter=0.5,seconds=1,device_seed=0",
        "evaluate_every": 400,
        "stragglers": "over-commit:factor=1.5",
    }

    def off(dropouts) -> float:
        trace = simulate(task(12), "uniform:m=4", dropouts=dropouts, **words)
        weights = np.bincount(trace.cohort_clients, trace.cohort_weights, minlength=12)
        return float(np.abs(weights / trace.rounds * 12 - 1).mean())

    assert off(DropOuts(Always(), Survivors())) > 0.15
    assert off(None) < 0.1
