"""A random projection: d coordinates become k, and angles stay nearly what they were.

Keeping an update of every client costs n d numbers, keeping its sketch n k. Each coordinate is
added, with a random sign, to ``SPREAD`` of the k sums, one in each block of k / SPREAD of them;
nothing of size d x k is ever held, and a row costs O(d). The map is a function of the seed
alone, so the server, the clients and a later run agree on it.

Effect on the angle theta between two updates: the error has mean about 0 and standard deviation::

    sin(theta) / sqrt(k)

that is 0.044 (2.5 degrees) at right angles for k = 512, 0.022 for k = 2,048, whatever d. This
holds for vectors whose weight is spread over many coordinates, and is what a dense Gaussian
projection gives. Lengths have relative standard deviation 1 / sqrt(2 k). The map is linear:
parallel updates stay exactly parallel, opposite ones opposite, and zero stays zero.

References
----------
Kane and Nelson, "Sparser Johnson-Lindenstrauss transforms", J. ACM 2014 (block construction);
Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2002 (one block).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

Floats = NDArray[np.float64]

SPREAD = 4
"""Sums that each coordinate enters; with one, two heavy coordinates could share their only sum."""
PIECE = 16384
"""Coordinates mapped at a time. A part of the map's definition: each piece has its own stream."""


def sketch(updates: ArrayLike, k: int, seed: int) -> Floats:
    """The rows of ``updates`` in k coordinates. # (n, d) -> (n, k).

    Parameters
    ----------
    updates
        One row per client, finite. # (n, d)
    k
        Coordinates to keep, 1 <= k < d.
    seed
        Which projection, in [0, 2**64); the same for every row that is to be compared.

    Examples
    --------
    >>> rows = np.arange(3000.0).reshape(3, 1000)
    >>> sketch(rows, 64, seed=1).shape
    (3, 64)
    >>> bool(np.allclose(sketch(2 * rows, 64, seed=1), 2 * sketch(rows, 64, seed=1)))
    True
    """
    rows = np.asarray(updates)
    if rows.ndim != 2:
        raise ValueError(f"updates must be one row per client (n, d), got shape {rows.shape}")
    n, d = rows.shape
    if not 1 <= k < d:
        raise ValueError(f"k must be in [1, {d}), fewer than the coordinates, got {k}")
    if not 0 <= seed < 2**64:
        raise ValueError(f"seed must be in [0, 2**64), got {seed}")
    out = np.zeros((k, n))
    for part, projection in _pieces(d, k, seed):
        out += projection @ rows[:, part].T.astype(np.float64)
    if not np.all(np.isfinite(out)):
        raise ValueError("updates must be finite, a row holds NaN, infinity or a huge number")
    return np.ascontiguousarray(out.T)


def _pieces(d: int, k: int, seed: int) -> Iterator[tuple[slice, Any]]:
    """The projection, piece by piece of its columns. # (k, piece) each."""
    blocks = min(SPREAD, k)
    borders = np.arange(blocks + 1) * k // blocks  # (blocks + 1,)
    for number, start in enumerate(range(0, d, PIECE)):
        width = min(PIECE, d - start)
        # Raw words of a counter-based generator: the same under every version of numpy.
        words = np.random.Philox(key=seed + (number << 64)).random_raw((blocks, PIECE))
        words = words[:, :width]
        signs = np.where(words & np.uint64(1), 1.0, -1.0) / np.sqrt(blocks)
        sizes = np.diff(borders).astype(np.uint64)[:, None]
        # The upper 32 bits as a fraction of the block: uniform up to 2**-32.
        places = (((words >> np.uint64(32)) * sizes) >> np.uint64(32)).astype(np.int64)
        places += borders[:-1, None]
        columns = np.broadcast_to(np.arange(width), places.shape)
        entries = (signs.ravel(), (places.ravel(), columns.ravel()))
        yield slice(start, start + width), csr_array(entries, shape=(k, width))
