"""Which labels cohorts hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw.weights import labels
from fedcohort.report.panels.base import Content, Panel, Shown


@dataclass(frozen=True)
class Labels(Panel):
    """Which classes the cohorts hold, beside the whole federation."""

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Labels"
    place: ClassVar[float] = 50

    def content(self, shown: Shown) -> Content:
        return (labels(shown.comparison),)
