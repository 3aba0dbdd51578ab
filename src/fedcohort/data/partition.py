"""Partitions: ways to divide a training set among clients.

Each is a pure function of the labels, a few settings and a generator, and returns a frozen
`Partition`. The same generator state gives the same partition. Other packages add theirs through
the entry point group ``fedcohort.partitions``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import Constraint, Flag, Maybe, Real, Whole, elements, is_whole
from fedcohort._internal.registry import Kind, Prepared
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.data._dataset import read_only, somebody

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


# Who holds which samples: the `Partition`, and the checks that all ways to make one share.


ALPHA = Real(0, 1e9, open_low=True)
"""Above this a Dirichlet draw is even to nine digits, and numpy's loses its randomness."""
MOST_CLASSES = 1_000_000
"""Labels are counted in tables of this many columns at most: ids are not labels."""


@dataclass(frozen=True, eq=False, repr=False)
class Partition:
    """The samples of each client, as positions in the training set; read-only.

    Parameters
    ----------
    clients
        One int64 array of positions per client; an empty array is a client without data.
    test
        The same for test samples of clients' own, as positions in the test set; None where the
        test set is everybody's.
    tested
        (K,) the positions of all samples that belong into the test set; None for all.
    names
        What clients are called, where they have other names than 0, 1, ...

    Examples
    --------
    >>> partition = Partition((np.array([0, 2]), np.array([1])))
    >>> partition.n, partition.sizes
    (2, array([2, 1]))
    >>> partition.label_histograms(np.array([5, 5, 6]), classes=7)[:, 5:]
    array([[1, 1],
           [1, 0]])
    """

    clients: tuple[Ints, ...]
    test: tuple[Ints, ...] | None = None
    tested: Ints | None = None
    names: tuple[str | int, ...] = ()

    def __post_init__(self) -> None:
        if len(self.clients) == 0:
            raise BadInput("A partition needs at least one client; got none.")
        if self.test is not None and len(self.test) != len(self.clients):
            raise BadInput(
                f"The test samples of a partition must be told for each of {len(self.clients)}"
                f" clients; got {len(self.test)}."
            )
        for client, indices in enumerate([*self.clients, *(self.test or ())]):
            if indices.ndim != 1 or indices.dtype != np.int64 or (indices < 0).any():
                raise BadInput(
                    f"The samples of client {client % self.n} must be a one-dimensional int64"
                    f" array of positions from 0 on; got {indices.dtype} {indices.shape}."
                )
        object.__setattr__(self, "clients", tuple(map(read_only, self.clients)))
        if self.test is not None:
            object.__setattr__(self, "test", tuple(map(read_only, self.test)))

    @property
    def n(self) -> int:
        """Number of clients."""
        return len(self.clients)

    @property
    def sizes(self) -> Ints:  # (n,)
        """Number of samples of each client."""
        return np.array([len(indices) for indices in self.clients], dtype=np.int64)

    @property
    def disjoint(self) -> bool:
        """Whether no sample is held twice, by two clients or by one."""
        held = np.concatenate(self.clients)
        return len(np.unique(held)) == len(held)

    def label_histograms(self, y: Array, classes: int) -> Ints:  # (n, classes)
        """How many samples of each label each client holds."""
        y = checked_labels(y, "label_histograms")
        check("classes", "label_histograms", Whole(int(y.max()) + 1, MOST_CLASSES), classes)
        held = np.concatenate(self.clients)
        if held.size and held.max() >= len(y):
            raise BadInput(
                f"The partition holds sample {held.max()}, and there are {len(y)} labels: use the"
                " labels of the training set that was partitioned."
            )
        cell = np.repeat(np.arange(self.n), self.sizes) * classes + y[held]
        return np.bincount(cell, minlength=self.n * classes).reshape(self.n, classes)

    def __repr__(self) -> str:
        sizes = self.sizes
        return f"<Partition: {self.n} clients, {sizes.min()} to {sizes.max()} samples each>"


