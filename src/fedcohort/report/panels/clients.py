"""Who took part, and how often."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw import clients
from fedcohort.report.facts import clients as facts
from fedcohort.report.panels.base import Content, Paint, Panel, Shown, which_division

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Participation(Panel):
    """Rounds of every client, and how evenly they are spread."""

    name: ClassVar[str] = "clients"
    title: ClassVar[str] = "Who took part"
    place: ClassVar[float] = 30

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        pair = clients.histogram(c), clients.lorenz(c)
        return (*which_division(c), clients.heat(c), pair)

    def tables(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        c = shown.comparison
        return {
            "participation": facts.participation(c),
            "participation_histogram": facts.participation_histogram(c),
            "lorenz": facts.lorenz(c),
        }

    def pictures(self, shown: Shown) -> Mapping[str, Paint]:
        from fedcohort.report.draw import paper

        c = shown.comparison
        return {
            "lorenz": partial(paper.lorenz, comparison=c),
            "participation": partial(paper.heat, comparison=c),
        }
