"""What answers counted for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report import figures
from fedcohort.report.panels.base import Content, Panel, Shown


@dataclass(frozen=True)
class Weights(Panel):
    """Weights as they were, beside what they should be in the mean."""

    name: ClassVar[str] = "weights"
    title: ClassVar[str] = "Weights"
    place: ClassVar[float] = 60

    def content(self, shown: Shown) -> Content:
        return figures.weight_theory(shown.comparison), figures.weight_ratio(shown.comparison)
