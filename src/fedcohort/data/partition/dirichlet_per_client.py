"""Each client draws its label shares from a Dirichlet law; sizes are given.

Papers confuse two ways. Here (paper 1) a *client* draws; in `dirichlet_per_class` (the thesis,
NIID-Bench, FedArtML) each *class* is spread over the clients, so label shares and sizes are both
random. A small alpha means few labels per client in both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import Flag, Maybe, Whole, is_whole
from fedcohort.core.spec import elements
from fedcohort.core.types import Array, Floats, Ints
from fedcohort.data.partition.base import (
    ALPHA,
    Partition,
    check,
    check_rng,
    checked_labels,
    checked_sizes,
    largest_remainder,
    members,
)

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
