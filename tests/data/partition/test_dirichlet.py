from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.data.partition import (
    PAPER1_SIZES,
    _by_shares,
    dirichlet_per_class,
    dirichlet_per_client,
    dirichlet_shares,
)
from helpers.examples import few

LEVEL = 1e-6  # of each statistical test

seeds = st.integers(0, 2**32)
labels = st.lists(st.integers(0, 6), min_size=1, max_size=80).map(np.array)
alphas = st.floats(1e-12, 1e6)


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one.clients, two.clients, strict=True))


def test_paper_1_sizes():
    assert len(PAPER1_SIZES) == 100
    assert sum(PAPER1_SIZES) == 48_500


@given(labels, st.data(), alphas, seeds)
def test_per_client_sizes_are_exact_and_nothing_is_held_twice(y, data, alpha, seed):
    sizes = data.draw(
        st.lists(st.integers(1, 20), min_size=1, max_size=10).filter(lambda s: sum(s) <= len(y))
        if len(y) > 20
        else st.just([len(y)])
    )
    partition = dirichlet_per_client(y, sizes, alpha, np.random.default_rng(seed))
    assert partition.sizes.tolist() == sizes
    assert partition.disjoint
    assert max(c.max() for c in partition.clients) < len(y)
    assert same(partition, dirichlet_per_client(y, sizes, alpha, np.random.default_rng(seed)))


@given(labels, st.lists(st.integers(1, 200), min_size=1, max_size=5), alphas, seeds)
def test_per_client_with_replacement_meets_any_size(y, sizes, alpha, seed):
    rng = np.random.default_rng(seed)
    assert dirichlet_per_client(y, sizes, alpha, rng, replace=True).sizes.tolist() == sizes


def test_paper_1_federation_fits_cifar_without_overlap():
    y = np.repeat(np.arange(10), 5000)
    for alpha in (0.001, 0.01, 0.1, 10.0):
        partition = dirichlet_per_client(y, PAPER1_SIZES, alpha, np.random.default_rng(0))
        assert tuple(partition.sizes) == PAPER1_SIZES
        assert partition.disjoint


def test_wishes_are_met_where_there_is_enough():
    y = np.repeat([0, 1, 2], 100)
    shares = np.array([[0.5, 0.25, 0.25], [0.0, 0.0, 1.0]])
    histograms = _by_shares(y, [10, 30], shares, np.random.default_rng(0)).label_histograms(y, 3)
    assert histograms.tolist() == [[5, 3, 2], [0, 0, 30]]


def test_an_exhausted_label_is_replaced_by_the_other_wishes():
    y = np.array([0] * 3 + [1] * 50 + [2] * 50)
    partition = _by_shares(y, [20], np.array([[0.5, 0.5, 0.0]]), np.random.default_rng(0))
    assert partition.label_histograms(y, 3).tolist() == [[3, 17, 0]]
    only = _by_shares(y, [20], np.array([[1.0, 0.0, 0.0]]), np.random.default_rng(0))
    assert only.label_histograms(y, 3)[0, 0] == 3
    assert only.sizes.tolist() == [20]


def test_paper_mode_truncates_and_gives_the_remainder_to_the_last_class():
    y = np.repeat([0, 1, 2], 4)
    shares = np.array([[0.39, 0.39, 0.22]])
    rng = np.random.default_rng(0)
    paper = _by_shares(y, [10], shares, rng, paper=True)
    assert paper.label_histograms(y, 3).tolist() == [[3, 3, 4]]
    sound = _by_shares(y, [10], shares, rng, replace=True)
    assert sound.label_histograms(y, 3).tolist() == [[4, 4, 2]]
    big = _by_shares(y, [1000], shares, rng, paper=True)  # more than there is: with replacement
    assert big.sizes.tolist() == [1000]
    assert not big.disjoint


def test_train_and_test_can_share_their_rows():
    rng = np.random.default_rng(0)
    y_train, y_test = np.repeat(np.arange(10), 500), np.repeat(np.arange(10), 100)
    shares = dirichlet_shares(5, 10, 0.1, rng)
    train = _by_shares(y_train, [200] * 5, shares, rng).label_histograms(y_train, 10)
    test = _by_shares(y_test, [40] * 5, shares, rng).label_histograms(y_test, 10)
    assert np.abs(train / 200 - test / 40).max() <= 1 / 40 + 1 / 200


def test_dirichlet_shares_have_the_second_moment_of_their_alpha():
    # E sum_c p_c^2 = (alpha + 1) / (C alpha + 1); the sum lies in [0, 1]: Hoeffding.
    n, classes, alpha = 20_000, 10, 0.1
    allowed = math.sqrt(math.log(2 / LEVEL) / (2 * n))

    def concentration(used):
        return (dirichlet_shares(n, classes, used, np.random.default_rng(1)) ** 2).sum(1).mean()

    expected = (alpha + 1) / (classes * alpha + 1)
    assert abs(concentration(alpha) - expected) < allowed
    assert abs(concentration(alpha * 1.2) - expected) > allowed  # the planted defect


