"""Figures for papers, drawn by matplotlib."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from html import unescape
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter, PercentFormatter

from fedcohort._internal.errors import UnknownName
from fedcohort.report._figure import LIGHT, ONE_OF, Drawing, PlotTrace, is_shown
from fedcohort.report._panel import Shown, of_each

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

# Pictures for papers, set for print: the width of a column, small type, no global state.

COLUMN = 3.35
"""Inches: the column of the common two-column styles; LaTeX includes it without scaling."""
FORMATS = ("png", "svg", "pdf")
UNDATED: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}
"""So that the same facts give the same file."""
GOLDEN = 0.62
STEPS = (1, 2, 5, 10)
"""Rounds and clients are counted in these and their tenfolds."""
LOOK: Any = {
    "font.size": 8,
    "axes.labelsize": 8,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.5,
    "axes.grid": True,
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "pdf.fonttype": 42,  # letters that editors and journals can read
    "svg.hashsalt": "fedcohort",
}
DASHES: dict[str, Any] = {
    "solid": "-", "dash": (0, (5, 2)), "dot": (0, (1, 1.5)),
    "dashdot": (0, (5, 1.5, 1, 1.5)), "longdash": (0, (9, 2)),
}  # fmt: skip
MARKERS = {
    "circle": "o", "square": "s", "diamond": "D", "triangle-up": "^", "x": "X", "cross": "P",
    "star": "*", "triangle-down": "v", "pentagon": "p", "hourglass": "d",
}  # fmt: skip


def plain(text: str) -> str:
    """A name with a dollar sign is a name, not mathematics."""
    return text.replace("$", r"\$")


def legend(figure: Figure) -> None:
    """Names of curves below the axes, each once, where there is more than one."""
    found: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, name in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if len(found) > 1:
        for columns in (3, 2, 1):
            made = figure.legend(
                list(found.values()), list(found), loc="outside lower center", ncols=columns,
                handlelength=2.6, columnspacing=1.0,
            )  # fmt: skip
            if columns == 1 or made.get_window_extent().width <= figure.bbox.width:
                break
            made.remove()  # long names take more room than there is
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.14 * -(-len(found) // columns))


# Any figure of the page, for a paper: a `Drawing` by matplotlib, in print's small type.
#
# What plotly calls scatter, bar, box and heatmap is all that figures are made of. A figure with
# switches is painted as the page opens it, every switch at its first choice, unless it is told
# otherwise; one that shows a scheme at a time is painted as small pictures of all of them.

GREY = "#777777"
IN_A_ROW = 3
"""Small pictures side by side."""
A_LETTER, LINE = 0.06, 0.12
"""Inches of a small picture that a letter and a line of its title take."""
FEW_DECADES = 2
"""A logarithmic axis that spans fewer has labels at 2 and 5 of each power of ten, too."""
WHOLE = ("Round", "Client", "Class", "Clients", "Rounds taken part in", "Reports")
"""Axes of things that are counted: there is no half of one."""
NONE: Mapping[str, str] = {}


def paint(figure: Figure, drawing: Drawing, chosen: Mapping[str, str] = NONE) -> None:
    """Paint a drawing into an empty figure of matplotlib, with switches as they are ``chosen``."""
    first = {switch.key: switch.options[0][0] for switch in drawing.switches}
    setting = {**first, **chosen}
    schemes = [switch.options for switch in drawing.switches if switch.key == ONE_OF]
    if ONE_OF in chosen or not schemes or len(schemes[0]) == 1:
        _axes(figure.subplots(), drawing, setting)
    else:
        _side_by_side(figure, drawing, setting, schemes[0])
    legend(figure)


def _side_by_side(
    figure: Figure, drawing: Drawing, setting: Mapping[str, str], schemes: Sequence[tuple[str, str]]
) -> None:
    """A small picture for every scheme, with the names of the axes once."""
    rows, columns = -(-len(schemes) // IN_A_ROW), min(IN_A_ROW, len(schemes))
    width, _ = figure.get_size_inches()
    titles = [wrap(name, max(1, int(width / columns / A_LETTER))) for _, name in schemes]
    further = LINE * (max(map(len, titles)) - 1)
    figure.set_size_inches(width, 0.3 + (0.85 + further) * rows)
    grid = np.ravel(figure.subplots(rows, columns, squeeze=False))
    for axes in grid[len(schemes) :]:
        axes.set_visible(False)
    for axes, (value, _), title in zip(grid, schemes, titles, strict=False):
        _axes(axes, drawing, {**setting, ONE_OF: value}, names=4)
        axes.set_title(plain("\n".join(title)), fontsize=7)
        x, y = axes.get_xlabel(), axes.get_ylabel()
        axes.set(xlabel="", ylabel="")
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_locator(), MaxNLocator):
                axis.get_major_locator().set_params(nbins=2)
    figure.supxlabel(x, fontsize=8)
    figure.supylabel(y, fontsize=8)


def _axes(axes: Any, drawing: Drawing, setting: Mapping[str, str], names: int = 12) -> None:
    """Paint what is shown under a setting, with at most so many names at an axis."""
    layout = dict(drawing.layout)
    for key, value in setting.items():
        for part, change in drawing.layouts.get(f"{key}={value}", {}).items():
            old = layout.get(part)
            layout[part] = {**old, **change} if isinstance(old, Mapping) else change
    axes.set_axisbelow(True)
    shown = [trace for trace in drawing.traces if is_shown(trace, setting)]
    places = _Places(shown, layout)
    for number, trace in enumerate(shown):
        _KINDS[trace["type"]](axes, trace, places, number)
    for shape in layout.get("shapes", []):
        _guide(axes, shape)
    for which, there in places.of.items():
        _axis(axes, which, layout.get(f"{which}axis", {}), there, names)


class _Places:
    """Where things stand on an axis of names, and bars beside each other."""

    def __init__(self, traces: list[PlotTrace], layout: Mapping[str, Any]) -> None:
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


def _colour(trace: PlotTrace, number: int) -> str:
    told = trace["meta"]["colour"]
    if told is None and trace["meta"]["role"] in ("guide", "plain"):
        return GREY
    return LIGHT[(number if told is None else told) % len(LIGHT)]


def _name(trace: PlotTrace) -> str:
    name = unescape(str(trace.get("name", "")))
    return plain(f" {name}" if name.startswith("_") else name)  # matplotlib hides names with _


def _some(trace: PlotTrace, points: int) -> tuple[int, int]:
    """At which points of a curve a marker stands: those of equal curves lie side by side."""
    step = max(1, points // 7)
    return (trace["meta"]["scheme"] or 0) * step // len(LIGHT) % step, step


def _scatter(axes: Any, trace: PlotTrace, places: _Places, number: int) -> None:
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
        markevery=_some(trace, len(x)) if "lines" in mode else None,
        drawstyle="steps-mid" if trace.get("line", {}).get("shape") == "hvh" else "default",
    )  # fmt: skip


def _bar(axes: Any, trace: PlotTrace, places: _Places, number: int) -> None:
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


def _box(axes: Any, trace: PlotTrace, places: _Places, number: int) -> None:
    ends = {"whislo": "lowerfence", "med": "median", "whishi": "upperfence"}
    told = {name: float(trace[ends.get(name, name)][0]) for name in (*ends, "q1", "q3")}
    stats: dict[str, Any] = {**told, "fliers": []}
    colour = {"color": _colour(trace, number)}
    axes.bxp(
        [stats], positions=places("y", trace["y"]), orientation="horizontal", widths=0.5,
        boxprops=colour, medianprops=colour, whiskerprops=colour, capprops=colour,
        manage_ticks=False,
    )  # fmt: skip


def _heatmap(axes: Any, trace: PlotTrace, places: _Places, number: int) -> None:
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


def _axis(axes: Any, which: str, told: Mapping[str, Any], names: list[str], most: int) -> None:
    axis = getattr(axes, f"{which}axis")
    axis.set_label_text(plain(unescape(str(told.get("title", {}).get("text", "")))))
    percent = re.fullmatch(r"\.\d%", str(told.get("tickformat", "")))
    if names:
        shown = range(0, len(names), -(-len(names) // most))
        axis.set_ticks(list(shown), [plain(unescape(names[i])) for i in shown])
    elif "tickvals" in told:
        axis.set_ticks(told["tickvals"], told["ticktext"])
    elif not told.get("showticklabels", True):
        axis.set_ticks([])
    elif told.get("type") == "log":
        getattr(axes, f"set_{which}scale")("log")
        low, high = getattr(axes, f"get_{which}lim")()
        subs = (1, 2, 5) if high < 10**FEW_DECADES * low else (1,)
        axis.set_major_locator(LogLocator(subs=subs))
        axis.set_major_formatter(EngFormatter(sep=""))
        axis.set_minor_formatter(NullFormatter())
    elif percent:
        axis.set_major_formatter(PercentFormatter(1.0, decimals=0 if percent[0] == ".0%" else 1))
    elif told.get("title", {}).get("text") in WHOLE:
        axis.set_major_locator(MaxNLocator(integer=True, steps=STEPS))
    if told.get("autorange") == "reversed":
        axis.set_inverted(True)
    if told.get("rangemode") == "tozero" and told.get("type") != "log":
        low, high = getattr(axes, f"get_{which}lim")()
        getattr(axes, f"set_{which}lim")(min(0.0, low), high)


# The figures of all panels as files for papers: PNG, SVG, PDF.


def write_pictures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    target: float | None = None,
    *,
    width: float = COLUMN,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Draw all pictures into ``folder``; ``width`` in inches."""
    for kind in formats:
        if kind not in FORMATS:
            raise UnknownName("format", kind, FORMATS)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    shown, written = Shown.of(comparison, target), []
    with mpl.rc_context(LOOK):
        for _, pictures in of_each(lambda panel: panel.pictures(shown)):
            for name, paint in pictures.items():
                figure = Figure(figsize=(width, GOLDEN * width), layout="constrained")
                paint(figure)
                for kind in formats:
                    path = place / f"{name}.{kind}"
                    figure.savefig(path, dpi=300, metadata=UNDATED.get(kind))
                    written.append(path)
    return written
