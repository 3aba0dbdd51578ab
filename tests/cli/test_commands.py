from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import warnings
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from fedcohort import Comparison
from fedcohort._internal.errors import FedcohortWarning
from fedcohort.cli import compare as demo
from fedcohort.cli import main
from fedcohort.schemes import schemes
from fedcohort.simulation._progress import Watch
from helpers.bibtex import check


def fedcohort(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """What a command says, in this process."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    with pytest.MonkeyPatch.context() as here, redirect_stdout(out), redirect_stderr(err):
        here.setattr(sys, "argv", ["fedcohort", *words])
        here.setattr(warnings, "showwarning", warnings.showwarning)  # `main` replaces it
        here.setenv("COLUMNS", "160")
        here.setenv("NO_COLOR", "1")
        here.chdir(cwd or Path.cwd())
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())


def program(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own, with hashes of its own."""
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
    out = program("--help").stdout
    for command in ("advise", "check", "compare", "demo", "new", "report", "schemes"):
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
    for words in ("claims ", "asks ", "listens ", "m: an int of at least 1; by default 10"):
        assert words in out


def test_fedavg_as_the_paper_of_fedsampling_runs_it(tmp_path: Path) -> None:
    """A uniform choice and the plain average, by one command."""
    assert "one of 'plain', 'normalised', 'equal'" in fedcohort("schemes", "fedavg").stdout
    words = ("compare", "fedavg:weights=equal", "-m", "3", "-T", "2", "--seeds", "1", "-o")
    done = fedcohort(*words, str(tmp_path / "run"), "--jobs", "1")
    assert done.returncode == 0, done.stderr
    table = fedcohort("report", str(tmp_path / "run"), "--latex", "-", cwd=tmp_path)
    assert table.stdout.startswith("% needs")  # and nothing else, so that it can be piped
    assert table.stdout.endswith("\\end{tabular}\n")
    (trace,) = Comparison.load(tmp_path / "run").traces
    assert trace.distinct.tolist() == [3, 3]
    assert trace.cohort_weights.tolist() == [1 / 3] * 6


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["compare", "mdd"], "There is no scheme named 'mdd'. Did you mean 'md'?"),
        (["compare", "md:m=0"], "The 'm' parameter of md must be an int of at least 1. Got 0"),
        (["compare", "md", "--data", "nosuch"], "nosuch"),
        (["compare", "md", "--rounds", "0"], "The option --rounds must be an int in [1, 10000000]"),
        (["compare", "md", "--target", "2"], "The option --target must be a number in (0, 1]."),
        (["compare", "md", "--lr", "-1"], "The option --lr must be a number above 0. Got -1.0"),
        (["compare", "md", "--lr", "nan"], "The option --lr must be"),
        (["compare", "md", "--every", "0"], "The option --every must be"),
        (["compare", "md", "--centralised", "0"], "The option --centralised must be"),
        (["compare", "md", "--seeds", "0"], "The option --seeds must be"),
        (["compare", "md", "--seed", "-1"], "The option --seed must be"),
        (["compare", "md", "--partition-seed", "-1"], "The option --partition-seed must be"),
        (["compare", "md", "--batch", "-1"], "The option --batch must be"),
        (["compare", "md", "--jobs", "0"], "The option --jobs must be a number of processes"),
        (["compare", "md", "--jobs", 12 * "9"], "The option --jobs must be a number of processes"),
        (["compare", "md", "--steps", "1", "--epochs", "1"], "--steps or --epochs, not both"),
        (["compare", "md", "-m", "0"], "The option -m must be an int of at least 1. Got 0"),
        (["compare", "md", "--optimiser", "adam:eta=3"], "Did you mean 'eta_g'?"),
        (["compare", "md", "--availability", "random:prob=1"], "named 'prob'. Known: probability."),
        (["compare", "md", "--availability", "random:probability=x"], "must be in [0, 1]. Got 'x'"),
        (["compare", "md", "--availability", "always:x=1"], "named 'x'. It has none."),
        (["compare", "md", "--model", "mlp:hiden=3"], "Did you mean 'hidden'?"),
        (["compare", "md", "--model", "softmax:hidden=3"], "the model 'softmax' named 'hidden'"),
        (["compare", "md", "--partition", "iid"], "needs a value for 'n': write iid:n=..."),
        (["demo", "--rounds", "0"], "The option --rounds must be"),
        (["demo", "--seeds", "0"], "The option --seeds must be"),
        (["compare", "md", "--optimiser", "adm"], "There is no optimiser named 'adm'"),
        (["compare", "md", "--partition", "iid:k=3"], "'k'"),
        (["schemes", "mdd"], "Did you mean 'md'?"),
        (["report", "nowhere"], "nowhere"),
        (["report", "nowhere", "--pictures", "-"], "The option --pictures must be a path. Got -"),
        (["report", "nowhere", "--json", "--latex", "-"], "Give --json or --latex -, not both"),
        (["compare", "md", "--out", "-"], "The option --out must be a path. Got - instead"),
        (["demo", "--out", "-"], "The option --out must be a path. Got - instead"),
        (["advise", "x.csv", "--html", "-"], "The option --html must be a path. Got - instead"),
        (["new", "mine", "--in", "-"], "The option --in must be a path."),
        (["new", "md"], "already a scheme named 'md'"),
        (["new", "../x"], "lower-case words"),
        (["new", "class"], "'class' is a keyword of Python"),
        (["new", "random"], "There is a Python module named 'random'"),
        (["new", "x", "--asks", "update_norm", "--asks", "loss"], "--asks must be given once."),
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
    again = program(*words, "--json", cwd=tmp_path)
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
    assert done.stdout.startswith("ok      declaration ")
    assert "Result(" not in done.stdout
    assert fedcohort("new", "my-scheme", cwd=tmp_path).returncode == 1


