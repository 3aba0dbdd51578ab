"""Which classes the last model tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report import facts
from fedcohort.report.draw import classes
from fedcohort.report.panels.base import Content, Panel, Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Classes(Panel):
    """F1 of every class, scheme by scheme."""

    name: ClassVar[str] = "classes"
    title: ClassVar[str] = "Classes"
    place: ClassVar[float] = 55

    def content(self, shown: Shown) -> Content:
        return classes.f1(shown.comparison)

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        scores = facts.f1_by_class(shown.comparison)
        return {"f1_by_class": scores} if len(scores) else {}
