"""Responses and classes: figures and panels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import pandas as pd

from fedcohort.report import _curves, _ranking
from fedcohort.report._clients import scheme_switch
from fedcohort.report._curves import SMOOTH_OR_RAW, every, over_rounds, round_axis
from fedcohort.report._figure import Drawing, line, meta, name_of
from fedcohort.report._measures import ACCURACY, bucket_edges, choosing, drawn, numbered
from fedcohort.report._panel import Content, Panel, Shown, box
from fedcohort.simulation._storage import VALIDATION

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# The figures of the page that show who did not answer, and which reports were rejected.

BARS = 120
"""Rounds are counted together where there are more."""


def answers(comparison: Comparison) -> tuple[Drawing, ...]:
    """Which share of the draws was answered, and why reports were rejected; () if all went well."""
    table = _curves.answers(comparison)
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


# The figure of the page that shows how well each class is told.

SPREAD = 0.6  # of the room of a class, in which its schemes stand side by side


def f1(comparison: Comparison) -> tuple[Drawing, ...]:
    """F1 of every class under the last model, scheme by scheme; none where it is not known."""
    table = _ranking.f1_by_class(comparison)
    if table.empty:
        return ()
    traces, count = [], len(comparison.labels)
    for index, label in enumerate(comparison.labels):
        rows = table[table["scheme"] == label]
        if rows.empty:
            continue
        classes = rows["class"].to_numpy()
        beside = SPREAD * ((index + 0.5) / count - 0.5)
        hover = "Class %{customdata}<br>F1 %{y:.3f}"
        dots = line(index, label, classes + beside, rows["f1"].to_numpy(), hover)
        dots |= {
            "mode": "markers",
            "x": classes + beside,  # every class: nothing is thinned
            "y": rows["f1"].to_numpy(),
            "customdata": classes,
            "error_y": {
                "array": (rows["highest"] - rows["f1"]).to_numpy(),
                "arrayminus": (rows["f1"] - rows["lowest"]).to_numpy(),
                "thickness": 1.2,
                "width": 0,
            },
        }
        dots["marker"].pop("maxdisplayed")
        traces.append(dots)
    classes = int(table["class"].max()) + 1
    seen = "validation data" if VALIDATION in comparison.settings else "the test set"
    axis = {"title": {"text": "Class"}, "range": [-0.6, classes - 0.4], "zeroline": False}
    drawing = Drawing(
        "f1",
        "The last model, class by class",
        f"F1 on {seen}: the harmonic mean of how many samples of a class are found and how "
        "many that are said to be of it are. Mean over seeds, from the lowest to the highest. At 0 "
        "the class is never told rightly: to the model it does not exist.",
        tuple(traces),
        {
            "xaxis": axis | ({"dtick": 1} if classes <= 20 else {}),
            "yaxis": {"title": {"text": "F1"}, "range": [-0.03, 1.03]},
        },
        table=table,
    )
    return (drawing,)


# Who did not answer.


@dataclass(frozen=True)
class DropOuts(Panel):
    """Answers by round, and why reports are missing."""

    name: ClassVar[str] = "answers"
    title: ClassVar[str] = "Drop-outs"
    place: ClassVar[float] = 40

    def content(self, shown: Shown) -> Content:
        return (*answers(shown.comparison), *_answers(shown.comparison))


def _answers(comparison: Comparison) -> tuple[str, ...]:
    table = _curves.answers(comparison)
    if table.empty:
        return ()
    grouped = table.groupby("scheme", sort=False)
    shown = grouped.sum().drop(columns="round").assign(answered=100 * grouped["answered"].mean())
    names = {
        "answered": "% of draws answered",
        "void": "void rounds",
        "counted": "answers that counted",
    }
    return (
        box(
            "Who answered, in sum",
            "Over all rounds, mean over seeds. Reports that are missing or were rejected are "
            "counted by reason; in a void round too few answered, so the model stayed.",
            shown.rename(columns=names).reset_index(),
        ),
    )


# Which classes the last model tells.


@dataclass(frozen=True)
class Classes(Panel):
    """F1 of every class, scheme by scheme."""

    name: ClassVar[str] = "classes"
    title: ClassVar[str] = "Classes"
    place: ClassVar[float] = 55

    def content(self, shown: Shown) -> Content:
        return f1(shown.comparison)
