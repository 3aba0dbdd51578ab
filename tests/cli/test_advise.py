from __future__ import annotations

import inspect
import io
import json
import re
from html import escape

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, UnknownName
from fedcohort.advice import advise
from fedcohort.cli import app
from fedcohort.cli.advise import LEGEND, draw, show
from fedcohort.cli.tables import read_columns


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
    empty = [line for line in text.splitlines() if not line.strip()]
    assert empty == [""] * len(empty) != []  # and nothing where there is nothing


def test_json_is_the_advice(sizes):
    found = json.loads(run("--sizes", sizes, "-m", 3, "--json", "--rounds", 7))
    expected = advise([100 + 90 * i for i in range(10)], m=3, rounds=7)
    assert found["recommended"] == expected.recommended
    row = next(row for row in found["rows"] if row["name"] == "md")
    assert row["sigma"] == pytest.approx(expected.row("md").sigma)


def test_a_saved_selector(tmp_path):
    selector = Selector(scheme("md", m=2), Federation.from_sizes([5, 3, 2]), seed=1)
    selector.save(tmp_path / "run.npz")
    assert json.loads(run("--saved", tmp_path / "run.npz", "-m", 2, "--json"))["n"] == 3


LABELS_OF_SOME = pytest.mark.filterwarnings("ignore:.*class counts do not sum")


@LABELS_OF_SOME
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
        expected = advise(plain, m=3, **known)
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
    advice = advise([100 + 37 * i for i in range(60)], m=10)
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


def test_the_legend_of_bytes_needs_no_column_that_a_narrow_window_lost():
    advice = advise([100 + 37 * i for i in range(60)], m=10, model_bytes=1000)
    out = Console(file=io.StringIO(), force_terminal=True, width=110, color_system=None)
    show(advice, out)
    shown = out.file.getvalue()
    assert "--json: bytes/round" in shown
    assert "bytes, 100 rounds: sent in all rounds, both ways" in shown


