"""Partitions without a Dirichlet draw: even, by label, by size, by natural id."""

from __future__ import annotations

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import Flag, Real, Whole
from fedcohort.core.types import Array, Ints
from fedcohort.data.partition.base import (
    Partition,
    check,
    check_rng,
    checked_labels,
    largest_remainder,
    members,
)


def iid(y: Array, n: int, rng: np.random.Generator) -> Partition:
    """Every sample to a client at random; sizes differ by at most one and nothing is lost.

    >>> iid(np.zeros(10, int), 3, np.random.default_rng(0)).sizes
    array([4, 3, 3])
    """
    y = checked_labels(y, "iid")
    check("n", "iid", Whole(1, len(y)), n)
    check_rng(rng, "iid")
    return Partition(tuple(np.array_split(rng.permutation(len(y)), n)))


def one_class_per_client(
    y: Array, n: int, per_client: int, rng: np.random.Generator, *, shuffle: bool = True
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


def label_shards(y: Array, n: int, shards_per_client: int, rng: np.random.Generator) -> Partition:
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


def lognormal_sizes(
    y: Array,
    n: int | None,
    sigma: float,
    rng: np.random.Generator,
    mean: float | None = None,
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
