from __future__ import annotations

import math
import os
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcohort import data
from fedcohort._internal.errors import BadInput, TooLarge
from fedcohort.data.heterogeneity import (
    earth_movers,
    gini,
    jensen_shannon,
    mean_hellinger,
    measure,
    rms_hellinger,
)

# The four distributions of the golden case, times 225: (1), (16/25, 9/25), ... in integers.
GOLDEN = np.array([[225, 0, 0], [144, 81, 0], [0, 0, 225], [100, 100, 25]])

histograms = arrays(
    np.int64, st.tuples(st.integers(1, 7), st.integers(1, 5)), elements=st.integers(0, 50)
).filter(lambda h: h.sum() > 0)


def test_golden_hellinger():
    assert mean_hellinger(GOLDEN) == pytest.approx(0.6832098892274119, abs=1e-15)
    assert rms_hellinger(GOLDEN) == pytest.approx(0.7378647873726218, abs=1e-15)


def slow_hellinger(counts):
    """Every pair, written out; clients without data have no distribution."""
    rows = [row / row.sum() for row in counts if row.sum() > 0]
    return [
        math.sqrt(sum((math.sqrt(p) - math.sqrt(q)) ** 2 for p, q in zip(a, b, strict=True)) / 2)
        for a, b in combinations(rows, 2)
    ] or [0.0]


@given(histograms)
def test_fast_hellinger_agrees_with_the_slow_twin(counts):
    distances = slow_hellinger(counts)
    assert mean_hellinger(counts) == pytest.approx(np.mean(distances), abs=1e-12)
    rms = math.sqrt(np.mean(np.square(distances)))
    assert rms_hellinger(counts) == pytest.approx(rms, abs=1e-9)


def test_blocks_do_not_change_the_mean(monkeypatch):
    counts = np.random.default_rng(0).integers(1, 9, (50, 4))
    whole = mean_hellinger(counts)
    monkeypatch.setattr("fedcohort.data.heterogeneity.BLOCK", 7)
    assert mean_hellinger(counts) == pytest.approx(whole, abs=1e-14)
    monkeypatch.setattr("fedcohort.data.heterogeneity.MOST_CLIENTS", 49)
    with pytest.raises(TooLarge, match="1225 pairs; pass a random sample"):
        mean_hellinger(counts)


def slow_jensen_shannon(counts):
    """Mutual information of client and label over the label's entropy, by its definition."""
    joint = counts / counts.sum()
    clients, classes = (counts.sum(axis=axis) / counts.sum() for axis in (1, 0))
    information = sum(
        joint[i, c] * math.log2(joint[i, c] / (clients[i] * classes[c]))
        for i, c in zip(*np.nonzero(joint), strict=True)
    )
    entropy = -sum(p * math.log2(p) for p in classes if p > 0)
    return information / entropy if entropy > 0 else 0.0


@given(histograms)
def test_jensen_shannon_is_mutual_information(counts):
    assert jensen_shannon(counts) == pytest.approx(slow_jensen_shannon(counts), abs=1e-9)
    assert 0 <= jensen_shannon(counts) <= 1


def test_a_single_label_has_no_skew_to_explain():
    # Float dust in the mixture once made this 0.9999... / 1e-16.
    assert jensen_shannon(np.array([[1], [2], [2], [2]])) == 0
    assert jensen_shannon(np.array([[0, 3], [0, 7], [0, 49]])) == 0


def test_jensen_shannon_of_the_paper():
    apart = np.eye(4, dtype=int) * [1, 5, 9, 2]
    assert jensen_shannon(apart) == pytest.approx(1)
    assert jensen_shannon(apart, paper=True) == pytest.approx(1)  # log2(4) bits / log2(4)
    twice = np.vstack([apart, apart])
    assert jensen_shannon(twice) == pytest.approx(1)
    assert jensen_shannon(twice, paper=True) == pytest.approx(2 / 3)  # log2(4) / log2(8)
    assert jensen_shannon(np.array([[1, 0], [0, 3]]), paper=True) == pytest.approx(1)


@given(histograms)
def test_every_measure_stays_in_its_range(counts):
    found = measure(counts)
    assert 0 <= found.hellinger <= found.hellinger_rms + 1e-9 <= 1 + 1e-8
    assert 0 <= found.earth_movers < 2
    assert 0 <= found.size_gini < 1
    assert found.empty == (counts.sum(axis=1) == 0).sum()


@given(st.lists(st.integers(1, 50), min_size=2, max_size=5), st.integers(1, 6))
def test_equal_clients_have_no_label_skew(row, n):
    found = measure(np.tile(row, (n, 1)) * np.arange(1, n + 1)[:, None])
    assert found.hellinger == pytest.approx(0, abs=1e-7)
    assert found.hellinger_rms == pytest.approx(0, abs=1e-7)
    assert found.jensen_shannon == pytest.approx(0, abs=1e-7)
    assert found.earth_movers == pytest.approx(0, abs=1e-12)


def test_earth_movers_by_hand():
    # Global (1/2, 1/2); client 0 of size 3 is (2/3, 1/3), client 1 of size 1 is (0, 1).
    assert earth_movers(np.array([[2, 1], [0, 1]])) == pytest.approx(3 / 4 * 1 / 3 + 1 / 4 * 1)


@given(st.lists(st.integers(0, 100), min_size=1, max_size=8).filter(any))
def test_gini_is_half_the_relative_mean_difference(sizes):
    sizes = np.array(sizes)
    expected = np.abs(sizes[:, None] - sizes).mean() / (2 * sizes.mean())
    assert gini(sizes) == pytest.approx(expected, abs=1e-12)


def test_a_client_without_data_is_left_out_and_counted():
    full, holed = np.array([[3, 0], [1, 2]]), np.array([[3, 0], [0, 0], [1, 2]])
    assert measure(holed).empty == 1
    for function in (mean_hellinger, rms_hellinger, jensen_shannon, earth_movers):
        assert function(holed) == pytest.approx(function(full), abs=1e-15)
    assert "3 clients (1 without data)" in str(measure(holed))


@pytest.mark.parametrize(
    "counts", [[[0, 0]], [[np.nan, 1.0]], [[-1, 2]], [1, 2], [[]], [["a"]], [[np.inf, 1.0]]]
)
def test_bad_histograms_are_refused(counts):
    with pytest.raises(BadInput, match="label histograms must"):
        measure(np.array(counts))


@pytest.mark.parametrize("sizes", [[], [0, 0], [-1, 2], [np.nan], [np.inf], [[1]]])
def test_bad_sizes_are_refused(sizes):
    with pytest.raises(BadInput, match="sizes must"):
        gini(np.array(sizes, dtype=float))


@pytest.mark.skipif(
    not Path(os.environ.get("FEDCOHORT_DATA", "-"), "fashion_mnist.npz").is_file(),
    reason="set FEDCOHORT_DATA to a folder with fashion_mnist.npz",
)
@pytest.mark.parametrize(
    ("n", "alpha", "thesis"), [(100, 0.05, 0.9), (30, 0.05, 0.9), (100, 0.2, 0.8)]
)
def test_fashion_mnist_is_as_heterogeneous_as_in_the_thesis(n, alpha, thesis):
    fashion = data.load("fashion-mnist")
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        clients = data.partition.dirichlet_per_class(fashion.y_train, n, alpha, rng)
        found.append(rms_hellinger(clients.label_histograms(fashion.y_train, 10)))
    assert np.mean(found) == pytest.approx(thesis, abs=0.03)
