"""How long it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw import time
from fedcohort.report.panels.base import Content, Panel, Shown, which_division


@dataclass(frozen=True)
class Time(Panel):
    """Progress by the virtual clock, and how long clients take."""

    name: ClassVar[str] = "time"
    title: ClassVar[str] = "Time"
    place: ClassVar[float] = 15

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        takes = time.latencies(c)
        return (*time.progress_in_time(c), *(which_division(c) if takes else ()), *takes)
