"""The figures of the page: progress, costs, labels, weights. One function, one figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from fedcohort.core.files import file_name
from fedcohort.maths._statistics import window
from fedcohort.report import facts
from fedcohort.report.draw.drawing import (
    Drawing,
    Switch,
    Trace,
    View,
    band,
    line,
    meta,
    name_of,
)
from fedcohort.report.draw.styles import LIGHT, is_oracle, style
from fedcohort.report.facts import clients, weights
from fedcohort.report.facts.conditions import is_carried
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
from fedcohort.trace import curve_names

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

SMOOTHED = Switch("line", "Curve", tuple(LINES.items()))
SMOOTH_OR_RAW = Switch("line", "Curve", (("rolling", "Rolling mean"), ("raw", "Raw")))
FEW_ROUNDS = 8
DECADES = 3
"""A logarithmic axis that spans fewer has labels between the powers of ten."""
ROWS = 40
"""The table behind a curve shows about so many rounds."""


def progress(comparison: Comparison, target: float | None = None) -> Drawing:
    """Accuracy and losses over the rounds, with the spread over seeds."""
    found = measured(comparison)
    measures = [each for each in found if each.among(comparison.traces)] or found[:1]
    goal = facts.target_of(comparison, target)
    traces: list[Trace] = []
    views = []
    for measure in measures:
        for way in LINES:
            table = facts.curves(comparison, measure, way)
            traces += _curves(comparison, measure, way, table)
            setting = {"measure": measure.name, "line": way}
            views.append(View(f"progress-{file_name(measure.name)}-{way}", setting, table))
    layouts: dict[str, dict[str, Any]] = {
        f"measure={measure.name}": {
            "yaxis": {"title": {"text": _shown(measure)}, "tickformat": _ticks(measure)},
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


def _curves(comparison: Comparison, measure: Measure, way: str, table: pd.DataFrame) -> list[Trace]:
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
            "yaxis": {"title": {"text": _shown(measure)}, "tickformat": _ticks(measure)},
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


def labels(comparison: Comparison) -> tuple[Drawing, ...]:
    """Label coverage of the cohorts, and their distance from the federation's labels."""
    table = clients.labels_over_rounds(comparison)
    if table.empty:
        return ()
    coverage = over_rounds(
        comparison,
        table,
        "coverage",
        "Label coverage",
        "The share of all classes that the clients of a cohort hold between them. At 100 % every "
        "class is seen in every round.",
        "Classes present",
    )
    distance = over_rounds(
        comparison,
        table,
        "distance",
        "Distance of the cohort's labels from the federation's",
        "The share of labels that would have to change for the cohort, each client counted by its "
        "weight, to look like the federation (total variation). At 0 the cohort is a fair sample.",
        "Label distance",
    )
    return coverage, distance


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


QUANTITIES = {
    "variance": "Sum of all clients' weight variances",
    "sum_variance": "Variance of the weight sum",
    "sum": "Mean weight sum",
    "distinct": "Distinct clients per cohort",
    "bias": "Bias: half the sum of |mean weight − importance|",
}


