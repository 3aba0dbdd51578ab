"""The figures of the page that show who did not answer, and which reports were rejected."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from fedcohort.report import facts
from fedcohort.report.draw.clients import scheme_switch
from fedcohort.report.draw.curves import SMOOTH_OR_RAW, every, over_rounds, round_axis
from fedcohort.report.draw.drawing import Drawing, line, meta, name_of
from fedcohort.report.facts.downsample import bucket_edges
from fedcohort.report.facts.measures import ACCURACY, choosing, drawn, numbered

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

BARS = 120
"""Rounds are counted together where there are more."""


def answers(comparison: Comparison) -> tuple[Drawing, ...]:
    """Which share of the draws was answered, and why reports were rejected; () if all went well."""
    table = facts.answers(comparison)
    if table.empty:
        return ()
    answered = over_rounds(
        comparison,
        table,
        "answered",
        "Answers",
        "The share of the draws of each round that somebody answered, replacements included. A "
        "cross is a round that was void (in any run): too few answered, and the model stayed.",
        "Draws answered",
    )
    crosses = []
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        void = rows["void"].to_numpy() > 0
        for way, _ in SMOOTH_OR_RAW.options if void.any() else ():
            y = drawn(rows["answered"].to_numpy()[None], way, ACCURACY)[0]
            hover = "Round %{x} was void in %{customdata:.0%} of the runs"
            cross = line(index, label, rows["round"].to_numpy()[void], y[void], hover, line=way)
            cross |= {"mode": "markers", "marker": {"symbol": "x", "size": 11}}
            cross["customdata"] = rows["void"].to_numpy()[void]
            crosses.append(cross)
    answered = replace(answered, traces=(*answered.traces, *crosses), whole=table)
    return (answered, _rejected(comparison, table)) if table["rejected"].any() else (answered,)


def _rejected(comparison: Comparison, table: pd.DataFrame) -> Drawing:
    """Reports that the gate did not let through, by reason."""
    labels = choosing(comparison)
    reasons = list(table.columns[table.columns.get_loc("rejected") + 1 :])
    traces = []
    for index, label in enumerate(labels):
        rows = table[table["scheme"] == label]
        starts = bucket_edges(len(rows), BARS)[:-1]
        for number, reason in enumerate(reasons):
            traces.append(
                {
                    "type": "bar",
                    "name": name_of(reason.replace("_", " ")),
                    "x": starts + 1,
                    "y": np.add.reduceat(rows[reason].to_numpy(), starts),
                    "hovertemplate": "Round %{x}: %{y:.3g}<extra>%{fullData.name}</extra>",
                    "meta": meta("cluster", None, number, of=str(index)),
                }
            )
    return Drawing(
        "rejected",
        "Missing and rejected reports",
        "How many reports of each round (mean over seeds) did not come or did not pass the checks "
        "at the gate, and why; none of them reached the model. In long runs a bar is the sum over "
        "several rounds.",
        tuple(traces),
        {
            "xaxis": round_axis(table["round"]),
            "yaxis": {"title": {"text": "Reports"}, "rangemode": "tozero"},
            "barmode": "stack",
            "showlegend": True,
        },
        {},
        (scheme_switch(labels),),
        every(table[["scheme", "round", *reasons]]),
        table[["scheme", "round", *reasons]],
    )
