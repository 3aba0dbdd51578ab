from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, CheckFailed
from fedcohort.maths._groups import neyman_allocation, proportional_allocation
from fedcohort.schemes.hcsfed import Cluster, ClusterNeyman, HCSFed, Importance, Seen
from fedcohort.selection import Claim, Cohort, Replies
from fedcohort.selection._client_rows import LatestRows
from fedcohort.testing._claims import check_unbiased
from fedcohort.theory import enumerated_moments
from fedcohort.theory._strata import (
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
    none = LatestRows.nothing(n)
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
    how = {"weights": "paper", "allocation": "proportional", "measure": "update"}
    chooser = HCSFed(m=3, strata=2, floor=TINY, **how)
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


# -- as printed --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILY)
def test_the_printed_version_sets_all_that_the_paper_prints(name):
    printed = scheme(f"{name}:version=printed")
    assert printed.allocation == ("proportional" if name == "cluster" else "paper")
    assert (printed.weights, printed.measure, printed.compression) == ("paper", "update", "centres")
    assert (printed.floor, printed.cap) == (0, None)
    assert (printed.inside, printed.strata) == (scheme(name).inside, scheme(name).strata)
    assert Claim.UNBIASED not in printed.claims
    assert scheme(printed.spec) == printed
    assert scheme(f"{name}:version=corrected") == scheme(name)


def test_a_half_printed_version_is_refused():
    must = "'compression' parameter of hcsfed must be 'centres' with version='printed'"
    with pytest.raises(BadParameter, match=must):
        scheme("hcsfed:version=printed,compression=projection")
    with pytest.raises(BadParameter, match="'allocation' parameter of hcsfed"):
        scheme("hcsfed:version=printed,allocation=proportional")
    assert scheme("hcsfed:version=printed,weights=paper,cap=none").floor == 0


def printed_law(chooser, features, sizes=SIZES, seed=0):
    state = replace(unseen(len(features)), seed=seed)
    return chooser.given(np.asarray(features, dtype=float), Federation.from_sizes(sizes), state)


def test_the_printed_version_has_the_golden_weights_and_chances():
    # "horvitz_thompson" of the golden vectors: m_h = (2, 1), which (5) gives, too, as one
    # stratum does not vary; within strata (1/6, 1/3, 1/2) and (1/2, 1/2); weights N / m omega.
    seed = next(
        seed for seed in range(50)
        if [s.tolist() for s in printed_law(HCSFed(m=3, strata=2, version="printed"), FEATURES,
                                            seed=seed).strata] in ([[0, 1, 2], [3, 4]],
                                                                   [[3, 4], [0, 1, 2]])
    )  # fmt: skip
    design = printed_law(HCSFed(m=3, strata=2, version="printed"), FEATURES, seed=seed)
    expected = [2 / 6, 2 / 3, 1, 1 / 2, 1 / 2]
    np.testing.assert_allclose(design.expected_counts(), expected, rtol=1e-12)
    outcomes = list(design.enumerate())
    for _, cohort in outcomes:
        for client, weight, draws in zip(cohort.clients, cohort.weights, cohort.draws, strict=True):
            assert weight == F(5, 3) * F(SIZES[client], 10) * int(draws)
    # Exactly: sum of m_h p_k (N / m) omega_k x_k, with replacement; the target is 3/2.
    mean = enumerated_moments(outcomes, 5).mean
    assert float(sum(mean * np.array([4, -1, 2, 7, 0]))) == pytest.approx(float(F(19, 12)))


def test_line_15_shrinks_a_model_that_nobody_changes():
    design = printed_law(HCSFed(m=2, strata=1, version="printed"), [[1.0]] * 4, [4, 3, 2, 1])
    weights = {tuple(cohort.clients): cohort.weights for _, cohort in design.enumerate()}
    assert weights[2, 3].tolist() == [F(4, 10), F(2, 10)]
    assert weights[0, 1].tolist() == [F(8, 10), F(6, 10)]


def test_the_printed_version_allocates_by_variances():
    # The golden strata: 10, 30 and 60 clients with standard deviations 5, 1 and 1/2.
    sizes, deviations = np.array([10, 30, 60]), [5, 1, 0.5]
    features = np.concatenate([
        1e4 * (h + 1) + sd * np.sqrt(1 - 1 / n) * np.tile([-1.0, 1.0], n // 2)
        for h, (n, sd) in enumerate(zip(sizes, deviations, strict=True))
    ])[:, None]  # fmt: skip
    stratum = np.repeat(np.arange(3), sizes)
    seen = set()
    for version in ("printed", "corrected"):
        chooser = HCSFed(m=20, strata=3, version=version)
        for seed in range(30):  # some first centres do not find the three
            design = printed_law(chooser, features, [1] * 100, seed)
            if sorted(map(len, design.strata)) == sizes.tolist():
                counts = np.bincount(stratum, design.expected_counts()).round(9)
                seen.add((version, *counts.tolist()))
    assert seen == {("printed", 10, 6, 4), ("corrected", 9, 6, 5)}


def test_the_printed_version_starts_from_other_clients_in_every_round():
    chooser = HCSFed(m=2, strata=2, rate=1.0, version="printed")
    federation, state = Federation.from_sizes([1] * 4), replace(unseen(4), seed=2**62 - 1)
    replies = Replies(np.array([0, 1]), {"update": np.array([[1.0, 2.0], [3.0, 4.0]])})
    after = chooser.observe(
        state, federation, Cohort(np.array([0, 1]), np.ones(2), np.ones(2, int)), replies
    )
    assert (state.seed, after.seed) == (2**62 - 1, 0)
    assert after.centres.size == 0


def test_the_printed_version_asks_for_centres():
    asked, federation = [], Federation.from_sizes([1] * 4)
    chooser = Selector(scheme("hcsfed:m=2,strata=2,version=printed"), federation, seed=0)

    def told(ask):
        asked.append(dict(ask.settings))
        return np.ones((4, 3))

    chooser.select(ask=told)
    assert asked == [{"rate": 0.1, "method": "centres"}]


# -- variances, against the theory -------------------------------------------------------------


def test_golden_variances_are_those_of_the_schemes():
    x = np.array([4.0, -1.0, 2.0, 7.0, 0.0])
    how = {"allocation": "proportional", "measure": "update"}
    chooser = HCSFed(m=3, strata=2, floor=TINY, **how)
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
    how = {"weights": "paper", "allocation": "proportional", "measure": "update"}
    chooser = HCSFed(m=3, strata=2, floor=TINY, **how)
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
    by_update = law(Importance(m=1, floor=0, measure="update"), x, sizes)
    assert by_update.aggregate_variance(x) > 0.5


@pytest.mark.parametrize("name", FAMILY)
def test_contributions_are_measured_unless_the_printed_way_is_asked_for(name):
    assert scheme(name).measure == "contribution"


@pytest.mark.parametrize("name", ["importance", "hcsfed"])
def test_with_unequal_sizes_the_default_varies_less_than_md_and_as_printed(name):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((30, 2)) + np.repeat([[5, 0], [0, 5], [-5, -5]], 10, axis=0)
    x *= rng.gamma(1.0, size=(30, 1))
    sizes = np.ceil(rng.lognormal(3, 1.2, 30)).astype(int)
    md = scheme("md", m=9).law(Federation.from_sizes(sizes)).aggregate_variance(x)
    strata = 1 if name == "importance" else 3
    how = {"m": 9, "strata": strata}
    default, printed = (
        law(scheme(name, **how, **more), x, sizes).aggregate_variance(x)
        for more in ({}, {"measure": "update"})
    )
    assert default < 0.8 * md
    assert default < 0.8 * printed


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
    flat = "cluster needs features as one row of real numbers"
    rows = "'compressed_gradient' must have one row per client asked, of numbers"
    for answer, refused in (
        ([1.0, 2.0], flat),
        (np.ones((2, 0)), flat),
        (np.ones((2, 1)) * 1j, rows),
        (np.array([["a"], ["b"]]), rows),
    ):
        with pytest.raises(BadInput, match=refused):
            chooser.select(ask=lambda ask, answer=answer: answer)


features_of = st.lists(
    st.tuples(st.floats(-1e6, 1e6), st.sampled_from([0.0, 1.0, -3.0])), min_size=2, max_size=8
)


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
