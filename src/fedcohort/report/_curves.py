"""Curves over rounds: tables, figures and panel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort._internal.files import file_name
from fedcohort._internal.types import Floats
from fedcohort.maths._statistics import window
from fedcohort.report import _ranking
from fedcohort.report._figure import (
    Drawing,
    PlotTrace,
    Switch,
    View,
    band,
    is_oracle,
    line,
    name_of,
    swatch,
)
from fedcohort.report._measures import (
    ACCURACY,
    LINES,
    TEST_LOSS,
    TRAIN_LOSS,
    Columns,
    Measure,
    by_scheme,
    drawn,
    measured,
    numbered,
    stacked,
)
from fedcohort.report._panel import Content, Panel, Shown
from fedcohort.report._runs import in_common, parts
from fedcohort.report._spent import spent_bytes, spent_seconds, spent_time
from fedcohort.server._trace import curve_names

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# What happened round by round: curves, and who answered.


def curves(comparison: Comparison, measure: Measure, line: str = "raw") -> pd.DataFrame:
    """One row per scheme and evaluated round: mean, spread and extremes over the seeds.

    The runs are those of the table: partitions and seeds that not every scheme has are left out.
    Every seed's curve is smoothed (``line``) before the mean is taken. ``bytes``, ``seconds`` of
    the machine that ran it and ``time`` by the virtual clock are what was spent until then, mean
    over seeds; evaluation is not counted.
    """

    def table(traces: Sequence[Trace]) -> Columns:
        rounds, raw = stacked(traces, measure)
        shown = drawn(raw, line, measure)
        spent = rounds.astype(int) - 1
        return {
            "round": rounds.astype(int),
            "mean": shown.mean(axis=0),
            "sd": shown.std(axis=0, ddof=1) if len(traces) > 1 else 0.0,
            "lowest": shown.min(axis=0),
            "highest": shown.max(axis=0),
            "bytes": np.mean([spent_bytes(trace)[spent] for trace in traces], axis=0),
            "seconds": np.mean([spent_seconds(trace)[spent] for trace in traces], axis=0),
            "time": np.mean([spent_time(trace)[spent] for trace in traces], axis=0),
        }

    counted = tuple(run for _, part in parts(comparison) for run in in_common(part).traces)
    return by_scheme(replace(comparison, traces=counted), table, labels=comparison.labels)


def answers(comparison: Comparison) -> pd.DataFrame:
    """Who was invited, who answered, what was rejected and why: one row per scheme and round.

    Means over seeds; empty where everybody always answered. ``rejected`` counts reports, and
    there is a column of its own for every reason.
    """
    reasons = list(dict.fromkeys(name for trace in comparison.traces for name in trace.faults))

    def table(traces: Sequence[Trace]) -> Columns:
        length = min(trace.rounds for trace in traces)

        def mean(get: Callable[[Trace], Any]) -> Floats:
            return np.asarray(np.mean([get(trace)[:length] for trace in traces], axis=0))

        def rejected(reason: str) -> Floats:
            return mean(lambda trace: trace.faults.get(reason, 0 * trace.filled))

        return {
            "round": np.arange(1, length + 1),
            "invited": mean(lambda trace: trace.invited),
            "counted": mean(lambda trace: trace.distinct),
            "answered": mean(lambda trace: trace.filled),
            "void": mean(lambda trace: trace.void),
            "rejected": mean(lambda trace: sum(trace.faults.values(), 0 * trace.filled)),
            **{reason: rejected(reason) for reason in reasons},
        }

    out = by_scheme(comparison, table)
    usual = (out["answered"] == 1) & (out["void"] == 0) & (out["rejected"] == 0)
    return out[:0] if usual.all() else out


# The figures of the page: progress, costs, labels, weights. One function, one figure.

SMOOTHED = Switch("line", "Curve", tuple(LINES.items()))
SMOOTH_OR_RAW = Switch("line", "Curve", (("rolling", "Rolling mean"), ("raw", "Raw")))
FEW_ROUNDS = 8
ROWS = 40
"""The table behind a curve shows about so many rounds."""


def progress(comparison: Comparison, target: float | None = None) -> Drawing:
    """Accuracy and losses over the rounds, with the spread over seeds."""
    found = measured(comparison)
    measures = [each for each in found if each.among(comparison.traces)] or found[:1]
    goal = _ranking.target_of(comparison, target)
    traces: list[PlotTrace] = []
    views = []
    for measure in measures:
        for way in LINES:
            table = curves(comparison, measure, way)
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
    table = curves(comparison, measures[0], "rolling")
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


# How the runs went on.


@dataclass(frozen=True)
class Curves(Panel):
    """Measures by round, with a choice of the schemes in all figures."""

    name: ClassVar[str] = "curves"
    title: ClassVar[str] = "Progress"
    place: ClassVar[float] = 10

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        drawn = any(measure.among(c.traces) for measure in measured(c))
        return (*_chips(c), *([progress(c, shown.target)] if drawn else []))


def _chips(comparison: Comparison) -> list[str]:
    """Which schemes are drawn; nothing to choose where there is one."""
    if len(comparison.labels) == 1:
        return []
    chips = "".join(
        f'<label class="chip" title="{escape(label)}">'
        f'<input type="checkbox" value="{index}" checked>{swatch(index, label)}'
        f"<span>{escape(label)}</span></label>"
        for index, label in enumerate(comparison.labels)
    )
    buttons = "".join(
        f'<button type="button" data-show="{key}">{words}</button>'
        for key, words in (("all", "All"), ("best", "Best five"), ("none", "None"))
    )
    return [
        '<div class="panel filter"><fieldset class="chips"><legend>Schemes in all figures</legend>'
        f"{buttons}{chips}</fieldset></div>"
    ]
