"""The clients that the data itself names: writers, users, hospitals."""

from __future__ import annotations

import numpy as np

from fedcohort.core.errors import BadInput
from fedcohort.core.types import Array
from fedcohort.data.partition.base import (
    Partition,
)


def natural(groups: Array) -> Partition:
    """One client per distinct id (a writer, a user, a hospital), in sorted order of the ids.

    >>> natural(np.array(["b", "a", "b"])).clients
    (array([1]), array([0, 2]))
    """
    ids = np.asarray(groups)
    if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iuUS":
        raise BadInput(
            "The 'groups' of natural must be a one-dimensional array of integer or text ids; got"
            f" {ids.dtype} {ids.shape}. Use a data set with natural ids, such as mnist with the"
            " writers of QMNIST."
        )
    _, which, counts = np.unique(ids, return_inverse=True, return_counts=True)
    order = np.argsort(which, kind="stable")
    return Partition(tuple(np.split(order, np.cumsum(counts)[:-1])))
