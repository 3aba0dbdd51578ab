"""Pictures for papers, set for print: the width of a column, small type, no global state.

The figures that papers show most are painted here by hand; all others are those of the page, by
`paint`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, MaxNLocator, NullFormatter

from fedcohort.maths.curves import rolling, window
from fedcohort.report import facts
from fedcohort.report.draw.styles import LIGHT, style
from fedcohort.report.facts import clients
from fedcohort.report.facts.measures import Measure, choosing, numbered

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

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


def _line(axes: Any, index: int, label: str, x: Any, y: Any) -> None:
    look, step = style(index), max(1, len(x) // 7)
    first = index * step // len(LIGHT) % step  # markers of equal curves side by side
    name = f" {label}" if label.startswith("_") else label  # matplotlib hides names with _
    axes.plot(
        x, y, color=LIGHT[look.colour], linestyle=DASHES[look.dash], marker=MARKERS[look.marker],
        markevery=(first, step), label=plain(name),
    )  # fmt: skip


def plain(text: str) -> str:
    """A name with a dollar sign is a name, not mathematics."""
    return text.replace("$", r"\$")


def legend(figure: Figure, axes: Any, count: int) -> None:
    """Names of curves below the axes, where there is more than one."""
    if count > 1:
        figure.legend(
            *axes.get_legend_handles_labels(), loc="outside lower center", ncols=3,
            handlelength=2.6, columnspacing=1.0,
        )  # fmt: skip
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.14 * -(-count // 3))


def progress(
    figure: Figure, comparison: Comparison, measure: Measure, line: str, target: float | None
) -> None:
    """A measure over the rounds, with its spread over seeds."""
    axes, table = figure.subplots(), facts.curves(comparison, measure, line)
    for index, label in enumerate(comparison.labels):
        rows = table[table["scheme"] == label]
        x, mean, sd = (rows[name].to_numpy(dtype=float) for name in ("round", "mean", "sd"))
        axes.fill_between(
            x, mean - sd, mean + sd, color=LIGHT[style(index).colour], alpha=0.12, linewidth=0
        )
        _line(axes, index, label, x, mean)
    goal = facts.target_of(comparison, target)
    if goal is not None and measure.name == "accuracy":
        axes.axhline(goal, color="#777777", linestyle=":", linewidth=0.8)
    axes.set(xlabel="Round", ylabel=plain(measure.title))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=STEPS))
    legend(figure, axes, len(comparison.labels))


def cost(figure: Figure, comparison: Comparison, measure: Measure) -> None:
    """The level reached against bytes."""
    axes, table = figure.subplots(), facts.curves(comparison, measure, "rolling")
    for index, label in enumerate(comparison.labels):
        rows = table[(table["scheme"] == label) & (table["bytes"] > 0)]
        if rows.empty:  # centralised training sends nothing
            continue
        _line(axes, index, label, rows["bytes"].to_numpy(), rows["mean"].to_numpy())
    axes.set(xlabel="Bytes, both directions", ylabel=plain(measure.title), xscale="log")
    low, high = axes.get_xlim()
    # 100k, 1M, 10M; with 1, 2 and 5 of each where there would be too few.
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if high < 100 * low else (1,)))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_minor_formatter(NullFormatter())
    legend(figure, axes, len(comparison.labels))


def lorenz(figure: Figure, comparison: Comparison) -> None:
    """How evenly the work is spread."""
    axes, table = figure.subplots(), clients.lorenz(comparison)
    axes.plot([0, 1], [0, 1], color="#777777", linestyle=":", linewidth=0.8)
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        _line(axes, index, label, rows["clients"].to_numpy(), rows["participations"].to_numpy())
    axes.set(xlabel="Share of clients", ylabel="Share of participations")
    legend(figure, axes, len(choosing(comparison)))


def labels(figure: Figure, comparison: Comparison) -> None:
    """How far the labels of cohorts are from the federation's."""
    axes, table = figure.subplots(), clients.labels_over_rounds(comparison)
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label].dropna(subset=["distance"])
        y = rows["distance"].to_numpy(dtype=float)
        _line(axes, index, label, rows["round"].to_numpy(), rolling(y, window(len(y))))
    axes.set(xlabel="Round", ylabel="Label distance")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, steps=STEPS))
    legend(figure, axes, len(choosing(comparison)))


def losses(figure: Figure, comparison: Comparison) -> None:
    """Losses of the clients, from the best to the worst served."""
    axes, table = figure.subplots(), clients.loss_quantiles(comparison)
    for index, label in numbered(comparison):
        rows = table[table["scheme"] == label]
        _line(axes, index, label, rows["clients"].to_numpy(), rows["loss"].to_numpy())
    axes.set(xlabel="Share of clients", ylabel="Client's loss")
    legend(figure, axes, len(choosing(comparison)))


def heat(figure: Figure, comparison: Comparison) -> None:
    """One small map per scheme, three in a row."""
    labels = choosing(comparison)
    rows = -(-len(labels) // 3)
    width, _ = figure.get_size_inches()
    figure.set_size_inches(width, 0.3 + 0.85 * rows)
    grid = np.ravel(figure.subplots(rows, min(3, len(labels)), squeeze=False))
    for axes in grid[len(labels) :]:
        axes.set_visible(False)
    for axes, label in zip(grid, labels, strict=False):
        trace = comparison.of(label)[0]
        axes.imshow(
            clients.participation_picture(trace), aspect="auto", origin="lower", cmap="Blues",
            vmin=0, interpolation="nearest", extent=(0, trace.rounds, 0, len(trace.importance)),
        )  # fmt: skip
        axes.set_title(plain(label), fontsize=7)
        axes.grid(False)
        axes.xaxis.set_major_locator(MaxNLocator(2, integer=True, steps=STEPS))
        axes.yaxis.set_major_locator(MaxNLocator(3, integer=True, steps=STEPS))
    figure.supxlabel("Round", fontsize=8)
    figure.supylabel("Client", fontsize=8)
