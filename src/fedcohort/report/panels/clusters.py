"""What a scheme knows of its clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw import clusters
from fedcohort.report.panels.base import Content, Panel, Shown


@dataclass(frozen=True)
class ClusterPanel(Panel):
    """Clusters and strata that schemes draw from."""

    name: ClassVar[str] = "clusters"
    title: ClassVar[str] = "Clusters"
    place: ClassVar[float] = 90

    def content(self, shown: Shown) -> Content:
        return (clusters.cluster_figures(shown.comparison),)
