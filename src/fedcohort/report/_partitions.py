"""Several partitions of the data: figures and panels."""

from __future__ import annotations

from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pandas as pd

from fedcohort.report import _clients, _ranking
from fedcohort.report._figure import LIGHT, Drawing, PlotTrace, meta, name_of, style
from fedcohort.report._measures import Measure, measured
from fedcohort.report._panel import Content, Panel, Shown, which_division
from fedcohort.report._result import unlike
from fedcohort.report._runs import parts

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# The figure of a comparison on several divisions: who is ahead on which.

WIDTH = 0.5
"""The share of a division that its points are spread over."""


def divisions(comparison: Comparison) -> tuple[Drawing, ...]:
    """A figure for every problem that has several divisions."""
    colours = {label: i for i, label in enumerate(comparison.labels)}
    out = []
    for number, (name, part) in enumerate(parts(comparison)):
        if len(part.partitions) > 1:
            drawing = _levels(part, colours)
            if name:
                title = f"{name}: {drawing.title}"
                drawing = replace(drawing, key=f"{drawing.key}-{number}", title=title)
            out.append(drawing)
    return tuple(out)


def _levels(comparison: Comparison, colours: dict[str, int]) -> Drawing:
    measure, table = measured(comparison)[0], _ranking.by_division(comparison)
    places = {partition: i for i, partition in enumerate(comparison.partitions)}
    labels = comparison.labels
    aside = np.linspace(-WIDTH / 2, WIDTH / 2, len(labels)) if len(labels) > 1 else np.zeros(1)
    traces = [
        _dots(colours[label], label, table[table["scheme"] == label], places, offset, measure)
        for label, offset in zip(labels, aside.tolist(), strict=True)
    ]
    return Drawing(
        "divisions",
        f"{measure.title} on every division of the data",
        "Means over seeds, whiskers are one standard deviation. What differs from division to "
        "division is no scheme's merit; a scheme that is ahead on all of them may be ahead on "
        "others, too, one that is ahead on some may owe it to these.",
        tuple(traces),
        {
            "xaxis": {
                "title": {"text": "Division"},
                "tickvals": list(places.values()),
                "ticktext": [str(partition) for partition in places],
                "zeroline": False,
            },
            "yaxis": {
                "title": {"text": name_of(measure.title)},
                "tickformat": ".1%" if measure.percent else "~g",
            },
        },
        table=table,
    )


def _dots(
    index: int,
    label: str,
    rows: pd.DataFrame,
    places: dict[int, int],
    offset: float,
    measure: Measure,
) -> PlotTrace:
    look = style(index)
    form = ":.2%" if measure.percent else ":.4g"
    spread: Any = rows["sd"].fillna(0.0).to_numpy()
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name_of(label),
        "x": np.array([places[p] + offset for p in rows["division"]]),
        "y": rows["mean"].to_numpy(),
        "customdata": rows["division"].to_numpy(),
        "error_y": {"type": "data", "array": spread, "thickness": 1.5, "width": 0},
        "line": {"color": LIGHT[look.colour]},
        "marker": {"symbol": look.marker, "size": 9, "color": LIGHT[look.colour]},
        "hovertemplate": f"Division %{{customdata}}: %{{y{form}}}<extra>%{{fullData.name}}</extra>",
        "meta": meta("line", index),
    }


# Whether it is the same on every division of the data.


@dataclass(frozen=True)
class Divisions(Panel):
    """The level of every scheme on every division; nothing where there is one."""

    name: ClassVar[str] = "divisions"
    title: ClassVar[str] = "Divisions"
    place: ClassVar[float] = 5

    def content(self, shown: Shown) -> Content:
        return divisions(shown.comparison)


# Who holds what.


@dataclass(frozen=True)
class Clients(Panel):
    """Sizes and labels of the clients."""

    name: ClassVar[str] = "federation"
    title: ClassVar[str] = "Federation"
    place: ClassVar[float] = 80

    def content(self, shown: Shown) -> Content:
        c = shown.comparison
        says = tuple(f'<p class="lead">{escape(line)}</p>' for line in dict.fromkeys(_unlike(c)))
        return (*which_division(c), *says, *_clients.federations(c))


def _unlike(comparison: Comparison) -> list[str]:
    return [f"{name}: {unlike(part)}" if name else unlike(part) for name, part in parts(comparison)]
