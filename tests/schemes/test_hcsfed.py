from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort.core import Claim, Moment, Replies
from fedcohort.core.errors import BadInput, BadParameter, CheckFailed
from fedcohort.core.latest import Latest
from fedcohort.core.streams import stream
from fedcohort.maths.allocation import neyman_allocation, proportional_allocation
from fedcohort.schemes.hcsfed import (
    COMPRESSED_GRADIENT,
    Cluster,
    ClusterNeyman,
    HCSFed,
    Importance,
    Seen,
)
from fedcohort.simulation.tasks import Quadratic
from fedcohort.testing.claims import check_unbiased
from fedcohort.theory import enumerated_moments
from fedcohort.theory.strata import (
    hansen_hurwitz_variance,
    printed_weights,
    simple_random_variance,
    stratified_variance,
)

FAMILY = ["importance", "cluster", "cluster-neyman", "hcsfed"]
F = Fraction
SIZES = [1, 2, 3, 1, 3]  # the golden population "horvitz_thompson": omega = sizes / 10
NORMS = [1.0, 2.0, 3.0, 1.0, 1.0]
FEATURES = np.array([[1.0], [2.0], [3.0], [-1.0], [-1.0]])  # two kinds, of these lengths
KINDS = [[2.0], [-1.0]]
TINY = 1e-9


def unseen(n: int) -> Seen:
    none = Latest.nothing(n)
    state = np.zeros((0, 0)), np.zeros(n, dtype=bool), none.kept, none.recent, none.owners
    return Seen(0, 0, *state)


def law(chooser: HCSFed, features, sizes=SIZES, centres=None):
    features = np.asarray(features, dtype=float)
    state = unseen(len(features))
    if centres is not None:  # where k-means starts
        state = replace(state, centres=np.array(centres))
    return chooser.given(features, Federation.from_sizes(sizes), state)


# -- unbiased, by enumeration ------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("m", [1, 2, 3, 5])
@pytest.mark.parametrize("strata", [1, 2, 5])
def test_every_member_is_unbiased_over_all_outcomes_in_fractions(name, m, strata):
    design = law(scheme(name, m=m, strata=strata), FEATURES)
    found = enumerated_moments(design.enumerate(), 5)
    assert found.mean.tolist() == [F(size, 10) for size in SIZES]
    np.testing.assert_allclose(design.variance(), found.variance.astype(float), atol=1e-12)


@pytest.mark.parametrize("name", ["importance", "hcsfed"])
def test_the_printed_weights_are_shown_biased_by_the_same_test(name):
    federation = Federation.from_sizes(SIZES)
    check_unbiased(scheme(name, m=2, strata=1), federation)
    with pytest.raises(CheckFailed, match="the expected weight of client 0"):
        check_unbiased(scheme(name, m=2, strata=1, weights="paper"), federation)


def test_the_printed_weights_are_those_of_line_15():
    chooser = HCSFed(m=3, strata=2, weights="paper", allocation="proportional", floor=TINY)
    design = law(chooser, FEATURES, centres=KINDS)
    for chance, cohort in design.enumerate():
        assert chance > 0
        assert cohort.weights.tolist() == [
            F(5, 3) * F(SIZES[i], 10) * int(c)
            for i, c in zip(cohort.clients, cohort.draws, strict=True)
        ]
    mean = enumerated_moments(design.enumerate(), 5).mean
    x = np.array([4, -1, 2, 7, 0])
    wanted = F(19, 12)  # of the theory, with replacement; the target is 3/2
    assert float(sum(mean * x)) == pytest.approx(float(wanted), abs=1e-6)
    uniform = law(Cluster(m=3, strata=2, weights="paper"), FEATURES, centres=KINDS)
    found = enumerated_moments(uniform.enumerate(), 5).mean
    # Two of three and one of two are drawn, with weight 5/3 omega.
    assert found.tolist() == [F(5, 3) * F(s, 10) * q for s, q in zip(
        SIZES, [F(2, 3)] * 3 + [F(1, 2)] * 2, strict=True
    )]  # fmt: skip


