"""Who holds what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fedcohort.report.draw import clients
from fedcohort.report.panels.base import Content, Panel, Shown, which_division


@dataclass(frozen=True)
class Clients(Panel):
    """Sizes and labels of the clients."""

    name: ClassVar[str] = "federation"
    title: ClassVar[str] = "Federation"
    place: ClassVar[float] = 80

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        return (*which_division(c), *clients.federations(c))
