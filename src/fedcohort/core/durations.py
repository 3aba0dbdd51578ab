"""Time spans as people read them."""

from __future__ import annotations

import math

NOTHING = "–"


def duration(seconds: float) -> str:
    """A time span.

    >>> duration(0.012), duration(3.25), duration(75), duration(7260)
    ('12 ms', '3.2 s', '1 min 15 s', '2 h 1 min')
    """
    if not math.isfinite(seconds):
        return NOTHING
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min"
