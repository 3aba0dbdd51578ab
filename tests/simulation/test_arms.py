"""Schemes with parts of their own, side by side in one comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, compare, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortError, UnknownName
from fedcohort.report import combined
from fedcohort.report._runs import APART
from fedcohort.server import Adam
from fedcohort.simulation import Arm, Comparison, Quadratic
from fedcohort.simulation._arms import arm, labelled

TASK = Quadratic([[float(i), 1.0] for i in range(8)], sizes=[1, 2, 3, 4, 4, 3, 2, 1])
WORK = LocalWork(steps=2, batch=None, lr=0.1)


def run(schemes: Any, folder: Path | None = None, **options: Any) -> Comparison:
    options = {"rounds": 4, "seeds": 2, "jobs": 1, "work": WORK, **options}
    return compare(TASK, schemes, folder=folder, **options)


def test_every_arm_is_the_run_that_its_parts_make() -> None:
    words = ["md:m=3", "md:m=3+fedprox:mu=0.5", "md:m=3+adam:eta_g=0.1+memory"]
    options: list[dict[str, Any]] = [
        {},
        {"algorithm": "fedprox:mu=0.5"},
        {"optimiser": "adam:eta_g=0.1", "aggregator": "memory"},
    ]
    out = run(words, seeds=[7])
    assert out.labels == ("md", "md+fedprox", "md+adam+memory")
    for trace, own in zip(out.traces, options, strict=True):
        alone = simulate(TASK, "md:m=3", rounds=4, seed=7, work=WORK, **own)
        np.testing.assert_array_equal(trace.model, alone.model)
    assert len({trace.model.tobytes() for trace in out.traces}) == 3


def test_what_an_arm_does_not_bring_is_as_in_the_others() -> None:
    out = run(["md:m=3", "md:m=3+fedprox:mu=0.5"], optimiser="adam:eta_g=0.1")
    assert {trace.settings["optimiser"]["name"] for trace in out.traces} == {"adam"}


def test_labels_name_the_settings_in_which_arms_differ() -> None:
    arms = labelled(["md:m=3+adam:eta_g=0.1", "md:m=3+adam:eta_g=0.2", "md:m=3+yogi"])
    assert list(arms) == ["md+adam eta_g=0.1", "md+adam eta_g=0.2", "md+yogi"]
    assert list(labelled(["md:m=3", "md:m=3+optimiser=sgd:eta_g=0.5"])) == ["md", "md+sgd"]
    with pytest.raises(BadInput, match=r"'md\+adam' is named twice"):
        labelled(["md+adam", "md+adam"])


def test_python_and_words_mean_the_same() -> None:
    assert arm("md:m=3+adam:eta_g=0.1") == Arm(scheme("md", m=3), optimiser=Adam(eta_g=0.1))
    assert arm("md+adam:eta_g=1e+0").options["optimiser"] == Adam(eta_g=1.0)
    assert arm("md", otherwise={"m": 4}) == Arm(scheme("md", m=4))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("md+sgd", r"several kinds; write '\+algorithm=sgd' or '\+optimiser=sgd'"),
        ("md+./mine.py:a=1", r"write '\+algorithm=./mine.py:a=1' or"),
        ("md+adam+yogi", "two parts that are optimisers"),
        ("md+adem", "Did you mean 'adam'"),
        ("md+adem", "scaffold, sgd, trimmed-mean"),  # of two kinds, named once
        ("md+algoritm=sgd", "Did you mean 'algorithm'"),
        ("nobody+adam", "There is no scheme named 'nobody'"),
    ],
)
def test_words_that_mean_nothing_get_a_sentence(word: str, said: str) -> None:
    with pytest.raises(FedcohortError, match=said):
        arm(word)


def test_a_folder_keeps_arms_and_refuses_others_of_their_name(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(["md:m=3", "md:m=3+fedprox:mu=0.5"], folder)
    again = run(["md:m=3+fedprox:mu=0.5", "md:m=3+yogi"], folder)
    assert set(Comparison.load(folder).labels) == {"md", "md+fedprox", "md+yogi"}
    assert again.labels == ("md+fedprox", "md+yogi")
    with pytest.raises(BadInput, match=r"holds md\+fedprox as .*mu=0.5, now it is .*mu=0.1"):
        run(["md:m=3+fedprox:mu=0.1"], folder)


def test_folders_that_differ_in_parts_of_arms_alone_are_ranked_together(tmp_path: Path) -> None:
    a = run(["md:m=3+fedprox:mu=0.5"], tmp_path / "a")
    b = run(["uniform:m=3"], tmp_path / "b")
    c = run(["md:m=3"], tmp_path / "c", algorithm="fedprox:mu=0.1")
    assert APART not in combined([a, b]).settings
    assert APART in combined([b, c]).settings


@pytest.mark.filterwarnings("ignore::fedcohort._internal.errors.UnequalWork")
def test_local_work_of_its_own() -> None:
    out = run(["md:m=3", "md:m=3+work:lr=0.5", "md:m=3+work:epochs=1,batch=2"], seeds=[7])
    assert out.labels == ("md", "md+work lr=0.5", "md+work epochs=1 batch=2")
    works = [WORK, LocalWork(steps=2, batch=None, lr=0.5), LocalWork(epochs=1, batch=2, lr=0.1)]
    for trace, work in zip(out.traces, works, strict=True):
        alone = simulate(TASK, "md:m=3", rounds=4, seed=7, work=work)
        np.testing.assert_array_equal(trace.model, alone.model)
        assert trace.settings["work"] == alone.settings["work"]
    assert len({trace.model.tobytes() for trace in out.traces}) == 3


def test_work_reads_back_and_is_checked() -> None:
    own = Arm("md", work={"schedule": "step:every=150,factor=0.5", "lr": 0.1, "batch": None})
    assert arm(own.word) == own
    both = Arm("md:m=3", algorithm="sgd", optimiser="sgd:eta_g=0.5", work={"lr": 0.1})
    assert both.word.startswith("md:m=3+algorithm=sgd+optimiser=sgd:eta_g=0.5")
    assert arm(both.word) == both
    assert arm("md+work:lr=0.1") == Arm("md", work={"lr": 0.1}) == Arm("md", work="work:lr=0.1")
    with pytest.raises(
        UnknownName, match=r"no setting of 'work' named 'bach'. Did you mean 'batch'"
    ):
        arm("md+work:bach=1")
    with pytest.raises(BadParameter, match="'lr' parameter of LocalWork must be a finite number"):
        arm("md+work:lr=-1")
    with pytest.raises(BadInput, match="'work' needs a setting, as in work:lr"):
        arm("md+work")
    with pytest.raises(BadInput, match="two parts that are works"):
        arm("md+work:lr=0.1+work:batch=2")


def test_arms_with_work_of_their_own_are_combined_with_what_the_others_do(tmp_path: Path) -> None:
    one = run(["md:m=3", "uniform:m=3+work:lr=0.5"], tmp_path / "a")
    two = run(["uniform:m=3"], tmp_path / "b")
    assert APART not in combined([one, two]).settings
    other = run(["full"], tmp_path / "c", work=LocalWork(steps=2, batch=None, lr=0.3))
    assert APART in combined([one, other]).settings


def test_a_part_of_ones_own_goes_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "halved_of_mine.py"
    file.write_text(
        "from dataclasses import dataclass\nfrom typing import ClassVar\n"
        "from fedcohort.server import Optimiser\n\n\n@dataclass(frozen=True)\n"
        "class Halved(Optimiser):\n    name: ClassVar[str] = 'halved-of-mine'\n"
        "    by: int = 2\n\n    def step(self, state, theta, update):\n"
        "        return state, theta + update / self.by\n"
    )
    own = arm(f"md+optimiser={file}:by=3")
    assert own.word == f"md:m=10+optimiser={file}:by=3"
    assert arm(own.word) == own
