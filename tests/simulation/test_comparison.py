from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, LocalWork, compare, scheme
from fedcohort.core.errors import BadCheckpoint, BadInput, BadParameter, InUse
from fedcohort.simulation import Quadratic
from fedcohort.simulation.comparison import labelled
from fedcohort.simulation.runfolder import claimed

TASK = Quadratic([[float(i), 1.0] for i in range(8)], sizes=[1, 2, 3, 4, 4, 3, 2, 1])
WORK = LocalWork(steps=1, batch=None, lr=0.1)
M3 = [scheme("md", m=3), scheme("uniform", m=3)]


def run(folder: Path | None = None, schemes: Any = M3, **options: Any) -> Comparison:
    options = {"rounds": 5, "seeds": 2, "jobs": 1, "work": WORK, **options}
    return compare(TASK, schemes, folder=folder, **options)


def test_order_and_labels() -> None:
    out = run()
    assert [(t.label, t.seed) for t in out.traces] == [
        ("md", 0),
        ("md", 1),
        ("uniform", 0),
        ("uniform", 1),
    ]
    assert out.labels == ("md", "uniform")
    assert [t.seed for t in out.of("uniform")] == [0, 1]


def test_two_processes_give_what_one_gives() -> None:
    alone, together = run(jobs=1), run(jobs=2)
    for a, b in zip(alone.traces, together.traces, strict=True):
        np.testing.assert_array_equal(a.model, b.model)
        np.testing.assert_array_equal(a.cohort_clients, b.cohort_clients)


def test_a_folder_resumes_and_grows(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run(folder, seeds=[0])
    stamp = (folder / "md--seed-0.npz").stat().st_mtime_ns
    done: list[tuple[int, int]] = []
    out = run(
        folder,
        [*M3, scheme("full")],
        seeds=[0, 1],
        finished=lambda a, b, trace: done.append((a, b)),
    )
    assert done == [(3, 6), (4, 6), (5, 6), (6, 6)]  # two were there already
    assert (folder / "md--seed-0.npz").stat().st_mtime_ns == stamp
    back = Comparison.load(folder)
    assert [(t.label, t.seed) for t in back.traces] == [(t.label, t.seed) for t in out.traces]


def test_interruption_keeps_what_is_finished(tmp_path: Path) -> None:
    def stop(done: int, total: int, trace: Any) -> None:
        if done == 2:
            raise KeyboardInterrupt

    out = run(tmp_path / "run", finished=stop)
    assert out.interrupted
    assert len(out.traces) == 2
    whole = run(tmp_path / "run")
    assert len(whole.traces) == 4
    assert not whole.interrupted


def test_another_comparison_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(BadInput, match="was made with rounds = 5, now it is 6"):
        run(tmp_path / "run", rounds=6)
    with pytest.raises(BadInput, match=r"holds md as md\(m=3\), now it is md\(m=4\)"):
        run(tmp_path / "run", [scheme("md", m=4)])
    assert len(Comparison.load(tmp_path / "run").traces) == 4


def test_a_foreign_folder_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(BadInput, match="not empty and is no run folder"):
        run(tmp_path)
    assert (tmp_path / "thesis.tex").read_text() == "mine"


def test_two_writers_are_refused(tmp_path: Path) -> None:
    with claimed(tmp_path / "run", {"schemes": {}, "seeds": []}), pytest.raises(InUse):
        run(tmp_path / "run")


def test_not_a_run_folder(tmp_path: Path) -> None:
    with pytest.raises(BadCheckpoint, match="is not a run folder"):
        Comparison.load(tmp_path)
    (tmp_path / "settings.json").write_text(json.dumps({"schemes": {}}))
    with pytest.raises(BadCheckpoint, match="no finished run"):
        Comparison.load(tmp_path)


def test_labels_show_what_differs() -> None:
    named = labelled([scheme("md", m=2), scheme("md", m=3), "full"])
    assert list(named) == ["md m=2", "md m=3", "full"]
    with pytest.raises(BadInput, match="named twice"):
        labelled(["md", "md"])
    with pytest.raises(BadInput, match="at least one scheme"):
        labelled([])


@pytest.mark.parametrize("bad", [0, [], [1, 1], [-1]])
def test_bad_seeds(bad: Any) -> None:
    with pytest.raises(BadParameter, match="seed"):
        run(seeds=bad)


def test_labels_that_look_alike_do_not_share_a_file(tmp_path: Path) -> None:
    run(tmp_path / "run", {"a b": M3[0], "a_b": M3[1]}, seeds=1)
    assert Comparison.load(tmp_path / "run").labels == ("a b", "a_b")
