"""How far apart the updates of clients are: the n x n matrix of angles, L2 or L1 distances.

Algorithm 2 of clustered sampling groups clients whose last updates point the same way. Two
facts make this cheap: all inner products are one matrix product, and after a round only the
clients that trained have a new update, so only their rows and columns change (`refresh`).

Products are summed in float64 whatever the dtype of the updates: near 0 an angle is the square
root of a rounding error, so float32 sums would turn parallel updates into angles of 1e-3. They
run over tiles of rows and slices of coordinates, so no copy of the updates is ever made.

References
----------
Fraboni et al., "Clustered Sampling", ICML 2021, Section 5 and Algorithm 2. The authors' code
takes the arccos of unclipped cosines, which is NaN for half of all parallel float32 pairs, and
its "L2" is the squared distance.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

Floats = NDArray[np.float64]
Matrix = NDArray[Any]  # float32 or float64
Metric = Literal["arccos", "l2", "l1"]
Zero = Literal["alike", "apart"]

TILE = 512
"""Rows of the updates that are multiplied at a time."""
SLICE = 1024
"""Coordinates that are held in float64 at a time: TILE * SLICE * 8 bytes = 4 MiB."""


def distances(updates: ArrayLike, metric: Metric = "arccos", zero: Zero = "alike") -> Matrix:
    """The symmetric matrix of distances between all rows of ``updates``.

    Parameters
    ----------
    updates
        One row per client, finite. # (n, d)
    metric
        ``"arccos"``: the angle in [0, pi]; ``"l2"``: Euclidean; ``"l1"``: sum of differences.
    zero
        The angle between a zero row (a client never seen) and another: ``"alike"`` is 0, the
        authors' convention, which only works when *rows* of the matrix are compared afterwards
        (zero rows are then identical and merge first); ``"apart"`` is pi/2, for everything
        else. Two zero rows are always at angle 0.

    Returns
    -------
    matrix
        Of the dtype of the updates, exactly symmetric, zero diagonal. # (n, n)
        Rows that are parallel up to rounding are at exactly 0, opposite ones at exactly pi; the
        finest angle told from 0 is about 2e-7 (4e-7 for d = 10,000).

    Examples
    --------
    >>> distances([[1.0, 0.0], [3.0, 0.0], [0.0, 2.0], [0.0, 0.0]], zero="apart").round(2)
    array([[0.  , 0.  , 1.57, 1.57],
           [0.  , 0.  , 1.57, 1.57],
           [1.57, 1.57, 0.  , 1.57],
           [1.57, 1.57, 1.57, 0.  ]])
    """
    rows = _as_rows(updates)
    _check_options(metric, zero)
    n = len(rows)
    scales, _ = _scales(rows, rows, metric)
    matrix = np.empty((n, n), dtype=rows.dtype)
    tiles = list(_ranges(n, TILE))
    for index, left in enumerate(tiles):
        some, some_scales = rows[left], _part(scales, left)
        for right in tiles[index:]:
            # The same object on both sides lets numpy compute half of the product only.
            others = some if left is right else rows[right]
            tile = _tile(some, others, some_scales, _part(scales, right), metric, zero)
            if left is right:
                tile = (tile + tile.T) / 2
            matrix[left, right] = tile
            matrix[right, left] = tile.T
    np.fill_diagonal(matrix, 0)
    return matrix


def between(
    some: ArrayLike, others: ArrayLike, metric: Metric = "arccos", zero: Zero = "alike"
) -> Floats:
    """Distances of some updates to others. # (a, d), (b, d) -> (a, b).

    Entry (i, j) is what `distances` would give the rows ``some[i]`` and ``others[j]``. The two
    may be stored apart, so that new updates are compared with old ones where they lie.

    >>> between([[1.0, 0.0]], [[0.0, 2.0], [5.0, 0.0], [0.0, 0.0]]).round(2)
    array([[1.57, 0.  , 0.  ]])
    """
    left, right = _as_rows(some), _as_rows(others)
    _check_options(metric, zero)
    if left.shape[1] != right.shape[1]:
        raise ValueError(f"updates must be of one length, got {left.shape[1]} and {right.shape[1]}")
    left_scales, right_scales = _scales(left, right, metric)
    out = np.empty((len(left), len(right)))
    for here in _ranges(len(left), TILE):
        for there in _ranges(len(right), TILE):
            scales = _part(left_scales, here), _part(right_scales, there)
            out[here, there] = _tile(left[here], right[there], *scales, metric, zero)
    return out


def replace_rows(matrix: Matrix, changed: NDArray[np.int64], rows: Floats) -> None:
    """Write new rows, and columns, into a symmetric matrix of distances, in place.

    ``rows`` are the distances of the clients ``changed`` to all. # (n, n), (r,), (r, n)
    """
    inner = rows[:, changed]
    rows[:, changed] = (inner + inner.T) / 2
    matrix[changed, :] = rows
    matrix[:, changed] = rows.T
    matrix[changed, changed] = 0


def refresh(
    matrix: Matrix,
    updates: ArrayLike,
    changed: ArrayLike,
    metric: Metric = "arccos",
    zero: Zero = "alike",
) -> None:
    """Make the matrix of `distances` right again after some ``updates`` changed, in place.

    Only the rows and columns ``changed`` are computed: O(n r d) for r of them, instead of
    O(n n d). ``updates`` holds the new values.

    >>> updates = np.eye(3)
    >>> matrix = distances(updates)
    >>> updates[2] = updates[0]
    >>> refresh(matrix, updates, [2])
    >>> matrix.round(2)
    array([[0.  , 1.57, 0.  ],
           [1.57, 0.  , 1.57],
           [0.  , 1.57, 0.  ]])
    """
    rows = _as_rows(updates)
    _check_options(metric, zero)
    n = len(rows)
    if matrix.shape != (n, n):
        raise ValueError(f"matrix must be {n} x {n} like the {n} updates, got {matrix.shape}")
    which = np.unique(np.asarray(changed, dtype=np.int64))
    if which.size and not (which[0] >= 0 and which[-1] < n):
        raise ValueError(f"changed must name rows in [0, {n}), got {which[0]} to {which[-1]}")
    for some in _ranges(which.size, TILE):
        left = which[some]
        replace_rows(matrix, left, between(rows[left], rows, metric, zero))


def pairwise(updates: ArrayLike, metric: Metric = "arccos", zero: Zero = "alike") -> Floats:
    """The slow, obvious twin of `distances`: one pair at a time, as the authors do it."""
    rows = np.asarray(updates, dtype=np.float64)
    matrix = np.zeros((len(rows), len(rows)))
    for i, left in enumerate(rows):
        for j, right in enumerate(rows):
            if i != j:
                matrix[i, j] = _one_pair(left, right, metric, zero)
    return matrix


def _one_pair(left: Floats, right: Floats, metric: Metric, zero: Zero) -> float:
    if metric == "l1":
        return float(np.sum(np.abs(left - right)))
    if metric == "l2":
        return float(np.sqrt(np.sum((left - right) ** 2)))
    norms = float(np.linalg.norm(left)), float(np.linalg.norm(right))
    if norms == (0.0, 0.0):
        return 0.0
    if 0.0 in norms:
        return 0.0 if zero == "alike" else np.pi / 2
    # Kahan's formula: exact near 0 and pi, where the arccos of a rounded cosine is not.
    u, v = left / norms[0], right / norms[1]
    return float(2 * np.arctan2(np.linalg.norm(u - v), np.linalg.norm(u + v)))


def _as_rows(updates: ArrayLike) -> Matrix:
    rows = np.asarray(updates)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float64)
    if rows.ndim != 2:
        raise ValueError(f"updates must be one row per client (n, d), got shape {rows.shape}")
    return rows


def _check_options(metric: str, zero: str) -> None:
    if metric not in get_args(Metric):
        raise ValueError(f"metric must be one of {get_args(Metric)}, got {metric!r}")
    if zero not in get_args(Zero):
        raise ValueError(f"zero must be one of {get_args(Zero)}, got {zero!r}")


def _scales(left: Matrix, right: Matrix, metric: Metric) -> tuple[Floats | None, Floats | None]:
    """What each row must be divided by lest squares over- or underflow; None if nothing."""
    largest = [_largest(left)] if left is right else [_largest(left), _largest(right)]
    if metric == "l1":
        return None, None  # no squares
    if metric == "l2":  # an angle does not depend on lengths, this does
        top = max(float(rows.max(initial=0.0)) for rows in largest)
        largest = [np.full_like(rows, top) for rows in largest]
    harmless = [(rows == 0) | ((rows > 1e-100) & (rows < 1e100)) for rows in largest]
    if all(np.all(fine) for fine in harmless):
        return None, None
    scales = [np.where(fine, 1.0, rows) for fine, rows in zip(harmless, largest, strict=True)]
    return scales[0], scales[-1]


def _largest(rows: Matrix) -> Floats:
    """(n,) the largest component of each row by absolute value; all must be finite."""
    if rows.size == 0:
        return np.zeros(len(rows))
    largest: Floats = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(largest))
    if bad.size:
        raise ValueError(f"updates must be finite, row {bad[0]} holds NaN or infinity")
    return largest


def _part(scales: Floats | None, where: slice) -> Floats | None:
    return None if scales is None else scales[where]


def _ranges(n: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _tile(
    some: Matrix,
    others: Matrix,
    some_scales: Floats | None,
    other_scales: Floats | None,
    metric: Metric,
    zero: Zero,
) -> Floats:
    """Distances of some rows to others. # (a, d), (b, d) -> (a, b)."""
    products = np.zeros((len(some), len(others)))  # sums over coordinates
    some_squares, other_squares = np.zeros(len(some)), np.zeros(len(others))
    for part in _ranges(some.shape[1], SLICE):
        x = _slice(some, part, some_scales)
        y = x if some is others else _slice(others, part, other_scales)
        if metric == "l1":
            products += cdist(x, y, "cityblock")
            continue
        products += x @ y.T
        some_squares += np.einsum("ij,ij->i", x, x)
        other_squares += np.einsum("ij,ij->i", y, y)
    if metric == "l1":
        return products
    # Relative errors of a sum of d products, and of the coordinates themselves.
    rounding, grain = float(np.finfo(np.float64).eps), float(np.finfo(some.dtype).eps)
    lost = max(4 * rounding * some.shape[1] ** 0.5, grain**2)
    if metric == "arccos":
        return _angles(products, some_squares, other_squares, lost, zero)
    total = some_squares[:, None] + other_squares
    squares = total - 2 * products
    squares[squares <= lost * total] = 0
    lengths: Floats = np.sqrt(squares)
    return lengths if some_scales is None else lengths * some_scales[0]


def _slice(rows: Matrix, part: slice, scales: Floats | None) -> Floats:
    piece: Floats = rows[:, part].astype(np.float64, copy=False)
    return piece if scales is None else piece / scales[:, None]


def _angles(
    products: Floats, left_squares: Floats, right_squares: Floats, lost: float, zero: Zero
) -> Floats:
    nothing_left, nothing_right = left_squares == 0, right_squares == 0
    lengths = np.sqrt(np.where(nothing_left, 1, left_squares))[:, None]
    lengths = lengths * np.sqrt(np.where(nothing_right, 1, right_squares))
    cosines = products / lengths
    cosines[cosines >= 1 - lost] = 1
    cosines[cosines <= lost - 1] = -1
    angles: Floats = np.arccos(cosines)
    angles[nothing_left[:, None] | nothing_right] = 0 if zero == "alike" else np.pi / 2
    angles[nothing_left[:, None] & nothing_right] = 0
    return angles
