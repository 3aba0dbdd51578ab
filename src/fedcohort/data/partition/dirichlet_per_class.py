"""Each class is spread over the clients by a Dirichlet draw, so sizes are random, too."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcohort.core.errors import BadParameter
from fedcohort.core.parameters import Flag, Whole
from fedcohort.core.types import Array, Ints
from fedcohort.data.partition.base import (
    ALPHA,
    Partition,
    check,
    check_rng,
    checked_labels,
    members,
)


def dirichlet_per_class(
    y: Array,
    n: Annotated[int, Whole(1)],
    alpha: Annotated[float, ALPHA],
    rng: np.random.Generator,
    *,
    min_size: Annotated[int, Whole(0)] = 1,
    retries: Annotated[int, Whole(1)] = 1000,
    masked: Annotated[bool, Flag()] = True,
) -> Partition:
    """Spread each class over the clients by Dirichlet(alpha); nothing is lost or held twice.

    Class after class: a client that already holds N/n samples or more is passed over
    (``masked``), the others share the class by one Dirichlet draw. (The authors draw for
    all, zero the full clients and renormalise: the same law, but 0/0 for tiny alpha.) All
    is drawn again until every client holds ``min_size`` samples.

    Parameters
    ----------
    y, n, alpha, rng
        Labels, clients, concentration, generator.
    min_size
        FedArtML and NIID-Bench ask for 10, which for n=100, alpha=0.05 on Fashion-MNIST
        succeeded in 3 of 40,000 draws; 1 succeeds in 13 %, with the same RMS Hellinger
        distance of 0.90. 0 accepts clients without data.
    retries
        Draws before giving up; a draw costs about n * classes steps.
    masked
        False drops the cap on full clients (Hsu et al. 2019 per class; Yurochkin et al.).

    Examples
    --------
    >>> y = np.repeat(np.arange(10), 50)
    >>> dirichlet_per_class(y, 5, 0.5, np.random.default_rng(0)).sizes.sum()
    np.int64(500)

    References
    ----------
    Li et al., NIID-Bench, ICDE 2022; FedArtML 2024; Giunta, thesis, Section 4.1.
    """
    owner = "dirichlet_per_class"
    y = checked_labels(y, owner)
    check("n", owner, Whole(1, len(y)), n)
    check("alpha", owner, ALPHA, alpha)
    check("min_size", owner, Whole(0, len(y) // n), min_size)
    check("retries", owner, Whole(1), retries)
    check("masked", owner, Flag(), masked)
    check_rng(rng, owner)
    supply = np.bincount(y)  # (classes,)
    best = -1
    for _ in range(retries):
        counts = _spread(supply, n, float(alpha), rng, masked)
        best = max(best, int(counts.sum(axis=1).min()))
        if best >= min_size:
            return _dealt(members(y, rng), counts)
    raise BadParameter(
        "min_size",
        owner,
        f"reachable: in {retries} draws with n={n}, alpha={alpha} the smallest client never held"
        f" more than {best} samples",
        min_size,
        f"Pass min_size={best}, more retries, a larger alpha or fewer clients.",
    )


def _spread(supply: Ints, n: int, alpha: float, rng: np.random.Generator, masked: bool) -> Ints:
    """Samples of each class that each client gets: (n, classes), columns add up to supply."""
    counts = np.zeros((n, len(supply)), dtype=np.int64)
    sizes = np.zeros(n, dtype=np.int64)
    total = int(supply.sum())
    for label, available in enumerate(supply):
        # Fewer than `total` samples are dealt so far, so somebody holds less than total / n.
        takers = np.flatnonzero(sizes * n < total) if masked else np.arange(n)
        if available == 0:
            continue
        cuts = np.cumsum(rng.dirichlet(np.full(len(takers), alpha))) * available
        cuts[-1] = available
        counts[takers, label] = np.diff(cuts.astype(np.int64), prepend=0)
        sizes += counts[:, label]
    return counts


def _dealt(pools: list[Ints], counts: Ints) -> Partition:
    hands = [
        np.split(pool, np.cumsum(column)[:-1]) for pool, column in zip(pools, counts.T, strict=True)
    ]
    return Partition(tuple(np.concatenate(parts) for parts in zip(*hands, strict=True)))
