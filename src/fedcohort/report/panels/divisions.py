"""Whether it is the same on every division of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw.divisions import divisions
from fedcohort.report.panels.base import Content, Panel, Shown


@dataclass(frozen=True)
class Divisions(Panel):
    """The level of every scheme on every division; nothing where there is one."""

    name: ClassVar[str] = "divisions"
    title: ClassVar[str] = "Divisions"
    place: ClassVar[float] = 5

    def content(self, shown: Shown) -> Content:
        return divisions(shown.comparison)