# -- variances, against the theory -------------------------------------------------------------


def test_golden_variances_are_those_of_the_schemes():
    x = np.array([4.0, -1.0, 2.0, 7.0, 0.0])
    chooser = HCSFed(m=3, strata=2, allocation="proportional", floor=TINY)
    hurwitz = law(chooser, FEATURES, centres=KINDS)
    assert hurwitz.aggregate_variance(x) == pytest.approx(1.07, abs=1e-6)
    uniform = law(Cluster(m=3, strata=2), FEATURES, centres=KINDS)
    assert uniform.aggregate_variance(x) == pytest.approx(0.75)


def test_the_ablation_is_a_loop_over_names():
    rng = np.random.default_rng(5)
    n, m = 12, 6
    x = np.concatenate([rng.normal(0, 0.1, (4, 2)) + 3, rng.normal(0, 2, (8, 2)) - 4])
    labels, p = np.repeat([0, 1], [4, 8]), np.full(n, 1 / n)
    deviations = [np.sqrt(np.sum((x[labels == h] - x[labels == h].mean(0)) ** 2) / (k - 1))
                  for h, k in ((0, 4), (1, 8))]  # fmt: skip
    neyman = neyman_allocation([4, 8], deviations, m)
    norms = np.linalg.norm(x, axis=1)
    wanted = {
        "uniform": simple_random_variance(x, m, p),
        "importance": hansen_hurwitz_variance(x, [0] * n, [m], norms, p),
        "cluster": stratified_variance(x, labels, proportional_allocation([4, 8], m), p),
        "cluster-neyman": stratified_variance(x, labels, neyman, p),
        "hcsfed": hansen_hurwitz_variance(x, labels, neyman, norms, p),
    }
    for name in FAMILY:
        strata = 1 if name == "importance" else 2
        design = law(scheme(name, m=m, strata=strata, floor=TINY), x, [1] * n)
        assert design.aggregate_variance(x) == pytest.approx(wanted[name], rel=1e-5), name
    assert wanted["cluster-neyman"] <= wanted["cluster"] < wanted["uniform"]


def test_the_error_of_the_printed_weights_is_that_of_the_theory():
    x = FEATURES
    chooser = HCSFed(m=3, strata=2, weights="paper", allocation="proportional", floor=TINY)
    design = law(chooser, FEATURES, centres=KINDS)
    p = np.array(SIZES) / 10
    labels, draws = [0, 0, 0, 1, 1], [2, 1]
    theory = printed_weights(x, labels, draws, NORMS, p)
    bias = (design.mean() - p) @ x
    assert float(bias @ bias) == pytest.approx(theory.squared_bias, abs=1e-6)
    assert design.aggregate_variance(x) == pytest.approx(theory.variance, abs=1e-6)


# -- edge cases --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_one_client_one_stratum_and_everybody(name):
    alone = law(scheme(name, m=1, strata=1), [[3.0]], [7])
    assert alone.mean().tolist() == [1.0]
    for strata in (1, 2, 5):
        everyone = law(scheme(name, m="all", strata=strata), FEATURES)
        ((chance, cohort),) = everyone.enumerate()
        assert chance == 1
        assert cohort.weights.tolist() == [F(size, 10) for size in SIZES]
        assert everyone.aggregate_variance(FEATURES) == 0.0


