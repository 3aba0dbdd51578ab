"""Panels of the report: found by themselves, in their order, those of other packages too."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort import Comparison, compare, report
from fedcohort._internal.errors import BadInput, FedcohortWarning, UnknownName
from fedcohort.report import _page as page
from fedcohort.report import _panel
from fedcohort.report._clients import heat
from fedcohort.report._figure import Drawing, meta
from fedcohort.report._panel import PANELS, drawings
from fedcohort.report._print_figures import paint
from fedcohort.training import Quadratic

OWN = '''
"""How many there are."""

from dataclasses import dataclass
from html import escape
from typing import ClassVar

from fedcohort._internal.errors import BadInput
from fedcohort.report._panel import Panel


@dataclass(frozen=True)
class Census(Panel):
    """How many clients there are."""

    name: ClassVar[str] = "census"
    title: ClassVar[str] = "How <many>"
    place: ClassVar[float] = 25

    def content(self, shown):
        CONTENT
'''


@pytest.fixture
def comparison() -> Comparison:
    task = Quadratic([[0.0], [1.0], [2.0]])
    return compare(task, ["md:m=2", "full"], rounds=2, seeds=1, jobs=1)


@pytest.fixture
def clustered() -> dict[str, np.ndarray]:
    """What a scheme knows of twelve clients."""
    tree = np.column_stack([np.r_[0, 12:22], np.arange(1, 12), np.arange(1, 12), np.arange(2, 13)])
    return {"labels": np.repeat([0, 1, 2], 4), "linkage": tree.astype(float)}


@pytest.fixture
def anew() -> Iterator[None]:
    PANELS.refresh()
    yield
    PANELS.refresh()


def added(content: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "census.py").write_text(OWN.replace("CONTENT", content))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "census", raising=False)
    monkeypatch.setitem(vars(PANELS), "modules", (*PANELS.modules, "census"))
    PANELS.refresh()


def test_they_stand_in_their_order(comparison: Comparison) -> None:
    text = page.page(comparison)
    places = [text.index(f'<section id="{name}"') for name in ("result", "curves", "cost")]
    assert places == sorted(places)
    assert [cls.place for cls in PANELS.all().values()] == list(
        dict.fromkeys(cls.place for cls in PANELS.all().values())
    )
    assert '<section id="labels"' not in text  # there are none


@pytest.mark.usefixtures("anew")
def test_one_of_ones_own_is_one_file(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = 'return (f"<p>{len(shown.comparison.traces[0].importance)} clients</p>",)'
    added(said, tmp_path, monkeypatch)
    text = page.page(comparison)
    assert "<h2>How &lt;many&gt;</h2><p>3 clients</p></section>" in text
    assert '<li><a href="#census">How &lt;many&gt;</a></li>' in text
    where = [text.index(f'<section id="{name}"') for name in ("cost", "census", "clients")]
    assert where == sorted(where)


@pytest.mark.usefixtures("anew")
def test_one_that_fails_is_left_out_and_named(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("return 1 / 0", tmp_path, monkeypatch)
    with pytest.warns(FedcohortWarning, match="The panel 'census' is left out: ZeroDivision"):
        text = page.page(comparison)
    assert "census" not in text.partition("<script")[0]
    assert '<section id="settings"' in text


@pytest.mark.usefixtures("anew")
def test_one_that_has_nothing_to_show_is_left_out(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("return ()", tmp_path, monkeypatch)
    assert '<section id="census"' not in page.page(comparison)


@pytest.mark.usefixtures("anew")
def test_a_mistake_of_the_users_is_told(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added("raise BadInput('no such thing')", tmp_path, monkeypatch)
    with pytest.raises(BadInput, match="no such thing"):
        page.page(comparison)


def test_every_figure_of_the_page_is_a_picture_and_every_table_a_file(
    make: Callable[..., Comparison], tmp_path: Path
) -> None:
    """Nothing is listed a second time: what a panel shows is drawn and written, too."""
    labels = np.repeat(np.arange(5), 4)
    comparison = make(
        ("md", "clustered-similarity"), seeds=2, clients=20, pictures={"labels": labels}
    )
    shown = _panel.Shown.of(comparison)
    contents = _panel.of_each(lambda panel: panel.content(shown))
    views = [view for _, content in contents for each in drawings(content) for view in each.views]
    names = [view.name for view in views]
    assert len(names) == len(set(names))
    assert [view.name for view in views if view.table is None] == []
    written = report.write_pictures(comparison, tmp_path, formats=("pdf",))
    assert [path.name for path in written] == [f"{name}.pdf" for name in names]
    tables = {path.stem for path in report.write_csv(comparison, tmp_path)}
    assert tables - set(names) == {
        *("summary", "pairwise", "ledger", "disclosures", "worst_clients", "settings")
    }
    assert set(names) <= tables


def test_a_figure_has_one_name_on_the_page_and_in_files(
    make: Callable[..., Comparison], clustered: Any
) -> None:
    """Pictures and tables of a figure begin with the key that it has on the page."""
    found = _panel.of_each(lambda panel: panel.content(_panel.Shown.of(make(pictures=clustered))))
    figures = [each for _, content in found for each in drawings(content)]
    keys = {each.key for each in figures}
    assert keys >= {"progress", "cost", "participation", "histogram", "lorenz", "coverage",
                    "distance", "weights", "ratio", "losses", "federation", "tree"}  # fmt: skip
    for each in figures:
        for view in each.views:
            assert view.name == each.key or view.name.startswith(f"{each.key}-")
            assert view.table is not None
            assert len(view.table)


def test_a_picture_in_a_format_that_is_none(comparison: Comparison, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match=r"no format named 'pgn'\. Did you mean 'png'"):
        report.write_pictures(comparison, tmp_path / "none", formats=("png", "pgn"))
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("anew")
def test_the_figure_of_a_panel_of_ones_own_is_written_too(
    comparison: Comparison, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawing = """
        import pandas as pd
        from fedcohort.report._figure import Drawing, meta
        bars = {"type": "bar", "x": ["a", "b"], "y": [1, 2], "meta": meta("bar")}
        table = pd.DataFrame({"who": ["a", "b"], "many": [1, 2]})
        return (Drawing("heads", "Heads", "", (bars,), table=table),)
    """
    added(drawing.strip(), tmp_path, monkeypatch)
    pictures = report.write_pictures(comparison, tmp_path / "p", formats=("svg",))
    assert "heads" in {path.stem for path in pictures}
    written = report.write_csv(comparison, tmp_path / "c")
    assert "who,many" in next(p for p in written if p.stem == "heads").read_text()


@pytest.mark.parametrize("kind", ["bar", "box", "heatmap", "markers", "band"])
def test_what_is_painted_is_what_is_drawn(kind: str) -> None:
    """Numbers of a drawing are those of the picture."""
    traces: dict[str, dict[str, Any]] = {
        "bar": {"type": "bar", "x": ["a", "b"], "y": [3.0, 1.0]},
        "box": {
            "type": "box", "y": ["a"], "lowerfence": [0.0], "q1": [1.0], "median": [2.0],
            "q3": [3.0], "upperfence": [4.0],
        },
        "heatmap": {"type": "heatmap", "x": [1, 2], "y": [0, 1], "z": [[0, 100], [50, 0]],
                    "zmin": 0, "zmax": 100},
        "markers": {"type": "scatter", "mode": "markers", "x": [0, 1], "y": [2.0, 5.0],
                    "error_y": {"array": [1.0, 1.0]}},
        "band": {"type": "scatter", "mode": "lines", "fill": "toself", "x": [0, 1, 1, 0],
                 "y": [0.0, 0.0, 2.0, 3.0]},
    }  # fmt: skip
    figure = Figure()
    paint(figure, Drawing("k", "", "", ({**traces[kind], "meta": meta("bar")},)))
    (axes,) = figure.axes
    figure.canvas.draw()
    low, high = axes.get_ylim()
    if kind == "bar":
        assert [bar.get_height() for bar in axes.patches] == [3.0, 1.0]
        assert [tick.get_text() for tick in axes.get_xticklabels()] == ["a", "b"]
    elif kind == "box":
        assert max(x for line in axes.lines for x in line.get_xdata()) == 4.0
        assert [tick.get_text() for tick in axes.get_yticklabels()] == ["a"]
    elif kind == "heatmap":
        assert axes.images[0].get_array().tolist() == [[0, 100], [50, 0]]
    elif kind == "markers":
        assert axes.lines[-1].get_ydata().tolist() == [2.0, 5.0]
        assert low <= 1.0
        assert high >= 6.0
    else:
        assert high >= 3.0


def test_a_figure_of_one_scheme_at_a_time_is_painted_for_all(
    make: Callable[..., Comparison],
) -> None:
    comparison = make(("md", "uniform", "full", "pow-d"))
    figure, drawing = Figure(), heat(comparison)
    paint(figure, drawing)
    shown = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in shown] == list(comparison.labels)
    for axes, trace in zip(shown, drawing.traces, strict=True):
        assert axes.images[0].get_array().tolist() == trace["z"].tolist()
    figure = Figure()
    paint(figure, drawing, {"of": "2"})
    (axes,) = figure.axes
    assert axes.images[0].get_array().tolist() == drawing.traces[2]["z"].tolist()


def test_a_view_is_painted_as_it_is_chosen(make: Callable[..., Comparison]) -> None:
    """The picture of the running best is not that of the rolling mean."""
    comparison = make(("md", "uniform"))
    shown = _panel.Shown.of(comparison)
    pictures = PANELS.all()["curves"]().pictures(shown)
    lines = {}
    for way in ("raw", "best"):
        figure = Figure()
        pictures[f"progress-accuracy-{way}"](figure)
        lines[way] = np.asarray(figure.axes[0].lines[0].get_ydata())
    assert (np.diff(lines["best"]) >= 0).all()
    assert not (np.diff(lines["raw"]) >= 0).all()