def weight_theory(comparison: Comparison) -> Drawing:
    """Theory beside measured: variance, weight sum, cohort size."""
    table = weights.weight_table(comparison)
    names = [name_of(label) for label in table["scheme"]]
    traces: list[Trace] = []
    for key in QUANTITIES:
        theory, seen = table[f"{key}_theory"].to_numpy(), table[key].to_numpy()
        known = np.isfinite(theory)
        traces.append(
            {
                **_dots(
                    "Theory", theory[known], [n for n, k in zip(names, known, strict=True) if k]
                ),
                "marker": {"symbol": "diamond-open", "size": 15, "line": {"width": 2}},
                "meta": meta("theory", None, quantity=key),
            }
        )
        traces.append(
            {
                **_dots("Measured", seen, names),
                "marker": {"symbol": "circle", "size": 8},
                "meta": meta("measured", None, quantity=key),
            }
        )
    return Drawing(
        "weights",
        "Weights: theory beside measured",
        "Diamonds are exact moments of the scheme's law, dots what the cohorts of these runs did; "
        "a dot inside its diamond agrees. Schemes without a diamond ask clients or adapt, so "
        "their law is not known beforehand. Less variance means less noise in the model; a weight "
        "sum that varies stretches and shrinks the step.",
        tuple(traces),
        {
            "yaxis": _scheme_axis(names),
            "xaxis": {"rangemode": "tozero"},
            "showlegend": True,
            "height": 150 + 30 * len(names),
        },
        {f"quantity={key}": {"xaxis": {"title": {"text": QUANTITIES[key]}}} for key in QUANTITIES},
        (Switch("quantity", "Quantity", tuple(QUANTITIES.items())),),
        table,
    )  # fmt: skip


def _scheme_axis(names: list[str]) -> dict[str, Any]:
    """An axis with one line per scheme, the first at the top."""
    return {
        "automargin": True, "autorange": "reversed", "ticklabelstandoff": 10,
        "type": "category", "categoryorder": "array", "categoryarray": names,
    }  # fmt: skip


def _dots(name: str, x: Any, y: list[str]) -> Trace:
    hover = "%{y}: %{x:.4g}<extra>%{fullData.name}</extra>"
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "hovertemplate": hover,
        "cliponaxis": False,
    }


def weight_ratio(comparison: Comparison) -> Drawing:
    """Mean weight of the clients relative to their importance."""
    whole = weights.client_weights(comparison)
    table = whole[whole["importance"] > 0]
    table = table.assign(ratio=table["mean"] / table["importance"])
    quantiles = table.groupby("scheme", sort=False)["ratio"].quantile([0, 0.25, 0.5, 0.75, 1])
    traces = []
    names = [name_of(label) for _, label in numbered(comparison)]
    for index, label in numbered(comparison):
        low, q1, middle, q3, high = quantiles[label].to_numpy()
        colour = LIGHT[style(index).colour]
        traces.append(
            {
                "type": "box", "orientation": "h", "name": name_of(label), "y": [name_of(label)],
                "lowerfence": [low], "q1": [q1], "median": [middle], "q3": [q3],
                "upperfence": [high], "line": {"color": colour, "width": 2},
                "meta": meta("box", index),
            }
        )  # fmt: skip
    return Drawing(
        "ratio",
        "Does every client count as much as it should?",
        "Mean weight of each client divided by its importance, over all rounds and seeds: box and "
        "whiskers span the clients. A scheme without bias is centred on 1 and narrows with more "
        "rounds.",
        tuple(traces),
        {
            "xaxis": {"title": {"text": "Mean weight ÷ importance"}, "rangemode": "tozero"},
            "yaxis": _scheme_axis(names),
            "shapes": [{"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1,
                        "line": {"dash": "dot", "width": 1.5, "color": "#777777"}}],
            "height": 150 + 30 * len(names),
        },
        table=quantiles.unstack().reset_index().set_axis(
            ["scheme", "lowest", "quarter", "median", "three quarters", "highest"], axis=1
        ),
        whole=whole,
    )  # fmt: skip


def every(table: pd.DataFrame) -> pd.DataFrame:
    """Some rounds of a table over rounds, the first and the last included."""
    longest = table.groupby("scheme", sort=False)["round"].transform("size")
    place = table.groupby("scheme", sort=False).cumcount()
    count = max(2, ROWS // max(1, table["scheme"].nunique()))
    step = ((longest - 1) / (count - 1)).clip(lower=1)
    keep = (place % step < 1) | (place == longest - 1)
    return table[keep].reset_index(drop=True)


def _shown(measure: Measure) -> str:
    return name_of(measure.title)


def _ticks(measure: Measure) -> str:
    return ".0%" if measure.percent else "~g"
