"""How different the data of clients are: Hellinger distances of histograms.

For two frequency vectors p and q over the same classes

    H(p, q) = ||sqrt(p) - sqrt(q)||_2 / sqrt(2) = sqrt(1 - sum_y sqrt(p_y q_y)),

between 0 (equal) and 1 (no class in common). With R the (n, classes) matrix of square roots
of frequencies, all pairs come out of the one product R R^T. Giunta's thesis (Algorithm 5)
loops over pairs and takes raw counts; counts are normalised here, since H is a distance of
distributions. Reference for the use in client selection: Wolfrath et al. (2022), "HACCS".
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = NDArray[np.float64]
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
