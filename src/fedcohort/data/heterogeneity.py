"""Measures of heterogeneity, and a picture of a partition."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial.distance import cdist

from fedcohort._internal.errors import BadInput, TooLarge
from fedcohort._internal.parameters import Flag, Whole
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.data.partition import check
from fedcohort.maths import _statistics as inequality

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# How different the clients are: label skew and size skew, each as one number.
#
# All measures start from the label histograms (n, classes) of the clients, see
# `Partition.label_histograms`. A client without samples has no label distribution: it is
# left out of the label measures and counted in ``Heterogeneity.empty``.

MOST_CLIENTS = 50_000
"""Pairs of more clients than this would take minutes; a sample of the rows tells the same."""

BLOCK = 512
"""Rows of the distance matrix held at once: 512 x 50,000 doubles are 200 MB."""


@dataclass(frozen=True)
class Heterogeneity:
    """Label and size skew of a federation, from `measure`.

    Parameters
    ----------
    clients, empty
        Number of clients, and how many of them hold no data.
    hellinger
        Mean Hellinger distance over pairs of clients, in [0, 1].
    hellinger_rms
        Root mean square of the same: what FedArtML (and the thesis) call the average.
    jensen_shannon
        Share of the label's entropy that knowing the client explains, in [0, 1].
    earth_movers
        Mean L1 distance of a client's label shares to the global ones, in [0, 2).
    size_gini
        Gini coefficient of the sizes: 0 if all are equal, near 1 if one holds everything.
    """

    clients: int
    empty: int
    hellinger: float
    hellinger_rms: float
    jensen_shannon: float
    earth_movers: float
    size_gini: float

    def __str__(self) -> str:
        empty = f" ({self.empty} without data)" if self.empty else ""
        return (
            f"{self.clients} clients{empty}: Hellinger distance {self.hellinger:.2f} on average"
            f" (RMS {self.hellinger_rms:.2f}), the client explains {self.jensen_shannon:.0%} of"
            f" the label entropy, earth mover's distance {self.earth_movers:.2f},"
            f" Gini of sizes {self.size_gini:.2f}."
        )


def measure(histograms: Array) -> Heterogeneity:
    """Every measure of this module at once.

    >>> print(measure(np.array([[5, 0], [0, 5]])))
    2 clients: Hellinger distance 1.00 on average (RMS 1.00), the client explains 100% of the \
