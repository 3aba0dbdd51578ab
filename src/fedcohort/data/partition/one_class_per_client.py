"""One label per client: the hardest label skew."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import Flag, Whole
from fedcohort.core.types import Array
from fedcohort.data.partition.base import (
    Partition,
    check,
    check_rng,
    checked_labels,
    members,
)


def one_class_per_client(
    y: Array,
    n: Annotated[int, Whole(1)],
    per_client: Annotated[int, Whole(1)],
    rng: np.random.Generator,
    *,
    shuffle: Annotated[bool, Flag()] = True,
) -> Partition:
    """Each client holds ``per_client`` samples of one label: 100 x 500 of MNIST in paper 1.

    Labels go to groups of clients as equal as can be (n=100, ten labels: ten clients each);
    no sample is held twice, and what is left over belongs to nobody.

    Parameters
    ----------
    y, n, per_client, rng
        Labels, clients, samples of each client, generator.
    shuffle
        Number the clients at random. The authors number them label by label; with equal
        sizes and ties broken by index, clustered sampling by size then groups clients by
        label, which is the oracle it is compared with ("target"), so that order is
        opt-in: ``shuffle=False``.

    Examples
    --------
    >>> y = np.repeat([0, 1], 6)
    >>> rng = np.random.default_rng(0)
    >>> one_class_per_client(y, 4, 3, rng, shuffle=False).label_histograms(y, 2)
    array([[3, 0],
           [3, 0],
           [0, 3],
           [0, 3]])

    References
    ----------
    Fraboni et al., Clustered Sampling, ICML 2021, Section 5 (``MNIST_shard`` in their code).
    """
    owner = "one_class_per_client"
    y = checked_labels(y, owner)
    check("n", owner, Whole(1), n)
    check("per_client", owner, Whole(1), per_client)
    check("shuffle", owner, Flag(), shuffle)
    check_rng(rng, owner)
    pools = [pool for pool in members(y, rng) if len(pool)]
    label_of = np.arange(n) * len(pools) // n  # (n,) positions in pools
    wanted = np.bincount(label_of, minlength=len(pools))  # clients per label
    for pool, count in zip(pools, wanted, strict=True):
        if count * per_client > len(pool):
            raise BadParameter(
                "per_client",
                owner,
                f"at most {len(pool) // count}, since label {y[pool[0]]} has {len(pool)}"
                f" samples for {count} clients",
                per_client,
                "Ask for fewer samples or fewer clients.",
            )
    clients = [
        samples
        for pool, count in zip(pools, wanted, strict=True)
        for samples in pool[: count * per_client].reshape(count, per_client)
    ]
    order = rng.permutation(n) if shuffle else np.arange(n)
    return Partition(tuple(clients[i] for i in order))