def test_the_picture_labels_the_values_of_m_only(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    advice = advise([100 + 37 * i for i in range(60)], m=10)
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


@LABELS_OF_SOME
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


@LABELS_OF_SOME
def test_a_file_may_be_a_word_and_have_more_columns(wide):
    sizes, counts = [100 + 9 * i for i in range(12)], np.array([[i, 5 + i] for i in range(12)])

    def found(*words):
        return json.loads(run(wide, *words, "-m", 3, "--only", "md", "--json"))

    told, expected = found("--column", "patients"), advise(sizes, m=3, only=["md"])
    assert told["rows"][0]["score"] == pytest.approx(expected.row("md").score)
    assert told["plain"] == list(expected.plain)
    told = found("--column", "patients", "--labels", "class_*")
    expected = advise(sizes, m=3, label_histograms=counts, only=["md"])
    assert told["rows"][0]["score"] == pytest.approx(expected.row("md").score)
    told = found("--labels", "class_0,class_1")  # sizes are their sums
    alone = advise(counts.sum(axis=1), m=3, only=["md"])
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
        ("1,2,3\n4,5,6\n", "line 1 has no names, for '1' is a number: .* as in --column 1"),
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
    advice = advise([100 + 90 * i for i in range(10)], m=3, model_bytes=1000)
    for line in (f"<h1>Use {advice.recommended}</h1>", *map(escape, advice.plain)):
        assert line in page


def test_the_picture_may_be_a_pdf(sizes, tmp_path):
    run(sizes, "-m", 3, "--plot", tmp_path / "m.pdf")
    assert (tmp_path / "m.pdf").read_bytes()[:4] == b"%PDF"


# -- tables as people have them ------------------------------------------------------------------


def written(tmp_path, text, name="t.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


HEADLESS = "A,10,3,7\nB,20,5,15\nC,30,10,20\n"


@pytest.mark.parametrize(
    ("text", "words", "n", "total"),
    [
        (HEADLESS, ["--column", "2"], 3, 60),
        (HEADLESS, ["--column", "4"], 3, 42),
        (HEADLESS, ["--labels", "3,4"], 3, 60),
        ("id,2023,2024\na,5,6\nb,7,9\n", ["--column", "2024"], 2, 15),
        ("id,patients,beds\n1,100,9\n2,200,3\n", ["--column", "2"], 2, 300),
        ("hospital,region,patients\na,x,5\nb,x,6\n", [], 2, 11),  # the only one it can be
        ("x,x\n5,1\n6,2\n", ["--column", "1"], 2, 11),
    ],
)
def test_columns_have_positions_and_no_client_is_lost(tmp_path, text, words, n, total):
    labels = words[1] if "--labels" in words else None
    column = words[1] if "--column" in words else None
    read = read_columns(written(tmp_path, text), column, labels)
    assert (len(read.sizes.sizes), read.sizes.sizes.sum()) == (n, total)
    assert json.loads(run(tmp_path / "t.csv", *words, "-m", 1, "--only", "md", "--json"))["n"] == n


@pytest.mark.parametrize(
    ("text", "words", "says"),
    [
        (HEADLESS, [], "line 1 has no names, for '10' is a number: .* as in --column 2"),
        (HEADLESS, ["--column", "10"], "line 1 of .* has no names.* from 1 to 4, as in --column 2"),
        ("id,patients,beds\n1,100,9\n2,200,3\n", [], "as in --column patients; there are"),
        ("h,N (1),b\n1,100,9\n2,200,3\n", [], "as in --column 'N [(]1[)]'; there are"),
        ("h,x,x\na,3,1\nb,2,1\n", ["--column", "x"], "2 columns named 'x'; .* --column 2"),
        ("h,x,x\na,3,1\nb,2,1\n", ["--labels", "x"], "2 columns named 'x'; every class"),
        ("h,x,x\na,3,1\nb,2,1\n", [], "say which has the sizes, as in --column 2"),
    ],
)
def test_advice_on_columns_can_be_followed(tmp_path, text, words, says):
    with pytest.raises(BadInput, match=says):
        run(written(tmp_path, text), "-m", 1, *words)


def test_class_counts_that_contradict_sizes_are_told(tmp_path):
    path = written(tmp_path, "h,patients,a,b\nx,30,10,10\ny,20,10,10\n")
    with pytest.warns(FedcohortWarning, match="Of 1 client .* of 'x': 20 in classes, 30 in all"):
        run(path, "-m", 1, "--column", "patients", "--labels", "a,b", "--only", "md")


# -- what cannot be done is said before anything is computed -------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--plot", "x.xyz"], "--plot must end in .png, .svg or .pdf. Got x.xyz instead"),
        (["--plot", "noext"], "--plot must end in .png, .svg or .pdf. Got noext instead"),
        (["--html", "{folder}"], "--html must be a file. Got .* which is a folder"),
        (["--html", "{file}/x.html"], "--html must be a file in a folder. .* is no folder"),
        (["--plot", "-"], "--plot must be a path"),
        (["--constants", "--html", "c.html"], "leave out --html or --constants"),
        (["--constants", "--plot", "c.png"], "leave out --plot or --constants"),
        (["--constants", "--only", "md"], "leave out --only or --constants"),
        (["--constants", "--secure-aggregation"], "leave out --secure-aggregation"),
        (["--constants", "--delta", "0.01"], "leave out --delta or --constants"),
        (["--constants", "-T", "7"], "leave out --rounds or --constants"),
        (["--delta", "1e-05"], "--delta is that of an epsilon: give --noise or --epsilon"),
        (["--heterogeneity", "1", "--updates", "u.npy"], "leave out --updates or --heterogeneity"),
        (["--heterogeneity", "2", "--labels", "a*"], "leave out --labels or --heterogeneity"),
        (["--html", "page.pdf"], "--html must end in .html or .htm. Got page.pdf instead"),
        (["--noise", "1", "--epsilon", "3"], "'epsilon' .* left out where a noise is given"),
    ],
)
def test_what_would_be_ignored_is_refused_first(sizes, tmp_path, words, says, capsys):
    given = [word.format(folder=tmp_path, file=sizes) for word in words]
    with pytest.raises((BadInput, BadParameter), match=says):
        run(sizes, "-m", 3, *given)
    assert capsys.readouterr().out == ""


def test_where_no_law_is_known_there_is_no_empty_table(sizes):
    text = run(sizes, "-m", 3, "--only", "pow-d")
    assert "none of these schemes has a known law" in text
    assert "never seen" not in text


# -- privacy, for people ----------------------------------------------------------------------


