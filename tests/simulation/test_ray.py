"""Runs on a Ray cluster: the same results, also when a node is lost; see `helpers.ray_play`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fedcohort import compare
from fedcohort.core.errors import BadInput, BadParameter, MissingExtra
from fedcohort.simulation import Quadratic
from fedcohort.simulation.ray_cluster import RayCluster

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
    assert found["tuned"]
    assert found["refused"].startswith("The 'm' parameter of uniform must be at most")
    assert "FileNotFoundError" in found["own error"]
