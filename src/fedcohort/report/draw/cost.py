"""The figures of what was spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort.report import facts
from fedcohort.report.draw.curves import axis_title, every, tick_format
from fedcohort.report.draw.drawing import (
    Drawing,
    Switch,
    line,
    name_of,
)
from fedcohort.report.facts.conditions import is_carried
from fedcohort.report.facts.measures import (
    measured,
)

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


DECADES = 3
"""A logarithmic axis that spans fewer has labels between the powers of ten."""


def cost(comparison: Comparison) -> Drawing:
    """The level reached against what was spent."""
    measure = measured(comparison)[0]
    table = facts.curves(comparison, measure, "rolling")
    form = ":.2%" if measure.percent else ":.4g"
    kinds = [("bytes", "%{x:.3s}B", "Bytes"), ("seconds", "%{x:.3s} s", _own_clock(comparison))]
    if facts.clocked(comparison):
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
        + "Simulated time is that of the clients' devices. " * facts.clocked(comparison)
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