def test_the_price_in_privacy_that_was_asked_for_is_said_everywhere(tmp_path):
    pytest.importorskip("dp_accounting", reason="needs the extra 'privacy'")
    path = written(tmp_path, "\n".join(str(1000 // (i + 1)) for i in range(12)))
    words = [path, "-m", 3, "--rounds", 20, "--only", "pivotal", "--only", "binomial"]
    rows = advise(
        [1000 // (i + 1) for i in range(12)], 3, 20, noise=1.0, only=["pivotal", "binomial"]
    )
    dear, cheap = rows.row("pivotal").epsilon, rows.row("binomial").epsilon
    assert cheap < dear
    text = run(*words, "--noise", 1, "--html", tmp_path / "p.html")
    said = f"costs its worst-off client epsilon {dear:.3g} (binomial: {cheap:.3g})."
    page = (tmp_path / "p.html").read_text()
    assert said in text
    assert said in page
    assert "Price in privacy" in page
    assert re.search(rf'<th scope="col">epsilon</th>.*<td class="whole">{cheap:.3g}</td>', page)
    text = run(*words, "--epsilon", 2, "--html", tmp_path / "p.html")
    assert "; epsilon 2 takes noise of " in text
    page = (tmp_path / "p.html").read_text()
    assert "Noise for privacy" in page
    assert '<th scope="col">noise</th>' in page


def test_a_choice_that_no_noise_covers_is_said_to_be_so(tmp_path):
    pytest.importorskip("dp_accounting", reason="needs the extra 'privacy'")
    counts = np.random.default_rng(0).integers(1, 20, (10, 3))
    advice = advise([5] * 10, 3, label_histograms=counts, only=["target"], noise=1.0)
    assert "no noise on the sum covers its choice" in advice.plain[2]


# -- the page has no formulas, the picture shows what is recommended -----------------------------


def test_the_page_for_a_manager_folds_its_formulas(sizes, tmp_path):
    path = tmp_path / "page.html"
    run(sizes, "-m", 3, "--html", path)
    body = re.sub(r"<details>.*?</details>", "", path.read_text().partition("<main")[2])
    words = re.sub(r"<[^>]+>", " ", body)
    assert not re.search(r"p_i|\^2|Sigma|Corollary|sum p|\b\w/\w\b", words)
    assert "<summary>Why, in detail</summary>" in path.read_text()


def test_no_first_sentence_of_a_scheme_has_a_formula():
    """Whatever may come onto that page."""
    from fedcohort._internal.registry import summary
    from fedcohort.advice._recommendation import does
    from fedcohort.schemes import schemes

    for name, cls in schemes().items():
        said = does(name, summary(inspect.getdoc(cls) or ""))
        if name != "fedsampling":  # biased, so not on that page: a share K/N of the samples
            assert not re.search(r"\w_i\b|/|\^", said), name


@pytest.mark.parametrize(("n", "says"), [(1, "everybody there is"), (2, "everybody there is")])
def test_a_page_of_few_clients_asks_for_no_more_than_there_are(tmp_path, n, says):
    path = tmp_path / "page.html"
    text = run(written(tmp_path, "5\n" * n), "-m", 10, "--html", path)
    page = path.read_text()
    assert says in page
    assert "of 10" not in page
    assert f"{n} a round, 100 rounds" in page
    assert ("the only client" if n == 1 else "takes both clients") in text


def test_one_training_in_one_round(tmp_path):
    text = run(written(tmp_path, "5\n"), "-m", 1, "--rounds", 1)
    assert "One round means about 1 training by clients" in text
    assert "m = 1 needs 1 round." in text


def test_the_recommended_scheme_is_drawn_above_the_others(tmp_path, monkeypatch):
    from matplotlib.figure import Figure

    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *_, **__: drawn.append(self))
    advice = advise([100 + 37 * i for i in range(60)], m=10)
    draw(advice, tmp_path / "m.png")
    axes = drawn[0].axes[0]
    lines = {line.get_label(): line for line in axes.get_lines()}
    best = lines.pop(advice.recommended)
    for other in lines.values():
        assert best.get_zorder() > other.get_zorder()
        assert best.get_linewidth() >= 2 * other.get_linewidth()
        assert (best.get_linestyle(), other.get_linestyle()) == ("-", "--")
    assert "Sigma" not in axes.get_title()


def test_the_line_of_an_advice_counts_what_was_compared():
    advice = advise([5, 4, 3, 2], m=2)
    known = [row for row in advice.rows if row.status in ("exact", "approximate")]
    assert repr(advice).endswith(f"{len(known)} of {len(advice.rows)} schemes compared>")
    assert len(known) < len(advice.rows)


def test_schemes_that_cannot_have_so_large_an_m_stand_on_one_line(tmp_path):
    out = run(written(tmp_path, "7\n" * 9), "-m", 10)
    lines = [line.strip() for line in out.splitlines()]
    [line] = [each for each in lines if "too large" in each or "must be at most" in each]
    assert line.endswith("m = 10, or the number of strata, is too large for 9 clients.")
    assert {"binomial", "poisson", "cluster"} <= set(line.split(":")[0].split(", "))
