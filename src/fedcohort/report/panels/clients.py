"""Who took part, and how often."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw import clients
from fedcohort.report.panels.base import Content, Panel, Shown, which_division


@dataclass(frozen=True)
class Participation(Panel):
    """Rounds of every client, and how evenly they are spread."""

    name: ClassVar[str] = "clients"
    title: ClassVar[str] = "Who took part"
    place: ClassVar[float] = 30

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        pair = clients.histogram(c), clients.draw_lorenz(c)
        return (*which_division(c), clients.heat(c), pair)
