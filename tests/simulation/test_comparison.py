from __future__ import annotations

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Comparison, LocalWork, compare, scheme
from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    Diverged,
    FedcohortError,
    InUse,
    UnknownName,
)
from fedcohort.cli.new import scheme_file
from fedcohort.server import Adam, Memory
from fedcohort.simulation import Quadratic, Softmax
from fedcohort.simulation._comparison import labelled
from fedcohort.simulation._storage import claimed

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
    with pytest.raises(BadInput, match="was made with rounds = 5, now it is 4"):
        run(tmp_path / "run", rounds=4)
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


OTHER = Quadratic([[float(i), 2.0] for i in range(8)], sizes=[1, 2, 3, 4, 4, 3, 2, 1])


def test_another_task_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    run(tmp_path / "run")
    with pytest.raises(BadInput, match="holds runs of another task"):
        compare(OTHER, M3, rounds=5, seeds=2, jobs=1, work=WORK, folder=tmp_path / "run")


def test_the_data_of_a_classifier_are_in_its_fingerprint() -> None:
    x, y = np.eye(4), np.array([0, 1, 0, 1])

    def task(clients: Any = ((0, 1), (2, 3)), x_test: Any = x) -> Softmax:
        return Softmax(x, y, x_test, y, clients=[np.array(c) for c in clients], classes=2)

    same = task()
    same.updates(same.initial(0), np.arange(2), WORK, [np.random.default_rng(0)] * 2)  # caches
    assert same.fingerprint() == task().fingerprint()
    others = [task(((2, 1), (0, 3))), task(x_test=1 - x)]
    assert len({each.fingerprint() for each in (same, *others)}) == 3


def test_runs_of_another_version_are_not_shown_for_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "run")
    monkeypatch.setattr("fedcohort.__version__", "99.0")
    with pytest.raises(BadInput, match=r"made with version = \d.*, now it is 99\.0; take another"):
        run(tmp_path / "run")


def test_a_folder_of_an_older_version_is_told_by_its_words(tmp_path: Path) -> None:
    known = tmp_path / "run" / "settings.json"
    run(tmp_path / "run", settings={"problem": "digits"})
    old = json.loads(known.read_text())
    del old["fingerprint"]
    known.write_text(json.dumps(old))
    assert len(run(tmp_path / "run", settings={"problem": "digits"}).traces) == 4
    assert "fingerprint" in json.loads(known.read_text())
    del old["problem"]
    known.write_text(json.dumps(old))
    with pytest.raises(BadInput, match="without a note of their data"):
        run(tmp_path / "run")


def test_only_what_differs_is_named(tmp_path: Path) -> None:
    run(tmp_path / "run", settings={"problem": {"data": "digits", "partition": "iid"}})
    again = {"problem": {"data": "digits", "partition": "iid"}}
    with pytest.raises(BadInput, match=r"was made with lr = 0\.1, now it is 0\.2;"):
        run(tmp_path / "run", settings=again, work=LocalWork(steps=1, batch=None, lr=0.2))
    with pytest.raises(BadInput, match="was made with data = digits, now it is mnist;"):
        run(tmp_path / "run", settings={"problem": {"data": "mnist", "partition": "iid"}})
    with pytest.raises(BadInput, match=r"evaluate_every = not given, now it is 2;"):
        run(tmp_path / "run", settings=again, evaluate_every=2)


def test_a_folder_without_a_finished_run_may_be_claimed_anew(tmp_path: Path) -> None:
    with claimed(tmp_path / "run", {"schemes": {"md": "md(m=1)"}, "seeds": [0], "rounds": 99}):
        pass
    assert len(run(tmp_path / "run").traces) == 4
    with claimed(tmp_path / "run", json.loads((tmp_path / "run/settings.json").read_text())):
        pass
    more = [*M3, scheme("full")]
    assert len(run(tmp_path / "run", more).traces) == 6


def test_a_scheme_without_a_finished_run_may_change(tmp_path: Path) -> None:
    def stop(done: int, total: int, trace: Any) -> None:
        raise KeyboardInterrupt

    run(tmp_path / "run", finished=stop, seeds=1)  # md only
    out = run(tmp_path / "run", [M3[0], scheme("uniform", m=2)], seeds=1)
    assert [str(trace.settings["parameters"]) for trace in out.traces] == ["{'m': 3}", "{'m': 2}"]


def test_the_target_is_no_reason_to_refuse(tmp_path: Path) -> None:
    run(tmp_path / "run", settings={"target": 0.8, "command": "a"})
    run(tmp_path / "run", settings={"target": 0.9, "command": "b"})
    assert json.loads((tmp_path / "run/settings.json").read_text())["target"] == 0.9


@pytest.mark.parametrize("text", ["{", "[" * 100_000], ids=["half", "brackets without end"])
def test_a_damaged_folder_is_named(text: str, tmp_path: Path) -> None:
    run(tmp_path / "run")
    (tmp_path / "run/settings.json").write_text(text)
    with pytest.raises(BadCheckpoint, match="is damaged"):
        run(tmp_path / "run")


