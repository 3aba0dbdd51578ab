"""Ways to divide a training set among clients, one per file.

Each is a pure function of the labels, a few settings and a generator, and returns a frozen
`Partition`. The same generator state gives the same partition. Other packages add theirs through
the entry point group ``fedcohort.partitions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fedcohort.core.registry import Kind, Prepared
from fedcohort.core.types import Array
from fedcohort.data.partition.base import Partition
from fedcohort.data.partition.dirichlet_per_class import dirichlet_per_class
from fedcohort.data.partition.dirichlet_per_client import (
    PAPER1_SIZES,
    dirichlet_per_client,
    dirichlet_shares,
)
from fedcohort.data.partition.iid import iid
from fedcohort.data.partition.label_shards import label_shards
from fedcohort.data.partition.lognormal_sizes import lognormal_sizes
from fedcohort.data.partition.natural import natural
from fedcohort.data.partition.one_class_per_client import one_class_per_client

__all__ = [
    "PAPER1_SIZES",
    "PARTITIONS",
    "Partition",
    "by_name",
    "dirichlet_per_class",
    "dirichlet_per_client",
    "dirichlet_shares",
    "iid",
    "label_shards",
    "lognormal_sizes",
    "make",
    "natural",
    "one_class_per_client",
    "options",
]

PARTITIONS: Kind[Prepared] = Kind(
    "partition",
    __name__,
    returns=Partition,
    given=("y", "rng", "groups", "groups_test", "group_names"),
)
"""Every partition function by its name, with hyphens."""


def by_name(name: str) -> Callable[..., Partition]:
    """The partition function of that name.

    >>> by_name("label-shards") is label_shards
    True
    """
    found: Callable[..., Partition] = PARTITIONS.find(name)
    return found


def options(name: str) -> tuple[str, ...]:
    """The settings that `make` takes for that partition.

    >>> options("dirichlet-per-class")
    ('n', 'alpha', 'min_size', 'retries', 'masked')
    """
    return tuple(PARTITIONS.settings(by_name(name)))


def make(
    name: str,
    y: Array,
    rng: np.random.Generator,
    *,
    groups: Array | None = None,
    groups_test: Array | None = None,
    group_names: Sequence[str] | None = None,
    **settings: Any,
) -> Partition:
    """One call for all partitions, in terms a command line has.

    ``groups`` and ``groups_test`` are the natural ids of the data set, or positions in its
    ``group_names``.

    >>> y = np.repeat([0, 1], 10)
    >>> make("dirichlet-per-client:n=4", y, np.random.default_rng(0), alpha=0.1).sizes
    array([5, 5, 5, 5])
    """
    of_data = {"groups": groups, "groups_test": groups_test, "group_names": group_names}
    given = {"y": y, "rng": rng, **of_data}
    divided: Partition = PARTITIONS.build(name, **settings)(**given)
    return divided
