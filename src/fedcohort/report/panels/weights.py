"""What answers counted for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw import curves
from fedcohort.report.facts import weights
from fedcohort.report.panels.base import Content, Panel, Shown, which_division

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Weights(Panel):
    """Weights as they were, beside what they should be in the mean."""

    name: ClassVar[str] = "weights"
    title: ClassVar[str] = "Weights"
    place: ClassVar[float] = 60

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        return (*which_division(c), curves.weight_theory(c), curves.weight_ratio(c))

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        c = shown.comparison
        return {"weights": weights.weight_table(c), "client_weights": weights.client_weights(c)}
