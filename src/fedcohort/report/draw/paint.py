"""Any figure of the page, for a paper: a `Drawing` by matplotlib, in print's small type.

What plotly calls scatter, bar, box and heatmap is all that figures are made of. A figure with
switches is painted as the page opens it: every switch at its first choice.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import unescape
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from fedcohort.report.draw.drawing import Drawing, Trace, is_shown
from fedcohort.report.draw.paper import DASHES, MARKERS, STEPS, legend, plain
from fedcohort.report.draw.styles import LIGHT

GREY = "#777777"


def paint(figure: Figure, drawing: Drawing) -> None:
    """Paint a drawing into an empty figure of matplotlib."""
    setting = {switch.key: switch.options[0][0] for switch in drawing.switches}
    layout = dict(drawing.layout)
    for key, value in setting.items():
        for part, change in drawing.layouts.get(f"{key}={value}", {}).items():
            old = layout.get(part)
            layout[part] = {**old, **change} if isinstance(old, Mapping) else change
    axes = figure.subplots()
    axes.set_axisbelow(True)
    shown = [trace for trace in drawing.traces if is_shown(trace, setting)]
    places = _Places(shown, layout)
    for number, trace in enumerate(shown):
        _KINDS[trace["type"]](axes, trace, places, number)
    for shape in layout.get("shapes", []):
        _guide(axes, shape)
    _axis(axes, "x", layout.get("xaxis", {}), places.of["x"])
    _axis(axes, "y", layout.get("yaxis", {}), places.of["y"])
    legend(figure, axes, len(axes.get_legend_handles_labels()[0]))


class _Places:
    """Where things stand on an axis of names, and bars beside each other."""

    def __init__(self, traces: list[Trace], layout: Mapping[str, Any]) -> None:
        self.of: dict[str, list[str]] = {"x": [], "y": []}
        for axis in self.of:
            told = layout.get(f"{axis}axis", {})
            values = [str(v) for t in traces for v in np.ravel(t.get(axis, []))]
            if told.get("type") == "category" or not _numbers(values):
                self.of[axis] = list(dict.fromkeys([*told.get("categoryarray", []), *values]))
        bars = [trace for trace in traces if trace["type"] == "bar"]
        self.stacked = layout.get("barmode") != "group"
        self.beside = 1 if self.stacked else max(1, len(bars))
        self.height: dict[float, float] = {}

    def __call__(self, axis: str, values: Any) -> Any:
        """Numbers for matplotlib."""
        names = self.of[axis]
        if names:
            return np.array([names.index(str(value)) for value in np.ravel(values)], dtype=float)
        return np.asarray(values, dtype=float)


def _numbers(values: list[str]) -> bool:
    try:
        [float(value) for value in values]
    except ValueError:
        return False
    return True


def _colour(trace: Trace, number: int) -> str:
    told = trace["meta"]["colour"]
    if told is None and trace["meta"]["role"] in ("guide", "plain"):
        return GREY
    return LIGHT[(number if told is None else told) % len(LIGHT)]


def _name(trace: Trace) -> str:
    return plain(unescape(str(trace.get("name", ""))))


def _scatter(axes: Any, trace: Trace, places: _Places, number: int) -> None:
    x, y, colour = places("x", trace["x"]), places("y", trace["y"]), _colour(trace, number)
    if trace.get("fill") == "toself":
        axes.fill(x, y, color=colour, alpha=0.12, linewidth=0)
        return
    mode, symbol = trace["mode"], trace.get("marker", {}).get("symbol", "circle")
    error = trace.get("error_y")
    if error is not None:
        up = np.nan_to_num(np.asarray(error["array"], dtype=float))
        down = np.nan_to_num(np.asarray(error.get("arrayminus", up), dtype=float))
        axes.errorbar(x, y, yerr=np.maximum(0, [down, up]), fmt="none", ecolor=colour,
                      elinewidth=0.7)  # fmt: skip
    axes.plot(
        x, y, color=colour, label=_name(trace) or None,
        linestyle=DASHES[trace.get("line", {}).get("dash", "solid")] if "lines" in mode else "",
        marker=MARKERS.get(symbol, "o") if "markers" in mode else "",
        markevery=max(1, len(x) // 7) if "lines" in mode else None,
        drawstyle="steps-mid" if trace.get("line", {}).get("shape") == "hvh" else "default",
    )  # fmt: skip


def _bar(axes: Any, trace: Trace, places: _Places, number: int) -> None:
    x, y = places("x", trace["x"]), np.asarray(trace["y"], dtype=float)
    step = float(np.min(np.diff(np.unique(x)))) if len(np.unique(x)) > 1 else 1.0
    width = 0.9 * step / places.beside
    if places.stacked:
        below = np.array([places.height.get(at, 0.0) for at in x.tolist()])
        places.height.update(zip(x.tolist(), (below + y).tolist(), strict=True))
    else:
        below = np.zeros(len(x))
        x = x + width * (number - (places.beside - 1) / 2)
    hatch = "///" if "pattern" in trace.get("marker", {}) else None
    axes.bar(x, y, width, bottom=below, color=_colour(trace, number), hatch=hatch,
             label=_name(trace) or None)  # fmt: skip


def _box(axes: Any, trace: Trace, places: _Places, number: int) -> None:
    ends = {"whislo": "lowerfence", "med": "median", "whishi": "upperfence"}
    told = {name: float(trace[ends.get(name, name)][0]) for name in (*ends, "q1", "q3")}
    stats: dict[str, Any] = {**told, "fliers": []}
    colour = {"color": _colour(trace, number)}
    axes.bxp(
        [stats], positions=places("y", trace["y"]), orientation="horizontal", widths=0.5,
        boxprops=colour, medianprops=colour, whiskerprops=colour, capprops=colour,
        manage_ticks=False,
    )  # fmt: skip


def _heatmap(axes: Any, trace: Trace, places: _Places, number: int) -> None:
    z = np.asarray(trace["z"], dtype=float)
    x, y = places("x", trace["x"]), places("y", trace["y"])
    wide, high = (float(v[1] - v[0]) if len(v) > 1 else 1.0 for v in (x, y))
    box = (x[0] - wide / 2, x[-1] + wide / 2, y[0] - high / 2, y[-1] + high / 2)
    axes.imshow(z, aspect="auto", origin="lower", cmap="Blues", vmin=trace["zmin"],
                vmax=trace["zmax"], interpolation="nearest", extent=box)  # fmt: skip
    axes.grid(False)


_KINDS = {"scatter": _scatter, "bar": _bar, "box": _box, "heatmap": _heatmap}


def _guide(axes: Any, shape: Mapping[str, Any]) -> None:
    """A dotted line across the whole picture."""
    draw, at = (axes.axhline, shape["y0"]) if "xref" in shape else (axes.axvline, shape["x0"])
    draw(at, color=GREY, linestyle=":", linewidth=0.8)


def _axis(axes: Any, which: str, told: Mapping[str, Any], names: list[str]) -> None:
    axis = getattr(axes, f"{which}axis")
    axis.set_label_text(plain(unescape(str(told.get("title", {}).get("text", "")))))
    percent = re.fullmatch(r"\.\d%", str(told.get("tickformat", "")))
    if names:
        shown = range(0, len(names), -(-len(names) // 12))
        axis.set_ticks(list(shown), [plain(unescape(names[i])) for i in shown])
    elif "tickvals" in told:
        axis.set_ticks(told["tickvals"], told["ticktext"])
    elif not told.get("showticklabels", True):
        axis.set_ticks([])
    elif told.get("type") == "log":
        getattr(axes, f"set_{which}scale")("log")
        axis.set_major_formatter(EngFormatter(sep=""))
    elif percent:
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0 if percent[0] == ".0%" else 1))
    elif told.get("title", {}).get("text") in ("Round", "Client", "Class"):
        axis.set_major_locator(MaxNLocator(integer=True, steps=STEPS))
    if told.get("autorange") == "reversed":
        axis.set_inverted(True)
    if told.get("rangemode") == "tozero" and told.get("type") != "log":
        low, high = getattr(axes, f"get_{which}lim")()
        getattr(axes, f"set_{which}lim")(min(0.0, low), high)
