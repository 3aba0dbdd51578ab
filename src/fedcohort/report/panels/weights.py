"""What answers counted for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw.weights import weight_ratio, weight_theory
from fedcohort.report.panels.base import Content, Panel, Shown, which_division


@dataclass(frozen=True)
class Weights(Panel):
    """Weights as they were, beside what they should be in the mean."""

    name: ClassVar[str] = "weights"
    title: ClassVar[str] = "Weights"
    place: ClassVar[float] = 60

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        return (*which_division(c), weight_theory(c), weight_ratio(c))
