from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedcohort import schemes
from fedcohort.cli import main


def fedcohort(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    code = "from fedcohort.cli import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1", "PYTHONHASHSEED": "random"},
        timeout=300,
        check=False,
    )


def test_help_lists_every_command() -> None:
    out = fedcohort("--help").stdout
    for command in ("bench", "check", "compare", "demo", "new", "report", "schemes"):
        assert command in out


def test_schemes_lists_all() -> None:
    rows = json.loads(fedcohort("schemes", "--json").stdout)
    assert [row["name"] for row in rows] == sorted(schemes())
    table = fedcohort("schemes").stdout
    assert all(name in table for name in schemes())
    cited = fedcohort("schemes", "--cite").stdout
    assert "ICML" in cited


def test_schemes_of_one() -> None:
    out = fedcohort("schemes", "clustered-size").stdout
    assert "Theorem 3" in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "mdd"], "There is no scheme named 'mdd'. Did you mean 'md'?"),
        (["compare", "md:m=0"], "The 'm' parameter of md must be an int of at least 1. Got 0"),
        (["compare", "md", "--data", "nosuch"], "nosuch"),
        (["compare", "md", "--rounds", "0"], "'rounds'"),
        (["compare", "md", "--target", "2"], "'target' parameter of compare"),
        (["compare", "md", "--lr", "-1"], "'lr'"),
        (["compare", "md", "--server", "adm"], "There is no optimiser named 'adm'"),
        (["compare", "md", "--partition", "iid:k=3"], "'k'"),
        (["schemes", "mdd"], "Did you mean 'md'?"),
        (["report", "nowhere"], "nowhere"),
        (["new", "md"], "already a scheme named 'md'"),
        (["new", "../x"], "lower-case words"),
        (["check", "mdd"], "Did you mean 'md'?"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_no_trace(
    words: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words])
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr().err
    assert stop.value.code == 1
    assert sentence in said
    assert said.count("\n") <= 2
    assert list(tmp_path.iterdir()) == []


def test_compare_writes_a_report_and_goes_on(tmp_path: Path) -> None:
    words = ["compare", "md:m=3", "uniform:m=3", "--rounds", "4", "--seeds", "2", "--jobs", "1"]
    words += ["--steps", "2", "--out", "run"]
    out = fedcohort(*words, cwd=tmp_path)
    assert out.returncode == 0, out.stderr
    assert "uniform" in out.stdout
    assert "run/report.html" in out.stdout
    page = (tmp_path / "run" / "report.html").read_text()
    assert "clustered" not in page.split("<script")[0]
    again = fedcohort(*words, "--json", cwd=tmp_path)
    assert {row["scheme"] for row in json.loads(again.stdout)} == {"md", "uniform"}
    assert "[1/4]" not in again.stderr


def test_new_scheme_runs(tmp_path: Path) -> None:
    assert fedcohort("new", "my-scheme", cwd=tmp_path).returncode == 0
    done = subprocess.run(
        [sys.executable, "my_scheme.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "my-scheme" in done.stdout
    assert fedcohort("new", "my-scheme", cwd=tmp_path).returncode == 1


def test_check_proves_md() -> None:
    rows = json.loads(fedcohort("check", "md", "--json").stdout)
    assert rows
    assert all(row["passed"] for row in rows)
