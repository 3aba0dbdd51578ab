from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.data.partition import (
    iid,
    label_shards,
    lognormal_sizes,
    natural,
    one_class_per_client,
)

LEVEL = 1e-6  # of each statistical test

seeds = st.integers(0, 2**32)
labels = st.lists(st.integers(0, 6), min_size=1, max_size=80).map(np.array)


def held(partition):
    return np.sort(np.concatenate(partition.clients)).tolist()


def same(one, two):
    return all(np.array_equal(a, b) for a, b in zip(one.clients, two.clients, strict=True))


@given(labels, st.data(), seeds)
def test_iid_loses_nothing_and_is_even(y, data, seed):
    n = data.draw(st.integers(1, len(y)))
    partition = iid(y, n, np.random.default_rng(seed))
    assert held(partition) == list(range(len(y)))
    assert np.ptp(partition.sizes) <= 1
    assert same(partition, iid(y, n, np.random.default_rng(seed)))


def owner_statistic(partitions, n):
    """Chi-square of "which client holds sample 0" against even chances."""
    owners = [next(i for i, c in enumerate(p.clients) if 0 in c) for p in partitions]
    counts = np.bincount(owners, minlength=n)
    return ((counts - len(owners) / n) ** 2).sum() / (len(owners) / n)


def test_iid_gives_a_sample_to_each_client_alike():
    rng = np.random.default_rng(7)
    y, n = np.zeros(20, dtype=int), 5
    bound = chi2.ppf(1 - LEVEL, n - 1)
    assert owner_statistic([iid(y, n, rng) for _ in range(2000)], n) < bound

    class Unshuffled(np.random.Generator):  # the planted defect
        def permutation(self, x):
            return np.arange(x)

    planted = Unshuffled(np.random.PCG64(7))
    assert owner_statistic([iid(y, n, planted) for _ in range(2000)], n) > bound


def test_paper_1_mnist_clients_hold_one_digit_each():
    y = np.repeat(np.arange(10), 5421)  # the smallest digit of MNIST has 5,421 samples
    partition = one_class_per_client(y, 100, 500, np.random.default_rng(0), shuffle=False)
    histograms = partition.label_histograms(y, 10)
    assert (partition.sizes == 500).all()
    assert histograms.argmax(axis=1).tolist() == np.repeat(np.arange(10), 10).tolist()
    assert ((histograms > 0).sum(axis=1) == 1).all()
    assert partition.disjoint
    shuffled = one_class_per_client(y, 100, 500, np.random.default_rng(0))
    order = shuffled.label_histograms(y, 10).argmax(axis=1)
    assert order.tolist() != sorted(order.tolist())
    assert np.bincount(order).tolist() == [10] * 10


@given(
    st.integers(1, 30),
    st.integers(1, 4),
    st.sets(st.integers(0, 9), min_size=1),
    seeds,
    st.booleans(),
)
def test_one_class_per_client_divides_labels_evenly(n, per_client, present, seed, shuffle):
    y = np.repeat(sorted(present), per_client * 30)
    partition = one_class_per_client(y, n, per_client, np.random.default_rng(seed), shuffle=shuffle)
    histograms = partition.label_histograms(y, 10)
    assert (histograms.max(axis=1) == per_client).all()
    assert (partition.sizes == per_client).all()
    assert partition.disjoint
    groups = np.bincount(histograms.argmax(axis=1), minlength=10)[sorted(present)]
    assert np.ptp(groups) <= 1


def test_a_class_too_small_says_how_much_it_has():
    with pytest.raises(BadParameter, match="at most 2, since label 1 has 5 samples for 2 clients"):
        one_class_per_client(np.array([0] * 9 + [1] * 5), 4, 3, np.random.default_rng(0))


