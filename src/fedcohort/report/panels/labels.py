"""Which labels cohorts hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw import curves
from fedcohort.report.facts import clients
from fedcohort.report.panels.base import Content, Paint, Panel, Shown

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Labels(Panel):
    """Which classes the cohorts hold, beside the whole federation."""

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Labels"
    place: ClassVar[float] = 50

    def content(self, shown: Shown) -> Content:
        return (curves.labels(shown.comparison),)

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {"labels": clients.labels_over_rounds(shown.comparison)}

    def pictures(self, shown: Shown) -> Mapping[str, Paint]:
        from fedcohort.report.draw import paper

        if not shown.comparison.traces[0].label_histograms.shape[1]:
            return {}
        return {"label-distance": partial(paper.labels, comparison=shown.comparison)}