def check(name: str, owner: str, constraint: Constraint, value: object, remedy: str = "") -> None:
    """One sentence if a setting is outside its range."""
    if not constraint.accepts(value):
        raise BadParameter(name, owner, str(constraint), value, remedy)


def check_rng(rng: object, owner: str) -> None:
    """A seed in place of a generator is the usual slip."""
    if not isinstance(rng, np.random.Generator):
        raise BadParameter(
            "rng", owner, "a numpy Generator", rng, "Pass numpy.random.default_rng(seed)."
        )


def checked_labels(y: Array | Sequence[int], owner: str) -> Ints:  # (N,)
    """Labels as int64, or one sentence that says what they must be."""
    labels = np.asarray(y)
    flat = labels.ndim == 1 and labels.dtype.kind in "iu" and labels.size > 0
    if not flat or labels.min() < 0 or labels.max() >= MOST_CLASSES:
        must = f"a one-dimensional array of integer labels in 0..{MOST_CLASSES - 1}"
        raise BadParameter("y", owner, must, _describe(labels))
    return labels.astype(np.int64, copy=False)


def checked_sizes(sizes: Array | Sequence[int], owner: str) -> Ints:  # (n,)
    """Sizes of the clients as int64, each at least 1."""
    given = np.asarray(sizes)
    if given.ndim != 1 or given.dtype.kind not in "iu" or given.size == 0 or given.min() < 1:
        raise BadParameter(
            "sizes", owner, "a list of one int of at least 1 per client", _describe(given)
        )
    return given.astype(np.int64)


def _describe(array: Array) -> str:
    if array.size == 0 or array.dtype.kind not in "iuf":
        return f"{array.dtype} of shape {array.shape}"
    return f"{array.dtype} of shape {array.shape} with values in [{array.min()}, {array.max()}]"


def members(y: Ints, rng: np.random.Generator) -> list[Ints]:
    """Positions of the samples of each label 0, 1, ..., each in random order."""
    shuffled = rng.permutation(len(y))
    by_label = shuffled[np.argsort(y[shuffled], kind="stable")]
    return np.split(by_label, np.cumsum(np.bincount(y))[:-1])


def largest_remainder(shares: Floats, total: int) -> Ints:
    """Whole numbers near ``total * shares`` that add up to ``total``; ties to the lower index.

    >>> largest_remainder(np.array([0.5, 0.25, 0.25]), 5)
    array([3, 1, 1])
    """
    exact = shares / shares.sum() * total
    whole: Ints = np.floor(exact).astype(np.int64)
    missing = total - int(whole.sum())
    # Rounding of the sum could leave one too many as well as one too few.
    order = np.argsort(whole - exact, kind="stable")
    if missing < 0:
        order = order[::-1][whole[order[::-1]] > 0]
    whole[order[: abs(missing)]] += np.sign(missing)
    return whole


# Each class is spread over the clients by a Dirichlet draw, so sizes are random, too.


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


# Each client draws its label shares from a Dirichlet law; sizes are given.
#
# Papers confuse two ways. Here (paper 1) a *client* draws; in `dirichlet_per_class` (the thesis,
# NIID-Bench, FedArtML) each *class* is spread over the clients, so label shares and sizes are both
# random. A small alpha means few labels per client in both.


PAPER1_SIZES: tuple[int, ...] = (100,) * 10 + (250,) * 30 + (500,) * 30 + (750,) * 20 + (1000,) * 10
"""The 100 unequal clients of paper 1's CIFAR-10 experiments: 48,500 samples."""


def dirichlet_shares(n: int, classes: int, alpha: float, rng: np.random.Generator) -> Floats:
    """Label shares of n clients, one Dirichlet(alpha, ..., alpha) row each: (n, classes)."""
    check("n", "dirichlet_shares", Whole(1), n)
    check("classes", "dirichlet_shares", Whole(1), classes)
    check("alpha", "dirichlet_shares", ALPHA, alpha)
    check_rng(rng, "dirichlet_shares")
    return rng.dirichlet(np.full(classes, float(alpha)), size=n)


