"""Which classes the last model tells."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw import classes
from fedcohort.report.panels.base import Content, Panel, Shown


@dataclass(frozen=True)
class Classes(Panel):
    """F1 of every class, scheme by scheme."""

    name: ClassVar[str] = "classes"
    title: ClassVar[str] = "Classes"
    place: ClassVar[float] = 55

    def content(self, shown: Shown) -> Content:
        return classes.f1(shown.comparison)
