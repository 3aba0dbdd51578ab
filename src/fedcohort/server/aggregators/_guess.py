"""What the memory estimator supposes of clients that it has not seen yet.

Ridge regression of the updates of those seen, Y, on something that is known of everybody, H: a
client not seen yet is supposed to answer

    h (H'H + alpha s I)^-1 H'Y,    s the mean squared length of a row of H.

Who is seen, and so every guess, is known before the cohort is drawn: whatever the guess, the
estimate stays unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._distances import sketch
from fedcohort.selection._client_rows import LatestRows, fits
from fedcohort.selection._federation import Federation
from fedcohort.selection._queries import LABEL_HISTOGRAM, Client, Signal

NUMBERS = 64
"""What is kept of an update in a sketch."""
PROJECTION = 0
"""Which sketch: the same for all clients and all runs."""


def _sketched(updates: Array) -> Floats:
    """(k, numbers) sketches of updates (k, d); short ones as they are."""
    rows = np.asarray(updates, dtype=np.float64)
    return sketch(rows, NUMBERS, PROJECTION) if rows.shape[1] > NUMBERS else rows


def _sketch_of(client: Client) -> Array:
    return np.asarray(_sketched(client.update()[None])[0])


UPDATE_SKETCH = Signal(
    "update_sketch",
    f"{NUMBERS} sums of the model update",
    _sketch_of,
    needs_model=True,
    secrecy="update",
    needs={"update"},
    shape=lambda sizes: (min(NUMBERS, int(sizes["parameters"])),),
    measure_all=lambda rows: _sketched(rows("update")),
)
TINY = 1e-300
"""So that nothing is divided by zero where all that is known are zeros."""
SIGNALS = {"labels": LABEL_HISTOGRAM, "sketches": UPDATE_SKETCH}
"""What every client is asked, by the word for it."""


@dataclass(frozen=True, eq=False)
class Guess:
    """What is known of all clients (f numbers each; none: a guess is zero), and who was seen."""

    known: Annotated[Floats, Shaped("n", "f")]  # H; zero where a client told nothing
    asked: Annotated[Bools, Shaped("n", kind="b")]
    seen: Annotated[Bools, Shaped("n", kind="b")]
    moments: Annotated[Floats, Shaped("f", "d")]  # H'Y over those seen, kept up to date

    @classmethod
    def nothing(cls, n: int, dimension: int, numbers: int = 0) -> Guess:
        """Of clients that told nothing, and of whom nobody was seen."""
        nobody = np.zeros(n, dtype=bool)
        return cls(np.zeros((n, numbers)), nobody, nobody, np.zeros((numbers, dimension)))

    def slopes(self, alpha: float) -> Floats:
        """(f, d) the coefficients of the regression on those seen."""
        rows, width = self.known[self.seen], self.known.shape[1]
        if not len(rows) or not width:
            return np.zeros_like(self.moments)
        some = self.known[self.known.any(axis=1)]
        unit = float((some**2).sum()) / max(1, len(some))
        gram = rows.T @ rows + max(alpha * unit, TINY) * np.eye(width)
        return np.asarray(np.linalg.solve(gram, self.moments))

    def expected(self, importance: Floats, slopes: Floats) -> Floats:
        """(d,) the part of those not seen in sum_i p_i y_i."""
        unseen = ~self.seen
        return np.asarray((importance[unseen] @ self.known[unseen]) @ slopes)

    def of(self, clients: Ints, slopes: Floats) -> Floats:
        """(k, d) what these clients are supposed to answer; zero for those that were seen."""
        return np.asarray((self.known[clients] * ~self.seen[clients, None]) @ slopes)

    def answered(self, clients: Ints, change: Array) -> Guess:
        """After an answer of these clients, by which their rows (k, d) changed."""
        seen = self.seen.copy()
        seen[clients] = True
        return replace(self, seen=seen, moments=self.moments + self.known[clients].T @ change)

    def moved(self, came_from: Ints, table: LatestRows | None) -> Guess:
        """Of other clients; ``table`` has their rows, None where all are forgotten."""
        old = came_from >= 0
        known = np.where(old[:, None], self.known[came_from], 0.0)
        asked, seen = old & self.asked[came_from], old & self.seen[came_from]
        if table is None:
            seen = np.zeros_like(seen)
        return Guess(known, asked, seen, self._summed(known, seen, table))

    def _summed(self, known: Floats, seen: Bools, table: LatestRows | None) -> Floats:
        moments = np.zeros((known.shape[1], self.moments.shape[1]))
        if table is not None:
            for number, column in enumerate((known * seen[:, None]).T):
                moments[number] = table.weighted_sum(column)
        return moments

    def strangers(self, federation: Federation) -> Ints:
        """Those who are there and were not asked."""
        return federation.present[~self.asked[federation.present]]

    def told(self, by: str, clients: Ints, answers: Any, table: LatestRows) -> Guess:
        """With what these clients answered."""
        rows, width = _usable(answers, by), self.known.shape[1]
        if width and rows.shape[1] != width:
            raise BadInput(
                f"Every client must describe its data alike: the memory estimator got "
                f"{rows.shape[1]} numbers for '{SIGNALS[by].name}' where there were {width}."
            )
        known = self.known.copy() if width else np.zeros((len(self.seen), rows.shape[1]))
        asked = self.asked.copy()
        known[clients], asked[clients] = rows, True
        return Guess(known, asked, self.seen, self._summed(known, self.seen, table))


def _usable(answers: Any, by: str) -> Floats:
    """(k, f) shares of labels, or sketches as they are; zero where an answer is none."""
    rows = np.asarray(answers, dtype=np.float64).reshape(len(answers), -1)
    rows = np.asarray(np.where(fits(rows)[:, None], rows, 0.0), dtype=np.float64)
    if by != "labels":
        return rows
    rows = np.maximum(rows, 0.0)
    total = rows.sum(axis=1, keepdims=True)
    out: Floats = np.divide(rows, total, out=np.zeros_like(rows), where=total > 0)
    return out
