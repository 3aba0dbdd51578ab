"""Shards of sorted labels, a few per client."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcohort.core.parameters import Whole
from fedcohort.core.types import Array
from fedcohort.data.partition.base import (
    Partition,
    check,
    check_rng,
    checked_labels,
    members,
)


def label_shards(
    y: Array,
    n: Annotated[int, Whole(1)],
    shards_per_client: Annotated[int, Whole(1)],
    rng: np.random.Generator,
) -> Partition:
    """Sort by label, cut into equal shards, deal each client a few: the first non-IID split.

    With n=100 and two shards of MNIST most clients hold two digits. Shards differ by at most
    one sample, so nothing is lost.

    >>> y = np.repeat([0, 1], 6)
    >>> label_shards(y, 4, 1, np.random.default_rng(0)).label_histograms(y, 2).max(axis=1)
    array([3, 3, 3, 3])

    References
    ----------
    McMahan et al., Communication-Efficient Learning, AISTATS 2017, Section 3.
    """
    owner = "label_shards"
    y = checked_labels(y, owner)
    check("n", owner, Whole(1, len(y)), n)
    check("shards_per_client", owner, Whole(1, len(y) // n), shards_per_client)
    check_rng(rng, owner)
    shards = np.array_split(np.concatenate(members(y, rng)), n * shards_per_client)
    dealt = rng.permutation(len(shards)).reshape(n, shards_per_client)
    return Partition(tuple(np.concatenate([shards[s] for s in hand]) for hand in dealt))
