"""The figures of weights, and of the labels that cohorts hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort.report.draw.curves import over_rounds
from fedcohort.report.draw.drawing import (
    Drawing,
    PlotTrace,
    Switch,
    meta,
    name_of,
)
from fedcohort.report.draw.styles import LIGHT, style
from fedcohort.report.facts import clients, weights
from fedcohort.report.facts.measures import (
    numbered,
)

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


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
    traces: list[PlotTrace] = []
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


def _dots(name: str, x: Any, y: list[str]) -> PlotTrace:
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
