"""Guards: each does what it says, and together they bound what a liar is worth."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

import fedcohort
from fedcohort import Cohort, Federation, Scheme, Selector, scheme
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, BadInput, BadParameter, UnknownName
from fedcohort._internal.random import stream
from fedcohort.selection import LOSS, Ask, Claim, NoState, Replies
from fedcohort.server import AsDrawn, Ledger, guards
from fedcohort.server._checkpoint import pack_state, unpack_state
from fedcohort.server._compatibility import check_compatible
from fedcohort.server._guards import (
    HARDENED,
    LOSS_BIT,
    SAVED,
    Clip,
    Debts,
    Explore,
    Lengths,
    Losses,
    Outcome,
    RateCap,
    SizeCap,
    Threshold,
    cap_shares,
    charges,
    ranks,
    withdrawn,
)
from fedcohort.server._membership import admit_clients, round_context
from fedcohort.server._round import run_round
from fedcohort.server._state import Setup, State
from fedcohort.server._transport import Responses, Transport, UpdateBlock, UpdateSum, drive
from fedcohort.simulation import Always
from fedcohort.simulation import _engine as engine
from fedcohort.training import LocalWork, Quadratic

LEVEL = 1e-6


# -- sizes ------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12), st.sampled_from([1.5, 2, 3]))
def test_shares_are_capped_by_the_largest_value_that_does(sizes: list[int], times: float) -> None:
    n, ratio = sum(size > 0 for size in sizes), Fraction(times)

    def fits(cap: int) -> bool:
        cut = [min(size, cap) for size in sizes]
        return n * max(cut) <= ratio * sum(cut)

    capped = cap_shares(sizes, times)
    best = max(cap for cap in range(max(sizes) + 1) if fits(cap))
    assert capped == [min(size, best) for size in sizes]
    assert cap_shares(capped, times) == capped


def test_a_cap_on_shares_takes_sizes_of_any_length() -> None:
    assert max(cap_shares([7] * 99 + [2**80], 2)) == 14
    with pytest.raises(BadParameter, match="a number above 1"):
        cap_shares([1, 2], 1.0)


def test_sizes_are_capped_and_the_servers_own_importances_are_not() -> None:
    told = Federation(sizes=[10] * 9 + [10**9], ids=list("abcdefghij"))
    believed = SizeCap(times=2).admitted(told)
    assert believed.ids == told.ids
    assert believed.importance.max() <= 2 / 10
    own = Federation(importance=[0.1] * 5 + [0.5], sizes=[1] * 5 + [10**9])
    assert SizeCap().admitted(own) is own
    honest = Federation.from_sizes([5, 6, 7])
    assert SizeCap().admitted(honest) is honest


# -- influence --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Greedy(Scheme[NoState]):
    """Always the first m that are there, the first of them with nearly all the weight."""

    m: int = 2
    name: ClassVar[str] = "greedy"
    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EXACTLY_M, Claim.SUMS_TO_ONE})

    def select(self, state: Any, federation: Any, context: Any, rng: Any) -> Cohort:
        here = federation.present[: self.m]
        weights = np.full(len(here), 0.1 / max(1, len(here) - 1))
        weights[:1] = 1.0 - weights[1:].sum()
        return Cohort.of(here, weights)


@pytest.mark.parametrize("times", [1.5, 2.0, 4.0])
def test_nobody_has_more_than_its_rate_and_one_round_whatever_the_scheme(times: float) -> None:
    n, rounds = 40, 300
    selector = Selector(Greedy(), Federation.from_sizes([3] * n), 0, hardened=RateCap(times=times))
    had = np.zeros(n)
    for _ in range(rounds):
        cohort = selector.select()
        assert len(cohort) == 2
        had[cohort.clients] += np.maximum(cohort.weights, 0.5)
        selector.observe()
    assert had.max() <= (rounds + SAVED) * times / n + 1
    assert had.max() > 0.8 * rounds * times / n  # the cap is used up, not more than needed is cut


def test_without_the_cap_the_same_scheme_breaks_the_bound() -> None:
    selector = Selector(Greedy(), Federation.from_sizes([3] * 40), 0, hardened="explore:share=0")
    for _ in range(20):
        assert selector.select().clients.tolist() == [0, 1]
        selector.observe()


def test_a_round_never_fails_by_the_cap() -> None:
    federation = Federation.from_sizes([3] * 6)
    selector = Selector(Greedy(m=5), federation, 0, hardened=RateCap(times=1.01))
    for _ in range(30):
        assert len(selector.select(available=[0, 1, 2, 3, 4])) == 5
        selector.observe()
    owed = RateCap().barred(
        Debts(np.array([3.0, 1, 2, 0, 0, 9])), federation.among([0, 1, 2, 3]), 2
    )
    assert owed.tolist() == [True, False, True, False, False, True]  # who owes least comes back


def test_lucky_clients_are_not_held_back_and_long_updates_are_charged() -> None:
    federation = Federation.from_sizes([1] * 10)
    law = scheme("md", m=2).law(federation)
    drawn = Cohort.of([3], [1.0], [2])
    alike = Outcome(federation, drawn, law, drawn, (), np.ones(1), np.ones(1))
    np.testing.assert_allclose(charges(alike), 0.1)
    two = Cohort.of([1, 2], [0.5, 0.5])
    long = Outcome(federation, two, law, two, (), None, np.array([3.0, 1.0]))
    np.testing.assert_allclose(charges(long)[:4], [0.1, 0.1 + 0.25, 0.1, 0.1])  # never below places
    chosen = replace(long, law=None)
    np.testing.assert_allclose(charges(chosen)[:4], [0, 0.75, 0.5, 0])
    sums = replace(two, per_sample=True)
    counted = Outcome(federation, sums, None, sums, (), None, np.array([4.0, 0.0]))
    np.testing.assert_allclose(charges(counted)[:4], [0, 1, 0, 0])


@pytest.mark.parametrize("n", [50, 200])
def test_who_seldom_draws_a_sample_saves_for_it_and_who_always_does_is_capped(n: int) -> None:
    """One client always has something to send, the others one time in four."""
    guard, rounds = RateCap(), 300
    federation, rng = Federation.from_sizes([1] * n), np.random.default_rng(0)
    state, had, missed = Debts(np.zeros(n)), np.zeros(n), np.zeros(n)
    for _ in range(rounds):
        out = guard.barred(state, federation, None)
        here = Cohort.of(np.flatnonzero(~out), 1 / np.count_nonzero(~out), data_rate=0.01)
        lengths = ((rng.random(n) < 0.25) | (np.arange(n) == 0))[here.clients] * 1.0
        outcome = Outcome(federation, here, None, here, (), None, lengths)
        state, missed = guard.after(state, outcome), missed + out
        had[here.clients] += lengths / max(1.0, lengths.sum())
    assert had.max() <= (rounds + SAVED) * guard.times / n + 1
    assert guard.times * 0.9 < had[0] * n / rounds < guard.times * (1 + SAVED / rounds) + 0.1
    assert missed[1:].mean() < 0.02 * rounds
    assert missed[0] > 0.3 * rounds
    assert state.owed.min() == pytest.approx(-SAVED * guard.times / n)


def test_who_is_not_chosen_saves_for_ten_rounds() -> None:
    federation, nobody = Federation.from_sizes([1] * 10), Cohort.empty()
    idle = Outcome(federation, nobody, None, nobody, (), None, None)
    state = Debts(np.zeros(10))
    for rounds in range(1, 15):
        state = RateCap(times=2).after(state, idle)
        np.testing.assert_allclose(state.owed, -min(rounds, SAVED) * 2 / 10)


def test_everybody_may_be_in_every_round_as_long_as_that_is_fair_on_average() -> None:
    """With `full` whose steps are long now and then nobody sits out, for others to have more."""
    n, rng = 20, np.random.default_rng(0)
    federation, guard = Federation.from_sizes([1] * n), RateCap()
    full = scheme("full")
    state, cohort = guard.start(federation, full, rng), Cohort.of(np.arange(n), 1 / n)
    forgetful = Debts(np.zeros(n))
    missed = 0
    for _ in range(200):
        assert not guard.barred(state, federation, None).any()
        lengths = rng.lognormal(0.0, 0.7, n)
        outcome = Outcome(federation, cohort, full.law(federation), cohort, (), lengths, lengths)
        state = guard.after(state, outcome)
        forgetful = Debts(np.maximum(0.0, guard.after(forgetful, outcome).owed))
        missed += np.count_nonzero(guard.barred(forgetful, federation, None))
    assert missed > 200  # an account that saves nothing bars one or two of them in every round


def test_without_the_step_lengths_are_neither_measured_nor_charged() -> None:
    guard = RateCap(times=2, step=False)
    assert RateCap.measures
    assert RateCap().measures
    assert not guard.measures
    federation, two = Federation.from_sizes([1] * 10), Cohort.of([1, 2], [0.5, 0.5])
    law = scheme("md", m=2).law(federation)
    for by in (law, None):
        long = Outcome(federation, two, by, two, (), None, np.array([3.0, 1.0]))
        alike = replace(long, counted=np.ones(2))
        start = Debts(np.zeros(10))
        np.testing.assert_array_equal(guard.after(start, long).owed, guard.after(start, alike).owed)
        assert RateCap(times=2).after(start, long).owed[1] > guard.after(start, long).owed[1]


def test_drop_outs_give_nobody_more_than_its_rate() -> None:
    federation = Federation.from_sizes([1] * 10)
    drawn, counted = Cohort.of([1, 2], [0.5, 0.5]), Cohort.of([2], [1.0])
    outcome = Outcome(federation, drawn, scheme("md", m=2).law(federation), counted, (), None, None)
    assert charges(outcome)[2] == pytest.approx(0.1 + 0.5)


def test_importances_of_the_server_are_fair_shares() -> None:
    own = Federation(importance=[0.7, 0.1, 0.1, 0.1])
    law = scheme("md", m=2).law(own)
    nobody = Cohort.empty()
    outcome = Outcome(own, nobody, law, nobody, (), None, None)
    owed = RateCap(times=2).after(Debts(np.zeros(4)), outcome).owed
    np.testing.assert_allclose(owed, own.importance * (1 - 2))
    sized = Federation.from_sizes([7, 1, 1, 1])
    outcome = replace(outcome, federation=sized, law=scheme("md", m=2).law(sized))
    assert RateCap(times=2).after(Debts(np.zeros(4)), outcome).owed[0] == pytest.approx(0.7 - 2 / 4)


def test_accounts_are_spread_over_one_cool_down() -> None:
    owed = (
        RateCap(times=2)
        .start(Federation.from_sizes([1] * 1000), scheme("fedavg:m=20"), stream(0, "x"))
        .owed
    )
    saved = SAVED * 2 / 1000
    assert owed.min() == -saved
    assert owed.max() < 1 / 20 - 2 / 1000 - saved
    np.testing.assert_allclose(np.diff(np.sort(owed)), (1 / 20 - 2 / 1000) / 1000)
    everyone = (
        RateCap(times=2)
        .start(Federation.from_sizes([1] * 10), scheme("fedavg:m=10"), stream(0, "x"))
        .owed
    )
    np.testing.assert_allclose(everyone, -SAVED * 2 / 10)
    drawn = RateCap().start(Federation.from_sizes([1] * 1000), scheme("md:m=20"), stream(0, "x"))
    np.testing.assert_allclose(drawn.owed, -SAVED * 1.75 / 1000)


# -- updates ----------------------------------------------------------------------------------


def test_an_update_is_as_long_as_past_ones_allow() -> None:
    lengths = np.array([1.0, 2.0, 100.0, 0.0])
    first = Clip(times=2).start(Federation.from_sizes([1]), scheme("md"), stream(0, "x"))
    np.testing.assert_allclose(Clip(times=2).factors(first, lengths) * lengths, [1, 2, 4, 0])
    past = Lengths(np.array([np.nan, 1.0, 1.0, 3.0, 1.0]))
    np.testing.assert_allclose(Clip(times=2).factors(past, lengths) * lengths, [1, 2, 2, 0])
    assert Clip(times=2).factors(past, np.array([0.5, 2.0])) is None
    absolute = Clip(times=None, length=1.5).factors(past, lengths)
    np.testing.assert_allclose(absolute * lengths, [1, 1.5, 1.5, 0])
    assert Clip(times=2).factors(first, np.zeros(3)) is None


def test_one_round_of_liars_does_not_lift_the_cap() -> None:
    clip, state = Clip(times=2), Lengths(np.full(5, 1.0))
    nobody = Cohort.empty()
    outcome = Outcome(Federation.from_sizes([1]), nobody, None, nobody, (), np.full(9, 1e9), None)
    state = clip.after(state, outcome)
    assert clip.longest(state, np.ones(1)) == 2.0
    quiet = replace(outcome, lengths=np.zeros(3))
    assert clip.after(state, quiet) is state


def test_five_rounds_decide_what_is_typical() -> None:
    federation, nobody = Federation.from_sizes([1]), Cohort.empty()
    clip = Clip(times=1)
    state = clip.start(federation, scheme("md"), stream(0, "x"))
    for length in (1.0, 1.0, 1.0, 3.0, 3.0, 3.0):
        outcome = Outcome(federation, nobody, None, nobody, (), np.full(2, length), None)
        state = clip.after(state, outcome)
    assert clip.longest(state, np.ones(1)) == 3.0  # of six it would be 2


class Boosting(Transport):
    """Ten clients that send the same, but for client 0, whose update is a million times as long."""

    name = "a test"

    def train(self, train: Any) -> Responses:
        return Responses(train.clients)

    def answers(self, fold: Any) -> Any:
        for client in fold.cohort.clients:  # each a block of its own
            size = 1e6 if client == 0 else 1.0
            yield UpdateBlock(np.array([client]), np.array([[size, 0.0]], dtype=np.float32))


def test_updates_are_clipped_where_they_are_folded() -> None:
    setup = Setup(scheme("full"), 0, dropouts=AsDrawn(), guards=guards("clip:times=3"))
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    state = replace(state, guards=(Lengths(np.ones(5)),))
    state, _ = run_round(setup, state, round_context(state), Boosting(), Ledger())
    np.testing.assert_allclose(state.theta, [(9 + 3) / 10, 0], rtol=1e-6)
    np.testing.assert_allclose(state.guards[0].medians, np.ones(5))


@pytest.mark.parametrize("together", [1, 3, 10])
def test_in_the_first_round_a_typical_length_is_one_of_the_whole_cohort(together: int) -> None:
    """A client that is a block of its own was its own typical client."""

    class Blocks(Boosting):
        def answers(self, fold: Any) -> Any:
            alone = list(super().answers(fold))
            for start in range(0, 10, together):
                some = alone[start : start + together]
                clients = np.concatenate([block.clients for block in some])
                yield UpdateBlock(clients, np.concatenate([block.updates for block in some]))

    setup = Setup(scheme("full"), 0, dropouts=AsDrawn(), guards=guards("clip:times=3"))
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    for rounds in (1, 2):
        state, _ = run_round(setup, state, round_context(state), Blocks(), Ledger())
        np.testing.assert_allclose(state.theta, [rounds * (9 + 3) / 10, 0], rtol=1e-6)
        assert np.count_nonzero(state.guards[0].medians == 1) == rounds


def test_updates_are_held_only_until_a_typical_length_is_known() -> None:
    most, there = 0, 0

    class Row(np.ndarray):
        def __array_finalize__(self, other: Any) -> None:
            nonlocal there
            there += 1

        def __del__(self) -> None:
            nonlocal there
            there -= 1

    class Watched(Boosting):
        def answers(self, fold: Any) -> Any:
            nonlocal most
            for client in fold.cohort.clients:
                yield UpdateBlock(np.array([client]), np.ones((1, 2)).view(Row))
                most = max(most, there)

    setup = Setup(scheme("full"), 0, dropouts=AsDrawn(), guards=guards("clip"))
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    held = []
    for _ in range(2):
        most = 0
        state, _ = run_round(setup, state, round_context(state), Watched(), Ledger())
        held.append(most)
    assert held[0] >= 10
    assert held[1] <= 4


# -- exploration ------------------------------------------------------------------------------


def test_places_go_to_others_with_the_stated_probability_and_all_alike() -> None:
    federation, trials = Federation.from_sizes([1] * 8), 4000
    chosen = Cohort.of([0, 1, 2], [0.5, 0.3, 0.2]).backed_by(np.arange(5), np.arange(5.0))
    given, others = 0, np.zeros(8, dtype=int)
    for seed in range(trials):
        cohort = Explore(share=0.25).chosen(chosen, federation, stream(seed, "x"))
        assert sorted(cohort.weights) == [0.2, 0.3, 0.5]
        assert len(cohort.reserve.members) == 3
        assert not np.isin(cohort.reserve.clients, cohort.clients).any()
        new = cohort.clients[cohort.clients > 2]
        given, others[new] = given + len(new), others[new] + 1
    low, high = binom.ppf([LEVEL, 1 - LEVEL], 3 * trials, 0.25)
    assert low <= given <= high
    low, high = binom.ppf([LEVEL, 1 - LEVEL], given, 1 / 5)
    assert np.all((low <= others[3:]) & (others[3:] <= high))


def test_a_drawn_cohort_and_one_of_everybody_stay() -> None:
    everyone = Cohort.equal([0, 1])
    assert (
        Explore(share=1).chosen(everyone, Federation.from_sizes([1, 1]), stream(0, "x")) is everyone
    )
    federation = Federation.from_sizes([1] * 9)
    plain = Selector("md:m=3", federation, 4).select()
    assert Selector("md:m=3", federation, 4, hardened="explore:share=1").select() == plain


# -- losses -----------------------------------------------------------------------------------


def test_ranks_keep_the_order_and_nothing_else() -> None:
    told = ranks(np.array([3.0, 1e30, np.nan, 3.0, -1.0]))
    np.testing.assert_array_equal(told, [0.5, 1.0, np.nan, 0.5, 0.0])
    assert ranks(np.array([2.0])).tolist() == [0.0]
    words = np.array([None, "a"], dtype=object)
    assert ranks(words) is words  # refused where it always was


def test_a_scheme_by_loss_hears_bits_and_clients_are_asked_for_no_more() -> None:
    federation, losses = Federation.from_sizes([1] * 6), np.array([0.1, 2.0, 0.3, 3.0, 0.4, 0.5])
    asked: list[Ask] = []

    def answer(ask: Ask) -> Any:
        asked.append(ask)
        return (losses[ask.clients] > ask.settings["threshold"]) * 1.0

    ledger = Ledger()
    selector = Selector(
        "pow-d:m=2,d=6", federation, 0, ask=answer, ledger=ledger, hardened="losses:report=bit"
    )
    assert selector.select().clients.tolist() == [1, 3]
    assert [ask.signal for ask in asked] == [LOSS_BIT]
    assert sum(entry.bytes_up for entry in ledger.entries if entry.purpose == "loss_bit") == 6
    selector.observe()
    setup = Setup(scheme("pow-d"), 0, guards=guards("losses:report=bit"))
    told = [each.what for each in setup.disclosures(10)]
    assert "loss_bit" in told
    assert "loss" not in told
    setup = Setup(scheme("pow-d"), 0, guards=guards("losses:report=rank"))
    told = [each.what for each in setup.disclosures(10)]
    assert "loss" in told  # the server hears it, though the scheme does not
    assert "loss_bit" not in told
    for other in ("haccs", "optimal"):  # what is no answer to a question for the loss stays
        alone, guarded = (
            Setup(scheme(other), 0, guards=guards(some)).disclosures(10)
            for some in (None, "losses:report=bit")
        )
        assert guarded == alone


def test_an_answer_that_is_no_bit_is_none() -> None:
    rows = Losses(report="bit").answer(
        Ask(LOSS_BIT, np.arange(4)), np.array([0.0, 1.0, 7.0, -1e30])
    )
    np.testing.assert_array_equal(rows, [0, 1, np.nan, np.nan])
    assert Losses(report="bit").answer(Ask(LOSS, np.arange(1)), np.array([7.0])).tolist() == [7.0]


def test_the_threshold_goes_where_half_are_above() -> None:
    rng, guard = np.random.default_rng(0), Losses(report="bit")
    state: Any = Threshold(1.0, None)
    nobody = Cohort.empty()
    for _ in range(60):
        losses = rng.lognormal(3.0, 0.5, 200)  # median exp(3) = 20
        ask = guard.question(state, Ask(LOSS, np.arange(200)))
        rows = (losses > ask.settings["threshold"]) * 1.0
        outcome = Outcome(
            Federation.from_sizes([1]), nobody, None, nobody, ((ask, rows),), None, None
        )
        state = guard.after(state, outcome)
    assert 15 < state.value < 27


# -- together ---------------------------------------------------------------------------------


def test_words_for_guards() -> None:
    assert guards(None) == guards(False) == ()
    assert guards(True) == HARDENED
    assert guards("clip:times=3+rate-cap") == (Clip(times=3), RateCap())
    assert guards("clip:times=1e+1+explore") == (Clip(times=10.0), Explore())
    assert guards([Clip(), "explore"]) == (Clip(), Explore())
    with pytest.raises(BadInput, match="names the guard 'clip' twice"):
        guards("clip+clip:times=3")
    with pytest.raises(UnknownName, match=r"no guard named 'clipp'\. Did you mean 'clip'"):
        guards("clipp")
    with pytest.raises(BadParameter, match="'hardened' parameter of a run must be True, False"):
        guards(3)  # type: ignore[arg-type]


def test_claims_are_withdrawn() -> None:
    assert withdrawn(scheme("md"), HARDENED) == {Claim.UNBIASED, Claim.NO_WORSE_THAN_MD}
    assert withdrawn(scheme("md"), ()) == frozenset()
    assert withdrawn(scheme("pow-d"), HARDENED) == frozenset()
    assert withdrawn(scheme("fedsampling"), HARDENED) == {Claim.EVEN_OVER_SAMPLES}


@pytest.mark.parametrize("name", ["pow-d", "fedavg", "rpow-d", "md", "uniform"])
def test_what_is_still_claimed_holds(name: str) -> None:
    """Exactly m clients, weights that sum to 1: in every round behind all guards."""
    chooser = scheme(name, m=4)
    left = chooser.claims - withdrawn(chooser, HARDENED)
    task = Quadratic(np.random.default_rng(0).normal(size=(20, 3)), sizes=np.arange(1, 21))
    trace = fedcohort.simulate(task, chooser, rounds=40, hardened=True)
    for round in range(trace.rounds):
        cohort = trace.cohort(round)
        if Claim.EXACTLY_M in left:
            assert len(cohort) == 4
        if Claim.SUMS_TO_ONE in left:
            assert cohort.weights.sum() == pytest.approx(1.0)


def test_a_trace_says_what_was_done_and_what_no_longer_holds() -> None:
    task = Quadratic(np.eye(6), sizes=[1, 1, 1, 1, 1, 100])
    plain = fedcohort.simulate(task, "md:m=2", rounds=2)
    assert "hardened" not in plain.settings
    assert "withdrawn" not in plain.settings
    trace = fedcohort.simulate(task, "md:m=2", rounds=2, hardened=True)
    assert trace.settings["hardened"] == [guard.spec for guard in HARDENED]
    assert Claim.UNBIASED.value in trace.settings["withdrawn"]
    assert trace.importance.max() <= 2 / 6 + 1e-12
    robust = fedcohort.simulate(task, "md:m=2", rounds=2, aggregator="median")
    assert robust.settings["withdrawn"] == [Claim.UNBIASED.value]


@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("hardened", [True, "losses:report=bit+rate-cap"])
def test_a_selector_goes_on_behind_its_guards(tmp_path: Any, pending: bool, hardened: Any) -> None:
    federation = Federation.from_sizes(np.arange(1, 31) ** 2)

    def answer(ask: Ask) -> Any:
        losses = np.sin(ask.clients * 7.0) + 1
        bit = ask.signal == LOSS_BIT
        return (losses > ask.settings["threshold"]) * 1.0 if bit else losses

    def played(selector: Selector, rounds: int) -> list[Cohort]:
        out = []
        for _ in range(rounds):
            out.append(selector.pending or selector.select())
            selector.observe()
        return out

    whole = Selector("pow-d:m=3,d=20", federation, 1, ask=answer, hardened=hardened)
    half = Selector("pow-d:m=3,d=20", federation, 1, ask=answer, hardened=hardened)
    expected = played(whole, 12)
    assert played(half, 5) == expected[:5]
    if pending:
        half.select()
    half.save(tmp_path / "x")
    again = Selector.load(tmp_path / "x", ask=answer)
    assert played(again, 7) == expected[5:]


def test_a_state_reads_back_with_what_guards_remember(tmp_path: Any) -> None:
    task = Quadratic(np.eye(12), sizes=np.arange(1, 13))
    setup = Setup(scheme("uniform:m=3"), 5, dropouts=AsDrawn(), guards=HARDENED)
    run = engine.Simulation(task, setup, LocalWork(steps=1), Always(), None)
    for _ in range(4):
        run.play()
    header, arrays = pack_state(setup, run.state)
    store.save(tmp_path / "x", {"kind": "x", **header}, arrays)
    state = unpack_state(setup, *store.load(tmp_path / "x", "x"))
    other = engine.Simulation(task, setup, LocalWork(steps=1), Always(), None)
    other.state = state
    for _ in range(5):
        assert run.play().cohort == other.play().cohort
    np.testing.assert_array_equal(run.state.theta, other.state.theta)


def test_newcomers_owe_a_place_and_others_keep_what_they_owe() -> None:
    setup = Setup(scheme("md:m=2"), 0, guards=HARDENED)
    state = State.first(setup, Federation.from_sizes({"b": 1, "c": 1, "d": 1}), np.empty(0))
    state = replace(state, guards=tuple(_owing(each) for each in state.guards))
    bigger = Federation.from_sizes({"a": 10**6, "b": 1, "c": 1, "d": 1})
    state = drive(admit_clients(setup, state, bigger, Ledger()), Boosting())
    assert state.federation.importance.max() <= 2 / 4
    debts = next(each for each in state.guards if isinstance(each, Debts))
    assert debts.owed.tolist() == [1 / 2, 0.1, 0.2, 0.3]
    forged = store.pack(debts, "")[1]
    for entrance, why in (
        (float("nan"), "is not finite"),
        (-1.0, "is no share"),
        (7, "is no share"),
    ):
        with pytest.raises(BadInput, match=f"'entrance' {why}"):
            store.unpack(Debts, {"entrance": entrance}, forged, "", {"n": 4})
    assert store.unpack(Debts, {}, forged, "", {"n": 4}).entrance == 0  # of an older file


def test_another_name_after_every_place_gains_nothing() -> None:
    """The client that is always chosen first comes back under another name when it has trained."""
    n, rounds = 20, 60

    def federation(name: int) -> Federation:
        return Federation.from_sizes([1] * n, ids=[-name, *range(1, n)])

    selector, places = Selector(Greedy(), federation(100), 0, hardened="rate-cap"), 0
    for _ in range(rounds):
        trains = 0 in selector.select().clients
        selector.observe()
        if trains:
            places += 1
            selector.update(federation(100 + places))
    assert places <= (rounds + SAVED) * 1.75 / n * Greedy().m + 1  # it had a place in every round


def _owing(known: Any) -> Any:
    return replace(known, owed=np.array([0.1, 0.2, 0.3])) if isinstance(known, Debts) else known


def test_a_void_round_charges_nobody() -> None:
    class Silent(Boosting):
        def train(self, train: Any) -> Responses:
            return Responses(train.clients[:0])

    setup = Setup(scheme("md:m=2"), 0, dropouts=AsDrawn(), guards=HARDENED)
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    after, record = run_round(setup, state, round_context(state), Silent(), Ledger())
    assert record.void
    assert after.guards is state.guards


class Sums(Transport):
    """A secure sum."""

    name = "SecAgg"
    rows = again = False


def test_a_secure_sum_refuses_what_looks_at_single_updates() -> None:
    setup = Setup(scheme("md"), 0, dropouts=AsDrawn(), guards=HARDENED)
    with pytest.raises(BadInput, match="SecAgg keeps no single update, which the guard 'clip'"):
        check_compatible(setup, Sums)
    words = "size-cap+rate-cap+losses+explore"  # as the sentence says
    check_compatible(replace(setup, guards=guards(words)), Sums)
    with pytest.raises(BadInput, match="which the aggregator 'krum' needs; use 'plain'"):
        check_compatible(
            replace(setup, guards=(), aggregator=fedcohort.server.aggregator("krum")), Sums
        )


def test_the_length_of_a_sum_is_nobodys() -> None:
    lengths: list[Any] = []

    class Watching(RateCap):
        def after(self, state: Any, outcome: Outcome) -> Any:
            lengths.append(outcome.lengths)
            return super().after(state, outcome)

    class Adding(Sums):
        def train(self, train: Any) -> Responses:
            return Responses(train.clients)

        def answers(self, fold: Any) -> Any:
            yield UpdateSum(fold.cohort.clients, np.ones(2))

    setup = Setup(scheme("md:m=2"), 0, dropouts=AsDrawn(), guards=(Watching(),))
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    run_round(setup, state, round_context(state), Adding(), Ledger())
    assert lengths == [None]


def test_what_the_refusal_names_goes_with_a_secure_sum() -> None:
    class Adding(Sums):
        def train(self, train: Any) -> Responses:
            return Responses(train.clients)

        def answers(self, fold: Any) -> Any:
            yield UpdateSum(fold.cohort.clients, np.array([1.0, 2.0]))

    words = "size-cap+rate-cap+losses+explore"
    setup = Setup(scheme("md:m=2"), 0, dropouts=AsDrawn(), guards=guards(words))
    state = State.first(setup, Federation.from_sizes([1] * 10), np.zeros(2))
    ledger = Ledger(model_bytes=8)
    for _ in range(3):
        state, record = run_round(setup, state, round_context(state), Adding(), ledger)
        assert ledger.of_round(record.round).bytes_up == 8 * len(
            record.cohort
        )  # and nothing beside it
    np.testing.assert_array_equal(state.theta, [3.0, 6.0])


def test_a_saved_selector_names_no_file_as_a_guard(tmp_path: Any) -> None:
    selector = Selector("md:m=2", Federation.from_sizes([1, 2, 3]), 0)
    selector.save(tmp_path / "x")
    header, arrays = store.load(tmp_path / "x", "selector")
    (tmp_path / "evil.py").write_text("raise SystemExit('run')")
    header["hardened"] = [str(tmp_path / "evil.py")]
    store.save(tmp_path / "y", header, arrays)
    with pytest.raises((BadCheckpoint, BadInput)):
        Selector.load(tmp_path / "y")


def test_observing_without_updates_is_enough_for_a_loop_of_ones_own() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        selector = Selector("rpow-d:m=2,d=6", Federation.from_sizes([2] * 9), 0, hardened=True)
        for _ in range(10):
            cohort = selector.select()
            selector.observe(Replies(cohort.clients, {"loss": np.ones(len(cohort))}))
    assert selector.round == 10
