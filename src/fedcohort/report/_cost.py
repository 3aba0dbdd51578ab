"""Costs in bytes, time and privacy: figures and panel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort.report import _curves, _spent
from fedcohort.report._curves import axis_title, every, tick_format
from fedcohort.report._figure import Drawing, Switch, line, name_of
from fedcohort.report._format import byte_count
from fedcohort.report._measures import measured
from fedcohort.report._panel import Content, Panel, Shown, box
from fedcohort.report._runs import is_carried

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# The figures of what was spent.

DECADES = 3
"""A logarithmic axis that spans fewer has labels between the powers of ten."""


def cost(comparison: Comparison) -> Drawing:
    """The level reached against what was spent."""
    measure = measured(comparison)[0]
    table = _curves.curves(comparison, measure, "rolling")
    form = ":.2%" if measure.percent else ":.4g"
    kinds = [("bytes", "%{x:.3s}B", "Bytes"), ("seconds", "%{x:.3s} s", _own_clock(comparison))]
    if _spent.clocked(comparison):
        kinds.insert(1, ("time", "%{x:.4s} s", "Simulated time in seconds"))
    traces = []
    for index, label in enumerate(comparison.labels):
        rows = table[table["scheme"] == label]
        for spent, unit, _ in kinds:
            hover = f"{unit}<br>{name_of(measure.words)} %{{y{form}}}"
            x, y = rows[spent].to_numpy(), rows["mean"].to_numpy()
            if not np.nan_to_num(x).any():  # centralised training sends nothing: no logarithm
                continue
            traces.append(line(index, label, x, y, hover, spent=spent))
    return Drawing(
        "cost",
        f"{measure.title} against what was spent",
        "Further left is cheaper. Bytes count both directions, questions included; seconds count "
        f"choosing and training {_clock(comparison)}. "
        + "Simulated time is that of the clients' devices. " * _spent.clocked(comparison)
        + "Rolling means over runs, on a logarithmic scale.",
        tuple(traces),
        {
            "xaxis": {"type": "log"},
            "yaxis": {"title": {"text": axis_title(measure)}, "tickformat": tick_format(measure)},
        },
        {
            f"spent={spent}": {
                "xaxis": _spent_axis(words, "~s" if spent == "bytes" else "~g", table[spent])
            }
            for spent, _, words in kinds
        },
        (Switch("spent", "Spent", tuple((spent, words) for spent, _, words in kinds)),),
        every(table[["scheme", "round", *(spent for spent, *_ in kinds), "mean"]]),
        table,
    )


def _clock(comparison: Comparison) -> str:
    carried = ["carrier" in trace.settings for trace in comparison.traces]
    if all(carried):
        return "by the server's clock"
    here = "on the machine that simulated all clients"
    return f"{here}, or by the server's clock on Flower" if any(carried) else here


def _own_clock(comparison: Comparison) -> str:
    return "Seconds" if is_carried(comparison) else "Seconds of the simulator itself"


def _spent_axis(title: str, form: str, values: pd.Series[float]) -> dict[str, Any]:
    """Labels at 1, 2 and 5, or at the powers of ten: plotly's own choice overlaps."""
    there = values[values > 0]
    decades = np.log10(there.max() / there.min()) if len(there) else 0.0
    return {
        "title": {"text": title}, "tickformat": form, "dtick": "D2" if decades < DECADES else 1,
    }  # fmt: skip


# What was sent, and what the server learns of it.


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
        noise = _spent.privacy(c)
        told = {"ledger": _spent.ledger(c), "disclosures": _spent.disclosures(c)}
        return told if noise.empty else {**told, "privacy": noise}


def _ledger(comparison: Comparison) -> str:
    table = _spent.ledger(comparison)
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
        _spent.disclosures(comparison),
    )


def _privacy(comparison: Comparison) -> tuple[str, ...]:
    table = _spent.privacy(comparison)
    if table.empty:
        return ()
    lead = (
        "Updates were clipped, and noise of the given deviation was added to every coordinate of "
        "their sum. Epsilon is of the worst-off client over the whole run; if it becomes known who "
        "took part, the next column holds. Not covered: whoever sees single updates or metrics of "
        "clients, sizes, what a scheme asks, and choices of step sizes that looked at results."
    )
    return (box("What the noise promises", lead, table.rename(columns={"known_who": "known who"})),)
