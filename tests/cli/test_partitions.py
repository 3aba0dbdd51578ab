"""Comparisons on several divisions, and when a target counts as reached, as one types them."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from fedcohort import Comparison
from fedcohort.cli import main
from fedcohort.simulation._progress import Watch
from fedcohort.simulation._workers import Unit

LITTLE = "--steps 1 --jobs 1 -m 2 --partition dirichlet-per-class:n=6,alpha=0.5"


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """Type a command in an empty folder: its exit code, what it prints, and what it says."""
    monkeypatch.chdir(tmp_path)

    def run(words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["fedcohort", *shlex.split(words)])
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return int(stop.value.code or 0), said.out, said.err

    return run


def units(folder: str) -> list[Unit]:
    return [Unit.of(trace) for trace in Comparison.load(folder).traces]


def test_every_scheme_runs_on_every_partition_and_more_can_follow(typed) -> None:
    words = f"compare md uniform {LITTLE} -T 2 -o run"
    code, out, said = typed(f"{words} --seeds 1 --partition-seed 3")
    assert (code, "on this one division of the data" in out) == (0, False)  # one seed says nothing
    assert "Partition: dirichlet-per-class:n=6,alpha=0.5," in said
    assert ": 6 clients with 138 to 313 samples.\n" in said
    assert "divisions." not in said
    code, out, said = typed(f"{words} --seeds 2 --partition-seed 3 --partitions 2")
    assert code == 0
    assert " samples, the first of 2 divisions.\n" in said
    assert "over 2 seeds on each of 2 divisions" in out
    assert "more than chance on divisions like these 2?" in out
    assert "[8/8] uniform, partition 4, seed 1" in said
    assert said.count("partition 3, seed 0") == 0  # these were there
    every = [Unit(p, s, name) for name in ("md", "uniform") for p in (3, 4) for s in (0, 1)]
    assert units("run") == every
    assert 'id="divisions"' in Path("run/report.html").read_text()


def test_an_interrupted_comparison_on_partitions_goes_on(typed, monkeypatch) -> None:
    def stop(self: Watch, done: int, total: int, trace: object) -> None:
        if done == 3:
            raise KeyboardInterrupt

    words = f"compare md uniform {LITTLE} -T 2 --seeds 1 --partitions 2 -o run"
    with monkeypatch.context() as patch:
        patch.setattr(Watch, "finished", stop)
        code, out, said = typed(words)
    assert code == 130
    assert "1 run is missing (uniform with seed 0 on division 1)" in out
    assert f"Go on with: fedcohort {words}" in said
    code, out, said = typed(words)
    assert code == 0
    assert "missing" not in out
    assert "[4/4] uniform, partition 1, seed 0" in said
    assert "[3/4]" not in said


def test_more_rounds_extend_every_partition(typed) -> None:
    for rounds, folder in ((2, "run"), (5, "run"), (5, "new")):
        words = f"compare md uniform {LITTLE} -T {rounds} --seeds 1 --partitions 2 -o {folder}"
        assert typed(words)[0] == 0
    longer, whole = Comparison.load("run"), Comparison.load("new")
    assert [t.rounds for t in longer.traces] == [5] * 4
    for one, other in zip(longer.traces, whole.traces, strict=True):
        assert one.model.tobytes() == other.model.tobytes()
        assert one.accuracy.tobytes() == other.accuracy.tobytes()
    code, _, said = typed(f"compare md uniform {LITTLE} -T 2 --seeds 1 --partitions 2 -o run")
    assert code == 1
    assert "was made with rounds = 5, now it is 2" in said


def test_the_first_crossing_is_an_option_of_compare_and_of_report(typed) -> None:
    words = f"compare md {LITTLE} -T 12 --seeds 1 --lr 1 -o run --json"
    typed(words)
    (trace,) = Comparison.load("run").traces
    target = next(  # one that is passed and lost again
        level
        for level in sorted(trace.accuracy.tolist(), reverse=True)
        if trace.rounds_to(level, "first") != trace.rounds_to(level)
    )
    seen = trace.rounds_to(target, "first"), trace.rounds_to(target)

    def rounds(command: str) -> int | None:
        code, out, _ = typed(f"{command} --json --target {target!r}")
        assert code == 0
        return json.loads(out)[0]["rounds_to_target"]

    assert (rounds("report run --crossing first"), rounds("report run")) == seen
    assert rounds(f"{words} --crossing first") == seen[0]
    assert rounds("report run") == seen[0]  # as `compare` was told
    assert rounds("report run --crossing sustained") == seen[1]


def test_folders_of_other_divisions_are_reported_as_one(typed) -> None:
    for seed in (0, 2):
        words = f"compare md uniform {LITTLE} -T 2 --seeds 1 --partitions 2"
        typed(f"{words} --partition-seed {seed} -o {seed}")
    code, out, _ = typed("report 0 2 --json")
    assert code == 0
    assert [(row["partitions"], row["runs"]) for row in json.loads(out)] == [(4, 4)] * 2
    assert "4 divisions" in Path("0/combined-report.html").read_text()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            "compare md --partitions 0",
            "The option --partitions must be an int in [1, 10000]. Got 0",
        ),
        ("compare md --partitions 10001", "--partitions must be an int in [1, 10000]. Got 10001"),
        ("compare md --crossing last", "--crossing must be one of 'sustained', 'first'. Got last"),
        ("report x --crossing last", "--crossing must be one of 'sustained', 'first'. Got last"),
    ],
)
def test_a_wrong_value_is_one_sentence(typed, words: str, sentence: str) -> None:
    code, out, said = typed(words)
    assert (code, out) == (1, "")
    assert sentence in said
    assert list(Path.cwd().iterdir()) == []


def test_clients_that_the_data_name_are_one_division(typed) -> None:
    x, y = np.eye(15, 2), np.arange(15) % 2
    np.savez("data.npz", x=x, y=y, groups=np.repeat([0, 1, 2], 5))
    code, _, said = typed("compare md -m 2 --data data.npz --partitions 2")
    assert code == 1
    assert "divides the data in the same way for every seed, so there is one division only" in said
    assert [path.name for path in Path.cwd().iterdir()] == ["data.npz"]
