"""Whom the last model serves worst."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report.draw.clients import losses
from fedcohort.report.facts import clients
from fedcohort.report.panels.base import Content, Panel, Shown, box, which_division

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class WorstClients(Panel):
    """Losses of the last model client by client."""

    name: ClassVar[str] = "worst"
    title: ClassVar[str] = "Worst clients"
    place: ClassVar[float] = 70

    def content(self, shown: Shown) -> Content:
        comparison = shown.comparison
        table = clients.worst_clients(comparison, 5)
        if table.empty:  # nobody evaluated the last model client by client
            return ()
        last = box(
            "The five clients served worst, scheme by scheme",
            "Losses of the last model on the clients' own data, mean over seeds.",
            table.rename(columns={"rounds": "rounds taken part in"}),
        )
        return (*which_division(comparison), losses(comparison), last)

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {"worst_clients": clients.worst_clients(shown.comparison)}
