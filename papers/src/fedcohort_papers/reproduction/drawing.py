"""The figure of a recipe: panels of what was found, printed values as marks, the paper beside.

Where the spec of a paper has numbers they are drawn as marks or lines that are called "printed".
Where it has only a picture, the last panel says in words what that shows; nothing is read off it.
"""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal.types import Floats
from fedcohort.maths._statistics import rolling
from fedcohort.report._figure import LIGHT, style
from fedcohort.report._print_figures import COLUMN, DASHES, LOOK
from fedcohort_papers.reproduction.estimate import Estimate
from fedcohort_papers.reproduction.measures import Measure, curve, falls, word
from fedcohort_papers.reproduction.recipe import Recipe
from fedcohort_papers.reproduction.results import COMPUTED, NoRuns, Of, Results

PRINTED = "printed"
LINE = "0.35"
"""The grey of what is printed."""
WIDE = 2
"""Panels side by side in the PNG, beside the words."""
LETTERS, HANDLE = 14, 7
"""Of a legend: letters to an inch, and how many the line before a name takes."""
FEW = 4
"""A legend of more names is not laid over curves."""
BAND = 0.12
"""How dark the spread of an arm is; of many arms together no darker than of a few."""
NAME, MANY = 26, 8
"""Letters in a line of a bar's name; more bars than so many have small names."""
YLABELS = {"distinct": "clients", "train_loss": "training loss"}


class Panel(ABC):
    """One pair of axes."""

    title: str

    @abstractmethod
    def draw(self, axes: Any, results: Results) -> None:
        """Fill the axes."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Those that it shows, for the table."""
        return ()


@dataclass(frozen=True)
class Curves(Panel):
    """A curve over rounds, arm by arm: mean and standard deviation over all runs.

    Parameters
    ----------
    of
        ``accuracy``, ``test_loss``, ``train_loss``, ``classes``, ``distinct``, or a metric.
    cell, arms
        Which; by default the only cell, and all arms.
    smooth
        Evaluations of the rolling mean; ``"best"`` for the best so far.
    printed
        By label: a level, or a pair (rounds, values).
    """

    of: str = "accuracy"
    cell: str | None = None
    arms: tuple[str, ...] | None = None
    smooth: int | str = 1
    printed: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    log: bool = False

    def draw(self, axes: Any, results: Results) -> None:
        for index, label in looks(results, self.cell):
            if self.arms is not None and label not in self.arms:
                continue
            x, rows = self.rows(results, label)
            if len(x) == 0:
                continue
            band = BAND * min(1.0, FEW / len(self.arms or results.arms(self.cell)))
            mean, sd, colour = rows.mean(axis=0), rows.std(axis=0), colour_of(index)
            axes.fill_between(x, mean - sd, mean + sd, color=colour, alpha=band, lw=0)
            axes.plot(x, mean, color=colour, ls=dash_of(index), label=label)
            _mark(axes, self.printed.get(label), colour)
        ylabel = YLABELS.get(self.of, self.of.replace("_", " "))
        axes.set(xlabel="round", ylabel=ylabel, title=self.title)
        axes.xaxis.get_major_locator().set_params(integer=True)  # there is no round 2.5
        if self.log:
            axes.set_yscale("log")
        _legend(axes)

    def rows(self, results: Results, label: str) -> tuple[Floats, Floats]:
        """The evaluated rounds, and the curve of every run, as drawn."""
        of: Of = label if self.cell is None else (self.cell, label)
        found = [curve(trace, self.of) for trace in results.traces(of).values()]
        x, rows = found[0][0], np.array([y for _, y in found])
        if len(x) == 0:
            return x, rows
        if self.smooth == "best":
            better = np.minimum if falls(self.of) else np.maximum
            return x, better.accumulate(rows, axis=1)
        return x, rolling(rows, int(self.smooth))


