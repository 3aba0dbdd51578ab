"""What users stumble over: crashes of their own, narrow windows, templates, void rounds."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import bench
from fedcohort import Federation, report, simulate
from fedcohort._internal.errors import BadInput, UnknownName, own_line
from fedcohort.cli import app, main
from fedcohort.cli.new import QUESTIONS, scheme_file
from fedcohort.report import _ranking
from fedcohort.schemes import SCHEMES
from fedcohort.server import AsDrawn
from fedcohort.simulation import Comparison, DropOuts, LocalWork, Quadratic, Random
from fedcohort.testing import check_scheme

RUN = "from fedcohort.cli import main; main()"


def crash(tmp_path: Path) -> int:
    """A scheme that crashes in its own line; which line."""
    text = scheme_file("crash", "loss", stateful=False)
    text = text.replace("        return Cohort", "        oops = [1][5]\n        return Cohort")
    (tmp_path / "crash.py").write_text(text)
    return text.splitlines().index("        oops = [1][5]") + 1


def test_check_names_file_and_line_of_a_crash(tmp_path, monkeypatch) -> None:
    line = crash(tmp_path)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app(), ["check", "./crash.py", "--json"])
    details = [row["detail"] for row in json.loads(done.stdout) if not row["passed"]]
    assert details
    where = f"(crash.py, line {line}, in select)"
    assert f"On 'equal': IndexError: list index out of range {where}" in details


def test_compare_shows_the_users_line_first(tmp_path) -> None:
    line = crash(tmp_path)
    words = ["compare", "./crash.py", "md", "--rounds", "2", "--seeds", "2", "--jobs", "1"]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *words, "--out", "run", "-m", "3"],
        capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    first = done.stderr.index(f"Error: crash.py, line {line}, in select: IndexError: list index")
    assert "This was round 0." in done.stderr[first : first + 200]
    assert first < done.stderr.index("oops = [1][5]") < done.stderr.index("Traceback")


def test_the_line_is_that_of_the_users_not_of_the_library_it_called() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    found = own_line(caught.value)
    assert found is not None
    assert found.file == __file__
    assert found.text == 'json.loads("{")'
    assert own_line(ValueError("never raised")) is None


def test_of_an_error_in_another_process_the_text_of_its_traceback_tells_the_line(tmp_path) -> None:
    mine, theirs = tmp_path / "mine.py", Path(json.__file__)
    frames = "".join(f'  File "{path}", line 7, in select\n    x\n' for path in (mine, theirs))
    error = ValueError("it")
    error.__cause__ = RuntimeError(f'"""\nTraceback (most recent call last):\n{frames}"""')
    assert own_line(error) == (str(mine), 7, "select")


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("asks", [*QUESTIONS, "nothing"])
def test_every_template_is_a_scheme_that_passes_its_checks(asks, stateful, tmp_path) -> None:
    path = tmp_path / f"template_{asks}_{stateful}.py"  # modules have names of their own
    path.write_text(scheme_file(f"template-{asks.replace('_', '-')}", asks, stateful))
    cls = SCHEMES.find(str(path))
    assert {signal.name for signal in cls.asks} == ({asks} - {"nothing"})
    where = {"skewed": Federation.from_sizes([5, 4, 3, 2, 1])}
    failed = [result for result in check_scheme(cls, federations=where) if not result.passed]
    assert not failed, failed


def test_a_question_that_no_template_has_is_refused(tmp_path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'loss'"):
        CliRunner().invoke(
            app(), ["new", "x", "--in", str(tmp_path), "--asks", "los"], catch_exceptions=False
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("width", [50, 80])
def test_headers_of_bench_fit_a_window(width) -> None:
    times = dict.fromkeys(bench.TIMES, 0.01234)
    rows = [
        {"scheme": "clustered-similarity", **times, "times uniform": 12345.0, "note": ""},
        {"scheme": "md", **dict.fromkeys(bench.TIMES), "times uniform": None, "note": "too few."},
    ]
    out = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    bench._print(rows, 1000, 10, out)
    text = out.file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    assert "clustered-similarity" in text
    assert "12.34" in text
    assert "md: too few." in text
    if width == 80:
        assert all(word in text for name in bench.TIMES for word in name.split())


def voided() -> Comparison:
    """Many rounds fail: clients often do not answer."""
    task = Quadratic(np.arange(6.0)[:, None])
    traces = []
    for name in ("md", "uniform"):
        trace = simulate(
            task, f"{name}:m=2", rounds=12, seed=1, work=LocalWork(steps=1, lr=0.1, batch=None),
            dropouts=DropOuts(Random(0.6), AsDrawn(), quorum=0.9),
        )  # fmt: skip
        traces.append(trace)
    assert traces[0].void.any()
    return Comparison(tuple(traces), {})


def test_void_rounds_are_in_the_table_and_in_the_report(tmp_path) -> None:
    comparison = voided()
    out = Console(file=io.StringIO(), width=300)
    report.print_summary(comparison, console=out)
    rows = _ranking.summary(comparison)
    assert "Void rounds" in out.file.getvalue()
    assert rows["void"].tolist() == [
        float(comparison.of(label)[0].void.sum()) for label in rows["scheme"]
    ]
    page = report.write(comparison, tmp_path / "r.html").read_text()
    assert "Void rounds" in page


def test_a_measure_that_is_none_is_refused_before_anything_is_begun(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("fedcohort.cli.compare.run", lambda *_, **__: pytest.fail("it began"))
    words = ["compare", "md", "--measure", "foo", "--out", str(tmp_path / "run")]
    with pytest.raises(UnknownName, match="no measure named 'foo'"):
        CliRunner().invoke(app(), words, catch_exceptions=False)
    assert not (tmp_path / "run").exists()


def test_how_much_clients_differ_is_told(tmp_path) -> None:
    words = ["compare", "md", "--rounds", "2", "--seeds", "1", "--jobs", "1", "--steps", "1"]
    words += ["--measure", "f1", "--out", str(tmp_path / "run"), "--partition"]
    done = CliRunner().invoke(app(), [*words, "one-class-per-client:n=20,per_client=9"])
    assert done.exit_code == 0, done.output
    assert "Clients differ in labels by 0.97 (RMS Hellinger) and in size by 0.00 (Gini)." in (
        " ".join(done.stdout.split())
    )
    assert "F1" in done.stdout.splitlines()[0]
    assert "(RMS Hellinger)" in (tmp_path / "run" / "report.html").read_text()


LONG_WORDS = {
    "command": ["x" * 5000],
    "option": ["compare", "--" + "x" * 5000],
    "value": ["compare", f"--{'x' * 5000}=1"],
    "number": ["compare", "--seeds", "x" * 5000],
    "spaces": ["compare", "--seeds", "x " * 2500],
    "letters": ["compare", "md", "--rounds", "é" * 5000],
    "words": ["demo", *["word"] * 2000],
    "before": ["--" + "y" * 5000],
}


@pytest.mark.parametrize("kind", LONG_WORDS)
def test_what_was_typed_is_not_repeated_at_length(kind: str, monkeypatch, capsys) -> None:
    words = LONG_WORDS[kind]
    run = CliRunner().invoke(app(), words)
    for code, told in ((run.exit_code, run.output), typed(words, monkeypatch, capsys)):
        assert code in (1, 2)
        assert 0 < len(told) < 2000


def test_what_was_typed_is_not_repeated_at_length_by_a_program() -> None:
    command = [sys.executable, "-c", RUN, *LONG_WORDS["letters"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (1, 2)
    assert 0 < len(done.stdout + done.stderr) < 2000


def typed(words: list[str], monkeypatch, capsys) -> tuple[object, str]:
    """What the program itself ends with and says."""
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # `main` replaces it
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    return stop.value.code, said.out + said.err


@pytest.mark.parametrize("words", [("--pictures", ""), ("--pictures=",), ("--csv", "", "--json")])
def test_an_option_without_a_text_is_refused(tmp_path, monkeypatch, words) -> None:
    """An empty path is the current folder, which would be filled with pictures."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app(), ["report", "run", *words])
    assert str(done.exception) == f"The option {words[0].rstrip('=')} is empty; " + (
        "give it a value or leave it out."
    )


@pytest.mark.parametrize("ends", ["import sys; sys.exit()", "raise SystemExit(3)", "quit()"])
def test_a_file_that_ends_the_program_gets_a_sentence(tmp_path, ends, monkeypatch, capsys) -> None:
    path = tmp_path / "ends_here.py"
    path.write_text(f"x = 1\n{ends}\n")
    monkeypatch.setattr(sys, "path", sys.path.copy())
    code, said = typed(["schemes", str(path)], monkeypatch, capsys)
    assert code == 1
    assert said.startswith(f"Error: '{path}' cannot be loaded: SystemExit in line 2")


def test_a_long_path_is_not_repeated_whole() -> None:
    with pytest.raises(BadInput, match="File name too long") as caught:
        Comparison.load("x" * 60_000)
    assert len(str(caught.value)) < 300