NAMED_SIZES = {"paper1": PAPER1_SIZES}


@dataclass(frozen=True)
class Sizes:
    """One size per client, or the name of sizes that a paper used."""

    def __str__(self) -> str:
        return f"sizes as in 100-200-300, or one of {', '.join(map(repr, NAMED_SIZES))}"

    def accepts(self, value: object) -> bool:
        if isinstance(value, str):
            return value in NAMED_SIZES
        return isinstance(value, tuple) and all(is_whole(size) and size > 0 for size in value)

    def parse(self, text: str) -> object:
        return text if text in NAMED_SIZES else tuple(map(int, elements(text.replace("-", ","))))

    def bad_examples(self) -> Sequence[object]:
        return [(0, 5), (1.5,), "paper0", 3]


def dirichlet_per_client(
    y: Array,
    sizes: Annotated[Sequence[int] | Ints | str | None, Maybe(Sizes())],
    alpha: Annotated[float, ALPHA],
    rng: np.random.Generator,
    *,
    n: Annotated[int | None, Maybe(Whole(1))] = None,
    replace: Annotated[bool, Flag()] = False,
    paper: Annotated[bool, Flag()] = False,
) -> Partition:
    """Client i holds exactly ``sizes[i]`` samples, label shares drawn from Dirichlet(alpha).

    Short for `dirichlet_shares` and `_by_shares`; use those two where train and test must
    share their rows, as in paper 1.

    Parameters
    ----------
    y, alpha, rng
        Labels, concentration, generator.
    sizes
        One per client; ``"paper1"`` stands for `PAPER1_SIZES`.
    n
        Instead of sizes: so many clients that hold all the data in equal parts.
    replace, paper
        See `_by_shares`.

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
    sizes = checked_sizes(_told(y, sizes, n, owner), owner)
    check("alpha", owner, ALPHA, alpha)
    check_rng(rng, owner)
    shares = dirichlet_shares(len(sizes), int(y.max()) + 1, alpha, rng)
    return _by_shares(y, sizes, shares, rng, replace=replace, paper=paper)


def _told(y: Ints, sizes: object, n: int | None, owner: str) -> Sequence[int]:
    if sizes is None and n is None:
        raise BadInput(
            "The partition 'dirichlet-per-client' needs a value for 'n': write "
            "dirichlet-per-client:n=..., or sizes=..."
        )
    if n is not None:
        if sizes is not None:
            raise BadParameter("n", owner, "left out where 'sizes' are given", n)
        check("n", owner, Whole(1, len(y)), n)
        return [len(part) for part in np.array_split(np.arange(len(y)), n)]
    if isinstance(sizes, str) and sizes not in NAMED_SIZES:
        raise BadParameter("sizes", owner, str(Sizes()), sizes)
    return NAMED_SIZES[sizes] if isinstance(sizes, str) else sizes  # type: ignore[return-value]


def _by_shares(
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
    owner = "_by_shares"
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


# Even parts, at random.


def iid(y: Array, n: Annotated[int, Whole(1)], rng: np.random.Generator) -> Partition:
    """Every sample to a client at random; sizes differ by at most one and nothing is lost.

    >>> iid(np.zeros(10, int), 3, np.random.default_rng(0)).sizes
    array([4, 3, 3])
    """
    y = checked_labels(y, "iid")
    check("n", "iid", Whole(1, len(y)), n)
    check_rng(rng, "iid")
    return Partition(tuple(np.array_split(rng.permutation(len(y)), n)))


# Shards of sorted labels, a few per client.


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


# IID labels, sizes with a long tail.


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


# The clients that the data itself names: writers, users, hospitals.


def natural(
    groups: Array,
    rng: np.random.Generator | None = None,
    groups_test: Array | None = None,
    n: Annotated[int | None, Maybe(Whole(1))] = None,
    min_size: Annotated[int, Whole(1)] = 1,
    group_names: Sequence[str] | None = None,
) -> Partition:
    """One client per distinct id (a writer, a user, a hospital), in sorted order of the ids.

    A negative number or an empty text is nobody's id.

    Parameters
    ----------
    groups, groups_test
        The id of each training sample and, if known, of each test sample. Test samples of
        clients that are left out, and of nobody, do not count; those of strangers do, who have no
        training sample.
    rng
        Needed with ``n``.
    n
        So many of the clients, drawn at random; by default all.
    min_size
        Clients with fewer training samples are left out.
    group_names
        Names of the clients, if the ids are positions in it.

    Examples
    --------
    >>> natural(np.array(["b", "a", "b"])).clients
    (array([1]), array([0, 2]))
    >>> natural(np.array([7, 9, 7]), groups_test=np.array([9, 8])).test
    (array([], dtype=int64), array([0]))
    """
    ids = _checked(groups)
    check("n", "natural", Maybe(Whole(1)), n)
    check("min_size", "natural", Whole(1), min_size)
    names, which, counts = np.unique(ids, return_inverse=True, return_counts=True)
    kept = np.flatnonzero((counts >= min_size) & somebody(names))  # (n,) positions in names
    if len(kept) == 0:
        most = int(counts[somebody(names)].max(initial=0))
        if most == 0:
            raise BadInput("The 'groups' of natural must name anybody; all samples are nobody's.")
        raise BadParameter("min_size", "natural", f"at most {most}, the most of a client", min_size)
    if n is not None:
        if n > len(kept):
            must = f"at most {len(kept)}, the number of clients of that size"
            raise BadParameter("n", "natural", must, n)
        check_rng(rng, "natural")
        kept = np.sort(rng.permutation(kept)[:n])  # type: ignore[union-attr]
    clients, called = _held(which, len(names), kept), tuple(names[kept].tolist())
    if group_names is not None:
        if ids.dtype.kind not in "iu" or int(ids.max()) >= len(group_names):
            raise BadInput(
                "The 'groups' of natural must be positions in 'group_names' where it is given, "
                f"below {len(group_names)}."
            )
        called = tuple(group_names[k] for k in called)
    if groups_test is None:
        return Partition(clients, names=called)
    theirs = _checked(groups_test)
    if (theirs.dtype.kind in "iu") != (ids.dtype.kind in "iu"):
        raise BadInput("The ids of the training and of the test set must be of one kind.")
    place = np.searchsorted(names, theirs).clip(0, len(names) - 1)
    stranger = names[place] != theirs
    test = _held(np.where(stranger, len(names), place), len(names) + 1, kept)
    counts = somebody(theirs) & (stranger | np.isin(place, kept))
    return Partition(
        clients,
        test if any(len(rows) for rows in test) else None,
        None if counts.all() else np.flatnonzero(counts),
        called,
    )


def _checked(groups: Array) -> Array:
    ids = np.asarray(groups)
    if ids.ndim != 1 or ids.size == 0 or ids.dtype.kind not in "iuUS":
        raise BadInput(
            "The 'groups' of natural must be a one-dimensional array of integer or text ids; got"
            f" {ids.dtype} {ids.shape}. Use a data set with natural ids, such as mnist with the"
            " writers of QMNIST."
        )
    return ids


def _held(which: Ints, count: int, kept: Ints) -> tuple[Ints, ...]:
    """The samples of each of the clients that are kept, in their order."""
    order = np.argsort(which, kind="stable")
    ends = np.cumsum(np.bincount(which, minlength=count))
    parts = np.split(order, ends[:-1])
    return tuple(parts[position] for position in kept.tolist())


# One label per client: the hardest label skew.


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


PARTITIONS: Kind[Prepared] = Kind(
    "partition",
    (__name__,),
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
