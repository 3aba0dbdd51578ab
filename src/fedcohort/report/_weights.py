"""Weights and labels of cohorts: tables, figures and panels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort._internal.types import Floats
from fedcohort.report import _clients
from fedcohort.report._clients import names
from fedcohort.report._curves import over_rounds
from fedcohort.report._figure import LIGHT, Drawing, PlotTrace, Switch, meta, name_of, style
from fedcohort.report._measures import Columns, by_scheme, choosing, numbered
from fedcohort.report._panel import Content, Panel, Shown, which_division
from fedcohort.report._runs import law_of, on_one_division
from fedcohort.selection._design import Design
from fedcohort.theory._moments import Moments, moments

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison, Trace

# The weights of the cohorts: what theory says beside what was measured.


def weight_matrix_moments(traces: Sequence[Trace]) -> tuple[Floats, Floats]:
    """(n,) mean and (n,) variance of every client's weight, over all rounds and seeds."""
    n = len(traces[0].importance)
    first, second, rounds = np.zeros(n), np.zeros(n), 0
    for trace in traces:
        first += np.bincount(trace.cohort_clients, trace.cohort_weights, minlength=n)
        second += np.bincount(trace.cohort_clients, trace.cohort_weights**2, minlength=n)
        rounds += trace.rounds
    mean = first / rounds
    return mean, np.maximum(0.0, second / rounds - mean**2)


def weight_table(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme: weight sum, its variance, all variances and cohort size.

    Columns ending in ``_theory`` are exact and NaN where the law is not known beforehand.
    ``bias`` is (1/2) sum_i |mean weight_i - p_i|, its noise included: it shrinks with rounds
    for an unbiased scheme and stays for a biased one; ``bias_theory`` is its limit. Where there
    are several divisions, it is the first.
    """
    comparison, rows = on_one_division(comparison), []
    for label in choosing(comparison):
        traces = comparison.of(label)
        sums = np.concatenate([trace.weight_sum for trace in traces])
        mean, variance = weight_matrix_moments(traces)
        importance = traces[0].importance
        measured = {
            "sum": float(sums.mean()),
            "sum_variance": float(sums.var()),
            "variance": float(variance.sum()),
            "distinct": float(np.concatenate([trace.distinct for trace in traces]).mean()),
            "bias": float(0.5 * np.abs(mean - importance).sum()),
        }
        exact = _theory(law_of(traces[0]), importance)
        rows.append(
            {"scheme": label}
            | {
                key: value
                for name in measured
                for key, value in ((name, measured[name]), (f"{name}_theory", exact[name]))
            }
        )
    return pd.DataFrame(rows)


def _theory(law: Design | None, importance: Floats) -> dict[str, float]:
    if law is None:
        return dict.fromkeys(("sum", "sum_variance", "variance", "distinct", "bias"), np.nan)
    exact: Moments = moments(law)
    return {
        "sum": float(exact.mean.sum()),
        "sum_variance": exact.weight_sum_variance,
        "variance": exact.sigma,
        "distinct": exact.expected_distinct,
        "bias": float(0.5 * np.abs(exact.mean - importance).sum()),
    }


def client_weights(comparison: Comparison) -> pd.DataFrame:
    """One row per scheme and client: importance, mean weight and its standard error, variance."""

    def table(traces: Sequence[Trace]) -> Columns:
        mean, variance = weight_matrix_moments(traces)
        law = law_of(traces[0])
        return {
            "client": names(traces[0]),
            "importance": traces[0].importance,
            "mean": mean,
            "mean_error": np.sqrt(variance / sum(trace.rounds for trace in traces)),
            "variance": variance,
            "mean_theory": np.nan if law is None else law.mean(),
            "variance_theory": np.nan if law is None else law.variance(),
        }

    return by_scheme(on_one_division(comparison), table)


# The figures of weights, and of the labels that cohorts hold.


def labels(comparison: Comparison) -> tuple[Drawing, ...]:
    """Label coverage of the cohorts, and their distance from the federation's labels."""
    table = _clients.labels_over_rounds(comparison)
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
    table = weight_table(comparison)
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
    whole = client_weights(comparison)
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


# What answers counted for.


@dataclass(frozen=True)
class Weights(Panel):
    """Weights as they were, beside what they should be in the mean."""

    name: ClassVar[str] = "weights"
    title: ClassVar[str] = "Weights"
    place: ClassVar[float] = 60

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        return (*which_division(c), weight_theory(c), weight_ratio(c))


# Which labels cohorts hold.


@dataclass(frozen=True)
class Labels(Panel):
    """Which classes the cohorts hold, beside the whole federation."""

    name: ClassVar[str] = "labels"
    title: ClassVar[str] = "Labels"
    place: ClassVar[float] = 50

    def content(self, shown: Shown) -> Content:
        return (labels(shown.comparison),)
