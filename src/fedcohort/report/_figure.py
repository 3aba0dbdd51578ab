"""Figures as plain data: traces, switches and styles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from fedcohort._internal import html
from fedcohort._internal.types import Array, Floats
from fedcohort.report._measures import envelope, keep_extremes

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

# How schemes are told apart: colour, dash and marker together, never colour alone.

LIGHT = (
    "#0072B2", "#D55E00", "#117733", "#C0609A", "#332288", "#661100", "#111111", "#5595D0",
)  # fmt: skip
"""On white. After Okabe & Ito and Tol, without the hues too pale for a thin line on paper."""
DARK = (
    "#56B4E9", "#E69F00", "#00B386", "#E58CC0", "#F0E442", "#7C7CF5", "#FFFFFF", "#D9541E",
)  # fmt: skip
"""On near-black."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash")
MARKERS = (
    "circle", "square", "diamond", "triangle-up", "x",
    "cross", "star", "triangle-down", "pentagon", "hourglass",
)  # fmt: skip
"""Names of plotly's symbols."""


@dataclass(frozen=True)
class Style:
    """Colour number, dash and marker of one scheme."""

    colour: int
    dash: str
    marker: str


def style(index: int) -> Style:
    """The style of the scheme at this position; the first 40 are all different.

    >>> style(0), style(8).dash
    (Style(colour=0, dash='solid', marker='circle'), 'longdash')
    """
    dash = (index + index // len(LIGHT)) % len(DASHES)
    return Style(index % len(LIGHT), DASHES[dash], MARKERS[index % len(MARKERS)])


ORACLE = " (oracle)"
"""The end of the name that reports show for an oracle."""
GUIDE = "#777777"
"""The colour of reference lines."""


def is_oracle(label: str) -> bool:
    """Whether a shown name is that of an oracle, whose lines are drawn as reference lines."""
    return label.endswith(ORACLE)


_DASH_LENGTHS = {"solid": "", "dash": "6 4", "dot": "2 3", "dashdot": "7 3 2 3", "longdash": "11 4"}
_SHAPES = {
    "circle": '<circle cx="16" cy="7" r="3.6"/>',
    "square": '<rect x="12.6" y="3.6" width="6.8" height="6.8"/>',
    "diamond": '<path d="M16 2.4 20.6 7 16 11.6 11.4 7Z"/>',
    "triangle-up": '<path d="M16 2.6 20.4 10.4H11.6Z"/>',
    "triangle-down": '<path d="M16 11.4 11.6 3.6h8.8Z"/>',
    "x": '<path d="M13 3l3 2.4L19 3l1 1-2.4 3L20 10l-1 1-3-2.4L13 11l-1-1 2.4-3L12 4Z"/>',
    "cross": '<path d="M14.8 2.8h2.4v3h3v2.4h-3v3h-2.4v-3h-3V5.8h3Z"/>',
    "star": '<path d="M16 2.2 17.3 5.6l3.6.2-2.8 2.3.9 3.5-3-2-3 2 .9-3.5-2.8-2.3 3.6-.2Z"/>',
    "pentagon": '<path d="M16 2.6 20.4 5.8 18.7 10.8H13.3L11.6 5.8Z"/>',
    "hourglass": '<path d="M12 3h8l-8 8h8Z"/>',
}


def swatch(index: int, label: str) -> str:
    """A small drawing of a scheme's line for lists and tables (SVG; the page colours it)."""
    if is_oracle(label):
        return (
            '<svg class="swatch guide" viewBox="0 0 32 14" aria-hidden="true">'
            '<path class="line" d="M0 7H32" stroke-dasharray="6 4"/></svg>'
        )
    look = style(index)
    pattern = _DASH_LENGTHS[look.dash]
    dashes = f' stroke-dasharray="{pattern}"' if pattern else ""
    return (
        f'<svg class="swatch c{look.colour}" viewBox="0 0 32 14" aria-hidden="true">'
        f'<path class="line" d="M0 7H32"{dashes}/>{_SHAPES[look.marker]}</svg>'
    )


# A figure as data: plotly traces, each saying when it is shown.

POINTS = 240
"""A curve is drawn with at most about so many points."""

WIDTH = 5.0
"""Inches, of a picture in a notebook."""

ONE_OF = "of"
"""The switch of a figure that shows one scheme at a time."""

PlotTrace = dict[str, Any]


@dataclass(frozen=True)
class Switch:
    """A choice that a figure offers."""

    key: str
    words: str
    options: tuple[tuple[str, str], ...]
    """Value and words of each; the first is chosen to begin with."""


@dataclass(frozen=True, eq=False)
class View:
    """A figure as one of its files: with these settings of its switches, and their numbers."""

    name: str
    """Of the files: the key of the figure, or what begins with it and a dash."""
    setting: Mapping[str, str]
    table: pd.DataFrame | None


@dataclass(frozen=True, eq=False)
class Drawing:
    """One figure: what it shows, how to read it, and the numbers behind it.

    Every trace has a ``meta`` with the position of its ``scheme`` (or None), the ``role`` that
    decides how the theme colours it, and ``when``: the switch settings under which it is shown.
    ``layouts`` are changes of the layout under a setting such as ``"measure=accuracy"``.

    The ``key`` is its name on the page and that of its files: pictures and CSV.
    """

    key: str
    title: str
    caption: str
    traces: tuple[PlotTrace, ...]
    layout: Mapping[str, Any] = field(default_factory=dict)
    layouts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    switches: tuple[Switch, ...] = ()
    table: pd.DataFrame | None = None
    """What the page shows of the numbers."""
    whole: pd.DataFrame | None = None
    """All of them, for the file, where the page shows a part."""
    parts: tuple[View, ...] = ()
    """The settings that have files of their own; none: one file of each kind for all."""

    def __repr__(self) -> str:
        choices = "".join(f", {each.key}=" for each in self.switches)
        return f"<Drawing {self.key}: {self.title}; .figure({choices[2:]}) is plotly's>"

    def _repr_mimebundle_(self, *args: Any, **options: Any) -> dict[str, Any]:
        """What a notebook shows: plotly's figure, where it can, else a picture of it."""
        bundle = self.figure()._repr_mimebundle_(*args, **options)
        return {"text/plain": repr(self), "text/html": self._repr_html_(), **(bundle or {})}

    def _repr_html_(self) -> str:
        """A picture and its caption, without a script: what a viewer without plotly shows."""
        import io

        import matplotlib as mpl
        from matplotlib.figure import Figure

        from fedcohort.report._print_figures import GOLDEN, LOOK, paint

        png = io.BytesIO()
        with mpl.rc_context(LOOK):
            figure = Figure(figsize=(WIDTH, GOLDEN * WIDTH), layout="constrained")
            paint(figure, self)
            figure.savefig(png, format="png", dpi=130)
        return html.image(self.title, png.getvalue(), self.caption)

    @property
    def views(self) -> tuple[View, ...]:
        """Its files: each is a picture and a CSV of the same name."""
        return self.parts or (View(self.key, {}, self.table if self.whole is None else self.whole),)

    def figure(self, **chosen: str) -> go.Figure:
        """The figure for a notebook, e.g. ``drawing.figure(line="best")``."""
        import plotly.graph_objects as go

        setting = {switch.key: switch.options[0][0] for switch in self.switches} | chosen
        shown = [trace for trace in self.traces if is_shown(trace, setting)]
        out = go.Figure([_without_when(trace) for trace in shown], dict(self.layout))
        out.update_layout(title=self.title, template="plotly_white")
        for key, value in setting.items():
            out.update_layout(self.layouts.get(f"{key}={value}", {}))
        return out


def is_shown(trace: PlotTrace, setting: Mapping[str, str]) -> bool:
    """Whether a trace is shown under the settings of the switches."""
    return all(setting[key] == value for key, value in trace["meta"]["when"].items())


def _without_when(trace: PlotTrace) -> PlotTrace:
    """As plotly knows it; a band around a curve has no name, and no line in the legend."""
    told = {key: value for key, value in trace.items() if key != "meta"}
    return {"showlegend": bool(trace.get("name")), **told}


def meta(
    role: str, scheme: int | None = None, colour: int | None = None, /, **when: str
) -> dict[str, Any]:
    """What the page needs to know of a trace; a scheme has a colour of its own."""
    number = colour if scheme is None else style(scheme).colour
    return {"role": role, "scheme": scheme, "colour": number, "when": when}


def name_of(label: str) -> str:
    """A name as plotly shall show it: plotly reads ``<`` and ``&`` as markup."""
    return escape(label, quote=False)


def line(index: int, label: str, x: Array, y: Array, hover: str, **when: str) -> PlotTrace:
    """The curve of one scheme, in its style, thinned; that of an oracle is a reference line."""
    look, kept = style(index), keep_extremes(np.asarray(y, dtype=np.float64), POINTS)
    guide = {
        "mode": "lines",
        "line": {"color": GUIDE, "dash": "dash", "width": 1.5},
        "meta": {**meta("guide", index, **when), "colour": None},
    }
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name_of(label),
        "x": np.asarray(x)[kept],
        "y": np.asarray(y)[kept],
        "line": {"color": LIGHT[look.colour], "dash": look.dash, "width": 2},
        "marker": {"symbol": look.marker, "size": 8, "maxdisplayed": 7},
        "hovertemplate": hover + "<extra>%{fullData.name}</extra>",
        "meta": meta("line", index, **when),
        **(guide if is_oracle(label) else {}),
    }


def band(index: int, x: Floats, low: Floats, high: Floats, **when: str) -> PlotTrace:
    """A band behind a curve."""
    middle, bottom, top = envelope(x, low, high, POINTS // 2)
    colour = LIGHT[style(index).colour]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": np.concatenate([middle, middle[::-1]]),
        "y": np.concatenate([top, bottom[::-1]]),
        "fill": "toself",
        "fillcolor": colour + "22",
        "line": {"width": 0, "color": colour},
        "hoverinfo": "skip",
        "meta": meta("band", index, **when),
    }
