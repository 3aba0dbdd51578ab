"""Whether it is the same on every division of the data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report import facts
from fedcohort.report.draw import divisions
from fedcohort.report.panels.base import Content, Panel, Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Divisions(Panel):
    """The level of every scheme on every division; nothing where there is one."""

    name: ClassVar[str] = "divisions"
    title: ClassVar[str] = "Divisions"
    place: ClassVar[float] = 5

    def content(self, shown: Shown) -> Content:
        return divisions.divisions(shown.comparison)

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        several = len(shown.comparison.partitions) > 1
        return {"divisions": facts.by_division(shown.comparison)} if several else {}
