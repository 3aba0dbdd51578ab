"""IID labels, sizes with a long tail."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from fedcohort.core.parameters import Maybe, Real, Whole
from fedcohort.core.types import Array, Ints
from fedcohort.data.partition.base import (
    Partition,
    check,
    check_rng,
    checked_labels,
    largest_remainder,
)


def lognormal_sizes(
    y: Array,
    n: Annotated[int | None, Maybe(Whole(1))],
    sigma: Annotated[float, Real(0, 50)],
    rng: np.random.Generator,
    mean: Annotated[float | None, Maybe(Real(1))] = None,
) -> Partition:
    """IID labels and sizes with a long tail: few clients hold most of the data.

    Client i gets one sample and a share of the rest in proportion to exp(sigma Z_i), Z_i
    standard normal. No sample is held twice.

    Parameters
    ----------
    y, rng
        Labels (for their number only) and generator.
    n
        Clients. ``None`` repeats the authors: sizes ceil(mean * r / average(ceil(r))) with
        r = exp(sigma Z) are drawn until the data are used up, so that the number of clients
        is random (and the mean size only near ``mean``: it is rounded up, and a long tail
        settles slowly).
    sigma
        Standard deviation of the logarithm; 0 is even sizes. (The paper calls its 4 a
        variance; its code passes it as this standard deviation.)
    mean
        Samples per client; ``n * mean`` of the data are used. By default all.

    Examples
    --------
    >>> lognormal_sizes(np.zeros(60, int), 4, 2.0, np.random.default_rng(1)).sizes.sum()
    np.int64(60)

    References
    ----------
    Qi et al., FedSampling, IJCAI 2023, Section 4.1; ``size_noniid`` in their code.
    """
    owner = "lognormal_sizes"
    y = checked_labels(y, owner)
    check("sigma", owner, Real(0, 50), sigma)
    check_rng(rng, owner)
    if n is None:
        check("mean", owner, Real(1, len(y)), mean, "Without n, the mean size must be given.")
        sizes = _until_used_up(len(y), float(mean or 1), sigma, rng)
    else:
        check("n", owner, Whole(1, len(y)), n)
        used = len(y)
        if mean is not None:
            check("mean", owner, Real(1, len(y) / n), mean, "n * mean samples are needed.")
            used = min(len(y), round(n * mean))
        sizes = 1 + largest_remainder(_lognormal(n, sigma, rng), used - n)
    held = rng.permutation(len(y))[: sizes.sum()]
    return Partition(tuple(np.split(held, np.cumsum(sizes)[:-1])))


def _lognormal(n: int, sigma: float, rng: np.random.Generator) -> Array:
    exponent = sigma * rng.standard_normal(n)
    return np.asarray(np.exp(exponent - exponent.max()))  # the largest is 1: no overflow


def _until_used_up(total: int, mean: float, sigma: float, rng: np.random.Generator) -> Ints:
    raw = np.exp(sigma * rng.standard_normal(total))  # one per sample: surely enough
    # Larger than everything is as good as everything; more would overflow an integer.
    sizes: Ints = np.minimum(np.ceil(mean * raw / np.ceil(raw).mean()), total).astype(np.int64)
    last = int(np.searchsorted(np.cumsum(sizes), total))
    sizes = sizes[: last + 1]
    sizes[-1] = total - sizes[:-1].sum()
    return sizes
