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
Where = slice | NDArray[np.int64]

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
    scales = _scales(rows, metric)
    matrix = np.empty((n, n), dtype=rows.dtype)
    tiles = list(_ranges(n, TILE))
    for index, left in enumerate(tiles):
        for right in tiles[index:]:
            tile = _tile(rows, left, right, scales, metric, zero)
            if left is right:
                tile = (tile + tile.T) / 2
            matrix[left, right] = tile
            matrix[right, left] = tile.T
    np.fill_diagonal(matrix, 0)
    return matrix


def refresh(
    matrix: Matrix,
    updates: ArrayLike,
    changed: ArrayLike,
    metric: Metric = "arccos",
    zero: Zero = "alike",
    in_place: bool = False,
) -> Matrix:
    """The matrix of `distances` after some rows of ``updates`` were replaced.

    Only the rows and columns ``changed`` are computed: O(n r d) for r of them, instead of
    O(n n d). ``updates`` holds the new values; the result is a copy unless ``in_place``.

    >>> updates = np.eye(3)
    >>> before = distances(updates)
    >>> updates[2] = updates[0]
    >>> refresh(before, updates, [2]).round(2)
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
    result = matrix if in_place else matrix.copy()
    scales = _scales(rows, metric)
    for some in _ranges(which.size, TILE):
        left = which[some]
        block = np.empty((left.size, n))
        for right in _ranges(n, TILE):
            block[:, right] = _tile(rows, left, right, scales, metric, zero)
        block[:, left] = (block[:, left] + block[:, left].T) / 2
        result[left, :] = block
        result[:, left] = block.T
    result[which, which] = 0
    return result


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


def _scales(rows: Matrix, metric: Metric) -> Floats | None:
    """What each row must be divided by lest squares over- or underflow; None if nothing."""
    if rows.size == 0:
        return None
    largest = np.maximum(rows.max(axis=1), -rows.min(axis=1)).astype(np.float64)  # (n,)
    bad = np.flatnonzero(~np.isfinite(largest))
    if bad.size:
        raise ValueError(f"updates must be finite, row {bad[0]} holds NaN or infinity")
    if metric == "l1":
        return None  # no squares
    if metric == "l2":
        largest[:] = largest.max()  # an angle does not depend on lengths, this does
    harmless = (largest == 0) | ((largest > 1e-100) & (largest < 1e100))
    return None if np.all(harmless) else np.where(harmless, 1.0, largest)


def _ranges(n: int, step: int) -> Iterator[slice]:
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _tile(
    rows: Matrix, left: Where, right: Where, scales: Floats | None, metric: Metric, zero: Zero
) -> Floats:
    """Distances of the rows ``left`` to the rows ``right``. # (n, d) -> (a, b)."""
    some, others = rows[left], rows[right]
    products = np.zeros((len(some), len(others)))  # sums over coordinates
    some_squares, other_squares = np.zeros(len(some)), np.zeros(len(others))
    for part in _ranges(rows.shape[1], SLICE):
        x = _slice(some, part, scales, left)
        # The same object on both sides lets numpy compute half of the product only.
        y = x if left is right else _slice(others, part, scales, right)
        if metric == "l1":
            products += cdist(x, y, "cityblock")
            continue
        products += x @ y.T
        some_squares += np.einsum("ij,ij->i", x, x)
        other_squares += np.einsum("ij,ij->i", y, y)
    if metric == "l1":
        return products
    # Relative errors of a sum of d products, and of the coordinates themselves.
    rounding, grain = float(np.finfo(np.float64).eps), float(np.finfo(rows.dtype).eps)
    lost = max(4 * rounding * rows.shape[1] ** 0.5, grain**2)
    if metric == "arccos":
        return _angles(products, some_squares, other_squares, lost, zero)
    total = some_squares[:, None] + other_squares
    squares = total - 2 * products
    squares[squares <= lost * total] = 0
    lengths: Floats = np.sqrt(squares)
    return lengths if scales is None else lengths * scales[0]


def _slice(rows: Matrix, part: slice, scales: Floats | None, where: Where) -> Floats:
    piece: Floats = rows[:, part].astype(np.float64, copy=False)
    return piece if scales is None else piece / scales[where][:, None]


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
