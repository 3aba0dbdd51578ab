"""The figures of the page: progress, costs, labels, weights. One function, one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort._internal.files import file_name
from fedcohort.maths._statistics import window
from fedcohort.report import facts
from fedcohort.report.draw.drawing import (
    Drawing,
    PlotTrace,
    Switch,
    View,
    band,
    line,
    name_of,
)
from fedcohort.report.draw.styles import is_oracle
from fedcohort.report.facts.measures import (
    ACCURACY,
    LINES,
    TEST_LOSS,
    TRAIN_LOSS,
    Measure,
    drawn,
    measured,
    numbered,
    stacked,
)
from fedcohort.server._trace import curve_names

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

SMOOTHED = Switch("line", "Curve", tuple(LINES.items()))
SMOOTH_OR_RAW = Switch("line", "Curve", (("rolling", "Rolling mean"), ("raw", "Raw")))
FEW_ROUNDS = 8
ROWS = 40
"""The table behind a curve shows about so many rounds."""


def progress(comparison: Comparison, target: float | None = None) -> Drawing:
    """Accuracy and losses over the rounds, with the spread over seeds."""
    found = measured(comparison)
    measures = [each for each in found if each.among(comparison.traces)] or found[:1]
    goal = facts.target_of(comparison, target)
    traces: list[PlotTrace] = []
    views = []
    for measure in measures:
        for way in LINES:
            table = facts.curves(comparison, measure, way)
            traces += _curves(comparison, measure, way, table)
            setting = {"measure": measure.name, "line": way}
            views.append(View(f"progress-{file_name(measure.name)}-{way}", setting, table))
    layouts: dict[str, dict[str, Any]] = {
        f"measure={measure.name}": {
            "yaxis": {"title": {"text": axis_title(measure)}, "tickformat": tick_format(measure)},
            "shapes": _goal(goal) if measure.name == ACCURACY.name else [],
        }
        for measure in measures
    }
    width = window(len(stacked(comparison.traces[:1], measures[0])[0]))
    switch = Switch("measure", "Measure", tuple((m.name, m.title) for m in measures))
    bands = Switch("band", "Spread", (("on", "Mean ± one sd"), ("off", "Mean only")))
    table = facts.curves(comparison, measures[0], "rolling")
    return Drawing(
        "progress",
        "Progress over rounds",
        f"Mean over runs; the band is one standard deviation to either side. The rolling mean "
        f"covers {width} evaluation{'s' if width > 1 else ''}; the running best can only rise, "
        "so it hides relapses."
        + ("" if goal is None else f" The dotted line is the target, {goal:.0%}.")
        + " A dashed grey line is an oracle." * any(map(is_oracle, comparison.labels))
        + _sources(comparison),
        tuple(traces),
        {"xaxis": round_axis(table["round"])},
        layouts,
        (switch, SMOOTHED, bands),
        every(table[["scheme", "round", "mean", "sd", "lowest", "highest"]]),
        parts=tuple(views),
    )


def _sources(comparison: Comparison) -> str:
    """What accuracy and losses are, in runs where others measured them."""
    told = [curve_names(trace.metrics) for trace in comparison.traces]
    names = {
        measure.words: sorted({str(row[i]) for row in told if row[i] is not None})
        for i, measure in enumerate((TRAIN_LOSS, TEST_LOSS, ACCURACY))
    }
    said = [f"{words} is “{', '.join(found)}”" for words, found in names.items() if found]
    return f" As it was sent: {'; '.join(said)}." if said else ""


def _curves(
    comparison: Comparison, measure: Measure, way: str, table: pd.DataFrame
) -> list[PlotTrace]:
    form = ":.2%" if measure.percent else ":.4g"
    bands, lines = [], []
    for index, label in enumerate(comparison.labels):
        rows = table[table["scheme"] == label]
        x, mean, sd = (rows[name].to_numpy(dtype=np.float64) for name in ("round", "mean", "sd"))
        if not len(x):
            continue
        when = {"measure": measure.name, "line": way}
        if len(comparison.of(label)) > 1 and not is_oracle(label):
            bands.append(band(index, x, mean - sd, mean + sd, band="on", **when))
        hover = f"Round %{{x}}<br>{name_of(measure.words)} %{{y{form}}}"
        lines.append(line(index, label, x.astype(int), mean, hover, **when))
    return bands + lines


def round_axis(rounds: pd.Series[int]) -> dict[str, Any]:
    """Whole rounds, be there ever so few."""
    return {"title": {"text": "Round"}, "dtick": 1 if rounds.max() <= FEW_ROUNDS else None}


def _goal(goal: float | None) -> list[dict[str, Any]]:
    if goal is None:
        return []
    return [
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": goal,
            "y1": goal,
            "line": {"dash": "dot", "width": 1.5, "color": "#777777"},
        }
    ]


def over_rounds(
    comparison: Comparison, table: pd.DataFrame, column: str, title: str, caption: str, axis: str
) -> Drawing:
    """A share over the rounds, scheme by scheme."""
    traces = []
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        x, y = rows["round"].to_numpy(), rows[column].to_numpy(dtype=np.float64)
        there = np.isfinite(y)
        for way, _ in SMOOTH_OR_RAW.options:
            shown = drawn(y[there][None], way, measured(comparison)[0])[0]
            hover = f"Round %{{x}}<br>{axis.lower()} %{{y:.1%}}"
            traces.append(line(index, label, x[there], shown, hover, line=way))
    return Drawing(
        column,
        title,
        caption,
        tuple(traces),
        {
            "xaxis": round_axis(table["round"]),
            "yaxis": {"title": {"text": axis}, "tickformat": ".0%", "rangemode": "tozero"},
        },
        {},
        (SMOOTH_OR_RAW,),
        every(table[["scheme", "round", column]]),
        table[["scheme", "round", column]],
    )


def every(table: pd.DataFrame) -> pd.DataFrame:
    """Some rounds of a table over rounds, the first and the last included."""
    longest = table.groupby("scheme", sort=False)["round"].transform("size")
    place = table.groupby("scheme", sort=False).cumcount()
    count = max(2, ROWS // max(1, table["scheme"].nunique()))
    step = ((longest - 1) / (count - 1)).clip(lower=1)
    keep = (place % step < 1) | (place == longest - 1)
    return table[keep].reset_index(drop=True)


def axis_title(measure: Measure) -> str:
    """Return the title of an axis that shows a measure."""
    return name_of(measure.title)


def tick_format(measure: Measure) -> str:
    """Return the number format of an axis that shows a measure."""
    return ".0%" if measure.percent else "~g"