label entropy, earth mover's distance 1.00, Gini of sizes 0.00.
    """
    counts = _checked(histograms)
    return Heterogeneity(
        clients=len(counts),
        empty=int((counts.sum(axis=1) == 0).sum()),
        hellinger=mean_hellinger(counts),
        hellinger_rms=rms_hellinger(counts),
        jensen_shannon=jensen_shannon(counts),
        earth_movers=earth_movers(counts),
        size_gini=gini(counts.sum(axis=1)),
    )


def mean_hellinger(histograms: Array) -> float:
    """Mean of H(p, q) = ||sqrt p - sqrt q||_2 / sqrt 2 over pairs of different clients.

    O(n**2) time, in blocks of rows; a single client is at distance 0 from nobody.
    """
    roots = np.sqrt(_label_shares(_checked(histograms)))  # (n, classes)
    n = len(roots)
    if n > MOST_CLIENTS:
        raise TooLarge(
            f"The mean Hellinger distance of {n} clients needs {n * (n - 1) // 2} pairs; pass a"
            f" random sample of at most {MOST_CLIENTS} rows, or use rms_hellinger."
        )
    if n == 1:
        return 0.0
    # cdist subtracts before it squares: 1 - (Bhattacharyya) would leave 1e-8 where 0 is due.
    total = sum(
        float(cdist(roots[i : i + BLOCK], roots, "euclidean").sum()) for i in range(0, n, BLOCK)
    )
    return total / math.sqrt(2) / (n * (n - 1))


def rms_hellinger(histograms: Array) -> float:
    """Root of the mean *squared* Hellinger distance over pairs, in O(n classes).

    The squares add up in closed form: with s = sum_i sqrt p_i the mean over ordered pairs is
    1 - (|s|**2 - n) / (n (n - 1)). FedArtML reports this as "Hellinger distance"; it is never
    below the mean.
    """
    roots = np.sqrt(_label_shares(_checked(histograms)))  # (n, classes)
    n = len(roots)
    if n == 1:
        return 0.0
    # The spread around the mean root, rather than 1 - ..., so that equal clients give 0.
    spread = float(((roots - roots.mean(axis=0)) ** 2).sum())
    return math.sqrt(spread / (n - 1))


def jensen_shannon(histograms: Array, *, paper: bool = False) -> float:
    """Generalised Jensen-Shannon divergence of the clients' label shares, normalised to [0, 1].

    JSD = H(sum_i w_i P_i) - sum_i w_i H(P_i), in bits. With w_i the client's share of the data
    this is the mutual information of client and label; divided by the label entropy it says
    how much of the label the client gives away: 0 for IID, 1 for one label per client.

    Parameters
    ----------
    histograms
        (n, classes) counts.
    paper
        FedArtML's number: equal weights, divided by log2(n) if n > 2. Its greatest value is
        log2(classes) / log2(n), so it shrinks with the number of clients.
    """
    counts = _checked(histograms)
    shares = _label_shares(counts)  # (n, classes)
    sizes = counts.sum(axis=1)
    n = len(shares)
    weights = np.full(n, 1 / n) if paper else sizes[sizes > 0] / sizes.sum()  # (n,)
    # From the counts, so that a single label has share 1 and entropy 0 exactly, not nearly.
    mixture = shares.mean(axis=0) if paper else counts.sum(axis=0) / counts.sum()  # (classes,)
    overall = float(_entropy(mixture))
    bits = max(0.0, overall - float(weights @ _entropy(shares)))
    scale = (math.log2(n) if n > 2 else 1.0) if paper else overall
    return min(1.0, bits / scale) if scale > 0 else 0.0


def _entropy(shares: Floats) -> Floats:
    """Entropy in bits along the last axis; 0 log 0 = 0."""
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return -np.asarray((shares * logs).sum(axis=-1))


def earth_movers(histograms: Array) -> float:
    """Mean over clients, weighted by size, of sum_y |P_i(y) - P(y)|, in [0, 2).

    Zhao et al. (Federated Learning with Non-IID Data, 2018, Proposition 3.1) bound the
    divergence of the weights by this sum with these weights; they call it the earth mover's
    distance, which it is up to a factor 2 if all labels are equally far apart.
    """
    counts = _checked(histograms)
    sizes = counts.sum(axis=1)
    weights = sizes[sizes > 0] / sizes.sum()  # (n,)
    shares = _label_shares(counts)
    return float(weights @ np.abs(shares - weights @ shares).sum(axis=1))


def gini(sizes: Array) -> float:
    """Gini coefficient of the sizes: 0 if all are equal, (n - 1)/n if one client has all.

    >>> gini(np.array([0, 0, 0, 4]))
    0.75
    """
    values = np.asarray(sizes, dtype=np.float64)
    if values.ndim != 1 or not (values.size and values.min() >= 0 and 0 < values.sum() < np.inf):
        raise BadInput("sizes must be finite and non-negative with a positive sum.")
    return inequality.gini(values)


def _checked(histograms: Array) -> Floats:
    counts = np.asarray(histograms)
    if counts.ndim != 2 or counts.dtype.kind not in "iuf" or counts.size == 0:
        raise BadInput(
            "label histograms must be numbers of shape (clients, classes); got"
            f" {counts.dtype} {counts.shape}."
        )
    counts = counts.astype(np.float64)
    if not (np.isfinite(counts).all() and (counts >= 0).all() and counts.sum() > 0):
        raise BadInput("label histograms must be finite and non-negative, and not all zero.")
    return counts


def _label_shares(counts: Floats) -> Floats:
    """Label shares of the clients that hold data: (n', classes)."""
    sizes = counts.sum(axis=1, keepdims=True)
    held = sizes[:, 0] > 0
    return np.asarray(counts[held] / sizes[held])


# A picture of a partition: which labels each client holds, and how many samples.
#
# The facts first (`facts`: plain arrays, easy to test), then the drawing (`draw`).


@dataclass(frozen=True, eq=False)
class LabelPicture:
    """What the picture shows, column by column.

    Parameters
    ----------
    clients
        (k,) positions of the clients shown, from left to right.
    shares
        (k, classes) label shares of each; a row of zeros is a client without data.
    sizes
        (k,) samples of each.
    total
        Number of clients of the federation, k or more.
    """

    clients: Ints
    shares: Floats
    sizes: Ints
    total: int


def facts(histograms: Array, *, at_most: int = 500, sort: bool = True) -> LabelPicture:
    """Label shares and sizes of the clients, by main label and then by size.

    Parameters
    ----------
    histograms
        (n, classes) counts, see `Partition.label_histograms`.
    at_most
        Of more clients than this, so many are shown, evenly spread over the order.
    sort
        False keeps the order of the clients.

    Examples
    --------
    >>> facts(np.array([[0, 4], [3, 1], [8, 0]])).clients
    array([2, 1, 0])
    """
    counts = np.asarray(histograms)
    if counts.ndim != 2 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 0:
        raise BadInput(
            "label histograms must be non-negative integers of shape (clients, classes); got"
            f" {counts.dtype} {counts.shape}."
        )
    check("at_most", "facts", Whole(1), at_most)
    check("sort", "facts", Flag(), sort)
    sizes = counts.sum(axis=1)
    n = len(counts)
    order = np.lexsort((-sizes, counts.argmax(axis=1))) if sort else np.arange(n)
    if n > at_most:
        order = order[np.arange(at_most) * n // at_most]
    shares = counts / np.maximum(sizes, 1)[:, None]
    return LabelPicture(order, shares[order], sizes[order], n)


def draw(picture: LabelPicture, *, title: str = "") -> Figure:
    """Sizes as bars above, label shares as a heat map below; save it with ``.savefig(path)``."""
    from matplotlib.figure import Figure  # slow to import, and needed here only

    shown, classes = picture.shares.shape
    figure = Figure(figsize=(9.0, 2.2 + 0.25 * min(classes, 30)), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
    above.bar(np.arange(shown), picture.sizes, width=1.0, color="0.45")
    above.set_ylabel("samples")
    above.spines[["top", "right"]].set_visible(False)
    # cividis reads the same with and without colour vision, and in print.
    image = below.imshow(
        picture.shares.T, aspect="auto", interpolation="nearest", cmap="cividis", vmin=0, vmax=1
    )
    below.set_ylabel("label")
    if classes <= 20:
        below.set_yticks(np.arange(classes))
    more = "" if shown == picture.total else f" ({shown} of {picture.total} shown)"
    below.set_xlabel(f"clients{more}")
    below.set_xticks([])
    figure.colorbar(image, ax=[above, below], label="share of the client's data")
    if title:
        figure.suptitle(title)
    return figure