@dataclass(frozen=True)
class Bars(Panel):
    """A measure of every arm (or of computed samples), with its interval."""

    measure: Measure
    of: Sequence[Of] | None = None
    cell: str | None = None
    printed: Mapping[Any, float] = field(default_factory=dict)
    title: str = ""
    xlabel: str = ""

    @property
    def measures(self) -> tuple[Measure, ...]:
        return () if self.measure == COMPUTED else (self.measure,)

    def draw(self, axes: Any, results: Results) -> None:
        every: list[Of] = list(self.of or ())
        if not every:
            arms = results.arms(self.cell)
            every = [arm if self.cell is None else (self.cell, arm) for arm in arms]
        cells = {of[0] for of in every if not isinstance(of, str)}
        names = [
            of if isinstance(of, str) else of[1] if len(cells) == 1 else f"{of[1]}, {of[0]}"
            for of in every
        ]
        place = np.arange(len(every))
        found = [results.values(self.measure, of) for of in every]
        estimates = [Estimate.of(each.numbers, each.unit) for each in found]
        axes.barh(place, [e.mean for e in estimates], color=colour_of(0), alpha=0.8)
        for at, each in zip(place, estimates, strict=True):
            low, high = each.interval()
            if np.isfinite(low):
                axes.plot([low, high], [at, at], color="black", lw=1)
        marks = [(self.printed[of], at) for of, at in zip(every, place, strict=True)
                 if of in self.printed]  # fmt: skip
        if marks:
            axes.plot(*zip(*marks, strict=True), "D", color=LINE, label=PRINTED)
            _legend(axes)
        size = 7 if len(names) <= MANY else 5
        axes.set_yticks(place, [textwrap.fill(name, NAME) for name in names], fontsize=size)
        axes.invert_yaxis()
        axes.set(
            xlabel=self.xlabel or word(self.measure),
            title=self.title or ", ".join(cells if len(cells) == 1 else ()),
        )


@dataclass(frozen=True)
class Along(Panel):
    """A measure along cells: each has a place on the x axis; one line per arm."""

    measure: Measure
    x: Mapping[str, float]
    xlabel: str
    arms: tuple[str, ...] | None = None
    printed: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    log: bool = False
    ylabel: str = ""

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (self.measure,)

    def draw(self, axes: Any, results: Results) -> None:
        there = {cell: x for cell, x in self.x.items() if cell in results.runs}
        for index, label in looks(results, next(iter(there or self.x))):
            if self.arms is not None and label not in self.arms:
                continue
            found = [results.values(self.measure, (cell, label)) for cell in there]
            estimates = [Estimate.of(each.numbers, each.unit) for each in found]
            sd = [e.sd if np.isfinite(e.sd) else 0.0 for e in estimates]
            means = [e.mean for e in estimates]
            places, colour = list(there.values()), colour_of(index)
            axes.plot(places, means, label=label, marker="o", color=colour, ls=dash_of(index))
            axes.errorbar(places, means, sd, fmt="none", capsize=2, ecolor=colour)
            _mark(axes, self.printed.get(label), colour_of(index))
        ylabel = self.ylabel or word(self.measure)
        axes.set(xlabel=self.xlabel, ylabel=ylabel, title=self.title)
        if self.log:
            axes.set_xscale("log")
            axes.set_xticks(list(there.values()), [f"{x:g}" for x in there.values()])
            axes.minorticks_off()
        _legend(axes)


@dataclass(frozen=True)
class Columns(Panel):
    """Columns of a computed recipe (of its first seed), against one of them."""

    x: str
    ys: Mapping[str, str]
    """By column: the label."""
    xlabel: str = ""
    ylabel: str = ""
    printed: Mapping[str, Any] = field(default_factory=dict)
    title: str = ""
    log: str = ""
    """Which axes are logarithmic: ``"x"``, ``"y"``, ``"xy"``."""

    def draw(self, axes: Any, results: Results) -> None:
        for index, (column, label) in enumerate(self.ys.items()):
            axes.plot(results.columns[self.x], results.columns[column], label=label,
                      color=colour_of(index), ls=dash_of(index))  # fmt: skip
            _mark(axes, self.printed.get(column), colour_of(index))
        axes.set(xlabel=self.xlabel or self.x, ylabel=self.ylabel, title=self.title)
        for which in self.log:
            axes.set(**{f"{which}scale": "log"})
        _legend(axes)


@dataclass(frozen=True)
class Drawn(Panel):
    """Axes that a function of one's own fills: ``function(axes, results)``."""

    function: Callable[[Any, Results], None]
    title: str = ""

    def draw(self, axes: Any, results: Results) -> None:
        self.function(axes, results)
        if self.title:
            axes.set_title(self.title)


def looks(results: Results, cell: str | None) -> list[tuple[int, str]]:
    """The arms of a cell, each with its number among those of all cells: its look everywhere."""
    every = list(dict.fromkeys(arm for each in results.runs for arm in results.arms(each)))
    return [(every.index(arm), arm) for arm in results.arms(cell)]


def colour_of(index: int) -> str:
    """The colour of an arm, the same in all panels."""
    return LIGHT[style(index).colour]


def dash_of(index: int) -> Any:
    """Its dashes: never colour alone."""
    return DASHES[style(index).dash]


