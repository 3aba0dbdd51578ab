"""Even parts, at random."""

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
)


def iid(y: Array, n: Annotated[int, Whole(1)], rng: np.random.Generator) -> Partition:
    """Every sample to a client at random; sizes differ by at most one and nothing is lost.

    >>> iid(np.zeros(10, int), 3, np.random.default_rng(0)).sizes
    array([4, 3, 3])
    """
    y = checked_labels(y, "iid")
    check("n", "iid", Whole(1, len(y)), n)
    check_rng(rng, "iid")
    return Partition(tuple(np.array_split(rng.permutation(len(y)), n)))
