import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from fedcohort import report
from fedcohort.report import _page as page
from fedcohort.report._curves import progress
from fedcohort.report._figure import is_shown

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "</script><svg/onload=alert(1)>",
    "=cmd|' /C calc'!A0",
    "%{x} $\\alpha$ <b>bold</b> &amp; <a href='https://example.org'>go</a>",
    "_hidden \u202e reversed",
    "x" * 300,
)


class Reader(HTMLParser):
    """Collects elements, their attributes and the text of scripts."""

    def __init__(self):
        super().__init__()
        self.tags, self.scripts, self.inside = [], [], False

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def hostile(make):
    text = page.page(make(HOSTILE, settings={"command": HOSTILE[0], "problem": HOSTILE[1]}))
    reader = Reader()
    reader.feed(text)
    return reader


def test_no_name_becomes_markup(hostile):
    tags = [tag for tag, _ in hostile.tags]
    assert tags.count("script") == 3
    assert "img" not in tags
    for _, attributes in hostile.tags:
        assert not [name for name in attributes if name.startswith("on")]


def test_nothing_points_outside(hostile):
    for _, attributes in hostile.tags:
        for name in ("src", "href", "action", "data"):
            assert (attributes.get(name) or "#").startswith("#")


def test_the_policy_allows_these_scripts_only(hostile):
    policies = [a["content"] for _, a in hostile.tags if a.get("http-equiv")]
    assert len(policies) == 1
    assert policies[0].startswith("default-src 'none'; ")
    script_source = re.search(r"script-src ([^;]*)", policies[0])[1].split()
    hashes = [
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
        for text in hostile.scripts[1:]
    ]
    assert script_source == hashes


def test_every_plot_has_words_and_every_label_a_field(hostile):
    plots = [a for _, a in hostile.tags if a.get("class") == "plot"]
    assert len(plots) >= 10
    assert all(a["role"] == "img" and len(a["aria-label"]) > 40 for a in plots)
    ids = [a["id"] for _, a in hostile.tags if "id" in a]
    assert len(set(ids)) == len(ids)
    assert [a for tag, a in hostile.tags if tag == "html"] == [{"lang": "en"}]


def test_the_file_is_replaced_and_a_link_is_not_followed(make, tmp_path):
    outside = tmp_path / "precious.txt"
    outside.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "report.html").symlink_to(outside)
    written = report.write(make(), folder / "report.html")
    assert outside.read_text() == "mine"
    assert not written.is_symlink()
    assert [path.name for path in folder.iterdir()] == ["report.html"]


def test_a_page_that_fails_leaves_nothing(make, tmp_path, monkeypatch):
    monkeypatch.setattr(page.os, "replace", lambda *_: (_ for _ in ()).throw(OSError("full")))
    with pytest.raises(OSError, match="full"):
        report.write(make(), tmp_path / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("labels", [("only",), ("a", "b")])
@pytest.mark.parametrize("classes", [0, 3])
def test_small_and_plain_comparisons_have_a_page(make, labels, classes):
    text = page.page(make(labels, seeds=1, rounds=1, classes=classes))
    assert ("Label coverage" in text) == (classes > 0)


def test_the_same_runs_give_the_same_page(make):
    assert page.page(make()) == page.page(make())


def test_under_every_setting_every_scheme_has_one_curve(make):
    drawing = progress(make())
    for measure in ("accuracy", "test_loss", "train_loss"):
        for line in ("raw", "rolling", "best"):
            for band in ("on", "off"):
                setting = {"measure": measure, "line": line, "band": band}
                shown = [t for t in drawing.traces if is_shown(t, setting)]
                roles = [t["meta"]["role"] for t in shown]
                assert roles.count("line") == 2
                assert roles.count("band") == (2 if band == "on" else 0)


def test_figures_are_valid_for_plotly(make):
    from fedcohort.report import _clients as figures_clients
    from fedcohort.report._cost import cost
    from fedcohort.report._curves import progress
    from fedcohort.report._weights import labels, weight_ratio, weight_theory

    comparison = make(HOSTILE)
    drawings = [
        progress(comparison),
        cost(comparison),
        *labels(comparison),
        weight_theory(comparison),
        weight_ratio(comparison),
        figures_clients.heat(comparison),
        figures_clients.histogram(comparison),
        figures_clients.draw_lorenz(comparison),
        figures_clients.losses(comparison),
        figures_clients.federation(comparison),
        figures_clients.federation(make(classes=0)),
    ]
    for drawing in drawings:
        for switch in drawing.switches:
            for value, _ in switch.options:
                assert drawing.figure(**{switch.key: value}).data


@pytest.mark.slow
def test_thirty_schemes_ten_seeds_a_thousand_rounds_stay_under_15_megabytes(make, tmp_path):
    labels = [f"scheme {i}" for i in range(30)]
    comparison = make(labels, seeds=10, rounds=1000, clients=100, classes=10)
    written = report.write(comparison, tmp_path / "report.html")
    assert written.stat().st_size < 15e6
