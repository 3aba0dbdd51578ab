"""What was sent, and what the server learns of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report import facts
from fedcohort.report.draw.cost import cost
from fedcohort.report.facts.measures import measured
from fedcohort.report.panels.base import Content, Panel, Shown, box
from fedcohort.report.show.format import byte_count

if TYPE_CHECKING:
    import pandas as pd

    from fedcohort.simulation import Comparison


@dataclass(frozen=True)
class Costs(Panel):
    """Messages and bytes, and what the server learns of clients."""

    name: ClassVar[str] = "cost"
    title: ClassVar[str] = "Cost"
    place: ClassVar[float] = 20

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        level = [cost(c)] if measured(c)[0].among(c.traces) else []
        return (*level, _ledger(c), _disclosures(c), *_privacy(c))

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        c = shown.comparison
        noise = facts.privacy(c)
        told = {"ledger": facts.ledger(c), "disclosures": facts.disclosures(c)}
        return told if noise.empty else {**told, "privacy": noise}


def _ledger(comparison: Comparison) -> str:
    table = facts.ledger(comparison)
    for name in ("bytes_down", "bytes_up"):
        table[name] = [byte_count(value) for value in table[name]]
    table["messages"] = [f"{value:,.0f}" for value in table["messages"]]
    return box(
        "Ledger: what was sent",
        "Mean per run over seeds. A question costs messages and tells the server something about "
        "every client it is put to.",
        table.rename(columns={"bytes_down": "to clients", "bytes_up": "to server"}),
    )


def _disclosures(comparison: Comparison) -> str:
    return box(
        "What the server learns",
        "As every scheme declares it. Epsilon is what the answers of one client spend of its "
        "privacy over the whole run; a dash is no promise.",
        facts.disclosures(comparison),
    )


def _privacy(comparison: Comparison) -> tuple[str, ...]:
    table = facts.privacy(comparison)
    if table.empty:
        return ()
    lead = (
        "Updates were clipped, and noise of the given deviation was added to every coordinate of "
        "their sum. Epsilon is of the worst-off client over the whole run; if it becomes known who "
        "took part, the next column holds. Not covered: whoever sees single updates or metrics of "
        "clients, sizes, what a scheme asks, and choices of step sizes that looked at results."
    )
    return (box("What the noise promises", lead, table.rename(columns={"known_who": "known who"})),)
