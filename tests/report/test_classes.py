"""F1 class by class on the page: of every scheme and seed, as it is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import Comparison
from fedcohort.report import _page as page
from fedcohort.report import _ranking
from fedcohort.report import _responses as figures_classes


@pytest.fixture
def comparison(make) -> Comparison:  # type: ignore[no-untyped-def]
    made = make(("md", "uniform"), seeds=2, classes=3)
    scores = {("md", 0): [0.2, 0.0, 1.0], ("md", 1): [0.6, 0.0, 1.0]}
    traces = [
        replace(t, f1=np.array(scores.get((t.label, t.seed), [0.5, 0.5, 0.5]))) for t in made.traces
    ]
    return replace(made, traces=tuple(traces))


def test_means_and_the_reach_of_the_seeds(comparison: Comparison) -> None:
    table = _ranking.f1_by_class(comparison)
    md = table[table["scheme"] == "md"]
    np.testing.assert_allclose(md["f1"], [0.4, 0.0, 1.0])
    np.testing.assert_allclose(md["sd"], [np.std([0.2, 0.6], ddof=1), 0, 0])
    assert md["lowest"].tolist() == [0.2, 0.0, 1.0]
    assert md["highest"].tolist() == [0.6, 0.0, 1.0]


def test_every_class_of_every_scheme_is_drawn_side_by_side(comparison: Comparison) -> None:
    (drawing,) = figures_classes.f1(comparison)
    first, second = drawing.traces
    assert [trace["name"] for trace in drawing.traces] == ["md", "uniform"]
    np.testing.assert_allclose(first["y"], [0.4, 0.0, 1.0])
    np.testing.assert_allclose(first["error_y"]["array"], [0.2, 0, 0])
    np.testing.assert_allclose(first["error_y"]["arrayminus"], [0.2, 0, 0])
    assert (first["x"] < second["x"]).all()
    assert np.rint(first["x"]).tolist() == np.rint(second["x"]).tolist() == [0, 1, 2]
    assert '<section id="classes"' in page.page(comparison)


def test_no_panel_where_nobody_told_classes(make) -> None:  # type: ignore[no-untyped-def]
    assert figures_classes.f1(make()) == ()
    assert '<section id="classes"' not in page.page(make())


def test_many_classes_are_all_there(make) -> None:  # type: ignore[no-untyped-def]
    (drawing,) = figures_classes.f1(make(("md",), seeds=1, f1=np.linspace(0, 1, 500)))
    assert len(drawing.traces[0]["y"]) == 500
    assert "dtick" not in drawing.layout["xaxis"]
