"""Label skew by Dirichlet draws, in the two ways that papers confuse.

Per *client* (paper 1): each client draws its label shares, sizes are given.
Per *class* (the thesis, NIID-Bench, FedArtML): each class is spread over the clients, so
label shares and sizes are both random. A small alpha means few labels per client in both.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import Flag, Real, Whole
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.data.partition.base import (
    Partition,
    check,
    check_rng,
    checked_labels,
    checked_sizes,
    largest_remainder,
    members,
)

ALPHA = Real(0, 1e9, open_low=True)
"""Above this a Dirichlet draw is even to nine digits, and numpy's loses its randomness."""

PAPER1_SIZES: tuple[int, ...] = (100,) * 10 + (250,) * 30 + (500,) * 30 + (750,) * 20 + (1000,) * 10
"""The 100 unequal clients of paper 1's CIFAR-10 experiments: 48,500 samples."""


def dirichlet_shares(n: int, classes: int, alpha: float, rng: np.random.Generator) -> Floats:
    """Label shares of n clients, one Dirichlet(alpha, ..., alpha) row each: (n, classes)."""
    check("n", "dirichlet_shares", Whole(1), n)
    check("classes", "dirichlet_shares", Whole(1), classes)
    check("alpha", "dirichlet_shares", ALPHA, alpha)
    check_rng(rng, "dirichlet_shares")
    return rng.dirichlet(np.full(classes, float(alpha)), size=n)


def dirichlet_per_client(
    y: Array,
    sizes: Sequence[int] | Ints,
    alpha: float,
    rng: np.random.Generator,
    *,
    replace: bool = False,
    paper: bool = False,
) -> Partition:
    """Client i holds exactly ``sizes[i]`` samples, label shares drawn from Dirichlet(alpha).

    Short for `dirichlet_shares` and `by_shares`; use those two where train and test must
    share their rows, as in paper 1.

    Parameters
    ----------
    y, sizes, alpha, rng
        Labels, sizes (such as `PAPER1_SIZES`), concentration, generator.
    replace, paper
        See `by_shares`.

    Examples
    --------
    >>> y = np.repeat(np.arange(10), 50)
    >>> dirichlet_per_client(y, [40, 100], 0.1, np.random.default_rng(0)).sizes
    array([ 40, 100])

    References
    ----------
    Fraboni et al., Clustered Sampling, ICML 2021, Section 5 and Appendix;
    Hsu et al., Measuring the Effects of Non-Identical Data Distribution, 2019.
    """
    owner = "dirichlet_per_client"
    y = checked_labels(y, owner)
    sizes = checked_sizes(sizes, owner)
    check("alpha", owner, ALPHA, alpha)
    check_rng(rng, owner)
    shares = dirichlet_shares(len(sizes), int(y.max()) + 1, alpha, rng)
    return by_shares(y, sizes, shares, rng, replace=replace, paper=paper)


def by_shares(
    y: Array,
    sizes: Sequence[int] | Ints,
    shares: Floats,
    rng: np.random.Generator,
    *,
    replace: bool = False,
    paper: bool = False,
) -> Partition:
    """Client i holds ``sizes[i]`` samples with label shares near ``shares[i]``.

    Parameters
    ----------
    y, sizes, rng
        Labels, sizes, generator.
    shares
        (n, classes) non-negative, rows with a positive sum.
    replace
        False: no sample is held twice. Clients are served in random order; where a label
        runs out, the rest of the client's wish goes to its other labels in proportion to
        its shares, and if those have run out too, to whatever is left. With little data to
        spare and a small alpha the last clients are therefore more mixed than they wished.
        True: samples are drawn with replacement and clients may overlap; wishes are met.
    paper
        The authors' code: wishes are truncated by int(), the whole remainder goes to the
        *last* class (which is thereby over-represented), and samples are drawn with
        replacement. The default rounds by largest remainder.
    """
    owner = "by_shares"
    y, sizes = checked_labels(y, owner), checked_sizes(sizes, owner)
    check("replace", owner, Flag(), replace)
    check("paper", owner, Flag(), paper)
    check_rng(rng, owner)
    pools = members(y, rng)
    shares = _checked_shares(shares, len(sizes), len(pools))
    if replace or paper:
        return _overlapping(pools, sizes, shares, rng, paper)
    if sizes.sum() > len(y):
        raise BadParameter(
            "sizes",
            owner,
            f"at most {len(y)} in total, the number of samples",
            int(sizes.sum()),
            "Shrink the sizes, or pass replace=True to let clients share samples.",
        )
    return _without_overlap(pools, sizes, shares, rng)


def _checked_shares(shares: Array, n: int, classes: int) -> Floats:
    shares = np.asarray(shares, dtype=np.float64)
    if shares.shape != (n, classes):
        raise BadInput(f"shares must have shape {(n, classes)}; got {shares.shape}.")
    if not (np.isfinite(shares).all() and (shares >= 0).all() and (shares.sum(axis=1) > 0).all()):
        raise BadInput("shares must be finite and non-negative, each row with a positive sum.")
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _overlapping(
    pools: list[Ints], sizes: Ints, shares: Floats, rng: np.random.Generator, paper: bool
) -> Partition:
    stocked = np.array([len(pool) > 0 for pool in pools])
    clients = []
    for size, row in zip(sizes, shares, strict=True):
        if paper:
            counts = (row * size).astype(np.int64)
            counts[-1] = size - counts[:-1].sum()
        else:
            counts = largest_remainder(_wish(row, stocked), int(size))
        if (counts[~stocked] > 0).any():
            raise BadInput("shares ask for a label without samples: use labels 0, 1, ... in y.")
        drawn = [
            pool[rng.integers(len(pool), size=count)]
            for pool, count in zip(pools, counts, strict=True)
            if count
        ]
        clients.append(np.concatenate(drawn))
    return Partition(tuple(clients))


def _without_overlap(
    pools: list[Ints], sizes: Ints, shares: Floats, rng: np.random.Generator
) -> Partition:
    stock = np.array([len(pool) for pool in pools])
    taken = np.zeros_like(stock)
    clients: list[Ints] = [np.empty(0, dtype=np.int64)] * len(sizes)
    for i in rng.permutation(len(sizes)):
        counts = _counts_within(stock - taken, int(sizes[i]), shares[i])
        parts = [
            pool[start : start + count]
            for pool, start, count in zip(pools, taken, counts, strict=True)
        ]
        clients[i] = np.concatenate(parts)
        taken += counts
    return Partition(tuple(clients))


def _counts_within(left: Ints, size: int, row: Floats) -> Ints:
    """Counts that add up to ``size``, within what is left, near the wished shares."""
    counts = np.zeros_like(left)
    while size > 0:
        # Each pass ends the wish or empties a label: at most `classes` passes.
        wish = largest_remainder(_wish(row, left > counts), size)
        granted = np.minimum(wish, left - counts)
        counts += granted
        size -= int(granted.sum())
    return counts


def _wish(row: Floats, stocked: Array) -> Floats:
    """The shares over the labels in stock; even over those if the client wants none of them."""
    wish = np.where(stocked, row, 0.0)
    return wish if wish.sum() > 0 else stocked.astype(np.float64)


def dirichlet_per_class(
    y: Array,
    n: int,
    alpha: float,
    rng: np.random.Generator,
    *,
    min_size: int = 1,
    retries: int = 1000,
    masked: bool = True,
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