@given(labels, st.data(), seeds)
def test_label_shards_lose_nothing_and_hold_few_labels(y, data, seed):
    n = data.draw(st.integers(1, len(y)))
    shards = data.draw(st.integers(1, len(y) // n))
    partition = label_shards(y, n, shards, np.random.default_rng(seed))
    assert held(partition) == list(range(len(y)))
    assert np.ptp(partition.sizes) <= shards
    assert same(partition, label_shards(y, n, shards, np.random.default_rng(seed)))


def test_two_shards_of_a_balanced_set_are_two_labels_at_most():
    y = np.tile(np.arange(10), 60)  # 60 of each: a shard of 30 never straddles two labels
    histograms = label_shards(y, 10, 2, np.random.default_rng(3)).label_histograms(y, 10)
    assert (histograms.sum(axis=1) == 60).all()
    assert ((histograms > 0).sum(axis=1) <= 2).all()


@given(labels, st.data(), st.floats(0, 50), seeds)
def test_lognormal_sizes_are_positive_and_exact(y, data, sigma, seed):
    n = data.draw(st.integers(1, len(y)))
    mean = data.draw(st.none() | st.floats(1, len(y) / n))
    partition = lognormal_sizes(y, n, sigma, np.random.default_rng(seed), mean)
    used = len(y) if mean is None else min(len(y), round(n * mean))
    assert partition.n == n
    assert partition.sizes.sum() == used
    assert partition.sizes.min() >= 1
    assert partition.disjoint
    assert same(partition, lognormal_sizes(y, n, sigma, np.random.default_rng(seed), mean))


@given(labels, st.floats(0, 50), seeds)
def test_the_authors_lognormal_sizes_use_up_the_data(y, sigma, seed):
    partition = lognormal_sizes(y, None, sigma, np.random.default_rng(seed), mean=min(1.5, len(y)))
    assert held(partition) == list(range(len(y)))
    assert partition.sizes.min() >= 1


def test_sigma_zero_is_even_and_sigma_makes_a_tail():
    y, rng = np.zeros(1000, dtype=int), np.random.default_rng(0)
    assert lognormal_sizes(y, 10, 0, rng).sizes.tolist() == [100] * 10
    assert lognormal_sizes(y, 10, 4.0, rng).sizes.max() > 500


@given(st.lists(st.integers(-3, 3) | st.just(2**40), min_size=1))
def test_natural_is_one_client_per_id(groups):
    groups = np.array(groups)
    somebody = sorted({g for g in groups.tolist() if g >= 0})
    if not somebody:
        with pytest.raises(BadInput, match="all samples are nobody's"):
            natural(groups)
        return
    partition = natural(groups)
    assert held(partition) == np.flatnonzero(groups >= 0).tolist()
    assert [set(groups[c].tolist()) for c in partition.clients] == [{g} for g in somebody]


ids = st.lists(st.integers(-1, 6), min_size=1, max_size=30).filter(lambda g: max(g) >= 0)


@given(ids, st.lists(st.integers(-1, 8), min_size=1, max_size=30), st.booleans(), st.integers(0, 9))
def test_natural_test_sets_against_a_plain_loop(train, test, text, seed):
    """By hand: own samples are the client's, strangers' count, those of the left out do not."""
    sizes = {g: train.count(g) for g in set(train) if g >= 0}
    least = min(2, max(sizes.values()))
    eligible = sorted(g for g, size in sizes.items() if size >= least)
    n = max(1, len(eligible) - 1)

    def spelt(values):
        return np.array(["" if v < 0 else f"u{v}" for v in values]) if text else np.array(values)

    rng = np.random.default_rng(seed)
    found = natural(spelt(train), rng, spelt(test), n=n, min_size=least)
    chosen = [train[rows[0]] for rows in found.clients]
    assert list(found.names) == spelt(chosen).tolist()
    assert len(chosen) == n
    assert set(chosen) <= set(eligible)
    own = [[i for i, g in enumerate(test) if g == client] for client in chosen]
    assert [rows.tolist() for rows in found.test or [np.zeros(0)] * n] == own
    assert (found.test is None) == (not any(own))
    counts = [i for i, g in enumerate(test) if g in chosen or (g >= 0 and g not in sizes)]
    assert (list(range(len(test))) if found.tested is None else found.tested.tolist()) == counts


def test_natural_draws_clients_at_random_and_says_what_does_not_fit():
    groups = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 6])
    drawn = [natural(groups, np.random.default_rng(s), n=2).sizes.tolist() for s in range(20)]
    assert len({tuple(sizes) for sizes in drawn}) > 5
    assert all(sizes == sorted(sizes) for sizes in drawn)  # in the order of the ids
    with pytest.raises(BadParameter, match=r"'n' parameter of natural must be at most 3"):
        natural(groups, np.random.default_rng(0), n=4, min_size=4)
    with pytest.raises(BadParameter, match=r"'min_size' .* at most 6, the most of a client"):
        natural(groups, min_size=7)
    with pytest.raises(BadParameter, match="a numpy Generator"):
        natural(groups, n=2)
    with pytest.raises(BadInput, match="of one kind"):
        natural(groups, groups_test=np.array(["a"]))


def test_natural_ids_may_be_positions_in_names():
    found = natural(np.array([2, -1, 0, 2]), group_names=("a", "b", "c"))
    assert found.names == ("a", "c")
    assert held(found) == [0, 2, 3]
    for groups in (np.array([3]), np.array(["a"])):
        with pytest.raises(BadInput, match="positions in 'group_names'"):
            natural(groups, group_names=("a", "b", "c"))


@pytest.mark.parametrize(
    "groups", [None, np.array([]), np.array([0.5, np.nan]), np.array([[1]]), np.array([None])]
)
def test_natural_refuses_what_is_no_id(groups):
    with pytest.raises(BadInput, match="natural ids"):
        natural(groups)


BAD_N = [0, -1, 2.5, True, "3", float("nan"), 7]


@pytest.mark.parametrize("n", BAD_N)
def test_a_bad_number_of_clients_is_refused(n):
    y, rng = np.array([0, 1, 0, 1, 0, 1]), np.random.default_rng(0)
    for call in (
        lambda: iid(y, n, rng),
        lambda: one_class_per_client(y, n, 1, rng),
        lambda: label_shards(y, n, 1, rng),
        lambda: lognormal_sizes(y, n, 1.0, rng),
    ):
        with pytest.raises(BadParameter):
            call()


@pytest.mark.parametrize(
    "y", [[], [0.0, 1.0], [[0, 1]], [-1, 0], ["a"], [np.nan], [10**12], [True, False]]
)
def test_bad_labels_are_refused(y):
    with pytest.raises(BadParameter, match="'y' parameter of iid"):
        iid(np.array(y), 1, np.random.default_rng(0))


def test_other_bad_settings_are_refused():
    y, rng = np.array([0, 1, 0, 1]), np.random.default_rng(0)
    with pytest.raises(BadParameter, match=r"numpy.random.default_rng\(seed\)"):
        iid(y, 2, 0)
    with pytest.raises(BadParameter, match="shards_per_client"):
        label_shards(y, 2, 3, rng)
    with pytest.raises(BadParameter, match="sigma"):
        lognormal_sizes(y, 2, float("nan"), rng)
    with pytest.raises(BadParameter, match="mean size must be given"):
        lognormal_sizes(y, None, 1.0, rng)
    with pytest.raises(BadParameter, match=r"n \* mean samples"):
        lognormal_sizes(y, 2, 1.0, rng, mean=3)
