"""A figure has one legend where one is enough, over no curve, and nothing of it is cut off."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from fedcohort.report._print_figures import COLUMN
from fedcohort_papers.recipes import recipe
from fedcohort_papers.reproduction import Curves, Results, Scale
from fedcohort_papers.reproduction.drawing import PRINTED, _one_legend, _say


def drawn(*panels: list[str]) -> Any:
    figure = Figure(figsize=(6, 3), layout="constrained")
    for axes, labels in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        for label in labels:
            axes.plot([0, 1], [0, 1], label=label)
        if labels:
            axes.legend()
    _one_legend(figure)
    return figure


def words(legend: Any) -> list[str]:
    return [text.get_text() for text in legend.get_texts()]


def test_arms_that_all_panels_share_are_named_once_and_outside() -> None:
    figure = drawn(["md", "uniform"], ["uniform", PRINTED], [])
    assert all(axes.get_legend() is None for axes in figure.axes)
    (legend,) = figure.legends
    assert sorted(words(legend)) == ["md", PRINTED, "uniform"]
    FigureCanvasAgg(figure).draw()
    box = legend.get_window_extent()
    assert not any(box.overlaps(axes.get_window_extent()) for axes in figure.axes)
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_a_look_never_has_two_names() -> None:
    figure = drawn(["md", "uniform"], ["theory"])
    assert figure.legends == []
    assert [words(axes.get_legend()) for axes in figure.axes] == [["md", "uniform"], ["theory"]]


def cell_of(*labels: str) -> Any:
    seen = np.array([0.1, 0.2])
    run = SimpleNamespace(seed=0, partition=0, rounds=2, accuracy=seen, metrics={})
    return (SimpleNamespace(labels=labels, of=lambda label: (run,)),)


def test_an_arm_looks_the_same_in_cells_that_have_others_before_it() -> None:
    recipe_: Any = SimpleNamespace(name="fake", cells=())
    runs = {"one": cell_of("md", "levels", "uniform"), "two": cell_of("md", "uniform")}
    figure = Figure()
    for axes, cell in zip(figure.subplots(1, 2), runs, strict=True):
        Curves("accuracy", cell=cell).draw(axes, Results(recipe_, Scale(), runs=runs))
    _one_legend(figure)
    assert len(figure.legends) == 1
    one, two = (
        {line.get_label(): (line.get_color(), line.get_linestyle()) for line in axes.get_lines()}
        for axes in figure.axes
    )
    assert list(two) == ["md", "uniform"]
    assert two == {label: one[label] for label in two}
    assert len({*one.values()}) == 3


def test_many_long_names_are_not_cut_off() -> None:
    figure = drawn([f"an arm with a rather long name, number {k}" for k in range(7)])
    FigureCanvasAgg(figure).draw()
    box = figure.legends[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1


def test_nothing_to_name() -> None:
    assert drawn([], []).legends == []


def test_words_below_wide_panels_are_not_cut_off() -> None:
    figure = Figure(figsize=(COLUMN, 5), layout="constrained")
    bars, words_ = figure.subplots(2, 1)
    bars.barh([0, 1], [1, 2])
    bars.set_yticks([0, 1], ["an arm with a long name", "another"])
    _say(words_, replace(recipe("hcsfed-fig1"), shows="a word " * 40), below=True)
    FigureCanvasAgg(figure).draw()
    box = words_.texts[0].get_window_extent()
    assert 0 <= box.x0 < box.x1 <= figure.bbox.x1
