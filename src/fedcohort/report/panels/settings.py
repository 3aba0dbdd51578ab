"""Everything that decided the runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, ClassVar

from fedcohort.report import facts
from fedcohort.report.facts.combine import RUNS
from fedcohort.report.facts.conditions import is_carried
from fedcohort.report.panels.base import Content, Panel, Shown, box

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings(Panel):
    """Everything that decided the runs, and how to repeat them."""

    name: ClassVar[str] = "settings"
    title: ClassVar[str] = "Settings"
    place: ClassVar[float] = 100

    def content(self, shown: Shown) -> Content:
        comparison = shown.comparison
        told = [comparison.settings, *comparison.settings.get(RUNS, {}).values()]
        commands = "\n".join(str(each["command"]) for each in told if each.get("command"))
        again = f"<h3>To repeat</h3><pre>{escape(commands)}</pre>" if commands else ""
        table = facts.settings(comparison)
        lead = (
            "Equal seeds start from the same model and give a client the same mini-batches whoever "
            "chose it, so differences between schemes are paired."
        )
        if is_carried(comparison):
            lead = (
                "As the server knows it: what clients hold and how they train is their own affair."
            )
        table = table[table["setting"] != "command"]
        what = "Everything that decided these runs"
        return (box(what, lead, table, again),)

    def further(self, shown: Shown) -> Mapping[str, pd.DataFrame]:
        return {"settings": facts.settings(shown.comparison)}
