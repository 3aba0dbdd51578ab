"""The latest row of every client, kept as a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints

TILE = 512
"""Rows that are summed at a time."""
LARGEST = 1e18
"""The absolute values of a row may sum to this: its squares are then within float32, too."""
FAR = 10 * LARGEST
"""No number of a row that fits, or of a projection of it, is as far from 0."""


def fits(rows: Array) -> Bools:
    """(k,) which rows can be kept and compared in float32: finite, and none of them huge.

    >>> fits(np.array([[1.0, -2.0], [1e39, 0.0], [np.nan, 0.0]]))
    array([ True, False, False])
    """
    with np.errstate(over="ignore"):
        lengths = np.abs(rows).sum(axis=tuple(range(1, rows.ndim)), dtype=np.float64)
    return np.asarray(lengths <= LARGEST)


def check_rows(rows: Array, dimension: int = 0) -> None:
    """Refuse what is no table of real numbers; ``dimension`` is that of the rows before, or 0."""
    if rows.ndim != 2 or rows.shape[1] == 0 or rows.dtype.kind not in "biuf":
        raise BadInput(
            "Updates must be a table of real numbers, one row per client (k, d) with d >= 1; "
            f"got {rows.dtype} of shape {rows.shape}."
        )
    if dimension and rows.shape[1] != dimension:
        raise BadInput(
            f"An update must have {dimension} numbers like those before it; got {rows.shape[1]}."
        )


@dataclass(frozen=True, eq=False)
class LatestRows:
    """A table (n, d) of which a few rows at a time are replaced, each time giving a new table.

    State is a value, so a table must not be written to; but to copy n x d numbers for a
    handful of new rows would be a waste. So ``kept`` is shared from table to table, newer rows
    stand beside it in ``recent``, and only when these are many is a new ``kept`` made. With k
    rows replaced in each round that is O(sqrt(n k)) rows copied in a round instead of n.

    Parameters
    ----------
    kept
        (n, d) float32. A row that was never replaced is zero.
    recent
        (r, d) rows that came later.
    owners
        (r,) whose they are; each client at most once.

    >>> before = LatestRows.nothing(3)
    >>> after = before.replaced(np.array([1]), np.array([[5.0, 6.0]]))
    >>> after.rows(np.array([0, 1])).tolist(), before.dimension
    ([[0.0, 0.0], [5.0, 6.0]], 0)
    """

    kept: Annotated[Array, Shaped("n", "d", optional=True, kind="f")]
    recent: Annotated[Array, Shaped("r", "d", kind="f")]
    owners: Annotated[Ints, Shaped("r", low=0, below="n")]

    @classmethod
    def nothing(cls, n: int, dimension: int = 0) -> LatestRows:
        """A table of zeros; without a dimension the first row that comes decides on it."""
        empty = np.empty((0, dimension), np.float32)
        return cls(np.zeros((n, dimension), np.float32), empty, np.empty(0, np.int64))

    def __len__(self) -> int:
        return len(self.kept)

    @property
    def dimension(self) -> int:
        """d; 0 before the first row has come."""
        return int(self.kept.shape[1])

    def rows(self, clients: Ints) -> Array:
        """(k, d) a copy of the rows of some clients."""
        out: Array = self.kept[clients]
        place = np.full(len(self), -1)
        place[self.owners] = np.arange(len(self.owners))
        newer = place[clients]
        out[newer >= 0] = self.recent[newer[newer >= 0]]
        return out

    def replaced(self, clients: Ints, rows: Array) -> LatestRows:
        """The table in which these clients (each once) have these rows."""
        check_rows(rows, self.dimension)
        table = self if self.dimension else self.nothing(len(self), rows.shape[1])
        return table._added(clients, rows)

    def _added(self, clients: Ints, rows: Array) -> LatestRows:
        stays = ~np.isin(self.owners, clients)
        owners = np.concatenate([self.owners[stays], clients])
        recent = np.concatenate([self.recent[stays], rows.astype(np.float32)])
        # Few enough: copying them in every round costs less than a new table now and then.
        if len(owners) ** 2 <= 2 * len(self) * len(clients):
            return LatestRows(self.kept, recent, owners)
        kept = self.kept.copy()
        kept[owners] = recent
        return LatestRows(kept, recent[:0], owners[:0])

    def moved(self, came_from: Ints) -> LatestRows:
        """The table of other clients: ``came_from[j]`` is the old position of client j, or -1."""
        known = came_from >= 0
        kept = np.zeros((len(came_from), self.dimension), np.float32)
        kept[known] = self.rows(came_from[known])
        return LatestRows(kept, self.recent[:0], self.owners[:0])

    def weighted_sum(self, weights: Floats) -> Floats:
        """(d,) sum_i weights_i row_i, in float64."""
        old = weights.copy()
        old[self.owners] = 0.0
        out = weights[self.owners] @ self.recent.astype(np.float64)
        for start in range(0, len(self), TILE):  # no copy of the whole table
            some = slice(start, start + TILE)
            out += old[some] @ self.kept[some].astype(np.float64)
        return np.asarray(out, dtype=np.float64)
