"""What recipes of several papers draw alike."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from typing import Any

from fedcohort.reproduction import Panel, Results
from fedcohort.reproduction.measures import Measure
from fedcohort.reproduction.results import NotRun


@dataclass(frozen=True)
class WhereRun(Panel):
    """A panel of a cell that only some scales run; at the others it says so."""

    panel: Panel
    title: str = ""

    @property
    def measures(self) -> tuple[Measure, ...]:
        return self.panel.measures

    def draw(self, axes: Any, results: Results) -> None:
        try:
            self.panel.draw(axes, results)
        except NotRun as why:
            axes.axis("off")
            axes.text(
                0.5,
                0.5,
                textwrap.fill(f"Not run at this scale: {why}", 40),
                ha="center",
                fontsize=7,
            )
