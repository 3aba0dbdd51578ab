from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.data import Partition
from fedcohort.data.partition import largest_remainder, members


def test_sizes_and_histograms_count_what_is_held():
    partition = Partition((np.array([0, 3]), np.array([], dtype=np.int64), np.array([1])))
    assert partition.n == 3
    assert partition.sizes.tolist() == [2, 0, 1]
    y = np.array([2, 0, 1, 2])
    assert partition.label_histograms(y, 3).tolist() == [[0, 0, 2], [0, 0, 0], [1, 0, 0]]
    assert partition.disjoint
    assert not Partition((np.array([0]), np.array([0]))).disjoint
    assert repr(partition) == "<Partition: 3 clients, 0 to 2 samples each>"


def test_partition_is_read_only_and_leaves_the_array_given_alone():
    indices = np.array([0, 1])
    partition = Partition((indices,))
    with pytest.raises(ValueError, match="read-only"):
        partition.clients[0][0] = 5
    indices[0] = 7  # still the caller's


@pytest.mark.parametrize("clients", [(), (np.array([0.5]),), (np.array([-1]),), (np.array([[0]]),)])
def test_malformed_clients_are_refused(clients):
    with pytest.raises(BadInput):
        Partition(clients)


def test_histograms_refuse_labels_of_another_set():
    partition = Partition((np.array([5]),))
    with pytest.raises(BadInput, match="sample 5, and there are 3 labels"):
        partition.label_histograms(np.array([0, 1, 0]), 2)
    with pytest.raises(BadParameter, match=r"an int in \[3, "):
        partition.label_histograms(np.array([0, 1, 2, 0, 0, 0]), 2)
    with pytest.raises(BadParameter, match="integer labels"):
        partition.label_histograms(np.array([0.0, np.nan]), 2)
    with pytest.raises(BadParameter, match="integer labels"):
        partition.label_histograms(np.array([10**12]), 2)


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12).filter(lambda s: sum(s) > 1e-6),
    st.integers(0, 10**6),
)
def test_largest_remainder_is_exact_and_near(shares, total):
    shares = np.array(shares)
    counts = largest_remainder(shares, total)
    assert counts.sum() == total
    assert (counts >= 0).all()
    assert np.abs(counts - shares / shares.sum() * total).max() <= 1 + 1e-6


def test_members_holds_every_sample_under_its_label():
    y = np.array([3, 0, 3, 1])
    pools = members(y, np.random.default_rng(0))
    assert [sorted(pool.tolist()) for pool in pools] == [[1], [3], [], [0, 2]]
