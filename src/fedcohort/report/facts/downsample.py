"""Fewer points that look the same: what stands out is kept, always."""

from __future__ import annotations

import numpy as np

from fedcohort._internal.types import Floats, Ints


def keep_extremes(values: Floats, limit: int) -> Ints:
    """Which of E points to draw: at most about ``limit``, with every bucket's extremes.

    The points are cut into buckets of equal length; of each the lowest and the highest stay,
    as do the first and the last point of all. A spike of one round is never lost.

    >>> spike = np.zeros(1_000)
    >>> spike[517] = 1.0
    >>> kept = keep_extremes(spike, 50)
    >>> 517 in kept, len(kept) <= 50
    (True, True)
    """
    count = len(values)
    if count <= limit:
        return np.arange(count)
    buckets = max(1, (limit - 2) // 2)
    width = -(-count // buckets)
    padded = np.full(buckets * width, np.nan)
    padded[:count] = values
    rows = padded.reshape(buckets, width)
    starts = width * np.arange(buckets)
    lowest = starts + np.where(np.isnan(rows), np.inf, rows).argmin(axis=1)
    highest = starts + np.where(np.isnan(rows), -np.inf, rows).argmax(axis=1)
    kept = np.unique(np.concatenate([[0, count - 1], lowest, highest]))
    kept = kept[kept < count]
    out: Ints = kept[np.isfinite(values[kept]) | (kept == 0) | (kept == count - 1)]
    return out


def envelope(x: Floats, low: Floats, high: Floats, limit: int) -> tuple[Floats, Floats, Floats]:
    """A band with fewer points that still covers all of it: lowest low, highest high."""
    count = len(x)
    if count <= limit:
        return x, low, high
    starts = bucket_edges(count, limit)[:-1]
    middle = np.add.reduceat(x, starts) / np.diff(bucket_edges(count, limit))
    middle[0], middle[-1] = x[0], x[-1]
    return middle, np.minimum.reduceat(low, starts), np.maximum.reduceat(high, starts)


def bucket_edges(count: int, buckets: int) -> Ints:
    """(buckets + 1,) where each of nearly equal buckets begins, and the end.

    >>> bucket_edges(10, 4).tolist()
    [0, 2, 5, 7, 10]
    """
    buckets = min(buckets, count)
    return np.arange(buckets + 1) * count // buckets


def means(matrix: Floats, rows: int, columns: int) -> Floats:
    """A picture of at most rows x columns cells: the mean of what each cell covers."""
    tops, lefts = (
        bucket_edges(length, limit)
        for length, limit in zip(matrix.shape, (rows, columns), strict=True)
    )
    sums = np.add.reduceat(np.add.reduceat(matrix, tops[:-1], axis=0), lefts[:-1], axis=1)
    out: Floats = sums / np.outer(np.diff(tops), np.diff(lefts))
    return out
