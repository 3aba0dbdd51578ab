"""Pictures for papers, set for print: the width of a column, small type, no global state."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

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