def test_check_proves_md() -> None:
    rows = json.loads(fedcohort("check", "md", "--json").stdout)
    assert rows
    assert all(row["passed"] for row in rows)


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("compare md --rounds 1 --seeds 1 --jobs 1 --steps 1 --out afile/sub", "afile/sub"),
        ("compare md --rounds 1 --seeds 1 --jobs 1 --steps 1 --out afile", "afile"),
        ("new my-scheme --in afile", "afile"),
    ],
)
def test_a_path_that_cannot_be_used_is_named(
    words: str,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "afile").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    assert f"Error: '{named}' cannot be used: " in capsys.readouterr().err
    assert (tmp_path / "afile").read_text() == "mine"


def said_by(
    words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[object, str]:
    monkeypatch.setattr(sys, "argv", ["fedcohort", *words.split()])
    with pytest.raises(SystemExit) as stop:
        main()
    return stop.value.code, capsys.readouterr().err


LITTLE = "--rounds 2 --seeds 2 --jobs 1 --steps 1"


def interrupt_after(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(self: Watch, done: int, total: int, trace: object) -> None:
        if done >= runs:
            raise KeyboardInterrupt

    monkeypatch.setattr(Watch, "finished", stop)


def test_an_interrupted_comparison_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    interrupt_after(1, monkeypatch)
    code, said = said_by(f"compare md {LITTLE}", monkeypatch, capsys)
    assert code == 130
    again = said.split("Go on with: fedcohort ")[1].strip()
    assert re.fullmatch(rf"compare md {LITTLE} --out runs/[-0-9]+", again)
    interrupt_after(9, monkeypatch)
    code, said = said_by(again, monkeypatch, capsys)
    assert code in (0, None)
    folder = Path(again.split()[-1])
    assert len(list(folder.glob("*.npz"))) == 2
    interrupt_after(1, monkeypatch)
    code, said = said_by(f"compare md {LITTLE} --out run", monkeypatch, capsys)
    assert code == 130
    assert f"Interrupted. Go on with: fedcohort compare md {LITTLE} --out run\n" in said


def test_an_interrupted_extension_says_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said_by(f"compare md uniform {LITTLE} --out run", monkeypatch, capsys)
    interrupt_after(1, monkeypatch)
    longer = f"compare md uniform {LITTLE} --rounds 4 --json --out run"
    code, said = said_by(longer, monkeypatch, capsys)
    assert code == 130
    left_out = "Interrupted; 3 runs not yet extended, and left out. Go on with: fedcohort"
    assert f"{left_out} {longer}\n" in said


def test_any_interrupted_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Comparison, "load", stop)
    assert said_by("report nowhere", monkeypatch, capsys) == (130, "Interrupted.\n")


def test_seeds_of_runs_and_of_the_division(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = f"compare md {LITTLE} --partition dirichlet-per-class:n=12,alpha=0.5 --seed 7"
    for partition_seed in (0, 1):
        typed = f"{words} --partition-seed {partition_seed} -o {partition_seed}"
        assert said_by(typed, monkeypatch, capsys)[0] in (0, None)
    first, second = (Comparison.load(tmp_path / name) for name in "01")
    assert [trace.seed for trace in second.traces] == [7, 8]
    assert second.settings["problem"]["partition_seed"] == 1
    assert "--seed 7 --partition-seed 1" in second.settings["command"]
    assert first.traces[0].sizes.tolist() != second.traces[0].sizes.tolist()


def test_the_demo_tells_its_own_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SCHEMES", ("md",))
    assert said_by("demo --rounds 2 --seeds 1", monkeypatch, capsys)[0] in (0, None)
    found = Comparison.load(tmp_path / "runs" / "demo")
    assert found.settings["command"] == "fedcohort demo --rounds 2 --seeds 1"


def test_notes_of_workers_are_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # `main` replaces it
    words = f"compare fedsampling:epsilon=0.5,when_imprecise=warn {LITTLE} -o {tmp_path / 'run'}"
    with warnings.catch_warnings():
        warnings.simplefilter("default", FedcohortWarning)
        code, said = said_by(words, monkeypatch, capsys)
    assert code in (0, None)
    assert said.count("Note: fedsampling: The total is too uncertain") == 1
    assert "FedcohortWarning" not in said


def test_everything_with_a_paper_is_in_the_bibliography() -> None:
    said = fedcohort("schemes", "--cite", "--bibtex").stdout
    entries = check(said)
    keys = {key for _, key, _ in entries}
    assert {"fraboni2021clustered", "karimireddy2020scaffold", "blanchard2017machine"} <= keys
    for name in schemes():
        assert re.search(rf"^% scheme {name}\b", said, re.MULTILINE), name
    for part in ("algorithm feddyn", "aggregator memory", "optimiser yogi"):
        assert f"% {part}" in said
    [(kind, key, _)] = check(fedcohort("schemes", "optimal", "--bibtex").stdout)
    assert (kind, key) == ("article", "chen2022optimal")
