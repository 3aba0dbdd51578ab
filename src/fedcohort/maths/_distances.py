"""Distances between updates (angles, L2, L1) and label histograms (Hellinger), and sketches.

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
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array
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


# How different the data of clients are: Hellinger distances of histograms.
#
# For two frequency vectors p and q over the same classes
#
#     H(p, q) = ||sqrt(p) - sqrt(q)||_2 / sqrt(2) = sqrt(1 - sum_y sqrt(p_y q_y)),
#
# between 0 (equal) and 1 (no class in common). With R the (n, classes) matrix of square roots
# of frequencies, all pairs come out of the one product R R^T. Giunta's thesis (Algorithm 5)
# loops over pairs and takes raw counts; counts are normalised here, since H is a distance of
# distributions. Reference for the use in client selection: Wolfrath et al. (2022), "HACCS".


Combine: TypeAlias = Literal["mean", "sum"]
Absent: TypeAlias = Literal["far", "skip", "zero"]

BLOCK = 256
"""Rows of the distance matrix computed at a time; its temporary stays below n * 2 kB."""


def hellinger(histograms: ArrayLike) -> Floats:
    """Distances of all pairs of rows of ``histograms``: (n, classes) counts -> (n, n).

    Counts or frequencies, integers or floats: rows are normalised. The matrix is exactly
    symmetric, its diagonal and the entries of equal rows are exactly 0, and no entry
    exceeds 1. Elsewhere the squares are exact to about 1e-15, so that distances below 1e-6
    carry an absolute error up to 1e-8.

    >>> hellinger([[7, 0, 0], [16, 9, 0], [0, 0, 3]]).round(4)
    array([[0.    , 0.4472, 1.    ],
           [0.4472, 0.    , 1.    ],
           [1.    , 1.    , 0.    ]])
    """
    return _from_roots(_roots(_checked(histograms, 2)))


def hellinger_by_class(
    histograms: ArrayLike, combine: Combine = "mean", absent: Absent = "far"
) -> Floats:
    """Distances of clients by P(X|y): (n, classes, bins) counts -> (n, n).

    Row y of a client is its feature histogram among its samples of class y. The distance is
    the mean, or the sum, over classes of the row distances.
    What happens to a class that a client has no sample of must be chosen:

    ``absent="far"``
        held by one of the two only: distance 1; held by neither: the class is left out.
    ``absent="skip"``
        only classes held by both count; clients without a common class are at distance 1
        (mean) or at the number of classes (sum).
    ``absent="zero"``
        an absent row is the zero vector: distance 1/sqrt(2) to any row, 0 to another absent
        one, and the mean is over all classes. With ``combine="sum"`` this is what the code
        of HACCS computes.

    A client needs at least one sample. Neither mean of "far" or "skip" is a metric, which the
    clusterings do not ask for.

    >>> first, second = [[4, 0], [0, 0]], [[0, 4], [1, 1]]
    >>> [float(hellinger_by_class([first, second], absent=a)[0, 1]) for a in ("far", "skip")]
    [1.0, 1.0]
    """
    if combine not in ("mean", "sum"):
        raise ValueError(f"The rows must be combined by 'mean' or 'sum'. Got {combine!r} instead.")
    if absent not in ("far", "skip", "zero"):
        raise ValueError(f"An absent class is 'far', 'skip' or 'zero'. Got {absent!r} instead.")
    counts = _checked(histograms, 3)  # (n, classes, bins)
    n, classes, _ = counts.shape
    held = counts.max(axis=2) > 0  # (n, classes)
    total = np.zeros((n, n))
    counted = np.zeros((n, n))
    for y in range(classes):
        has = held[:, y]
        both = np.ix_(has, has)
        row = np.zeros((n, n))
        if has.any():
            row[both] = _from_roots(_roots(counts[has, y]))
        one_only = has[:, None] != has[None, :]
        if absent == "far":
            row[one_only] = 1.0
            counted += has[:, None] | has[None, :]
        elif absent == "skip":
            counted[both] += 1
        else:
            row[one_only] = np.sqrt(0.5)
            counted += 1
        total += row
    nothing_common = counted == 0  # under "skip" only: under "far" every client has a class
    total[nothing_common] = classes if combine == "sum" else 1.0
    if combine == "mean":
        total /= np.where(nothing_common, 1, counted)
    return total


def mean_and_rms(distances: ArrayLike) -> tuple[float, float]:
    """Mean and root mean square over the pairs of different clients; 0, 0 for one client.

    The "Hellinger distance" of a federation in FedArtML, and so in the thesis, is the RMS.

    >>> mean_and_rms([[0.0, 0.6], [0.6, 0.0]])
    (0.6, 0.6)
    """
    matrix = np.asarray(distances, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"The distances must be a square matrix. Got shape {matrix.shape}.")
    n = matrix.shape[0]
    if n < 2:
        return 0.0, 0.0
    pairs = matrix[np.triu_indices(n, 1)]
    return float(pairs.mean()), float(np.sqrt(np.mean(pairs**2)))


def rms(histograms: ArrayLike) -> float:
    """The RMS of `mean_and_rms` without the matrix: O(n) time, for a million clients.

    sum_{i != j} <r_i, r_j> = ||sum_i r_i||^2 - n, so mean H^2 = 1 - (||sum r||^2 - n)/(n(n-1)).

    >>> rms([[1, 0], [0, 1]])
    1.0
    """
    roots = _roots(_checked(histograms, 2))
    n = roots.shape[0]
    if n < 2:
        return 0.0
    common = (float(np.square(roots.sum(axis=0)).sum()) - n) / (n * (n - 1))
    return float(np.sqrt(min(1.0, max(0.0, 1.0 - common))))


def _roots(counts: Floats) -> Floats:
    """Square roots of the frequencies: rows of unit length."""
    scaled = counts / counts.max(axis=1, keepdims=True)  # first, so that sums cannot overflow
    roots: Floats = np.sqrt(scaled / scaled.sum(axis=1, keepdims=True))
    return roots


def _from_roots(roots: Floats) -> Floats:
    n, classes = roots.shape
    # Rounding of 1 - <r, r> for equal rows: below this, two rows are taken for equal.
    zero = 2 * (classes + 4) * np.finfo(np.float64).eps
    out = np.empty((n, n))
    for a in range(0, n, BLOCK):
        b = min(a + BLOCK, n)
        squares = roots[a:b] @ roots[a:].T  # (b - a, n - a): upper triangle, block by block
        np.subtract(1.0, squares, out=squares)
        np.copyto(squares, 0.0, where=squares < zero)
        np.sqrt(squares, out=squares)
        out[a:b, a:] = squares
        out[a:, a:b] = squares.T
        corner = out[a:b, a:b]
        np.maximum(corner, corner.T.copy(), out=corner)  # whatever the order of summation was
    np.fill_diagonal(out, 0.0)
    return out


def _checked(histograms: ArrayLike, dimensions: int) -> Floats:
    """Counts as floats of the right shape, finite, not negative, nobody without any."""
    try:
        counts = np.asarray(histograms, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(
            "The histograms must be numbers, as many for every client. Got rows of other kinds "
            "or lengths instead."
        ) from None
    if counts.ndim != dimensions or 0 in counts.shape:
        axes = "(clients, classes)" if dimensions == 2 else "(clients, classes, bins)"
        raise ValueError(f"The histograms must have shape {axes}. Got {counts.shape} instead.")
    flat = counts.reshape(counts.shape[0], -1)
    for bad, problem in (
        (~np.isfinite(flat).all(axis=1), "finite"),
        ((flat < 0).any(axis=1), "at least 0"),
        (~(flat > 0).any(axis=1), "positive somewhere"),
    ):
        if bad.any():
            client = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"Every histogram must be {problem}. Got {counts[client].tolist()} for client "
                f"{client} instead."
            )
    return counts


# A random projection: d coordinates become k, and angles stay nearly what they were.
#
# Keeping an update of every client costs n d numbers, keeping its sketch n k. Each coordinate is
# added, with a random sign, to ``SPREAD`` of the k sums, one in each block of k / SPREAD of them;
# nothing of size d x k is ever held, and a row costs O(d). The map is a function of the seed
# alone, so the server, the clients and a later run agree on it.
#
# Effect on the angle theta between two updates: the error has mean about 0 and standard deviation::
#
#     sin(theta) / sqrt(k)
#
# that is 0.044 (2.5 degrees) at right angles for k = 512, 0.022 for k = 2,048, whatever d. This
# holds for vectors whose weight is spread over many coordinates, and is what a dense Gaussian
# projection gives. Lengths have relative standard deviation 1 / sqrt(2 k). The map is linear:
# parallel updates stay exactly parallel, opposite ones opposite, and zero stays zero.
#
# References
# ----------
# Kane and Nelson, "Sparser Johnson-Lindenstrauss transforms", J. ACM 2014 (block construction);
# Charikar, Chen and Farach-Colton, "Finding frequent items in data streams", 2002 (one block).


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