def _mark(axes: Any, printed: Any, colour: str) -> None:
    if printed is None:
        return
    if np.ndim(printed) == 0:
        axes.axhline(float(printed), color=colour, ls=":", lw=0.9, label=PRINTED)
    else:
        axes.plot(*printed, ls=":", marker="D", color=colour, label=PRINTED)


def _legend(axes: Any) -> None:
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if once:
        axes.legend(once.values(), [label.replace("$", r"\$") for label in once])


def _one_legend(figure: Any) -> None:
    """One legend above all panels instead of one over the curves of each.

    An arm looks the same in all panels, so it is enough where no panel names something that the
    panel with most names has not; otherwise one look would have two names, and each keeps its own.
    """
    having = [axes for axes in figure.axes if axes.get_legend() is not None]
    legends = [axes.get_legend() for axes in having]
    found = [
        dict(zip((text.get_text() for text in each.get_texts()), each.legend_handles, strict=True))
        for each in legends
    ]
    most = max(found, key=len, default={})
    if not most or any(set(names) - {*most, PRINTED} for names in found):
        for axes, names in zip(having, found, strict=True):
            _own_legend(axes, names)
        return
    for names in found:
        most = {**names, **most}  # PRINTED may be of another panel
    for each in legends:
        each.remove()
    room = figure.get_figwidth() * LETTERS // (max(map(len, most)) + HANDLE)
    figure.legend(
        most.values(), most, loc="outside upper center", ncols=int(min(len(most), max(1, room)))
    )


def _own_legend(axes: Any, names: Mapping[str, Any]) -> None:
    """A panel's own: over its curves, which shine through, or below where it has many names."""
    if len(names) > FEW:
        places = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.22), "fontsize": 6}
        axes.legend(names.values(), names, ncols=3, frameon=False, **places)
        return
    axes.get_legend().set(frame_on=True)
    axes.get_legend().get_frame().set(alpha=0.75, linewidth=0)


def write_figure(results: Results, folder: Path, name: str) -> list[Path]:
    """The figure as PNG (panels side by side) and as PDF (one below the other, a column wide)."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    recipe = results.recipe
    if not recipe.panels and not recipe.shows:
        return []
    places = [folder / f"{name}.png", folder / f"{name}.pdf"]
    number, words = len(recipe.panels), bool(recipe.shows)
    wide = min(WIDE, number)
    tall = -(-number // max(1, wide))
    side = (max(1, tall), wide + words), [(i // wide, i % wide) for i in range(number)]
    column = (number + words, 1), [(i, 0) for i in range(number)]
    with mpl.rc_context({**LOOK, "axes.axisbelow": True}):  # no grid over bars
        for place, ((rows, columns), spots) in zip(places, (side, column), strict=True):
            figure = Figure(figsize=(COLUMN * columns, 2.5 * rows), layout="constrained")
            grid = figure.add_gridspec(rows, columns)
            for spot, panel in zip(spots, recipe.panels, strict=True):
                _draw(panel, figure.add_subplot(grid[spot]), results)
            _one_legend(figure)
            if words:  # at the right, or below
                beside = grid[:, -1] if columns > 1 else grid[-1, 0]
                _say(figure.add_subplot(beside), recipe, below=columns == 1)
            dated = "CreationDate" if place.suffix == ".pdf" else "Software"
            figure.savefig(place, dpi=200, metadata={dated: None})
    return places


def _draw(panel: Panel, axes: Any, results: Results) -> None:
    """A panel, or in words why there is nothing to draw: hours of runs must not end here."""
    try:
        panel.draw(axes, results)
    except NoRuns as why:
        axes.clear()
        axes.axis("off")
        axes.set_title(panel.title)
        axes.text(0.5, 0.5, textwrap.fill(why.said, 40), ha="center", fontsize=7)


def _say(axes: Any, recipe: Recipe, below: bool) -> None:
    """What the printed figure shows; below others, from the edge of the figure on, or it is cut."""
    from matplotlib.transforms import blended_transform_factory

    axes.axis("off")
    head = f"In the paper ({recipe.where}):" if recipe.where else "In the paper:"
    text = f"{head}\n\n{textwrap.fill(recipe.shows, 50)}".replace("$", r"\$")
    edge = blended_transform_factory(axes.figure.transFigure, axes.transAxes)
    at, transform = (0.02, edge) if below else (0.0, axes.transAxes)
    axes.text(at, 1, text, va="top", fontsize=7, transform=transform, in_layout=not below)