@pytest.mark.parametrize(
    ("last", "sentence"),
    [
        (scheme("uniform", m=9), r"'m' parameter of uniform must be at most .* \(8\)"),
        (scheme("pow-d", m=2, d=9), "'d' parameter of pow-d"),
        (scheme("fedsampling", M=10_000, epsilon=0.1), "too uncertain"),
    ],
)
def test_what_does_not_fit_is_found_before_the_first_run(
    last: Any, sentence: str, tmp_path: Path
) -> None:
    done: list[Any] = []
    with pytest.raises(FedcohortError, match=sentence):
        run(tmp_path / "run", [M3[0], last], finished=lambda *run: done.append(run))
    assert not done
    assert not (tmp_path / "run").exists()


def test_the_upper_line_is_rehearsed_too(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be brought together"):
        run(tmp_path / "run", centralised=5)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("jobs", [1, 2])
def test_warnings_of_workers_come_once(jobs: int) -> None:
    uncertain = scheme("fedsampling", K=5, epsilon=0.5, when_imprecise="warn")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run(schemes=[uncertain], seeds=3, jobs=jobs)
    said = [str(each.message) for each in heard]
    assert sum("too uncertain" in text for text in said) == 1
    assert {each.filename for each in heard} == {__file__}
    assert all(text.startswith("fedsampling: ") for text in said)
    assert not any("when_imprecise" in text for text in said)


@pytest.mark.parametrize("bad", [0, 1.5, None])
def test_bad_jobs(bad: Any) -> None:
    with pytest.raises(BadParameter, match="'jobs' parameter of compare"):
        run(jobs=bad)


def test_without_file_locks_a_file_marks_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)  # as on Windows
    ours = claimed(tmp_path / "run", {"schemes": {}, "seeds": []})
    with ours, pytest.raises(InUse, match=r"delete '.*\.busy'"):
        run(tmp_path / "run")
    assert len(run(tmp_path / "run").traces) == 4
    assert not (tmp_path / "run" / ".busy").exists()


def test_the_package_is_imported_without_file_locks() -> None:
    code = "import sys; sys.modules['fcntl'] = None; import fedcohort, fedcohort.cli"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_parts_of_the_server_may_be_named_and_a_folder_is_the_same_either_way(
    tmp_path: Path,
) -> None:
    built = run(tmp_path / "run", optimiser=Adam(), aggregator=Memory())
    named = run(tmp_path / "run", optimiser="adam", aggregator="memory", jobs=1)
    assert [trace.settings["aggregator"] for trace in named.traces] == [Memory().spec] * 4
    for a, b in zip(built.traces, named.traces, strict=True):
        np.testing.assert_array_equal(a.model, b.model)
    with pytest.raises(UnknownName, match="Did you mean 'memory'"):  # before anything is run
        run(tmp_path / "other", aggregator="memroy")
    assert not (tmp_path / "other").exists()


def test_workers_that_were_started_elsewhere_write_where_they_shall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers stay between comparisons, in the directory of the first."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run(Path("runs"), jobs=2)
        assert len(list((tmp_path / name / "runs").glob("*.npz"))) == 4


def test_a_single_word_is_one_scheme() -> None:
    found = run(schemes="md:m=2")
    assert found.labels == ("md",)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": np.zeros(3)}, {"a": np.ones(3)}),
        (np.int64(1), np.int64(2)),
        (np.float32(1), np.float32(2)),
        (np.array([np.zeros(2), np.zeros(3)], dtype=object), np.array([1, 2], dtype=object)),
        ([], [1]),
        ((), []),
    ],
)
def test_the_fingerprint_of_a_task_sees_what_it_holds(one: Any, other: Any) -> None:
    def holding(value: Any) -> str:
        task = Quadratic([[0.0], [1.0]])
        task.extra = value  # type: ignore[attr-defined]
        return task.fingerprint()

    assert holding(one) == holding(one)
    assert holding(one) != holding(other)


def test_runs_of_a_scheme_that_was_edited_since_are_not_shown(tmp_path: Path) -> None:
    file, out = tmp_path / "edited_scheme.py", tmp_path / "runs"
    code = "from fedcohort.cli import main; main()"
    words = ["compare", str(file), "--rounds", "1", "--seeds", "1", "-m", "3", "--out", str(out)]
    words += ["--jobs", "1", "--steps", "1", "--json"]

    def fedcohort(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
        )

    file.write_text(scheme_file("edited-scheme", "loss", stateful=False))
    assert fedcohort(*words).returncode == 0
    assert fedcohort(*words).returncode == 0
    file.write_text(file.read_text().replace("2 * m", "3 * m"))
    refused = fedcohort(*words)
    assert refused.returncode == 1
    assert "The code of edited-scheme has changed since its runs" in refused.stderr


def test_the_settings_of_a_folder_are_replaced_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path / "a")
    before = (tmp_path / "a" / "settings.json").read_text()

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="no space"):
        run(tmp_path / "a", seeds=3)
    assert (tmp_path / "a" / "settings.json").read_text() == before


def test_a_run_that_diverges_ends_the_comparison_or_is_told(tmp_path: Path) -> None:
    arms = {"calm": "md:m=3", "wild": "md:m=3+work:lr=1e160,steps=3"}
    with pytest.raises(Diverged, match="Training diverged in round"):
        run(tmp_path / "a", arms, rounds=5)
    heard: list[tuple[int, int, str]] = []
    out = run(tmp_path / "b", arms, diverged=lambda unit, error: heard.append(unit))
    assert sorted(heard) == [(0, 0, "wild"), (0, 1, "wild")]
    assert out.labels == ("calm",)
    assert len(out.traces) == 2
