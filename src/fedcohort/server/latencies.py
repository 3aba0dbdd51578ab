"""How long clients take, as the server's own clock has it.

A client cannot say that it is faster than it is: what counts is when its answer was there. (It can
be fast by not training; that is a lie about its update.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from fedcohort._internal.types import Floats, Ints

Latencies: TypeAlias = Mapping[str, Floats]
"""(n,) each: seconds, by purpose (``"training"``, or the name of a question); NaN: not known."""
Measured: TypeAlias = Mapping[str, tuple[Ints, Floats]]
"""What was measured in a round: clients and their seconds, by purpose."""
RECENT = 0.5
"""What the last measurement counts for; the rest is what was believed before."""


@dataclass
class Stopwatch:
    """The measurements of one round."""

    measured: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    late: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)

    def note(self, purpose: str, clients: Ints, seconds: Floats, *, late: bool = False) -> None:
        """So long these clients took; at least so long, if they were not there by then."""
        book = self.late if late else self.measured
        before = book.get(purpose, (clients[:0], seconds[:0]))
        joined = np.concatenate([before[0], clients]), np.concatenate([before[1], seconds])
        if len(joined[0]):
            book[purpose] = joined

    def believed(self, before: Latencies, n: int) -> Latencies:
        """What is believed after the round.

        >>> watch = Stopwatch()
        >>> watch.note("training", np.array([1]), np.array([4.0]))
        >>> watch.note("training", np.array([2]), np.array([9.0]), late=True)
        >>> watch.believed({"training": np.array([1.0, 2.0, np.nan])}, 3)["training"].tolist()
        [1.0, 3.0, 9.0]
        """
        if not self.measured and not self.late:
            return before
        out = dict(before)
        for purpose in dict.fromkeys([*self.measured, *self.late]):
            known = before.get(purpose)
            now = np.full(n, np.nan) if known is None else known.copy()
            clients, seconds = self.measured.get(purpose, _NOTHING)
            old = now[clients]
            now[clients] = np.where(np.isnan(old), seconds, old + RECENT * (seconds - old))
            clients, seconds = self.late.get(purpose, _NOTHING)
            now[clients] = np.fmax(now[clients], seconds)
            out[purpose] = now
        return out


_NOTHING: tuple[Ints, Floats] = np.zeros(0, dtype=np.int64), np.zeros(0)


def moved(latencies: Latencies, came_from: Ints) -> Latencies:
    """The same after clients came or left; -1 for a client that is new."""
    return {
        purpose: np.where(came_from < 0, np.nan, seconds[came_from])
        for purpose, seconds in latencies.items()
    }
