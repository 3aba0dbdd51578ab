"""A picture of a partition: which labels each client holds, and how many samples.

The facts first (`facts`: plain arrays, easy to test), then the drawing (`draw`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Flag, Whole
from fedcohort._internal.types import Array, Floats, Ints
from fedcohort.data.partition import check

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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
