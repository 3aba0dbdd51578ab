"""How the step size of clients changes from round to round, one schedule per file.

Other packages add theirs through the entry point group ``fedcohort.schedules``.
"""

from __future__ import annotations

from typing import Any

from fedcohort.core.registry import Kind
from fedcohort.learning.schedules.base import Schedule

__all__ = ["SCHEDULES", "Schedule", "schedule"]

SCHEDULES: Kind[Schedule] = Kind("schedule", __name__, Schedule, default="constant")


def schedule(which: Schedule | str | None = None, **parameters: Any) -> Schedule:
    """The schedule of that name; None is constant, and a schedule is itself.

    >>> schedule("step:every=100").spec
    'step:every=100,factor=0.5'
    """
    return SCHEDULES.build(which, **parameters)
