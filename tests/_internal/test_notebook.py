"""What objects show: one line in a terminal, a small table in a notebook, nothing unescaped."""

from __future__ import annotations

import base64
import copy
import io
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib import image

import fedcohort
from fedcohort._internal import html as notebook
from fedcohort.advice import advise
from fedcohort.designs import Everyone
from fedcohort.report._figure import Drawing
from fedcohort.training import Quadratic

NASTY = "<script>alert('x')</script>&\""


class Balanced(HTMLParser):
    """Fails on a tag that is never closed, or closed twice; collects the tags."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.words = ""
        self.feed(html)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        if tag != "img":  # which nothing closes
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words += data


def objects() -> dict[str, object]:
    """One of everything, with a name in it that must not become markup."""
    federation = fedcohort.Federation.from_sizes({NASTY: 40, "b": 30, "c": 20, "d": 10})
    selector = fedcohort.Selector("md:m=2", federation, seed=0)
    design, cohort = selector.design(), selector.select()
    task = Quadratic(np.eye(4))
    task.name = NASTY
    found = fedcohort.compare(task, {NASTY: "md:m=2"}, rounds=2, seeds=2, jobs=1)
    drawing = fedcohort.report.figures(found)["progress"]
    return {
        "Federation": federation, "Selector": selector, "Design": design, "Cohort": cohort,
        "Ledger": selector.ledger, "Task": task, "Comparison": found, "Trace": found.traces[0],
        "Advice": advise(federation, m=2), "Drawing": drawing,
    }  # fmt: skip


@pytest.fixture(scope="module")
def everything() -> dict[str, object]:
    return objects()


def test_every_object_says_what_it_is_in_a_line(everything):
    for name, value in everything.items():
        line = repr(value)
        assert "\n" not in line
        assert len(line) < 160, name
        assert "array(" not in line, name
    assert repr(everything["Cohort"]) == "<Cohort of 2 clients, weights {0: 0.5, 1: 0.5}>"
    assert repr(everything["Design"]) == "<Rows over 4 clients: 2 draws a round>"
    assert "md:m=2 over 4 clients, seed 0: round 0, a cohort is chosen" in repr(
        everything["Selector"]
    )


def test_every_object_is_a_table_in_a_notebook(everything):
    for name, value in everything.items():
        html = value._repr_html_()
        page = Balanced(html)
        assert ("img" if name == "Drawing" else "table") in page.seen, name
        assert page.seen <= {
            "div", "strong", "table", "thead", "tbody", "tr", "th", "td",
            "svg", "title", "rect", "polyline", "img",
        }, name  # fmt: skip
        assert len(html) < (100_000 if name == "Drawing" else 20_000), name
    assert NASTY in Balanced(everything["Federation"]._repr_html_()).words
    assert NASTY in Balanced(everything["Comparison"]._repr_html_()).words


def test_one_of_a_thing_is_not_many(everything):
    alone = fedcohort.Federation.from_sizes([1])
    selector = fedcohort.Selector("md:m=1", alone, seed=0)
    assert repr(alone) == "Federation(1 client, 1 sample)"
    assert repr(selector) == "<Selector md:m=1 over 1 client, seed 0: round 0>"
    assert repr(selector.design()) == "<Rows over 1 client: 1 draw a round>"
    found = fedcohort.compare(Quadratic(np.eye(2)), ["md:m=1"], rounds=1, seeds=1, jobs=1)
    assert repr(found) == "<Comparison of md: 1 run, 1 seed>"
    assert "seed 0: 1 round, " in repr(found.traces[0])
    assert repr(everything["Federation"]) == "Federation(4 clients, 100 samples)"


def test_no_chance_is_below_nothing():
    """A client without samples has the chance 0, not -0."""
    federation = fedcohort.Federation.from_sizes([3, 2, 0])
    design = fedcohort.Selector("md:m=2", federation, seed=0).design()
    assert not np.signbit(design.inclusion()).any()
    assert "0 to 0.84" in Balanced(design._repr_html_()).words
    assert "-0" not in Balanced(design._repr_html_()).words


def test_positions_of_clients_are_no_amounts():
    html = fedcohort.Cohort.equal([3037, 12_345])._repr_html_()
    assert "3037" in html
    assert "12345" in html


def test_the_cohort_of_a_selector_stands_without_brackets(everything):
    words = Balanced(everything["Selector"]._repr_html_()).words
    assert "Cohort of 2 clients, weights {0: 0.5, 1: 0.5}" in words
    assert "<Cohort" not in words


def test_the_ledger_of_a_run_is_a_table_and_still_its_rows(everything):
    ledger = everything["Trace"].ledger
    page = Balanced(ledger._repr_html_())
    assert "table" in page.seen
    assert "training" in page.words
    assert "messages" in page.words
    assert isinstance(ledger, tuple)
    assert ledger == tuple(dict(row) for row in ledger)
    assert json.loads(json.dumps(ledger)) == [dict(row) for row in ledger]
    assert copy.deepcopy(ledger) == ledger


def test_a_comparison_marks_the_best_and_shows_the_spread():
    task = Quadratic(np.diag([1.0, 2.0, 3.0]))
    found = fedcohort.compare(task, ["md:m=1", "full"], rounds=5, seeds=3, jobs=1)
    words = Balanced(found._repr_html_()).words
    last = {label: [t.last()[1] for t in found.of(label)] for label in found.labels}
    best = min(last, key=lambda label: np.mean(last[label]))
    level = f"training loss {np.mean(last[best]):.4g} ± {np.std(last[best], ddof=1):.2g}, the best"
    assert level in words
    assert words.count("the best") == 1
    assert "by chance" in words
    alone = fedcohort.compare(task, ["full"], rounds=2, seeds=1, jobs=1)._repr_html_()
    assert "best" not in alone
    assert "±" not in Balanced(alone).words.replace("mean ± sd", "")


def test_a_drawing_shows_its_figure_where_plotly_can(everything, monkeypatch):
    import plotly.io

    drawing = everything["Drawing"]
    assert isinstance(drawing, Drawing)
    monkeypatch.setattr(plotly.io.renderers, "default", "plotly_mimetype")
    shown = drawing._repr_mimebundle_()
    curves = shown["application/vnd.plotly.v1+json"]["data"]
    assert any(curve["showlegend"] for curve in curves)
    assert all(curve.get("name") for curve in curves if curve["showlegend"])
    assert shown["text/plain"] == repr(drawing)
    assert drawing.caption[:20] in shown["text/html"]


def test_a_drawing_is_a_picture_where_plotly_cannot_show_it(everything):
    html = everything["Drawing"]._repr_html_()
    data = re.search(r'src="data:image/png;base64,([^"]+)"', html)
    assert data is not None
    pixels = image.imread(io.BytesIO(base64.b64decode(data[1])))
    assert pixels.shape[1] > 600
    assert len(np.unique(pixels.reshape(-1, pixels.shape[2]), axis=0)) > 20  # something is drawn


def test_advice_begins_with_its_sentences(everything):
    html = everything["Advice"]._repr_html_()
    advice = everything["Advice"]
    assert html.index("Use ") < html.index(advice.plain[0][:30]) < html.index("<table>")
    assert "e-1" not in html  # no bias is 0, and not what rounding leaves of it


def test_a_table_of_many_rows_says_how_many_more():
    html = notebook.table("t", ["a"], [[i] for i in range(100)])
    assert html.count("<tr>") == notebook.ROWS + 2
    assert "and 88 more" in html
    assert "more" not in notebook.table("t", ["a"], [[i] for i in range(notebook.ROWS + 1)])


def test_pictures_stay_small_and_stand_what_is_not_finite():
    many = notebook.bars(np.arange(100_000), "many")
    assert many.count("<rect") == notebook.BARS
    assert notebook.bars(np.zeros(3), "none").count('height="0.0"') == 3
    assert notebook.bars(np.array([np.nan, 1.0]), "one").count("<rect") == 2
    assert notebook.curve(np.array([np.nan, 1.0]), "too few") == ""
    assert notebook.curve(np.full(5, 2.0), "flat").count(",") == 5


def test_a_law_of_nobody_and_an_empty_cohort_are_shown():
    federation = fedcohort.Federation.from_sizes([1, 2])
    nobody = fedcohort.Selector("full", federation, seed=0).design(available=[])
    assert isinstance(nobody, Everyone)
    Balanced(nobody._repr_html_())
    empty = fedcohort.Cohort.empty()
    assert repr(empty) == "<Cohort of 0 clients, weights {}>"
    Balanced(empty._repr_html_())


@pytest.mark.parametrize(("share", "width"), [(0.25, "50"), (-1.0, "0"), (3.0, "200")])
def test_a_bar_is_filled_to_its_share(share: float, width: str) -> None:
    assert f'<rect width="{width}.0" height="10" rx="4" fill="#4a7fb5"' in notebook.progress(
        share, "so far"
    )


@pytest.mark.parametrize(
    ("asked", "column"), [({"noise": 1.0}, "Epsilon"), ({"epsilon": 2.0}, "Noise")]
)
def test_advice_has_a_column_for_what_was_asked_of_privacy(asked, column):
    pytest.importorskip("dp_accounting")
    advice = advise([3, 2, 1], m=1, rounds=2, only=["md", "uniform"], **asked)
    row = advice.row("md")
    cost = row.epsilon if column == "Epsilon" else row.deviation
    assert f">{column}</th>" in advice._repr_html_()
    assert f">{notebook.number(cost)}</td>" in advice._repr_html_()
    assert "Epsilon" not in advise([3, 2, 1], m=1, only=["md"])._repr_html_()


def test_one_of_a_thing_is_called_so():
    advice = advise([3], m=1, rounds=1, only=["pow-d"])
    assert "for 1 client, m=1, 1 round: " in repr(advice)
    assert "0 of 1 scheme compared" in repr(advice)
    assert " 1 more scheme: .row(name)" in advice._repr_html_()


def test_clients_are_named_and_not_counted():
    html = fedcohort.Federation.from_sizes(range(1, 100_001))._repr_html_()
    assert ">99999</td>" in html
    assert ">75,000</td>" in html  # the effective number of clients, without a power of ten
