"""Ways to divide a training set among clients.

Each is a pure function of the labels, a few settings and a generator, and returns a frozen
`Partition`. The same generator state gives the same partition.
"""

from __future__ import annotations

from fedcohort.data.partition.base import Partition
from fedcohort.data.partition.dirichlet import (
    PAPER1_SIZES,
    by_shares,
    dirichlet_per_class,
    dirichlet_per_client,
    dirichlet_shares,
)
from fedcohort.data.partition.registry import PARTITIONS, by_name, make, options
from fedcohort.data.partition.simple import (
    iid,
    label_shards,
    lognormal_sizes,
    natural,
    one_class_per_client,
)

__all__ = [
    "PAPER1_SIZES",
    "PARTITIONS",
    "Partition",
    "by_name",
    "by_shares",
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
