"""The sum of sizes with noise that clients share: its law, its promise, its drop-outs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chisquare, nbinom

from fedcohort import Federation, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter, BudgetExceeded, PolicyRefused
from fedcohort.maths._noise import law
from fedcohort.privacy import ClientPolicy, PrivateSize
from fedcohort.privacy._size_estimate import NO_SHARE, SizeShare, draw_share, estimate_sum, possible
from fedcohort.simulation._clients import share_size
from fedcohort.training import LocalWork, Quadratic

WORK = LocalWork(steps=1, lr=0.5, batch=None)


def noise_law(share: SizeShare, shares: int, reach: int) -> np.ndarray:
    """P(x), |x| <= reach, of the noise in a sum of shares, by convolution."""
    q = math.exp(-1 / share.scale)
    one = nbinom.pmf(np.arange(4 * reach), shares / share.least, 1 - q)
    both = np.convolve(one, one[::-1])
    middle = len(one) - 1
    return both[middle - reach : middle + reach + 1]


@pytest.mark.parametrize("least", [1, 3, 50])
def test_enough_shares_have_discrete_laplace_noise(least):
    share = SizeShare(threshold=8, epsilon=2.0, least=least)
    found = noise_law(share, least, 60)
    np.testing.assert_allclose(found, law(share.scale, np.arange(-60, 61)), atol=1e-12)


@pytest.mark.parametrize(("shares", "holds"), [(5, True), (6, True), (9, True), (4, False)])
def test_the_ratio_of_any_two_sizes_is_within_epsilon_from_the_least_number_on(shares, holds):
    """Every outcome of the sum, for the two sizes farthest apart; fewer shares break it."""
    share = SizeShare(threshold=8, epsilon=1.5, least=5)
    chances = noise_law(share, shares, 80)
    apart = share.threshold - 2
    ratio = np.max(np.abs(np.log(chances[apart:-1]) - np.log(chances[: -apart - 1])))
    assert (ratio <= 1.5 + 1e-9) == holds


def test_drawn_shares_have_that_law():
    """Sums of as many shares as are enough, in bins of expected counts above 20; level 1e-6."""
    share, rng = SizeShare(threshold=6, epsilon=2.0, least=4), np.random.default_rng(5)
    sums = np.array([sum(share_size(rng, 3, share) for _ in range(4)) for _ in range(4_000)]) - 12
    edges = np.arange(-5, 6)
    wanted = law(share.scale, edges) * len(sums)
    seen = np.array([(sums == x).sum() for x in edges])
    rest = len(sums) - wanted.sum(), len(sums) - seen.sum()
    told = chisquare([*seen, rest[1]], [*wanted, rest[0]])
    assert told.pvalue > 1e-6
    wrong = law(share.scale * 1.3, edges) * len(sums)  # the planted defect: another scale
    assert chisquare([*seen, rest[1]], [*wrong, len(sums) - wrong.sum()]).pvalue < 1e-6


def test_the_error_is_that_of_one_client():
    """M = 300, eps = 3, a hundred clients of 40: 2 % of N, where levels have 12 % and more."""
    share = SizeShare(300, 3.0, 100)
    told = estimate_sum([40] * 100, share)
    assert told.relative_error == pytest.approx(math.sqrt(2) * 298 / 3 / 4000, rel=0.01)
    assert told.answered == 100


def test_missing_shares_are_made_up_for_until_too_few_are_left():
    share = SizeShare(300, 3.0, 80)
    shares = np.array([40] * 90 + [NO_SHARE] * 10)
    told = estimate_sum(shares, share)
    assert told.total == pytest.approx(4000)
    assert (told.asked, told.answered, told.rejected, told.floor) == (100, 90, 0, 90.0)
    assert told.standard_error == pytest.approx(100 / 90 * share.deviation(90))
    assert told.high - told.total == pytest.approx(1.959964 * told.standard_error)
    assert told.total - told.low == pytest.approx(1.959964 * told.standard_error)
    with pytest.raises(BadInput, match="80 clients"):
        estimate_sum(np.array([40] * 79 + [NO_SHARE] * 21), share)


def test_no_share_that_can_come_stands_for_no_answer():
    """Noise makes shares negative: every one that passes the gate is counted."""
    assert possible(np.array([-(2.0**53)])).tolist() == [NO_SHARE]
    assert NO_SHARE < -(2**53)
    told = estimate_sum(np.array([-124, -62, -1] + [45] * 97), SizeShare(300, 3.0, 80))
    assert (told.answered, told.total) == (100, 45 * 97 - 187)


def test_what_cannot_be_a_share_is_none():
    rows = np.array([3.0, -7.0, np.nan, np.inf, 2.5, 1e300])
    assert possible(rows).tolist() == [3, -7, NO_SHARE, NO_SHARE, NO_SHARE, NO_SHARE]


@pytest.mark.parametrize("wrong", [{"threshold": 2}, {"epsilon": 0.0}, {"least": 0}])
def test_a_wrong_law_gets_a_sentence(wrong):
    with pytest.raises(BadParameter, match=next(iter(wrong))):
        SizeShare(**{"threshold": 300, "epsilon": 3.0, "least": 5, **wrong})


@pytest.mark.parametrize(
    ("name", "least", "below", "most", "above"),
    [
        ("threshold", 3, 2, 2**31, 2**31 + 1),
        ("epsilon", 1e-6, 0.99e-6, 20.0, 20.1),
        ("least", 1, 0, 10**9, 10**9 + 1),
    ],
)
def test_the_ends_of_what_a_law_may_be(name, least, below, most, above):
    law = {"threshold": 300, "epsilon": 3.0, "least": 5}
    for fine in (least, most):
        assert getattr(SizeShare(**{**law, name: fine}), name) == fine
    for wrong in (below, above):
        with pytest.raises(BadParameter, match=f"'{name}' parameter of SizeShare must be .* in"):
            SizeShare(**{**law, name: wrong})


def test_a_client_agrees_by_name_repeats_itself_and_pays_once(tmp_path):
    share = SizeShare(300, 3.0, 2)
    with pytest.raises(PolicyRefused, match="mechanism"):
        PrivateSize(tmp_path / "a").share(40, share, "task")
    client = PrivateSize(tmp_path / "b", ClientPolicy(mechanisms=("sum",)))
    answers = {client.share(40, share, "task") for _ in range(5)}
    assert len(answers) == 1
    assert client.spent == 3.0
    with pytest.raises(BudgetExceeded):
        client.share(40, share, "another task")
    assert isinstance(draw_share(share, 40), int)


# -- FedSampling -------------------------------------------------------------------------------


def task(sizes):
    return Quadratic(np.linspace(-1, 1, len(sizes))[:, None], sizes=sizes)


def test_fedsampling_by_the_sum_is_nearer_than_by_levels():
    sizes = np.arange(20, 120)
    rates = {}
    for mechanism in ("sum", "levels"):
        built = scheme("fedsampling", K=100, M=300, mechanism=mechanism)
        told = [
            simulate(task(sizes), built, rounds=1, seed=s, work=WORK).settings for s in range(1)
        ]
        assert told[0]["parameters"]["mechanism"] == mechanism
        rates[mechanism] = [
            abs(_rate(built, sizes, seed) * sizes.sum() / 100 - 1) for seed in range(12)
        ]
    assert np.mean(rates["sum"]) < np.mean(rates["levels"]) / 3


def _rate(built, sizes, seed):
    from fedcohort.privacy import SizeReport
    from fedcohort.simulation._clients import report_size

    rng = np.random.default_rng(seed)

    def ask(ask):
        told = dict(ask.settings)
        told.pop("round")
        if ask.signal.name == "private_share":
            return [share_size(rng, int(sizes[i]), SizeShare(**told)) for i in ask.clients]
        return [report_size(rng, int(sizes[i]), SizeReport(**told)) for i in ask.clients]

    return Selector(built, Federation.from_sizes(sizes), seed=seed, ask=ask).select().data_rate


def test_levels_can_be_chosen():
    assert scheme("fedsampling", levels=2).report.levels == 2
    assert scheme("fedsampling").report.levels == 4


def test_two_levels_are_better_where_nearly_all_clients_are_small():
    """M = 300, eps = 3, sizes of mean 2.4: 13 % against 16 % (the lower bound is met)."""
    from fedcohort.privacy import standard_error

    sizes = [1] * 700 + [4] * 200 + [8] * 100
    two, four = (standard_error(sizes, scheme("fedsampling", levels=g).report) for g in (2, None))
    assert two < 0.85 * four


def test_newcomers_are_never_a_sum_of_their_own():
    built = scheme("fedsampling", mechanism="sum", when_imprecise="accept")
    asked = []

    def ask(ask):
        asked.append(len(ask.clients))
        return [30] * len(ask.clients)

    chooser = Selector(built, Federation.from_sizes([30] * 10), seed=0, ask=ask)
    assert chooser.select().data_rate == pytest.approx(100 / 300)
    assert asked == [10]


@pytest.mark.parametrize("seed", range(3))
def test_a_counted_step_does_not_depend_on_the_estimate_of_the_total(seed):
    """N~ too large by any factor changes the rate, not the mean step: sum G / sum |S|."""
    sizes = [400] * 5
    same = Quadratic(np.full((5, 1), 2.0), sizes=sizes)  # every sample pulls to 2
    words = "fedsampling:K=60,mechanism=levels,M=1000,when_imprecise=accept"
    counted = simulate(same, f"{words},step=counted", rounds=1, seed=seed, work=WORK)
    usual = simulate(same, words, rounds=1, seed=seed, work=WORK)
    assert float(counted.model[0]) == pytest.approx(1.0)  # half of the way, exactly
    assert float(usual.model[0]) != pytest.approx(1.0, rel=1e-3)


def test_noise_on_sums_refuses_a_division_without_noise():
    with pytest.raises(BadInput, match="step='expected'"):
        simulate(
            task([5] * 6), "fedsampling:step=counted,mechanism=exact", rounds=1, work=WORK,
            aggregator="gaussian:seed=0",
        )  # fmt: skip