@pytest.mark.parametrize("name", ["cluster", "cluster-neyman", "hcsfed"])
def test_a_stratum_with_a_draw_for_each_is_taken_whole(name):
    features = [[10.0], [1.0], [0.0], [0.1], [0.2]]  # the first is alone, whatever is drawn
    design = law(scheme(name, m=2, strata=2), features, centres=[[10.0], [0.0]])
    for _, cohort in design.enumerate():
        assert cohort.clients[0] == 0
        assert cohort.weights[0] == F(1, 10)
    printed = law(scheme(name, m=2, strata=2, weights="paper"), features, centres=[[10.0], [0.0]])
    assert {c.weights[0] for _, c in printed.enumerate()} == {F(5, 2) * F(1, 10)}


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("features", [np.zeros((6, 2)), np.ones((6, 2))])
def test_features_that_are_all_the_same_are_one_stratum_with_equal_chances(name, features):
    design = law(scheme(name, m=3, strata=1 if name == "importance" else 3), features, [1] * 6)
    assert len(design.strata) == 1
    np.testing.assert_allclose(design.expected_counts(), 0.5)


def test_strata_of_few_distinct_features_are_not_split_by_chance():
    features = [[0.0, 0.0]] * 10 + [[1.0, 1.0]] * 10
    design = law(Cluster(m=10, strata=8), features, [1] * 20)
    assert sorted(len(s) for s in design.strata) == [10, 10]
    assert design.aggregate_variance(np.array(features)) < 1e-15


def test_with_fewer_draws_than_strata_the_most_similar_are_merged():
    features = [[0.0], [0.1], [10.0], [10.1], [50.0], [50.1]]
    design = law(Cluster(m=2, strata=3), features, [1] * 6)
    assert sorted(s.tolist() for s in design.strata) == [[0, 1, 2, 3], [4, 5]]
    assert len(law(Cluster(m=1, strata=3), features, [1] * 6).strata) == 1


def test_singletons_and_full_strata():
    design = law(ClusterNeyman(m=4, strata=2), [[0.0], [9.0], [9.5], [10.0]], [1] * 4)
    assert design.inclusion().tolist() == [1.0] * 4
    singles = law(Cluster(m=4, strata=4), [[0.0], [1.0], [5.0], [9.0]], [1] * 4)
    assert [len(s) for s in singles.strata] == [1] * 4


def test_zero_norms_in_one_stratum_give_equal_chances_there():
    features = [[5.0, 5.0], [5.1, 5.0], [0.0, 0.0], [0.0, 0.0]]
    design = law(HCSFed(m=2, strata=2), features, [1] * 4)
    np.testing.assert_allclose(design.expected_counts(), [0.5, 0.5, 0.5, 0.5], atol=0.01)
    mixed = law(Importance(m=1), [[8.0], [0.0]], [1, 1])
    assert mixed.expected_counts()[1] == pytest.approx(0.05)  # the floor
    np.testing.assert_allclose(mixed.mean(), 0.5)


def test_one_liar_does_not_fill_a_stratum():
    liars = [[1.0], [1.0], [1.0], [1e15]]
    capped = law(Importance(m=1), liars, [1] * 4)
    assert capped.expected_counts()[3] == pytest.approx(0.1 / 4 + 0.9 * 10 / 13)
    harder = law(Importance(m=1, cap=2.0), liars, [1] * 4)
    assert harder.expected_counts()[3] == pytest.approx(0.1 / 4 + 0.9 * 2 / 5)
    free = law(Importance(m=1, cap=None), liars, [1] * 4)
    assert free.expected_counts()[3] == pytest.approx(0.1 / 4 + 0.9)


@pytest.mark.parametrize("huge", [1e19, 3e38, 1e300, np.inf, np.nan])
def test_a_huge_answer_is_none_and_leaves_the_others_as_they_are(huge):
    features = np.array([[huge, 0.0], *([0.0, 1.0 + i] for i in range(5))])
    design = law(HCSFed(m=3, strata=2), features, [1] * 6)
    alone = law(HCSFed(m=2, strata=2), features[1:], [1] * 5)
    assert [0] in [s.tolist() for s in design.strata]
    counts = design.expected_counts()
    assert counts[0] == 1.0
    np.testing.assert_allclose(counts[1:], alone.expected_counts())
    np.testing.assert_allclose(design.mean(), 1 / 6)


