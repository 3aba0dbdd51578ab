"""Drop-outs that go with the data: the default rule keeps the step where it should be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import product
from math import comb, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import fedcohort
from fedcohort import Cohort, Federation, Replies, Selector
from fedcohort._internal.errors import BadParameter, UnknownName
from fedcohort._internal.random import stream
from fedcohort.designs import Rows, Simple, Stratified
from fedcohort.designs._pools import StratumPools
from fedcohort.selection import Shares
from fedcohort.server import (
    AsDrawn,
    Attendance,
    Hajek,
    Redraw,
    Survivors,
    dropout_rule,
)
from fedcohort.server._dropouts import SCALES, Turnout, jackknifed, settle
from fedcohort.simulation import DropOuts, LocalWork, Quadratic, Random
from helpers.settling import complete, survived

RNG = stream(0, "test")


# -- the parts, exactly ----------------------------------------------------------------------


@pytest.mark.parametrize("asked", [0, 1, 5, 20])
@pytest.mark.parametrize("a", [Fraction(1, 4), Fraction(1, 2), Fraction(9, 10)])
def test_the_inverse_of_the_learnt_availability_is_unbiased_but_for_a_known_rest(
    asked: int, a: Fraction
) -> None:
    mean = sum(
        comb(asked, k) * a**k * (1 - a) ** (asked - k) * Fraction(asked + 1, k + 1)
        for k in range(asked + 1)
    )
    assert mean == (1 - (1 - a) ** (asked + 1)) / a


def slow_jackknife(drawn: float, h: np.ndarray, x: np.ndarray) -> float:
    k = len(h)
    ratio = drawn * (h @ x) / h.sum()
    without = [
        drawn * (np.delete(h, i) @ np.delete(x, i)) / np.delete(h, i).sum() for i in range(k)
    ]
    return k * ratio - (k - 1) * float(np.mean(without))


@given(arrays(float, st.integers(2, 8), elements=st.floats(0.5, 2.0)), st.floats(0.1, 3.0))
def test_the_weights_of_the_jackknife_are_its_definition(h: np.ndarray, drawn: float) -> None:
    x = np.arange(len(h), dtype=float)
    weights = jackknifed(drawn, h)
    assert weights.sum() == pytest.approx(drawn)
    assert (weights >= 0).all()
    expected = slow_jackknife(drawn, h, x)
    plain = drawn * (h @ x) / h.sum()
    assert weights @ x == pytest.approx(expected) or weights @ x == pytest.approx(plain)


A = [Fraction(1, 2), Fraction(1, 4), Fraction(9, 10), Fraction(1, 3)]  # who replies
FEW = Federation.from_sizes([1, 12, 2, 5])


def outcomes(name: str) -> Iterator[tuple[Fraction, Cohort, Turnout]]:
    """Every cohort of the scheme with every set of replies, and its chance."""
    selector = Selector(fedcohort.scheme(name), FEW, seed=0)
    selector.select()
    assert selector.law is not None
    factors = np.array([1 / a for a in A])
    for chance, cohort in selector.law.enumerate():
        for replied in product((False, True), repeat=len(cohort)):
            there = np.array(replied, dtype=bool)
            of_replies = prod(
                (A[i] if up else 1 - A[i] for i, up in zip(cohort.clients, replied, strict=True)),
                start=Fraction(1),
            )
            drawn = sum(cohort.weights, Fraction(0))
            turnout = Turnout(drawn, cohort.weights, cohort.draws, factors[cohort.clients], there)
            yield chance * of_replies, cohort, turnout


def means(name: str, scale: str) -> list[Fraction]:
    """Expected weights, exactly."""
    out = [Fraction(0)] * len(FEW)
    for chance, cohort, turnout in outcomes(name):
        replies = cohort.clients[turnout.replied]
        if scale == "weights":  # it computes in floats
            turnout = turnout._replace(
                drawn=float(turnout.drawn),
                weights=turnout.weights.astype(float),
                factors=turnout.factors.astype(float),
            )
        for i, weight in zip(replies, SCALES[scale](turnout), strict=True):
            assert weight >= 0
            out[i] += chance * Fraction(weight)
    return out


FIVE = ["md:m=2", "uniform:m=3", "binomial:m=2", "pivotal:m=2", "full"]


@pytest.mark.parametrize("scale", ["difference", "none"])
@pytest.mark.parametrize("name", FIVE)
def test_the_default_is_unbiased_exactly_for_known_chances(name: str, scale: str) -> None:
    assert means(name, scale) == [FEW.shares.fraction(i) for i in range(len(FEW))]


def test_settling_is_unbiased_for_unequal_weights() -> None:
    """With learnt chances that are the true ones, by all sets of replies."""
    cohort = Cohort.of(np.arange(4), FEW.importance)
    seen = Attendance(np.full(4, 59), np.array([int(60 * a) - 1 for a in A]))
    mean = np.zeros(4)
    for replied in product((False, True), repeat=4):
        up = answering(*np.flatnonzero(replied).tolist())
        kept = complete(Hajek(), cohort, None, seen, up, RNG).cohort
        chance = float(prod(a if up else 1 - a for a, up in zip(A, replied, strict=True)))
        mean[kept.clients] += chance * kept.weights
    np.testing.assert_allclose(mean, FEW.importance, rtol=1e-12)


def test_a_draw_that_stays_lost_keeps_its_weight_after_a_redraw() -> None:
    """Client 0 had two draws and client 3 one; 1 is found for the first two, nobody for 3."""
    cohort = Cohort.of([0, 3], [0.5, 0.25], [2, 1])
    given: list[Turnout] = []

    class Watched(Redraw):
        def weights(self, turnout: Turnout) -> np.ndarray:
            given.append(turnout)
            return super().weights(turnout)

    complete(Watched(attempts=9), cohort, two_rows(), Attendance.of(6), answering(1), RNG)
    (turnout,) = given
    assert turnout.weights.tolist() == [1.0, 0.25]  # a draw of client 1 weighs 1/2
    assert turnout.draws.tolist() == [2, 1]
    assert turnout.replied.tolist() == [True, False]


@pytest.mark.parametrize("name", FIVE)
def test_scaling_to_the_sum_of_weights_is_biased(name: str) -> None:
    wanted = FEW.shares.fraction(0)  # of the smallest client
    assert abs(means(name, "weights")[0] / wanted - 1) > Fraction(1, 20)


@given(st.data())
def test_no_weight_is_negative(data: st.DataObject) -> None:
    k = data.draw(st.integers(1, 6))
    each = partial(arrays, float, k)
    turnout = Turnout(
        data.draw(st.floats(0, 10)),
        data.draw(each(elements=st.just(0.0) | st.floats(0.01, 10))),
        data.draw(each(elements=st.integers(1, 3))).astype(np.int64),
        data.draw(each(elements=st.floats(0.2, 100))),
        np.array(data.draw(st.lists(st.booleans(), min_size=k, max_size=k))),
    )
    for weights in (scale(turnout) for scale in SCALES.values()):
        assert len(weights) == turnout.replied.sum()
        assert np.isfinite(weights).all()
        assert (weights >= 0).all()


def test_the_sum_of_the_default_is_the_drawn_one_where_nobody_dwarfs_the_others() -> None:
    weights = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    factors, replied = np.full(5, 1.25), np.array([True, True, False, True, True])
    found = SCALES["difference"](Turnout(1.0, weights, np.ones(5, np.int64), factors, replied))
    assert found.sum() == pytest.approx(1.0)


def test_without_any_silence_before_who_is_missing_counts_as_the_mean_of_the_others() -> None:
    weights, ones = np.array([0.5, 0.3, 0.2]), np.ones(3)
    turnout = Turnout(1.0, weights, np.ones(3, np.int64), ones, np.array([True, False, True]))
    np.testing.assert_allclose(SCALES["difference"](turnout), np.array([5, 2]) / 7)


def test_one_answer_that_dwarfs_the_others_never_gives_a_negative_weight() -> None:
    weights = jackknifed(1.0, np.array([1000.0, 1.0, 1.0]))
    assert (weights >= 0).all()
    assert weights.sum() == pytest.approx(1.0)


def two_rows() -> Rows:
    """Clients 0-2 in the first row, 3-5 in the second."""
    return Rows.along(np.arange(6), Shares.of(np.ones(6, dtype=np.int64)), 2)


def test_pools_are_rows_or_strata_and_one_row_is_none() -> None:
    pools = two_rows().pools()
    assert pools is not None
    assert pools.of(1).clients.tolist() == [0, 1, 2]
    np.testing.assert_allclose(
        pools.average(np.array([0.0, 0.5, 1.0, 1.0, 1.0, 1.0])), [0.5] * 3 + [1.0] * 3
    )
    shares = Shares.of(np.ones(3, dtype=np.int64))
    part = Simple(shares, 1)
    strata = Stratified(
        6, (np.arange(3), np.arange(3, 6)), (part, part), (Fraction(1, 2), Fraction(1, 2))
    )
    pools = strata.pools()
    assert pools is not None
    assert pools.of(4).clients.tolist() == [3, 4, 5]
    assert not pools.of(4).again
    part = Rows.alike(Shares.of(np.array([1, 0, 1])), 1)
    strata = replace(strata, parts=(part, part))
    pools = strata.pools()
    assert pools is not None
    assert pools.of(3).clients.tolist() == [3, 5]  # 4 is never drawn, and replaces nobody
    assert pools.of(3).again
    assert Rows.alike(Shares.of(np.ones(6, dtype=np.int64)), 2).pools() is None
    assert part.pools() is None


def test_a_client_in_two_rows_is_replaced_from_each_by_its_mass_there() -> None:
    design = Rows.along(np.arange(3), Shares.of(np.array([1, 1, 1])), 2)  # client 1 in both
    pools = design.pools()
    assert pools is not None
    pool = pools.of(1)
    chances = np.bincount(pool.clients, pool.chances, minlength=3)
    np.testing.assert_allclose(chances / chances.sum(), [1 / 3, 1 / 3, 1 / 3])


def test_counts_go_with_their_clients() -> None:
    before = Attendance(np.array([5, 6, 7]), np.array([1, 2, 3]))
    after = before.moved(np.array([2, -1, 0]))  # 1 left, and a client came
    assert after.asked.tolist() == [7, 0, 5]
    assert after.answered.tolist() == [3, 0, 1]


# -- a round ---------------------------------------------------------------------------------


def answering(*up: int):
    return lambda asked: np.intersect1d(asked, np.array(up, dtype=np.int64))


def test_nothing_is_touched_while_nobody_ever_failed() -> None:
    cohort = Cohort.of([0, 3], [0.5, 0.5])
    for rule in (Redraw(), Hajek(), Survivors(), AsDrawn()):
        ended = complete(rule, cohort, two_rows(), Attendance.of(6), lambda asked: asked, RNG)
        assert ended.cohort is cohort
        assert ended.filled == 1.0


def test_a_lost_draw_is_made_again_in_its_own_row_and_keeps_its_weight() -> None:
    asked: list[list[int]] = []

    def train(clients: np.ndarray) -> np.ndarray:
        asked.append(clients.tolist())
        return np.intersect1d(clients, [1, 3])

    cohort = Cohort.of([0, 3], [0.5, 0.5])
    ended = complete(Redraw(attempts=9), cohort, two_rows(), Attendance.of(6), train, RNG)
    assert ended.cohort.clients.tolist() == [1, 3]
    assert ended.cohort.weights.tolist() == [0.5, 0.5]
    assert ended.filled == 1.0
    assert all(set(more) <= {1, 2} for more in asked[1:])  # never from the other row
    assert ended.attendance.asked[[0, 1, 3]].tolist() == [1, 1, 1]
    assert ended.attendance.answered.tolist() == [0, 1, 0, 1, 0, 0]


def test_drop_outs_are_a_conversation_without_input_or_output() -> None:
    cohort = Cohort.of([0, 3], [0.5, 0.5])
    talk = settle(Redraw(attempts=2), cohort, two_rows(), Attendance.of(6), RNG, np.array([3]))
    first = next(talk)
    assert len(first) == 1
    assert first[0] in {1, 2}  # a replacement from the row of who is missing
    second = talk.send(np.array([], dtype=np.int64))
    assert second.tolist() == [3 - first[0]]
    with pytest.raises(StopIteration) as ended:
        talk.send(second)
    assert ended.value.value.cohort.clients.tolist() == [second[0], 3]
    assert ended.value.value.filled == 1.0


def test_without_replacement_nobody_is_asked_twice() -> None:
    shares = Shares.of(np.ones(3, dtype=np.int64))
    part = Simple(shares, 2)
    strata = Stratified(
        6, (np.arange(3), np.arange(3, 6)), (part, part), (Fraction(1, 2), Fraction(1, 2))
    )
    cohort = strata.draw(stream(1, "test"))
    seen: list[int] = []

    def train(clients: np.ndarray) -> np.ndarray:
        seen.extend(clients.tolist())
        return clients[clients > 2]  # the first stratum never answers

    ended = complete(Redraw(attempts=5), cohort, strata, Attendance.of(6), train, RNG)
    assert len(seen) == len(set(seen))
    assert (ended.cohort.clients > 2).all()
    assert ended.filled == 0.5


def test_without_replacement_two_lost_draws_go_to_two_clients() -> None:
    part = Simple(Shares.of(np.ones(4, dtype=np.int64)), 2)
    halves = (Fraction(1, 2), Fraction(1, 2))
    strata = Stratified(8, (np.arange(4), np.arange(4, 8)), (part, part), halves)
    cohort = Cohort.of([0, 1, 4, 5], [0.25] * 4)
    for seed in range(10):
        up, rng = answering(2, 3, 4, 5), stream(seed, "test")
        ended = complete(Redraw(attempts=1), cohort, strata, Attendance.of(8), up, rng)
        assert ended.cohort.clients.tolist() == [2, 3, 4, 5]
        assert ended.cohort.weights.tolist() == [0.25] * 4


def test_hajek_weighs_by_earlier_rounds_only() -> None:
    cohort = Cohort.of([0, 1, 2, 3], [0.25] * 4)
    seen = Attendance(np.array([9, 9, 9, 9]), np.array([9, 4, 9, 9]))  # client 1: one in two
    ended = complete(Hajek(), cohort, None, seen, answering(0, 1, 2), RNG)
    # 1/4 of client 1 twice; 1/4 of client 3 is shared out, and client 1 gives a half of 1/2 back.
    np.testing.assert_allclose(ended.cohort.weights, [3 / 16, 10 / 16, 3 / 16])
    assert ended.filled == 0.75
    assert ended.attendance.asked.tolist() == [10, 10, 10, 10]


def test_everybody_gone_is_an_empty_cohort() -> None:
    cohort = Cohort.of([0, 3], [0.5, 0.5])
    for rule in (Redraw(), Hajek(), Survivors(), AsDrawn()):
        ended = complete(rule, cohort, two_rows(), Attendance.of(6), answering(), RNG)
        assert len(ended.cohort) == 0
        assert ended.filled == 0.0


def test_the_rule_that_does_nothing_says_that_it_is_biased() -> None:
    assert dropout_rule("none").biased
    assert dropout_rule("survivors").biased
    assert not dropout_rule("redraw").biased
    cohort = Cohort.of([0, 1], [0.5, 0.5])
    ended = complete(AsDrawn(), cohort, None, Attendance.of(2), answering(1), RNG)
    assert ended.cohort.weights.tolist() == [0.5]
    with pytest.raises(UnknownName, match="Did you mean 'hajek'"):
        dropout_rule("hajec")
    with pytest.raises(BadParameter, match="attempts"):
        Redraw(attempts=-1)


# -- the bias, measured ----------------------------------------------------------------------

N, GROUPS, M = 200, 10, 20
GROUP = np.repeat(np.arange(GROUPS), N // GROUPS)
X = np.linspace(0.5, 3.5, GROUPS)[GROUP]  # what a client would contribute
SIZES = np.random.default_rng(1).integers(20, 200, N)
ENDS = {10: (1.0, 0.8), 30: (0.95, 0.45), 50: (0.8, 0.2)}  # availability of first and last group


def availability(dropping: int) -> Random:
    return Random(tuple(np.linspace(*ENDS[dropping], GROUPS)[GROUP]))


def bias(
    name: str, rule: object, dropping: int, rounds: int, **settings: object
) -> tuple[float, float]:
    """The relative bias of sum omega_i x_i over all rounds, and its standard error."""
    scheme = fedcohort.scheme(name, m=M, **settings)
    federation = Federation.from_sizes(SIZES)
    selector = Selector(scheme, federation, seed=7)
    who = DropOuts(availability(dropping), rule)  # type: ignore[arg-type]
    attendance, estimates = Attendance.of(N), []
    for _ in range(rounds):
        cohort, attendance, _ = survived(who, selector, selector.select(), attendance)
        estimates.append(cohort.weights @ X[cohort.clients])
        selector.observe()
    target = federation.importance @ X
    got = np.array(estimates) / target
    return float(got.mean() - 1), float(got.std() / np.sqrt(rounds))


@pytest.mark.parametrize("dropping", ENDS)
def test_within_clusters_the_default_rule_is_within_two_percent(dropping: int) -> None:
    found, error = bias("target", Redraw(), dropping, 500, groups=tuple(GROUP.tolist()))
    assert abs(found) < 0.02
    assert error < 0.004  # so that the bar means something: 5 sigma is one bar


def test_schemes_that_ask_are_replaced_within_their_strata_too() -> None:
    told = np.eye(GROUPS)[GROUP] * 10
    selector = Selector(
        fedcohort.scheme("cluster", m=M, strata=GROUPS),
        Federation.from_sizes(SIZES),
        seed=7,
        ask=lambda ask: told[ask.clients],
    )
    who = DropOuts(Random(0.5), Redraw())
    attendance = Attendance.of(N)
    for _ in range(20):
        chosen = selector.select()
        kept, attendance, _ = survived(who, selector, chosen, attendance)
        assert set(GROUP[kept.clients]) == set(GROUP[chosen.clients])  # the default has attempts
        selector.observe(Replies(kept.clients, {"update": told[kept.clients]}))


def test_the_naive_mean_is_far_off_on_the_same_draws() -> None:
    found, error = bias("md", Survivors(), 50, 1000)
    assert found < -0.15
    assert error < 0.01


@pytest.mark.slow
@pytest.mark.parametrize("dropping", ENDS)
@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size", "poisson"])
def test_the_default_rule_is_within_two_percent_for_every_scheme(name: str, dropping: int) -> None:
    """Learning included; at 50 % the first hundred rounds alone are worse."""
    found, error = bias(name, Redraw(), dropping, 12_000)
    assert abs(found) < 0.02
    assert 4.9 * error < 0.02  # level 1e-6


def test_a_simulation_takes_drop_outs_and_a_void_round_leaves_the_model() -> None:
    task = Quadratic(X[:, None], sizes=SIZES)
    work = LocalWork(steps=1, lr=1.0, batch=None)
    nobody = DropOuts(Random(0.0))
    trace = fedcohort.simulate(task, "md", rounds=3, seed=0, work=work, dropouts=nobody)
    assert trace.model.tolist() == [0.0]
    assert trace.distinct.tolist() == [0, 0, 0]
    half = DropOuts(Random(0.5), quorum=1.0)
    trace = fedcohort.simulate(task, "md", rounds=3, seed=0, work=work, dropouts=half)
    assert trace.model.tolist() == [0.0]
    assert trace.settings["dropouts"]["rule"]["name"] == "redraw"


def test_a_stratum_without_chances_keeps_an_average_of_one() -> None:
    pools = StratumPools(
        (np.arange(2), np.arange(2, 4), np.array([4])),
        np.array([0.2, 0.1, 0.0, 0.0, 0.0]),
        (False, True, False),
    )
    found = pools.average(np.array([0.5, 0.2, 0.3, 0.4, 0.0]))
    np.testing.assert_allclose(found, [0.4, 0.4, 1.0, 1.0, 1.0])
    assert pools.of(0).clients.tolist() == [0, 1]
    assert pools.of(2).clients.tolist() == []
