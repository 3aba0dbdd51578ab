import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedcohort import Comparison
from fedcohort.cli import app
from fedcohort.core.errors import BadCheckpoint, BadInput, BadParameter
from fedcohort.report import combined


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
    run(folder, "--png", tmp_path / "p", "--csv", tmp_path / "c", "-o", tmp_path / "x.html")
    assert (tmp_path / "p" / "accuracy-best.svg").is_file()
    assert (tmp_path / "c" / "summary.csv").is_file()
    assert (tmp_path / "x.html").is_file()
    assert not (folder / "report.html").exists()


def test_open_opens_the_page(folder, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    run(folder, "--open")
    assert opened == [(folder / "report.html").resolve().as_uri()]


def test_several_runs_are_told_apart(folder, make, tmp_path):
    other = save(make(("uniform", "full")), tmp_path / "two")
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
    assert settings["data"] == {"run 1": "digits", "run 2": "mnist"}
    assert settings["rounds"] == 20
    same = Comparison(one.traces, one.settings)
    assert combined([same]) is same
