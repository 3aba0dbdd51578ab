"""Schemes on several divisions of the same data."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, LocalWork, Problem, compare, scheme
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.simulation import Quadratic
from fedcohort.simulation._problem import divisions, task_of
from fedcohort.simulation._workers import Unit

PROBLEM = Problem("digits", "dirichlet-per-class:n=6,alpha=0.5", partition_seed=2)
WORK = LocalWork(steps=1, batch=5, lr=0.1)
M2 = [scheme("md", m=2), scheme("uniform", m=2)]


def run(task: Any = PROBLEM, **options: Any) -> Comparison:
    options = {"rounds": 2, "seeds": 2, "jobs": 1, "work": WORK, **options}
    return compare(task, M2, **options)


def test_every_scheme_runs_with_every_seed_on_every_partition() -> None:
    heard: list[Unit] = []
    found = run(partitions=2, finished=lambda done, total, trace: heard.append(Unit.of(trace)))
    assert found.partitions == (2, 3)
    assert [Unit.of(t) for t in found.traces] == [
        Unit(partition, seed, label)
        for label in ("md", "uniform")
        for partition in (2, 3)
        for seed in (0, 1)
    ]
    assert heard == sorted(heard, key=lambda unit: unit.seed)
    assert heard[:4] == [Unit(at, 0, label) for at in (2, 3) for label in ("md", "uniform")]
    assert [t.seed for t in found.of("md", partition=3)] == [0, 1]
    assert "on 2 partitions" in repr(found)
    assert found.missing == ()


def test_a_division_is_that_of_its_seed_alone() -> None:
    both, alone = (
        run(partitions=[5, 3]),
        run(Problem(**{**PROBLEM.settings(), "partition_seed": 3})),
    )
    assert both.partitions == (3, 5)
    for of_both, of_one in zip(
        [t for t in both.traces if t.partition == 3], alone.traces, strict=True
    ):
        np.testing.assert_array_equal(of_both.model, of_one.model)
        np.testing.assert_array_equal(of_both.sizes, of_one.sizes)
    assert alone.partitions == (3,)


def test_two_processes_give_what_one_gives() -> None:
    alone, together = run(partitions=2), run(partitions=2, jobs=2)
    for a, b in zip(alone.traces, together.traces, strict=True):
        assert Unit.of(a) == Unit.of(b)
        np.testing.assert_array_equal(a.model, b.model)


def test_a_folder_grows_by_partitions(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder=folder)
    names = {path.name for path in folder.glob("*.npz")}
    assert names == {f"{label}--seed-{seed}.npz" for label in ("md", "uniform") for seed in (0, 1)}
    done: list[int] = []
    grown = run(partitions=2, folder=folder, finished=lambda a, b, t: done.append(t.partition))
    assert done == [3] * 4
    assert (folder / "md--partition-3--seed-0.npz").is_file()
    back = Comparison.load(folder)
    assert [Unit.of(t) for t in back.traces] == [Unit.of(t) for t in grown.traces]
    assert json.loads((folder / "settings.json").read_text())["partitions"] == [2, 3]
    run(folder=folder)  # fewer are no reason to forget the others
    assert json.loads((folder / "settings.json").read_text())["partitions"] == [2, 3]
    with pytest.raises(BadInput, match="made with partition_seed = 2, now it is 0"):
        run(Problem(**{**PROBLEM.settings(), "partition_seed": 0}), folder=folder)


def test_older_runs_are_on_the_partition_of_their_problem(tmp_path: Path) -> None:
    run(folder=tmp_path / "run")
    for path in (tmp_path / "run").glob("*.npz"):
        trace = Comparison.load(tmp_path / "run").traces[0].load(path)
        told = {k: v for k, v in trace.settings.items() if k != "partition"}
        replace(trace, settings=told).save(path)
    assert Comparison.load(tmp_path / "run").partitions == (2,)
    assert run(folder=tmp_path / "run", partitions=1).partitions == (2,)


def test_an_interrupted_comparison_is_a_balanced_one(tmp_path: Path) -> None:
    def stop(done: int, total: int, trace: Any) -> None:
        if done == 5:
            raise KeyboardInterrupt

    found = run(partitions=2, folder=tmp_path / "run", finished=stop)
    assert found.interrupted
    assert found.missing == (Unit(2, 1, "uniform"),)
    assert {(t.partition, t.seed) for t in found.balanced().traces} == {(2, 0), (3, 0)}
    assert len(run(partitions=2, folder=tmp_path / "run").traces) == 8


CENTRES = [[[float(i + shift), 1.0] for i in range(4)] for shift in range(3)]


def test_tasks_of_ones_own(tmp_path: Path) -> None:
    tasks = [Quadratic(centres) for centres in CENTRES]
    found = run(tasks, folder=tmp_path / "run")
    assert found.partitions == (0, 1, 2)
    assert run({7: tasks[0], 9: tasks[1]}).partitions == (7, 9)
    assert run(tasks[0], folder=tmp_path / "run").partitions == (0,)
    with pytest.raises(BadInput, match="holds runs of another task"):
        run([tasks[0], tasks[2]], folder=tmp_path / "run")
    assert len(Comparison.load(tmp_path / "run").traces) == 12


def test_what_cannot_be_divided() -> None:
    with pytest.raises(BadInput, match=r"divides the data of a Problem\. Got Quadratic instead"):
        run(Quadratic(CENTRES[0]), partitions=2)
    with pytest.raises(BadParameter, match="'partitions' parameter of compare"):
        run(partitions=0)
    with pytest.raises(BadParameter, match="'partitions' parameter of compare"):
        run(partitions=[1, 1])
    with pytest.raises(BadInput, match="at least one task"):
        run([])
    with pytest.raises(BadInput, match=r"task of compare must be a Task\. Got int instead"):
        run([Quadratic(CENTRES[0]), 3])


def test_a_division_that_no_seed_changes_is_one(tmp_path: Path) -> None:
    file = tmp_path / "halves.py"
    file.write_text(
        "import numpy as np\nfrom fedcohort.data import Partition\n\n\n"
        "def halves(y, rng):\n    return Partition(tuple(np.array_split(np.arange(len(y)), 2)))\n"
    )
    with pytest.raises(BadInput, match="'halves' divides the data in the same way for every seed"):
        run(Problem("digits", str(file)), partitions=2)
    assert run(Problem("digits", str(file))).partitions == (0,)


def test_workers_build_the_task_of_a_division_when_they_come_to_it() -> None:
    several = divisions(PROBLEM, 3)
    assert len(set(map(id, several.sources.values()))) == 1  # the data, once
    one = divisions(PROBLEM)
    assert task_of(one.sources[2], 2).fingerprint() == task_of(several.sources[2], 2).fingerprint()