def too_much(sizes):
    return dirichlet_per_client(np.zeros(5, dtype=int), sizes, 1.0, np.random.default_rng(0))


def test_more_than_there_is_needs_replacement():
    with pytest.raises(BadParameter, match=r"at most 5 in total.*replace=True"):
        too_much([3, 3])


@pytest.mark.parametrize("sizes", [[], [0], [-1], [1.5], [[1]], ["a"], [True]])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(BadParameter, match="'sizes'"):
        too_much(sizes)


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), float("inf"), "1", True, 1e300])
def test_bad_alpha_is_refused(alpha):
    y, rng = np.array([0, 1]), np.random.default_rng(0)
    with pytest.raises(BadParameter, match="alpha"):
        dirichlet_per_client(y, [1], alpha, rng)
    with pytest.raises(BadParameter, match="alpha"):
        dirichlet_per_class(y, 1, alpha, rng)


@pytest.mark.parametrize(
    "shares", [[[1.0]], [[np.nan, 1.0]], [[-1.0, 2.0]], [[0.0, 0.0]], [[np.inf, 0.0]]]
)
def test_bad_shares_are_refused(shares):
    with pytest.raises(BadInput, match="shares must"):
        _by_shares(np.array([0, 1]), [1], np.array(shares), np.random.default_rng(0))


def test_paper_mode_refuses_a_label_without_samples():
    with pytest.raises(BadInput, match="label without samples"):
        _by_shares(np.array([1]), [1], np.array([[1.0, 0.0]]), np.random.default_rng(0), paper=True)


@given(labels, st.data(), alphas, seeds, st.booleans())
def test_per_class_loses_nothing(y, data, alpha, seed, masked):
    n = data.draw(st.integers(1, len(y)))
    partition = dirichlet_per_class(
        y, n, alpha, np.random.default_rng(seed), min_size=0, masked=masked
    )
    assert np.sort(np.concatenate(partition.clients)).tolist() == list(range(len(y)))
    again = dirichlet_per_class(y, n, alpha, np.random.default_rng(seed), min_size=0, masked=masked)
    assert same(partition, again)


@given(seeds, st.integers(1, 6))
@few(30)
def test_per_class_keeps_its_minimum(seed, min_size):
    y = np.repeat(np.arange(5), 40)
    partition = dirichlet_per_class(y, 8, 0.5, np.random.default_rng(seed), min_size=min_size)
    assert partition.sizes.min() >= min_size


def literal_per_class(y, n, alpha, rng):
    """The loop of NIID-Bench and FedArtML as it stands there: draw for all, mask, renormalise."""
    hands = [[] for _ in range(n)]
    for label in range(y.max() + 1):
        indices = np.flatnonzero(y == label)
        rng.shuffle(indices)
        shares = rng.dirichlet(np.repeat(alpha, n))
        shares = np.array(
            [p * (len(hand) < len(y) / n) for p, hand in zip(shares, hands, strict=True)]
        )
        shares = shares / shares.sum()
        cuts = (np.cumsum(shares) * len(indices)).astype(int)[:-1]
        for hand, part in zip(hands, np.split(indices, cuts), strict=True):
            hand.extend(part.tolist())
    return max(len(hand) for hand in hands)


def test_per_class_has_the_law_of_the_literal_loop():
    y, n, alpha, draws = np.repeat(np.arange(6), 50), 6, 0.5, 500
    rng = np.random.default_rng(11)
    literal = [literal_per_class(y, n, alpha, rng) for _ in range(draws)]

    def largest(masked):
        return [
            dirichlet_per_class(y, n, alpha, rng, min_size=0, masked=masked).sizes.max()
            for _ in range(draws)
        ]

    assert ks_2samp(literal, largest(masked=True)).pvalue > LEVEL
    assert ks_2samp(literal, largest(masked=False)).pvalue < LEVEL  # the planted defect


def test_giving_up_says_what_was_reached_and_what_to_do():
    y = np.repeat(np.arange(2), 50)
    with pytest.raises(BadParameter, match=r"in 5 draws with n=20.*Pass min_size=0, more retries"):
        dirichlet_per_class(y, 20, 0.01, np.random.default_rng(0), min_size=5, retries=5)


def test_the_thesis_setting_succeeds():
    y = np.repeat(np.arange(10), 6000)
    for seed in range(5):
        partition = dirichlet_per_class(y, 100, 0.05, np.random.default_rng(seed))
        assert partition.sizes.min() >= 1
        assert partition.sizes.sum() == 60_000


@pytest.mark.parametrize(
    "setting", [{"min_size": -1}, {"min_size": 3}, {"retries": 0}, {"masked": 1}, {"n": 5}]
)
def test_bad_settings_of_per_class_are_refused(setting):
    call = {"n": 2, "alpha": 1.0, **setting}
    with pytest.raises(BadParameter):
        dirichlet_per_class(np.array([0, 1, 0, 1]), rng=np.random.default_rng(0), **call)
