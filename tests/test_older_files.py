"""Files with names that an older version used are refused in one sentence, and stay as they are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import fedcohort
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint
from fedcohort.server._history import History, read
from fedcohort.training import LocalWork, Quadratic

N = 3
TASK = Quadratic([[0.0], [1.0], [3.0]], sizes=[1, 2, 3])
NOW = {"server": "optimiser", "estimator": "aggregator"}
SAYS = (
    r"^'{path}' is a {kind} that an older version of fedcohort wrote \(it has '{name}'\): "
    r"go on with that version, or begin again in another place\.$"
)


def refused(kind: str, name: str, path: Path, look: Callable[[], object]) -> None:
    """By one sentence, and nothing in the folder is changed."""
    before = contents(path)
    says = SAYS.format(kind=kind, name=re.escape(name), path=re.escape(str(path)))
    with pytest.raises(BadCheckpoint, match=says):
        look()
    assert contents(path) == before


def contents(path: Path) -> dict[Path, bytes]:
    """All files of a folder, or of that of a file."""
    folder = path if path.is_dir() else path.parent
    return {each: each.read_bytes() for each in folder.rglob("*") if each.is_file()}


@pytest.mark.parametrize("name", NOW)
def test_a_trace(name: str, tmp_path: Path) -> None:
    trace, path = fedcohort.simulate(TASK, "md:m=2", rounds=1), tmp_path / "run.npz"
    settings = dict(trace.settings)
    settings[name] = settings.pop(NOW[name])
    replace(trace, settings=settings).save(path)
    refused("trace", name, path, lambda: fedcohort.Trace.load(path))


def test_a_setting_of_ones_own_may_have_such_a_name(tmp_path: Path) -> None:
    notes = {"server": "rack 3", "estimator": "by hand"}
    fedcohort.simulate(TASK, "md:m=2", rounds=1, settings=notes).save(tmp_path / "run.npz")
    again = fedcohort.Trace.load(tmp_path / "run.npz")
    assert {name: again.settings[name] for name in notes} == notes


@pytest.mark.parametrize("name", NOW)
def test_a_run_folder(name: str, tmp_path: Path) -> None:
    def compare(seeds: int) -> fedcohort.Comparison:
        options = {NOW[name]: {"server": "adam", "estimator": "memory"}[name]}
        return fedcohort.compare(
            TASK, "md:m=2", rounds=1, seeds=seeds, jobs=1, folder=tmp_path, **options
        )

    compare(1)
    path = tmp_path / "settings.json"
    told = json.loads(path.read_text())
    told["options"][name] = told["options"].pop(NOW[name])
    path.write_text(json.dumps(told))
    refused("run folder", name, tmp_path, lambda: fedcohort.Comparison.load(tmp_path))
    refused("run folder", name, tmp_path, lambda: compare(2))


@pytest.mark.parametrize("name", NOW)
def test_a_history(name: str, tmp_path: Path) -> None:
    History(tmp_path).settings({"scheme": "md", name: "adam"})
    refused("history of rounds", name, tmp_path / "history.jsonl", lambda: read(tmp_path))


def aged(path: Path, kind: str, name: str) -> None:
    """Write who was there when the cohort was chosen under the name that it had."""
    header, arrays = store.load(path, kind)
    arrays[name] = np.ones(N) if name.endswith("latency") else np.arange(N)
    store.save(path, header, arrays)


@pytest.mark.parametrize("name", ["moment.available", "moment.latency"])
def test_a_selector(name: str, tmp_path: Path) -> None:
    selector = fedcohort.Selector("md:m=2", fedcohort.Federation.from_sizes([1, 2, 3]), seed=0)
    selector.select()
    path = tmp_path / "selector.npz"
    selector.save(path)
    aged(path, "selector", name)
    refused("selector", name, path, lambda: fedcohort.Selector.load(path))


@pytest.mark.parametrize("name", ["moment.available", "moment.latency"])
def test_a_checkpoint_on_flower(name: str, tmp_path: Path) -> None:
    pytest.importorskip("flwr")
    from fedcohort import flower

    clients = flower.InProcessGrid(flower.client_app(flower.task_client(TASK, LocalWork())), N)
    model = flower.first_model(TASK, 0)

    def start(rounds: int) -> None:
        strategy = flower.CohortStrategy("md:m=2", clients=N, seed=0, folder=tmp_path)
        strategy.start(clients, model, num_rounds=rounds)

    start(1)
    path = tmp_path / "selection.npz"
    aged(path, "flower-selection", name)
    refused("flower-selection", name, path, lambda: start(2))
