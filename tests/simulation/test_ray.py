"""Runs on a Ray cluster: the same results, also when a node is lost; see `helpers.ray_play`."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, compare
from fedcohort._internal.errors import BadInput, BadParameter, MissingExtra
from fedcohort.server import Trace
from fedcohort.simulation import Quadratic
from fedcohort.simulation import _workers as workers
from fedcohort.simulation._ray_cluster import RayCluster

TASK = Quadratic([[0.0], [1.0]])


@pytest.mark.parametrize("address", ["", "somewhere", "host:", "ray://host:1", 3])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(BadParameter, match="'ray' parameter of compare must be 'auto', 'local' or"):
        compare(TASK, "full", rounds=1, ray=address)


def test_without_ray_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'fedcohort\[ray\]'"):
        compare(TASK, "full", rounds=1, ray="auto")


def test_nobody_at_the_address_shows_at_once() -> None:
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    with pytest.raises(BadInput, match=r"no Ray cluster at '127\.0\.0\.1:1' .* `ray start --head"):
        RayCluster("127.0.0.1:1").__enter__()


class Elsewhere:
    """Computes without this machine's disk: what it gets and gives is copied on the way."""

    local = False

    def __init__(self, address: str, jobs: int) -> None:
        pass

    def __enter__(self) -> Elsewhere:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def each(self, function: Any, calls: Any) -> Any:
        for shared, *own in calls:
            assert not [given for given in own if isinstance(given, Path)]
            yield copy.deepcopy(function(shared, *copy.deepcopy(own)))


@pytest.mark.parametrize("algorithm", ["sgd", "scaffold"])
@pytest.mark.parametrize("first", ["here", "elsewhere"])
def test_runs_made_elsewhere_are_extended_bit_for_bit(
    first: str, algorithm: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fedcohort.simulation._comparison.RayCluster", Elsewhere)
    task = Quadratic(np.arange(12.0).reshape(4, 3))
    how = {"seeds": 2, "algorithm": algorithm, "work": LocalWork(steps=2, batch=None, lr=0.1)}
    ways: dict[str, dict[str, Any]] = {"here": {"jobs": 1}, "elsewhere": {"ray": "auto"}}
    arms = ["md:m=2", "clustered-similarity:m=2", "pow-d:m=2,d=3"]
    compare(task, arms, rounds=5, folder=tmp_path, **how, **ways[first])
    states = {path.name for path in (tmp_path / "states").glob("*.npz")}
    assert states == {path.name for path in tmp_path.glob("*.npz")}
    played: list[int] = []
    monkeypatch.setattr("fedcohort.simulation._workers._kept", _listening(workers._kept, played))
    found = compare(task, arms, rounds=8, folder=tmp_path, **how, ray="auto")
    assert played == [5] * 6  # rounds that were there
    whole = compare(task, arms, rounds=8, **how, jobs=1)
    for one, other in zip(found.traces, whole.traces, strict=True):
        assert one.model.tobytes() == other.model.tobytes()
        assert one.cohort_clients.tobytes() == other.cohort_clients.tobytes()
        assert one.train_loss.tobytes() == other.train_loss.tobytes()
    assert not list(tmp_path.rglob("*draft"))


def _listening(kept: Any, played: list[int]) -> Any:
    def heard(arm: Any, task: Any, path: Path, own: Any) -> Any:
        played.append(Trace.load(path).rounds)
        return kept(arm, task, path, own)

    return heard


@pytest.mark.ray
def test_a_lost_node_costs_its_unfinished_runs_alone(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    environment = {**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "NO_COLOR": "1"}
    environment["RAY_worker_niceness"] = "0"  # or a busy machine never gets to them
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    played = subprocess.run(
        [sys.executable, "-m", "helpers.ray_play", str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=600,
        env=environment,
        check=False,
    )
    assert played.returncode == 0, played.stderr[-3000:]
    found = json.loads(played.stdout.splitlines()[-1])
    assert found["files"] == 8  # written here: nodes may have another disk
    assert found["same"]  # bit for bit as in processes of this machine
    assert found["kept"]  # nothing is computed twice
    assert found["lost"] == [f"second {t}" for t in range(5)]  # killed in the middle of a run
    assert found["begun"] == 8 + 2 + 1  # runs, trial rounds, and the lost one once more
    assert found["went on"] == [10, 11, 12, 13]  # not from the start, but for trial rounds
    assert found["extended"]
    assert found["tuned"]
    assert found["refused"].startswith("The 'm' parameter of uniform must be at most")
    assert "FileNotFoundError" in found["own error"]
