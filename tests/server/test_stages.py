"""Which stages a setup has, and that a plain run enters none of them."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort import scheme
from fedcohort.server import _stages as stages
from fedcohort.server import aggregator, guards
from fedcohort.server._stages import Stages
from fedcohort.server._state import Setup, Statistics
from fedcohort.simulation._engine import Simulation
from fedcohort.training import LocalWork, Quadratic, algorithm

SOURCE = str(Path(fedcohort.__file__).parent)
TASK = Quadratic(np.arange(24.0).reshape(12, 2), np.arange(1, 13))
RUNNING = Statistics(np.array([1]), np.array([], dtype=np.int64))


def setup(name: str = "md:m=4", **parts: Any) -> Setup:
    return Setup(scheme(name), 0, **parts)


def names(setup: Setup) -> list[str]:
    return [stage.__name__ for stage in setup.stages.updates]


@pytest.mark.parametrize("name", ["md", "pow-d", "uniform", "full", "oort", "poisson"])
def test_a_plain_setup_has_no_stage_but_the_replies_its_scheme_listens_to(name: str) -> None:
    plain = setup(name)
    listens = plain.scheme.listens
    assert plain.stages == Stages(updates=(stages.SchemeReplies,) if listens else ())


@pytest.mark.parametrize(
    ("parts", "wanted"),
    [
        ({"algorithm": algorithm("fedprox")}, []),
        ({"algorithm": algorithm("scaffold")}, ["PayloadSums"]),
        ({"algorithm": algorithm("feddyn")}, ["PayloadSums"]),
        ({"algorithm": algorithm("fednova")}, ["PayloadSums", "ModelRows"]),
        ({"algorithm": algorithm("ifca:k=2")}, ["PayloadSums", "ModelRows"]),
        ({"guards": guards("clip")}, ["GuardedUpdates"]),
        ({"aggregator": aggregator("gaussian:noise=1")}, ["CappedWeights"]),
        ({"name": "fedsampling"}, ["SampleCounts"]),
        ({"name": "clustered-similarity"}, ["SchemeReplies"]),
        ({"statistics": RUNNING}, ["RunningStatistics"]),
    ],
    ids=str,
)
def test_each_part_brings_its_stages(parts: dict[str, Any], wanted: list[str]) -> None:
    assert names(setup(**parts)) == wanted


def test_stages_act_in_an_order_that_results_depend_on() -> None:
    every = setup(
        "hcsfed",
        algorithm=algorithm("ifca:k=2"),
        guards=guards("clip"),
        statistics=RUNNING,
        aggregator=aggregator("gaussian:noise=1"),
    )
    assert names(every) == [
        "CappedWeights",
        "PayloadSums",
        "GuardedUpdates",
        "SchemeReplies",
        "RunningStatistics",
        "ModelRows",
    ]


def test_noise_is_seeded_before_the_first_update() -> None:
    assert len(setup(aggregator=aggregator("gaussian:noise=1")).stages.accounts) == 1
    assert setup(aggregator=aggregator("median")).stages.accounts == ()


def test_a_model_with_running_statistics_gets_their_stage() -> None:
    assert names(setup().for_model(RUNNING)) == ["RunningStatistics"]


def test_a_setup_can_be_pickled() -> None:
    whole = setup(aggregator=aggregator("gaussian:noise=1"), guards=guards("clip"))
    again = pickle.loads(pickle.dumps(whole))  # noqa: S301 - of this line
    assert again == whole
    assert again.stages.updates == whole.stages.updates


@contextmanager
def entered(files: set[str]) -> Iterator[None]:
    """Collect the files of ours in which a function is called."""

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(SOURCE):
            files.add(frame.f_code.co_filename.removeprefix(SOURCE + "/"))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def second_round(monkeypatch: pytest.MonkeyPatch, name: str, **options: Any) -> set[str]:
    """Return the files that the second round of a simulation enters."""
    files: set[str] = set()
    play = Simulation.play

    def noted(run: Simulation) -> Any:
        if run.state.round != 1:
            return play(run)
        with entered(files):
            return play(run)

    monkeypatch.setattr(Simulation, "play", noted)
    work = LocalWork(steps=2, lr=0.1)
    fedcohort.simulate(TASK, name, rounds=2, seed=0, work=work, **options)
    return files


OPTIONAL = {
    "server/_stages.py": {"hardened": "clip"},
    "server/_guards.py": {"hardened": "clip"},
    "training/_algorithms.py": {"algorithm": "scaffold"},
    "simulation/_local_stage.py": {"algorithm": "scaffold"},
    "simulation/_environment.py": {"availability": "random:probability=0.9"},
    "simulation/_devices.py": {"devices": "lognormal"},
    "server/_noise.py": {"aggregator": "gaussian:noise=1"},
}


@pytest.mark.parametrize("name", ["md:m=4", "pow-d:m=4,d=6"])
def test_a_plain_round_enters_no_code_of_features_it_does_not_use(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    files = second_round(monkeypatch, name)
    assert "server/_round.py" in files
    assert not files & set(OPTIONAL)


@pytest.mark.parametrize("file", OPTIONAL)
def test_a_round_enters_the_code_of_a_feature_it_uses(
    monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    assert file in second_round(monkeypatch, "md:m=4", **OPTIONAL[file])