@pytest.mark.parametrize("name", FAMILY)
def test_what_is_measured_are_updates_or_contributions(name):
    rng = np.random.default_rng(3)
    x = rng.standard_normal((9, 2)) + np.repeat([[20, 0], [0, 20]], [4, 5], axis=0)
    strata = 1 if name == "importance" else 2

    def laws(sizes):
        both = (scheme(name, m=5, strata=strata, measure=w) for w in ("update", "contribution"))
        return [law(chooser, x, sizes).expected_counts() for chooser in both]

    np.testing.assert_array_equal(*laws([7] * 9))
    if name != "cluster":  # which measures nothing
        updates, contributions = laws([1, 50, 3, 2, 80, 70, 10, 90, 400])
        assert np.abs(updates - contributions).max() > 0.1
    chooser = scheme(name, m=5, strata=strata, measure="contribution")
    np.testing.assert_allclose(law(chooser, x, range(1, 10)).mean(), np.arange(1, 10) / 45)


def test_chances_by_contribution_have_no_variance_where_updates_are_alike():
    x, sizes = np.ones((4, 1)), [1, 2, 30, 4]
    by_contribution = law(Importance(m=1, floor=0, measure="contribution"), x, sizes)
    assert by_contribution.aggregate_variance(x) == pytest.approx(0, abs=1e-12)
    assert law(Importance(m=1, floor=0), x, sizes).aggregate_variance(x) > 0.5


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 12), st.integers(1, 4))
def test_neyman_by_contribution_never_varies_more_than_proportional(seed, m, strata):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((12, 2)) * rng.gamma(1.0, size=(12, 1))
    sizes = np.ceil(rng.lognormal(3, 1.2, 12)).astype(int)
    how = {"m": m, "strata": strata, "cap": None, "measure": "contribution"}
    variances = [
        law(kind(**how), x, sizes).aggregate_variance(x) for kind in (ClusterNeyman, Cluster)
    ]
    assert variances[0] <= variances[1] * (1 + 1e-6)


def test_without_a_floor_nothing_is_claimed_and_zero_is_never_drawn():
    assert Claim.UNBIASED not in HCSFed(floor=0).claims
    assert Claim.UNBIASED in Cluster(floor=0).claims  # which has no use for it
    design = law(Importance(m=2, floor=0), [[8.0], [0.0], [2.0]], [1] * 3)
    np.testing.assert_allclose(design.expected_counts(), [1.6, 0.0, 0.4])


def test_answers_that_are_not_finite_are_unknown():
    features = [[0.0, 1.0], [0.0, 1.1], [np.nan, 1.0], [5.0, np.inf], [5.0, 0.0], [5.1, 0.0]]
    design = law(ClusterNeyman(m=3, strata=2), features, [1] * 6)
    assert [2, 3] in [s.tolist() for s in design.strata]
    np.testing.assert_allclose(design.mean(), 1 / 6)
    nobody = law(HCSFed(m=3, strata=2), np.full((6, 2), np.nan), [1] * 6)
    np.testing.assert_allclose(nobody.expected_counts(), 0.5)


def test_more_strata_than_clients_and_odd_answers_are_refused():
    federation = Federation.from_sizes([1, 1, 0])
    with pytest.raises(BadParameter, match=r"'strata' parameter of cluster .* chosen \(2\)"):
        Selector(Cluster(m=1, strata=3), federation, seed=0).select(ask=lambda ask: [[1.0]] * 2)
    chooser = Selector(Cluster(m=1, strata=1), federation, seed=0)
    for odd in ([1.0, 2.0], np.ones((2, 0)), np.ones((2, 1)) * 1j, np.array([["a"], ["b"]])):
        with pytest.raises(BadInput, match="cluster needs features as one row of real numbers"):
            chooser.select(ask=lambda ask, odd=odd: odd)


features_of = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, -3.0])), min_size=2, max_size=8
)


