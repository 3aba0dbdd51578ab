import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import Comparison
from fedcohort._internal.errors import BadCheckpoint, BadInput, BadParameter
from fedcohort.cli import app
from fedcohort.report import _page as page
from fedcohort.report import _ranking, combined, pairwise
from fedcohort.report import _result as prose
from fedcohort.report._runs import RUNS, parts


def save(comparison, folder: Path) -> Path:
    folder.mkdir()
    (folder / "settings.json").write_text(json.dumps(comparison.settings))
    for number, trace in enumerate(comparison.traces):
        trace.save(folder / f"{number}.npz")
    return folder


def run(*words):
    result = CliRunner().invoke(app(), ["report", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.fixture
def folder(make, tmp_path):
    return save(make(), tmp_path / "one")


def test_the_page_is_written_into_the_run_folder(folder, tmp_path):
    before = set(tmp_path.rglob("*"))
    result = run(folder)
    assert set(tmp_path.rglob("*")) - before == {folder / "report.html"}
    assert "report.html" in result.stdout
    assert "uniform" in result.stdout


def test_json_is_all_there_is_on_standard_output(folder):
    rows = json.loads(run(folder, "--json", "--target", "0.5").stdout)
    assert {row["scheme"] for row in rows} == {"md", "uniform"}
    assert rows[0]["p"] is None


def test_pictures_and_tables_go_where_they_are_sent(folder, tmp_path):
    run(folder, "--pictures", tmp_path / "p", "--csv", tmp_path / "c", "-o", tmp_path / "x.html")
    assert (tmp_path / "p" / "progress-accuracy-best.svg").is_file()
    assert (tmp_path / "c" / "summary.csv").is_file()
    assert (tmp_path / "x.html").is_file()
    assert not (folder / "report.html").exists()
    assert {path.suffix for path in (tmp_path / "p").iterdir()} == {".png", ".svg", ".pdf"}


def test_open_opens_the_page(folder, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run(folder, "--open")
    assert opened == [(folder / "report.html").resolve().as_uri()]


def test_several_runs_are_told_apart(folder, make, tmp_path):
    other = save(make(("uniform", "full"), model=np.ones(4)), tmp_path / "two")
    result = run(folder, other)
    for label in ("uniform (one)", "uniform (two)", "md", "full"):
        assert label in result.stdout
    assert (folder / "combined-report.html").is_file()
    assert not (other / "combined-report.html").exists()


def test_bad_folders_and_targets_get_a_sentence(folder, tmp_path):
    with pytest.raises(BadCheckpoint, match="is not a run folder"):
        run(tmp_path / "nowhere")
    with pytest.raises(BadParameter, match="accuracy"):
        run(folder, "--target", "85")
    with pytest.raises(BadInput, match="at least one"):
        combined([])


def test_a_link_out_of_the_run_folder_is_refused(folder, make, tmp_path):
    secret = tmp_path / "elsewhere.npz"
    make().traces[0].save(secret)
    (folder / "link.npz").symlink_to(secret)
    with pytest.raises(BadCheckpoint, match="is a link"):
        run(folder)


def test_settings_that_differ_are_listed_by_run(make):
    one, two = make(settings={"data": "digits"}), make(("c",), settings={"data": "mnist"})
    settings = combined([one, two]).settings
    assert settings[RUNS] == {"run 1": {"data": "digits"}, "run 2": {"data": "mnist"}}
    assert settings["rounds"] == 20
    same = Comparison(one.traces, one.settings)
    assert combined([same]) is same


def two_problems(make):
    """Five seeds of two problems, and a second folder of the first."""
    digits = {"problem": {"data": "digits", "partition": "iid", "model": "mlp"}, "target": 0.5}
    mnist = {"problem": {"data": "mnist", "partition": "iid", "model": "mlp"}}
    return [
        make(("md", "uniform"), settings={**digits, "command": "first command"}),
        make(("md", "full"), rounds=10, clients=9, settings=mnist),
        make(("full",), settings={**digits, "command": "second command"}),
    ]


def test_runs_of_different_problems_are_ranked_apart(make):
    both = combined(two_problems(make))
    assert [(name, part.labels) for name, part in parts(both)] == [
        ("run 1 and run 3", ("md (run 1)", "uniform (run 1)", "full (run 3)")),
        ("run 2", ("md (run 2)", "full (run 2)")),
    ]
    table = _ranking.summary(both)
    assert table["problem"].tolist() == ["run 1 and run 3"] * 3 + ["run 2"] * 2
    assert table["scheme"][table["difference"].isna()].tolist() == ["md (run 1)", "md (run 2)"]
    for row in pairwise(both).itertuples():
        assert ("run 2" in row.scheme) == ("run 2" in row.reference)
    assert prose.apart(both).startswith("These runs differ in data and rounds: they are ranked")


def test_the_page_of_different_problems_shows_real_values(make):
    text = page.page(combined(two_problems(make)))
    for words in (
        "run 2: 2 schemes · 9 clients · 10 rounds",
        "digits, iid, mlp",
        "mnist, iid, mlp",
    ):
        assert words in text
    assert "?, ?" not in text
    assert "<pre>first command\nsecond command</pre>" in text
    assert text.count('class="reference"') == 2


def test_equal_conditions_are_ranked_together(make):
    one, two = make(("md",), settings={"target": 0.5}), make(("uniform",), settings={"target": 0.9})
    both = combined([one, two])
    assert len(parts(both)) == 1
    assert prose.apart(both) == ""
    assert _ranking.summary(both)["p"].notna().sum() == 1


def test_other_data_of_the_same_name_are_another_problem(make):
    one = make(("md",), settings={"fingerprint": "aa"})
    two = make(("uniform",), settings={"fingerprint": "bb"})
    assert prose.apart(combined([one, two])).startswith("These runs differ in data: ")
    assert prose.apart(combined([one, make(("uniform",))])) == ""  # an older run has none


def test_the_same_folder_twice_is_refused(folder):
    with pytest.raises(BadInput, match="given 2 times"):
        run(folder, folder / ".." / folder.name)


@pytest.mark.parametrize(
    ("option", "place", "says"),
    [
        ("--out", "page.pdf", r"--out must end in \.html or \.htm\. Got .*page\.pdf instead"),
        ("--out", "one", "--out must be a file. Got .* which is a folder"),
        ("--latex", "one", "--latex must be a file. Got .* which is a folder"),
        ("--pictures", "note.txt", "--pictures must be a folder. Got .* which is a file"),
        ("--csv", "note.txt", "--csv must be a folder. Got .* which is a file"),
    ],
)
def test_a_place_that_cannot_be_is_refused_before_anything_is_written(
    folder, tmp_path, option, place, says
):
    (tmp_path / "note.txt").write_text("mine")
    before = set(tmp_path.rglob("*"))
    with pytest.raises(BadInput, match=says):
        run(folder, option, tmp_path / place)
    assert set(tmp_path.rglob("*")) == before
