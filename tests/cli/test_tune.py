"""``fedcohort tune`` on the command line: a table, a choice, and the command that judges it."""

from __future__ import annotations

import inspect
import json
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort.cli import app
from fedcohort.cli.compare import compare
from fedcohort.cli.tune import NOT_HERE, tune

run = CliRunner().invoke
QUICK = ["--rounds", "2", "--seeds", "2", "--jobs", "1", "--steps", "1", "-m", "3"]
GRID = ["--grid", "lr=0.01,0.1", "--grid", "d=3,6"]


def test_a_table_a_choice_and_a_command(tmp_path: Path) -> None:
    folder = tmp_path / "tuned"
    result = run(app(), ["tune", "md", "pow-d", *GRID, *QUICK, "--hardened", "-o", str(folder)])
    assert result.exit_code == 0, result.output
    text = " ".join(result.output.split())
    assert result.output.count("chosen") == 2
    assert "Decided by validation accuracy, mean of the last 5 evaluations; 20 % of every" in text
    assert "The same budget for every scheme: 2 configurations x 2 runs x 2 rounds." in text
    assert "To be judged on the test set:" in text
    default = "one-class-per-client:n=50,per_client=25,shuffle=true (by default): 50 clients"
    assert f"Partition: {default} with 25 samples each.\n" in result.stderr
    command = next(line for line in result.output.splitlines() if "fedcohort compare" in line)
    words = shlex.split(command)
    assert words[2].startswith("md:m=3+work:lr=0.")
    assert words[3].startswith("pow-d:m=3,d=")
    assert words[4:] == ["-m", "3", "--rounds", "2", "--steps", "1", "--hardened"]
    judged = run(app(), [*words[1:], "--seeds", "1", "--jobs", "1", "-o", str(tmp_path / "runs")])
    assert judged.exit_code == 0, judged.output
    kept = json.loads((folder / "tuning.json").read_text())
    assert list(kept["chosen"].values()) == words[2:4]
    assert len((folder / "tuning.csv").read_text().splitlines()) == 1 + 2 + 2
    settings = json.loads((folder / "settings.json").read_text())
    assert settings["problem"]["validation"] == 0.2
    told = run(app(), ["report", str(folder)]).output
    assert "Measured on validation data (20 % of every client's training" in " ".join(told.split())
    page = (folder / "report.html").read_text()
    assert "in place of the test set, which was not looked at" in page
    assert "reaches the best validation accuracy" in " ".join(told.split())
    for wrong in ("test accuracy", "test loss", "f1 on the test set"):
        assert wrong not in f"{told} {page}".lower()
    assert "Validation accuracy" in page
    assert settings["seeds"] == [1000, 1001]  # others than those that are judged


def test_as_json_and_with_a_budget(tmp_path: Path) -> None:
    more = ["--json", "--budget", "2", "--by", "loss", "--validation", "0.3"]
    words = ["tune", "md", "pow-d", *GRID, *QUICK, *more, "-o", str(tmp_path / "tuned")]
    found = json.loads(run(app(), words).stdout)
    assert found["measure"] == "validation loss, mean of the last 5 evaluations"
    assert len(found["trials"]) == 4
    assert found["notes"][0].startswith("The same budget for every scheme: 2 configurations")
    assert found["compare"].startswith("fedcohort compare md:m=3+work:lr=")
    assert isinstance(found["trials"][2]["d"], int)
    again = json.loads(run(app(), words).stdout)  # from the folder
    assert again == found


def test_whole_grids(tmp_path: Path) -> None:
    more = ["--json", "--budget", "whole", "-o", str(tmp_path / "tuned")]
    found = json.loads(run(app(), ["tune", "md", "pow-d", *GRID, *QUICK, *more]).stdout)
    assert len(found["trials"]) == 2 + 4


@pytest.mark.parametrize(
    ("words", "error", "sentence"),
    [
        (["--grid", "lr"], BadInput, "--grid must read setting=value,...; got lr"),
        (["--grid", "lr=0.1", "--grid", "lr=0.2"], BadInput, "--grid gives 'lr' twice"),
        (["--grid", "lr=0.1,x"], BadParameter, "'lr' parameter of LocalWork must be a finite"),
        (["--grid", "rl=0.1"], UnknownName, "no setting of these schemes named 'rl'"),
        (["--grid", "lr=0.1", "--validation", "0"], BadInput, "--validation must be a number in"),
        (["--grid", "lr=0.1", "--validation", "1"], BadInput, "a number in (0, 1). Got 1.0"),
        (["--grid", "lr=0.1", "--budget", "0"], BadInput, "--budget must be an int of at least 1"),
        (["--grid", "lr=0.1", "--budget", "x"], BadInput, "at least 1 or 'whole'. Got x instead"),
        (["--grid", "lr=0.1", "--by", "test"], BadInput, "--by must be one of 'accuracy', 'area'"),
    ],
)
def test_mistakes_get_a_sentence(words: list[str], error: type[Exception], sentence: str) -> None:
    result = run(app(), ["tune", "md", *words, *QUICK])
    assert isinstance(result.exception, error)
    assert sentence in str(result.exception)


def test_it_has_the_options_of_compare() -> None:
    here, there = (set(inspect.signature(each).parameters) for each in (tune, compare))
    assert there - here == set(NOT_HERE) & there
    assert here - there == {"context", "grid", "validation", "budget", "by", "last"}
    said = run(app(), ["tune", "--help"], env={"COLUMNS": "200", "TERM": "dumb"}).output
    assert "--grid" in said
    assert "--optimiser" in said
    assert "--centralised" not in said