@settings(max_examples=200, deadline=None)
@given(features_of, st.integers(1, 6), st.integers(1, 5), st.sampled_from(FAMILY), st.data())
def test_whatever_the_features_the_law_is_sound(features, m, strata, name, data):
    n = len(features)
    sizes = data.draw(st.lists(st.integers(1, 50), min_size=n, max_size=n))
    known = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    chooser = scheme(name, m=min(m, n), strata=min(strata, n))
    federation = Federation.from_sizes(sizes)
    design = chooser.given(np.array(features), federation, unseen(n), known)
    np.testing.assert_allclose(design.mean(), federation.importance, rtol=1e-9)
    assert sorted(np.concatenate(design.strata).tolist()) == list(range(n))
    assert 1 <= len(design.strata) <= min(m, n)
    assert design.expected_counts().sum() == pytest.approx(min(m, n))
    assert (design.expected_counts() > 0).all()
    told, share = known.sum(), min(m, n) * np.count_nonzero(~known) / n
    if 0 < told < n and m > 1 and strata > 1 and name != "importance":  # they are a stratum
        assert design.expected_counts()[~known].sum() >= max(1, np.floor(share)) - 1e-9


# -- what it asks, hears and remembers ---------------------------------------------------------


def test_declarations_follow_the_parameters():
    assert Claim.UNBIASED in HCSFed.claims
    assert HCSFed().asks == HCSFed.asks == {COMPRESSED_GRADIENT}
    (signal,) = HCSFed(rate=0.025).asks
    assert signal.discloses == "a summary of the model update, of 2.5 % of its length"
    assert signal.secrecy == "update"
    assert HCSFed(features="stale").asks == frozenset()
    assert HCSFed(weights="paper").claims == frozenset()
    assert Cluster().claims == {Claim.UNBIASED, Claim.EXACTLY_M}
    assert Importance().strata == 1


