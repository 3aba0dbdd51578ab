"""Times at which clients are there, repeated for as long as a run lasts.

The period of a client is repeated for ever: what is asked is the time modulo the period, found by
bisection, without any index that would have to be moved along or reset. (Published codes keep one,
move it a step a call and do not reset it at the wrap: a phone that is online 41 % of the time is
online 7 % from the second pass on.)
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from fedcohort.core.errors import BadInput, shown


@dataclass(frozen=True)
class Intervals:
    """Intervals in which a client is there, [start, end), within a period that repeats.

    They are sorted and apart from one another, as `Intervals.of` makes them; an interval may reach
    over the end of the period into its next pass.

    >>> there = Intervals.of([(20.0, 30.0), (90.0, 110.0)], period=100.0)
    >>> there.until(95.0), there.until(105.0), there.until(15.0)
    (110.0, 110.0, 15.0)
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    period: float
    always: bool = field(default=False)

    @classmethod
    def of(cls, intervals: Sequence[tuple[float, float]], period: float) -> Intervals:
        """Any intervals: they are folded into one period, and joined where they meet."""
        if not (math.isfinite(period) and period > 0):
            raise BadInput(f"The period of a trace must be a number above 0; got {shown(period)}.")
        pieces: list[tuple[float, float]] = []
        for start, end in intervals:
            if not (math.isfinite(start) and math.isfinite(end) and start <= end):
                raise BadInput(f"An interval of a trace must end after it starts: {start}, {end}.")
            if end - start >= period:
                return cls((), (), period, always=True)
            first = start % period
            last = first + (end - start)
            pieces += [(first, min(last, period)), *([(0.0, last - period)] * (last > period))]
        joined: list[list[float]] = []
        for start, end in sorted(piece for piece in pieces if piece[0] < piece[1]):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        if joined == [[0.0, period]]:
            return cls((), (), period, always=True)
        if len(joined) > 1 and joined[0][0] == 0.0 and joined[-1][1] == period:
            joined[-1][1] += joined.pop(0)[1]  # it goes on into the next pass
        return cls(tuple(s for s, _ in joined), tuple(e for _, e in joined), period)

    def until(self, now: float) -> float:
        """When a client that is there leaves; ``now`` if it is not there."""
        if self.always:
            return math.inf
        if not self.starts:
            return now
        place = now % self.period
        for at in (place, place + self.period):  # the last interval may reach over the wrap
            k = bisect_right(self.starts, at) - 1
            if k >= 0 and at < self.ends[k]:
                return now + (self.ends[k] - at)
        return now
