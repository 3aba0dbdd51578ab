from __future__ import annotations

import io
import json
import re
from html import escape

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fedcohort import Federation, Selector, scheme, theory
from fedcohort.cli import app
from fedcohort.cli.advice_shown import LEGEND, draw, show
from fedcohort.core.errors import BadInput, BadParameter, UnknownName


@pytest.fixture
def sizes(tmp_path):
    path = tmp_path / "sizes.csv"
    path.write_text("id,size\n" + "".join(f"c{9 - i},{100 + 90 * i}\n" for i in range(10)))
    return path


def run(*words):
    result = CliRunner().invoke(app(), ["advise", *map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_table_and_words(sizes):
    text = run("--sizes", sizes, "-m", 3, "--model-bytes", 1000)
    for word in ("scheme", "Sigma", "uniform", "md", "Use ", "Corollary 1", "cannot know"):
        assert word in text
    assert "\x1b[" not in text  # plain when piped


def test_json_is_the_advice(sizes):
    found = json.loads(run("--sizes", sizes, "-m", 3, "--json", "--rounds", 7))
    expected = theory.advise([100 + 90 * i for i in range(10)], m=3, rounds=7)
    assert found["recommended"] == expected.recommended
    row = next(row for row in found["rows"] if row["name"] == "md")
    assert row["sigma"] == pytest.approx(expected.row("md").sigma)


def test_a_saved_selector(tmp_path):
    selector = Selector(scheme("md", m=2), Federation.from_sizes([5, 3, 2]), seed=1)
    selector.save(tmp_path / "run.npz")
    assert json.loads(run("--saved", tmp_path / "run.npz", "-m", 2, "--json"))["n"] == 3


def test_labels_and_updates_follow_the_order_of_the_file(sizes, tmp_path):
    """Ids c9..c0 are sorted by the federation; rows of the files must go with them."""
    rng = np.random.default_rng(0)
    counts, updates = rng.integers(1, 20, (10, 3)), rng.normal(size=(10, 2))
    (tmp_path / "labels.csv").write_text("\n".join(",".join(map(str, row)) for row in counts))
    np.save(tmp_path / "updates.npy", updates)
    plain = [100 + 90 * i for i in range(10)]  # the order of the file
    for option, path, known in (
        ("--labels", tmp_path / "labels.csv", {"label_histograms": counts}),
        ("--updates", tmp_path / "updates.npy", {"updates": updates}),
    ):
        found = json.loads(run("--sizes", sizes, "-m", 3, option, path, "--json"))
        expected = theory.advise(plain, m=3, **known)
        row = next(row for row in found["rows"] if row["name"] == "md")
        assert row["score"] == pytest.approx(expected.row("md").score)


def test_plot_and_settings(sizes, tmp_path):
    said = run("--sizes", sizes, "-m", 6, "--plot", tmp_path / "deep" / "m.png")
    assert "m.png: the scores over m." in said.replace("\n", "")
    assert (tmp_path / "deep" / "m.png").read_bytes()[:4] == b"\x89PNG"
    text = run("--sizes", sizes, "-m", 6, "--scheme", "poisson:cap=true", "--secure-aggregation")
    assert "poisson" in text.split("What this cannot know")[0]


def test_one_source_only(sizes):
    with pytest.raises(BadInput, match="one of them"):
        run("-m", 3)
    with pytest.raises(BadInput, match="one of them"):
        run("-m", 3, "--sizes", sizes, "--saved", sizes)


@pytest.mark.parametrize(
    ("word", "error", "says"),
    [
        ("poison:cap=true", UnknownName, "Did you mean 'poisson'"),
        ("md:foo=3", UnknownName, "no parameter of md named 'foo'"),
        ("md:m=3", BadParameter, "must be 6, as in the advice"),
        ("poisson:cap=maybe", BadParameter, "True or False"),
    ],
)
def test_a_scheme_that_is_not_understood_is_refused(sizes, word, error, says):
    with pytest.raises(error, match=says):
        run("--sizes", sizes, "-m", 6, "--scheme", word)


def test_a_scheme_named_twice_is_refused(sizes):
    with pytest.raises(BadInput, match="'md' twice"):
        run("--sizes", sizes, "-m", 6, "--scheme", "md", "--scheme", "md:m=6")


def test_clients_without_samples_and_a_large_m_are_mentioned(tmp_path):
    (tmp_path / "sizes.csv").write_text("7\n5\n0\n")
    text = run("--sizes", tmp_path / "sizes.csv", "-m", 10)
    assert "\n2 clients (1 client without samples is left out), m = 10" in text
    assert "m = 10, but there are 2 clients" in text


def test_what_is_no_npy_file_gets_one_sentence(sizes, tmp_path):
    (tmp_path / "x.csv").write_text("1,2\n")
    with pytest.raises(BadInput, match=r"x.csv must be an .npy file of numbers, as numpy.save"):
        run("--sizes", sizes, "-m", 3, "--updates", tmp_path / "x.csv")


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_narrow_window_loses_columns_but_folds_no_number(width):
    advice = theory.advise([100 + 37 * i for i in range(60)], m=10)
    out = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    show(advice, out)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    exact = [row for row in advice.rows if row.status == "exact"]
    rule = max(i for i, line in enumerate(lines) if line.strip().startswith("──"))
    for line, row in zip(lines[rule + 1 :], exact, strict=False):
        assert line.startswith(row.name)
        if row.score is not None and row.score > 0:
            assert f"{row.score:.4g}" in line
    assert any("with --json" in line for line in lines)


def test_the_picture_labels_the_values_of_m_only(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    advice = theory.advise([100 + 37 * i for i in range(60)], m=10)
    draw(advice, tmp_path / "m.png")
    axis = drawn[0].axes[0].xaxis
    assert [label.get_text() for label in axis.get_ticklabels()] == [str(m) for m in advice.sweep.m]
    assert not axis.get_ticklabels(minor=True)


# -- for people who own data -------------------------------------------------------------------


def test_first_what_to_use_in_three_sentences_then_the_table_with_a_legend(sizes):
    text = run(sizes, "-m", 3, "--model-bytes", 1000, "--rounds", 50)
    lines = text.splitlines()
    assert lines[0].startswith("Use ")
    assert lines[1].startswith("  Every round it takes about 3 of the 10 clients, and over the")
    assert "trainings by clients and" in lines[2]
    assert "Of each client the server learns its share of all data, when it takes" in lines[3]
    assert "with secure aggregation it sees sums of updates only" in lines[3]
    assert text.index("returns diminish") < text.index("\nscheme") < text.index("Why, in detail")
    table = text[text.index("\nscheme") :]
    for heading, means in LEGEND.items():
        if heading not in ("epsilon", "noise"):
            assert means in table
    assert "bytes, 50 rounds" in text


def test_secure_aggregation_and_what_is_told_are_in_words(sizes, tmp_path):
    counts = np.random.default_rng(0).integers(1, 20, (10, 3))
    (tmp_path / "l.csv").write_text("\n".join(",".join(map(str, row)) for row in counts))
    text = run(sizes, "-m", 3, "--labels", tmp_path / "l.csv", "--only", "target")
    assert "how many samples of each class, when it takes part and its model update" in text
    assert "secure aggregation can hide the updates, but not how many samples of each" in text
    assert "This looks at labels alone" in text


@pytest.fixture
def wide(tmp_path):
    path = tmp_path / "sites.csv"
    rows = [f"h{i},{'north' if i % 2 else 'south'},{100 + 9 * i},{i},{5 + i}" for i in range(12)]
    path.write_text("\n".join(["hospital,region,patients,class_0,class_1", *rows]))
    return path


def test_a_file_may_be_a_word_and_have_more_columns(wide):
    sizes, counts = [100 + 9 * i for i in range(12)], np.array([[i, 5 + i] for i in range(12)])

    def found(*words):
        return json.loads(run(wide, *words, "-m", 3, "--only", "md", "--json"))

    told, expected = found("--column", "patients"), theory.advise(sizes, m=3, only=["md"])
    assert told["rows"][0]["score"] == pytest.approx(expected.row("md").score)
    assert told["plain"] == list(expected.plain)
    told = found("--column", "patients", "--labels", "class_*")
    expected = theory.advise(sizes, m=3, label_histograms=counts, only=["md"])
    assert told["rows"][0]["score"] == pytest.approx(expected.row("md").score)
    told = found("--labels", "class_0,class_1")  # sizes are their sums
    alone = theory.advise(counts.sum(axis=1), m=3, only=["md"])
    assert told["sum_squares"] == pytest.approx(alone.sum_squares)


def test_a_column_called_size_is_found_among_others(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Size,site,note\n3,b,x\n4,a,y\n")
    assert json.loads(run(path, "-m", 1, "--json"))["n"] == 2


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "has 5 columns: say which has the sizes, as in --column patients; there are hospital"),
        (["--column", "patient"], "--column: .* has no column 'patient'; there are hospital, reg"),
        (["--column", "region"], r"line 2: a size must be a whole number .* got 'south'"),
        (["--labels", "klass_*"], "--labels: .* has no column 'klass_"),
        (["--sizes", "x.csv"], "once: as a word or by --sizes"),
    ],
)
def test_columns_that_are_not_understood_get_one_sentence(wide, words, says):
    with pytest.raises(BadInput, match=says):
        run(wide, "-m", 3, *words)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,2,3\n4,5,6\n", "must begin with a line of names"),
        ("a,size,c\n", "has no clients below"),
        ("a,size,c\nx,1,2\ny,3\n", "line 3: 3 columns as in line 1; got 2"),
        ("a,size,c\nx,1,2\nx,3,4\n", "line 3: the id 'x' stands twice"),
    ],
)
def test_a_table_that_is_broken_gets_one_sentence(tmp_path, text, says):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(BadInput, match=says):
        run(tmp_path / "t.csv", "-m", 1)


def test_only_some_schemes_are_compared(sizes):
    found = json.loads(run(sizes, "-m", 3, "--only", "md", "--only", "uniform", "--json"))
    assert {row["name"] for row in found["rows"]} == {"md", "uniform"}
    with pytest.raises(UnknownName, match="Did you mean 'md'"):
        run(sizes, "-m", 3, "--only", "mdd")


def test_a_page_for_a_manager(sizes, tmp_path):
    path = tmp_path / "deep" / "page.html"
    said = run(sizes, "-m", 3, "--html", path, "--model-bytes", 1000)
    assert "page.html: the page." in said.replace("\n", "")
    page = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in page
    assert not re.findall(r"(?:src|href)\s*=|url\(|@import|<script", page)
    advice = theory.advise([100 + 90 * i for i in range(10)], m=3, model_bytes=1000)
    for line in (f"<h1>Use {advice.recommended}</h1>", *map(escape, advice.plain)):
        assert line in page


def test_the_picture_may_be_a_pdf(sizes, tmp_path):
    run(sizes, "-m", 3, "--plot", tmp_path / "m.pdf")
    assert (tmp_path / "m.pdf").read_bytes()[:4] == b"%PDF"
