from __future__ import annotations

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort.data.partition import PARTITIONS, by_name, make, options

Y = np.repeat(np.arange(4), 25)
SETTINGS = {
    "iid": {"n": 5},
    "one-class-per-client": {"n": 5, "per_client": 10},
    "label-shards": {"n": 5, "shards_per_client": 2},
    "dirichlet-per-client": {"n": 5, "alpha": 0.3},
    "dirichlet-per-class": {"n": 5, "alpha": 5.0},
    "lognormal-sizes": {"n": 5, "sigma": 1.0},
    "natural": {},
}


@pytest.mark.parametrize("name", PARTITIONS)
def test_every_partition_can_be_made_by_name(name):
    groups = np.arange(100) % 5
    partition = make(name, Y, np.random.default_rng(0), groups=groups, **SETTINGS[name])
    assert partition.n == 5
    assert partition.disjoint
    assert set(SETTINGS[name]) <= set(options(name))


def test_equal_sizes_use_all_the_data():
    sizes = make("dirichlet-per-client", Y, np.random.default_rng(0), n=3, alpha=1.0).sizes
    assert sizes.tolist() == [34, 33, 33]
    given = make("dirichlet-per-client", Y, np.random.default_rng(0), sizes=[7, 8], alpha=1.0)
    assert given.sizes.tolist() == [7, 8]


def test_unknown_names_and_missing_settings_are_told():
    rng = np.random.default_rng(0)
    with pytest.raises(UnknownName, match="Did you mean 'label-shards'"):
        by_name("label-shard")
    with pytest.raises(UnknownName, match="no setting of the partition 'iid' named 'alpha'"):
        make("iid", Y, rng, n=2, alpha=1.0)
    with pytest.raises(
        BadInput, match="needs a value for 'alpha': write dirichlet-per-class:alpha="
    ):
        make("dirichlet-per-class", Y, rng, n=2)
    with pytest.raises(BadParameter, match="'sizes' are given"):
        make("dirichlet-per-client", Y, rng, n=2, sizes=[1, 1], alpha=1.0)
    with pytest.raises(BadInput, match="natural ids"):
        make("natural", Y, rng)