def task(n=20):
    """Four kinds of clients."""
    rng = np.random.default_rng(0)
    kinds = np.kron(np.eye(4), np.ones((n // 4, 10)))
    centres = 5 * kinds + 0.1 * rng.standard_normal(kinds.shape)
    return Quadratic(centres)


WORK = LocalWork(steps=1, lr=0.5, batch=None)


def test_asking_is_priced_by_the_ledger_and_stale_features_cost_nothing():
    traces = {
        how: simulate(
            task(), scheme("hcsfed", m=4, strata=4, rate=0.5, features=how), rounds=5, work=WORK
        )
        for how in ("ask", "stale")
    }
    asked = [row for row in traces["ask"].ledger if row["purpose"] == "compressed_gradient"]
    assert asked[0]["messages"] == 2 * 20 * 5
    assert asked[0]["bytes_up"] == 20 * 5 * 20 * 4  # twenty features of four bytes
    assert asked[0]["bytes_down"] == 20 * 5 * (16 + 4 * 40)  # the question and the model
    assert [row["purpose"] for row in traces["stale"].ledger] == ["training"]


@pytest.mark.parametrize("compression", ["groups", "projection"])
def test_strata_are_the_kinds_of_clients(compression):
    chooser = scheme("cluster", m=4, strata=4, rate=0.5, compression=compression)
    trace = simulate(task(), chooser, rounds=10, work=WORK)
    kinds = [sorted((trace.cohort(t).clients // 5).tolist()) for t in range(10)]
    assert kinds == [[0, 1, 2, 3]] * 10
    assert trace.pictures["strata_sizes"].sum() == 20
    assert trace.pictures["allocation"].sum() == 4
    assert trace.pictures["labels"].shape == (20,)


def test_stale_features_end_in_the_same_strata():
    trace = simulate(
        task(), scheme("cluster", m=4, strata=4, rate=1.0, features="stale"), rounds=60, work=WORK
    )
    kinds = [sorted((trace.cohort(t).clients // 5).tolist()) for t in range(50, 60)]
    assert kinds == [[0, 1, 2, 3]] * 10


def test_before_anybody_was_seen_stale_is_uniform_and_the_unseen_are_explored():
    federation = Federation.from_sizes([1] * 40)
    chooser = ClusterNeyman(m=8, strata=8, features="stale")
    state = chooser.start(federation, stream(0, "start"))
    design = chooser.design(state, federation, Moment())
    np.testing.assert_allclose(design.inclusion(), 8 / 40)
    selector, rng = Selector(chooser, federation, seed=0), np.random.default_rng(0)
    updates = rng.standard_normal((40, 12))
    seen = set()
    for _ in range(12):
        chosen = selector.select().clients
        seen |= set(chosen.tolist())
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        np.testing.assert_allclose(selector.design().mean(), 1 / 40)
    assert len(seen) >= 36  # 94 % of them by uniform sampling


def test_the_next_round_starts_from_the_last_cohort():
    chooser = Cluster(m=4, strata=4, rate=1.0)
    federation = Federation.from_sizes([1] * 8)
    selector = Selector(chooser, federation, seed=0)
    updates = np.eye(8)
    chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
    selector.observe(Replies(chosen, {"update": updates[chosen]}))
    state = selector.start()
    assert sorted(map(tuple, state.centres)) == sorted(map(tuple, updates[chosen]))
    few = Replies(chosen[:2], {"update": updates[chosen[:2]]})
    again = chooser.observe(state, federation, None, few)  # two dropped out: old centres stay
    assert again.centres is state.centres


def test_with_fewer_draws_than_strata_it_starts_from_the_last_cohort_too():
    chooser = Cluster(m=2, strata=3, rate=1.0)
    federation = Federation.from_sizes([1] * 6)
    features = np.array([[0.0], [0.1], [10.0], [10.1], [50.0], [50.1]])
    selector = Selector(chooser, federation, seed=0)
    for _ in range(3):
        chosen = selector.select(ask=lambda ask: features[ask.clients]).clients
        strata = [s.tolist() for s in selector.law.strata]
        assert sorted(strata) == [[0, 1, 2, 3], [4, 5]]
        selector.observe(Replies(chosen, {"update": features[chosen]}))
        assert selector.start().centres.shape == (2, 1)


def test_who_asks_keeps_no_features():
    chooser = HCSFed(m=4, strata=4, rate=1.0)
    selector = Selector(chooser, Federation.from_sizes([1] * 50), seed=0)
    updates = np.random.default_rng(0).standard_normal((50, 30))
    for _ in range(3):
        chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
    state = selector.start()
    assert not state.seen.any()
    assert state.kept.size == state.recent.size == state.owners.size == 0
    assert state.centres.shape == (4, 30)


@pytest.mark.parametrize("how", ["ask", "stale"])
def test_the_picture_is_what_the_last_cohort_was_drawn_from(how):
    federation = Federation.from_sizes([1] * 10 + [0] + [1] * 10 + [1] * 10)
    rng, kinds = np.random.default_rng(0), np.repeat(5 * np.eye(3), [11, 10, 10], axis=0)
    selector = Selector(Cluster(m=6, strata=3, rate=1.0, features=how), federation, seed=0)
    assert selector.picture() == {}
    for _ in range(4):
        updates = kinds + 0.1 * rng.standard_normal((31, 3))
        chosen = selector.select(ask=lambda ask, rows=updates: rows[ask.clients]).clients
        law, before = selector.law, selector.picture()
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        assert selector.law is None
        shown = selector.picture()
        assert all(np.array_equal(shown[key], before[key]) for key in before)
        assert shown["strata_sizes"].tolist() == [len(s) for s in law.strata]
        assert shown["allocation"].sum() == 6
        assert shown["labels"][10] == -1  # it has no data
        for h, members in enumerate(law.strata):
            assert np.flatnonzero(shown["labels"] == h).tolist() == members.tolist()
    selector.update(Federation.from_sizes([1] * 5))
    assert selector.picture() == {}


def test_clients_that_come_and_go_are_known_by_their_names():
    chooser = Cluster(m=2, strata=2, rate=1.0, features="stale")
    selector = Selector(chooser, Federation.from_sizes([1] * 3), seed=0)
    chosen = selector.select().clients
    selector.observe(Replies(chosen, {"update": np.eye(3)[chosen]}))
    before = selector.start()
    selector.update(Federation(sizes=[1] * 4, ids=[0, 2, 5, 7]))
    state = selector.start()
    assert state.seen.tolist() == [before.seen[0], before.seen[2], False, False]
    np.testing.assert_array_equal(
        state.latest.rows(np.array([1])), before.latest.rows(np.array([2]))
    )
    np.testing.assert_allclose(selector.design().mean(), 0.25)


@pytest.mark.parametrize("how", ["ask", "stale"])
def test_there_are_fewer_strata_when_few_clients_are_left(how):
    selector = Selector(Cluster(m=3, strata=5, features=how), Federation.from_sizes([1] * 9), 0)
    updates = np.random.default_rng(0).standard_normal((9, 20))
    for n in (9, 9, 4, 4):
        if n < len(selector.federation):
            selector.update(Federation.from_sizes([1] * n))
        chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
        assert len(selector.law.strata) <= 3
        selector.observe(Replies(chosen, {"update": updates[chosen]}))


@pytest.mark.parametrize("how", ["ask", "stale"])
@pytest.mark.parametrize("length", [19, 21, 40])  # 21 is two features, as 20 is
def test_an_update_of_another_length_is_refused(length, how):
    selector = Selector(Cluster(m=1, strata=1, features=how), Federation.from_sizes([1] * 2), 0)
    for d in (20, length):
        chosen = selector.select(ask=lambda ask: np.ones((2, 2))).clients
        rows = Replies(chosen, {"update": np.ones((1, d))})
        if d == 20:
            selector.observe(rows)
        else:
            with pytest.raises(BadInput, match=f"must have 20 numbers .* got {length}"):
                selector.observe(rows)


@pytest.mark.parametrize("odd", [np.ones(3), np.ones((3, 2, 2)), np.ones((3, 0))])
@pytest.mark.parametrize("how", ["ask", "stale"])
def test_what_is_no_update_is_refused(odd, how):
    selector = Selector(Cluster(m=3, strata=1, features=how), Federation.from_sizes([1] * 3), 0)
    chosen = selector.select(ask=lambda ask: np.ones((3, 2))).clients
    with pytest.raises(BadInput, match="cluster needs updates as one row of real numbers"):
        selector.observe(Replies(chosen, {"update": odd}))


@pytest.mark.parametrize("huge", [1e19, 1e39, 1e300])
@pytest.mark.parametrize("compression", ["groups", "centres", "projection"])
@pytest.mark.parametrize("how", ["ask", "stale"])
@pytest.mark.filterwarnings("ignore:.*not finite or huge:fedcohort.core.errors.FedcohortWarning")
def test_a_huge_update_is_left_out(huge, compression, how):
    chooser = HCSFed(m=3, strata=2, features=how, compression=compression)
    selector = Selector(chooser, Federation.from_sizes([1] * 6), seed=0)
    updates = np.random.default_rng(0).standard_normal((6, 40))
    updates[0] = huge
    for _ in range(12):
        chosen = selector.select(ask=lambda ask: updates[ask.clients, :4]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        assert np.isfinite(selector.start().centres).all()
    if how == "stale":
        assert selector.start().seen.tolist() == [False] + [True] * 5


def test_updates_of_other_kinds_of_numbers():
    selector = Selector(HCSFed(m=3, strata=2), Federation.from_sizes([1] * 6), seed=0)
    for kind in (np.int64, np.float16, np.float32, np.uint8):
        updates = np.arange(240).reshape(6, 40).astype(kind)
        chosen = selector.select(ask=lambda ask, u=updates: u[ask.clients]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
