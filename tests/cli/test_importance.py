"""``--importance equal|size|file.csv``, wherever a command has a federation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedcohort import Comparison
from fedcohort._internal.errors import BadInput
from fedcohort.cli import app
from fedcohort.cli import compare as demo


def run(*words: Any) -> str:
    result = CliRunner().invoke(app(), [*map(str, words)])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    path = tmp_path / "p.csv"
    path.write_text("importance\n1\n1\n2\n4\n")
    return path


def test_compare(tmp_path: Path, numbers: Path) -> None:
    short = ["--rounds", 1, "--seeds", 1, "--steps", 1, "--jobs", 1, "-m", 2]
    for which, expected in (("equal", [0.25] * 4), (numbers, [0.125, 0.125, 0.25, 0.5])):
        out = tmp_path / f"run-{Path(which).stem}"
        run("compare", "md", "--partition", "iid:n=4", "--importance", which, *short, "-o", out)
        kept = Comparison.load(out)
        assert kept.traces[0].importance.tolist() == expected
        assert kept.settings["problem"]["importance"] in ("equal", [1.0, 1.0, 2.0, 4.0])
    with pytest.raises(BadInput, match=r"must be equal, size or a CSV file. Got nowhere instead"):
        run("compare", "md", "--importance", "nowhere", *short)


def test_advise_by_order_and_by_id(tmp_path: Path, numbers: Path) -> None:
    sizes = tmp_path / "sizes.csv"
    sizes.write_text("id,size\nd,40\nc,30\nb,20\na,10\n")
    by_id = tmp_path / "by_id.csv"
    by_id.write_text("a,4\nb,2\nc,1\nd,1\n")

    def squares(*words: Any) -> float:
        found = json.loads(run("advise", "--sizes", sizes, "-m", 2, "--json", *words))
        return float(found["sum_squares"])

    assert squares() == pytest.approx(0.3)
    assert squares("--importance", "equal") == pytest.approx(0.25)
    assert squares("--importance", by_id) == squares("--importance", numbers)
    by_id.write_text("a,4\nb,minus\nc,1\nd,1\n")
    with pytest.raises(BadInput, match=r"by_id.csv, line 2: an importance must be a number"):
        squares("--importance", by_id)
    by_id.write_text("a,4,5\nb,2,3\nc,1,1\nd,1,1\n")
    with pytest.raises(BadInput, match="one number per line, or two columns id,importance"):
        squares("--importance", by_id)
    with pytest.raises(BadInput, match="A saved selector has its importances"):
        run("advise", "--saved", sizes, "--importance", "equal")


def test_the_demo_takes_importances(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "SCHEMES", ("md",))
    path = tmp_path / "fifty.csv"
    path.write_text("importance\n" + "1\n" * 49 + "51\n")
    run("demo", "--rounds", 1, "--seeds", 1, "--importance", path, "-o", tmp_path / "run")
    kept = Comparison.load(tmp_path / "run")
    assert kept.traces[0].importance[[0, 49]].tolist() == pytest.approx([0.01, 0.51])
    with pytest.raises(BadInput, match="must be equal, size or a CSV file"):
        run("demo", "--importance", "nowhere")


def test_check(numbers: Path) -> None:
    for which in ("equal", numbers):
        rows = json.loads(run("check", "md", "--importance", which, "--json"))
        assert {row["name"]: row["outcome"] for row in rows}["unbiased"] == "ok"
