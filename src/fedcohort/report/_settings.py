"""The settings of runs: table and panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import pandas as pd

from fedcohort.report._panel import Content, Panel, Shown, box
from fedcohort.report._runs import ACROSS, APART, RUNS, is_carried

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# What decided the runs.

_OF_RUNS = {"seed", "run_seed", "partition", "label"}


def settings(comparison: Comparison) -> pd.DataFrame:
    """Everything that decided the runs, one row per setting; what differs, by scheme."""
    told = comparison.settings
    kept = {
        key: value for key, value in told.items() if key not in {"schemes", RUNS, APART, ACROSS}
    }
    rows = [("comparison", key, value) for key, value in kept.items()]
    for run, own in told.get(RUNS, {}).items():
        rows += [(run, key, value) for key, value in own.items()]
    firsts = {label: dict(comparison.of(label)[0].settings) for label in comparison.labels}
    common = {
        key: value
        for key, value in next(iter(firsts.values())).items()
        if key not in _OF_RUNS and all(f.get(key) == value for f in firsts.values())
    }
    rows += [("every run", key, value) for key, value in common.items() if key not in kept]
    for label, facts in firsts.items():
        own = {k: v for k, v in facts.items() if k not in common and k not in _OF_RUNS}
        rows += [(label, key, value) for key, value in own.items()]
    return pd.DataFrame(
        [(where, key, in_words(value)) for where, key, value in rows],
        columns=["of", "setting", "value"],
    )


def in_words(value: Any) -> str:
    """A setting as text, nested ones in one line."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {in_words(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        shown = ", ".join(in_words(inner) for inner in value[:40])
        return shown + (f", … ({len(value)} in all)" if len(value) > 40 else "")
    return str(value)


# Everything that decided the runs.


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
        table = settings(comparison)
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
        return {"settings": settings(shown.comparison)}
