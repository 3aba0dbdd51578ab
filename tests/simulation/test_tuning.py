"""Settings chosen without looking at the test set."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedcohort import LocalWork, Problem, Tuning, compare, scheme, tune
from fedcohort import data as data_sets
from fedcohort._internal.errors import BadInput, BadParameter, Diverged, FedcohortError, UnknownName
from fedcohort.simulation import Arm
from fedcohort.simulation._arms import arm, labelled
from fedcohort.simulation._trials import Trial, axes_of, configurations, configured, named, some_of
from fedcohort.simulation._tuning import score
from fedcohort.training import Quadratic

PROBLEM = Problem("digits", "dirichlet-per-class:n=8,alpha=0.5")
WORK = LocalWork(steps=10, batch=5, lr=0.1)


def tuned(
    schemes: Any = ("md:m=3",), grid: Any = None, given: Any = PROBLEM, **options: Any
) -> Tuning:
    options = {"rounds": 4, "seeds": 2, "jobs": 1, "work": WORK, **options}
    return tune(given, list(schemes), grid or {"lr": [1e-4, 0.3]}, **options)


def expanded(word: str, grid: dict[str, list[Any]], **common: Any) -> list[dict[str, Any]]:
    ((label, axes),) = axes_of(labelled([word]), grid, common).items()
    return [named(each) for each in configurations(axes, label)]


def test_a_setting_is_tried_where_a_scheme_has_it() -> None:
    arms = labelled(["md:m=3", "pow-d:m=3"])
    axes = axes_of(arms, {"lr": [0.1, 0.2], "d": [4, 6], "eta_g": [1.0]}, {})
    assert [axis.setting for axis in axes["md"]] == ["lr", "eta_g"]
    assert [axis.setting for axis in axes["pow-d"]] == ["lr", "d", "eta_g"]
    first, *_, final = configurations(axes["pow-d"], "pow-d")
    assert named(first) == {"lr": 0.1, "d": 4, "eta_g": 1.0}
    made = configured(arms["pow-d"], final, {"optimiser": "sgd:momentum=0.5"})
    assert made.word == "pow-d:m=3,d=6+optimiser=sgd:momentum=0.5+work:lr=0.2"
    assert arm(made.word) == made
    assert made.optimiser.parameters["momentum"] == 0.5  # type: ignore[union-attr]
    assert made.scheme.d == 6  # type: ignore[union-attr]


def test_whose_setting_it_is() -> None:
    assert expanded("md+fedprox", {"fedprox.mu": [1, 2]}) == [{"mu": 1}, {"mu": 2}]
    assert expanded("md+fedprox", {"work.mu": [1], "algorithm.mu": [2]}) == [
        {"work.mu": 1, "algorithm.mu": 2}
    ]
    with pytest.raises(
        BadInput, match=r"'mu' of md\+fedprox could be of several parts; write 'work"
    ):
        expanded("md+fedprox", {"mu": [1, 2]})
    arms = labelled(["md:m=3", "uniform:m=3"])
    axes = axes_of(arms, {"lr": [0.1, 0.2], "md.lr": [0.5]}, {})
    assert axes["md"][0].values == (0.5,)
    assert axes["uniform"][0].values == (0.1, 0.2)
    own = arm("md:m=3+work:lr=0.1,batch=7")
    ((_, (axis,)),) = axes_of({"md": own}, {"lr": [0.4]}, {}).items()
    assert configured(own, ((axis, 0.4),), {}).work.parameters == {"batch": 7, "lr": 0.4}  # type: ignore[union-attr]


def test_words_are_read_as_the_part_declares_them() -> None:
    assert expanded("pow-d:m=3", {"d": ["4", "6"]}) == [{"d": 4}, {"d": 6}]
    assert expanded("md", {"lr": ["0.1"], "batch": ["none", "5"]}) == [
        {"lr": 0.1, "batch": None},
        {"lr": 0.1, "batch": 5},
    ]


@pytest.mark.parametrize(
    ("grid", "sentence"),
    [
        ({}, "A grid needs at least one setting"),
        ({"lr": []}, "must have a list of values for 'lr'"),
        ({"lr": 0.1}, "must have a list of values for 'lr'"),
        ({"lr": "0.1"}, "must have a list of values for 'lr'"),
        ({"lr": [0.1, 0.1]}, "must have distinct values for 'lr'"),
        ({"lr": [0.1], "work.lr": [0.2]}, "gives the setting 'lr' of md twice"),
        ({"dd": [1]}, "no setting of these schemes named 'dd'"),
        ({"uniform.m": [1]}, r"no setting of these schemes named 'uniform\.m'"),
        ({"lr": range(1, 10_003)}, "has 10002 configurations, and 10000 are allowed"),
    ],
)
def test_grids_that_are_none(grid: Any, sentence: str) -> None:
    with pytest.raises((BadInput, UnknownName), match=sentence):
        tune(PROBLEM, "md", grid, rounds=1)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"by": "test"}, UnknownName),
        ({"last": 0}, BadParameter),
        ({"budget": 0}, BadParameter),
        ({"budget": "half"}, BadParameter),
        ({"validation": 1.5}, BadParameter),
        ({"grid": {"lr": [-1.0]}}, BadParameter),
        ({"grid": {"m": ["x"]}}, BadParameter),
        ({"schemes": ["uniform"], "grid": {"m": [100]}}, FedcohortError),  # than there are clients
    ],
)
def test_bad_settings_show_before_anything_is_computed(
    options: dict[str, Any], error: type[Exception], tmp_path: Path
) -> None:
    with pytest.raises(error):
        tuned(**options, folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_budget_draws_configurations_whose_values_come_up_evenly() -> None:
    arms = labelled(["pow-d:m=2"])
    grid = {"lr": [1, 2, 3], "d": [2, 3, 4], "eta_g": [1.0, 2.0, 3.0]}
    every = configurations(axes_of(arms, grid, {})["pow-d"], "pow-d")
    for seed in range(5):
        drawn = some_of(every, 6, seed)
        assert len(drawn) == len({repr(named(each)) for each in drawn}) == 6
        for name in ("lr", "d", "eta_g"):
            often = Counter(named(each)[name] for each in drawn)
            assert len(often) == 3  # of the 6, each value in 1 to 3
            assert max(often.values()) <= 3
        assert drawn == some_of(every, 6, seed)
    assert some_of(every, 6, 0) != some_of(every, 6, 1)
    assert some_of(every, 27, 0) == every


def test_the_best_is_that_of_validation_data() -> None:
    found = tuned()
    assert found.best["md"].settings == {"lr": 0.3}
    assert found.chosen["md"].word == "md:m=3+work:lr=0.3"
    task = replace(PROBLEM, validation=0.2).task()
    runs = compare(
        task, found.chosen, rounds=4, seeds=[1000, 1001], jobs=1, work=WORK
    )  # what it measured are runs on that task
    wanted = [run.accuracy[-4:].mean() for run in runs.traces]
    np.testing.assert_array_equal(found.best["md"].scores, wanted)
    assert found.measure == "validation accuracy, mean of the last 5 evaluations"
    by_area, by_loss = tuned(by="area"), tuned(by="loss", last=1)
    assert by_area.best["md"].mean == pytest.approx(np.mean(wanted))  # 4 of 4 evaluations
    assert by_loss.level(by_loss.best["md"]) == pytest.approx(
        np.mean([run.test_loss[-1] for run in runs.traces])
    )
    assert by_loss.best["md"].settings == {"lr": 0.3}


def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on, the test set of the digits has random labels and no image."""
    load = data_sets.load

    def bad(*words: Any, **options: Any) -> data_sets.Dataset:
        whole = load(*words, **options)
        labels = np.random.default_rng(0).permutation(whole.y_test)
        return replace(whole, y_test=labels, x_test=np.zeros_like(whole.x_test))

    monkeypatch.setattr("fedcohort.simulation._problem.data_sets.load", bad)


@pytest.mark.parametrize("partitions", [None, 2])
def test_a_poisoned_test_set_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, partitions: int | None
) -> None:
    options = {"schemes": ("md:m=3", "pow-d:m=3"), "grid": {"lr": [0.01, 0.3], "d": [3, 6]}}
    before = PROBLEM.task().fingerprint()
    tuned(**options, partitions=partitions, folder=tmp_path / "clean")  # type: ignore[arg-type]
    poisoned(monkeypatch)
    assert PROBLEM.task().fingerprint() != before  # it is poisoned
    tuned(**options, partitions=partitions, folder=tmp_path / "bad")  # type: ignore[arg-type]
    clean, bad = (sorted((tmp_path / name).iterdir()) for name in ("clean", "bad"))
    assert [path.name for path in clean] == [path.name for path in bad]
    for one, other in zip(clean, bad, strict=True):
        if one.suffix in {".json", ".csv"}:
            assert one.read_text() == other.read_text()  # settings with the fingerprint, too


def test_a_task_of_ones_own_is_split_as_well() -> None:
    task = PROBLEM.task()
    assert tuned(given=task).as_dict() == tuned().as_dict()
    with pytest.raises(BadInput, match="has no samples that could be set aside"):
        tuned(given=Quadratic([[0.0], [1.0]]))


def test_it_goes_on_where_it_stopped_and_gives_the_same(tmp_path: Path) -> None:
    folder, told = tmp_path / "run", []

    def stop(done: int, total: int, trace: Any) -> None:
        told.append(done)
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tuned(folder=folder, finished=stop)
    assert not (folder / "tuning.json").exists()
    told.clear()
    again = tuned(folder=folder, finished=lambda done, total, trace: told.append(done), jobs=2)
    assert told == [3, 4]
    assert again.as_dict() == tuned().as_dict()
    kept = json.loads((folder / "tuning.json").read_text())
    assert kept == again.as_dict()
    assert kept["chosen"] == {"md": "md:m=3+work:lr=0.3"}
    assert (folder / "tuning.csv").read_text().count("\n") == 3
    assert json.loads((folder / "settings.json").read_text())["problem"]["validation"] == 0.2


def test_what_diverges_is_out(tmp_path: Path) -> None:
    found = tuned(grid={"lr": [0.3, 1e300]}, folder=tmp_path / "run")
    assert [trial.diverged for trial in found.of("md")] == [0, 2]
    assert found.best["md"].settings == {"lr": 0.3}
    assert "md: the best is told from the next (the others diverged)." in found.notes()
    table = found.table()
    assert table["diverged"].tolist() == [0, 2]
    with pytest.raises(Diverged, match="Every configuration of md diverged"):
        tuned(grid={"lr": [1e300, 1e301]})


def test_edges_of_the_grid_are_told_where_there_is_something_beyond() -> None:
    def edges(grid: dict[str, list[Any]], **options: Any) -> list[str]:
        return [note for note in tuned(grid=grid, **options).notes() if "of the grid; a" in note]

    assert edges({"lr": [1e-4, 0.3]}) == [
        "md: lr=0.3 is the largest value of the grid; a better one may lie beyond."
    ]
    assert edges({"lr": [1e-5, 0.3, 1e300]}) == []
    assert edges({"lr": [0.3]}) == []  # it was not searched
    assert edges({"work.momentum": [0.0, 0.999]}, work=LocalWork(steps=20, batch=5, lr=1.0)) in (
        [],  # 0 is the end of the range
        ["md: momentum=0.999 is the largest value of the grid; a better one may lie beyond."],
    )
    assert edges({"m": [1, 8]})[0].startswith("md: m=8 is the largest")


def trial(scores: list[float], blocks: list[int] | None = None) -> Trial:
    return Trial("md", (), Arm(scheme("md")), np.array(scores), tuple(blocks or [0] * len(scores)))


def test_a_lead_is_told_by_runs_side_by_side() -> None:
    best, near, far = trial([0.9, 0.8, 0.7]), trial([0.88, 0.81, 0.66]), trial([0.8, 0.7, 0.61])
    gap, half = best.ahead_of(near)
    interval = stats.ttest_rel(best.scores, near.scores).confidence_interval(0.95)
    assert (gap - half, gap + half) == pytest.approx(tuple(interval))
    assert best.ahead_of(far)[0] > best.ahead_of(far)[1]
    assert np.isnan(trial([0.5]).ahead_of(trial([0.4]))[1])
    # Of two partitions with two seeds each, two observations are left.
    many, other = trial([4.0, 2.0, 1.0, 1.0], [0, 0, 1, 1]), trial([0.0] * 4, [0, 0, 1, 1])
    gap, half = many.ahead_of(other)
    assert gap == 2.0
    assert half == pytest.approx(stats.t.ppf(0.975, 1) * np.std([3, 1], ddof=1) / np.sqrt(2))


def test_every_scheme_has_the_same_budget_unless_it_is_told_otherwise() -> None:
    grid = {"lr": [0.1, 0.3], "d": [3, 6]}
    both = ("md:m=3", "pow-d:m=3")
    same = tuned(both, grid)
    assert same.notes()[0] == (
        "The same budget for every scheme: 2 configurations x 2 runs x 4 rounds."
    )
    assert (
        "pow-d: 2 of the 4 configurations of its grid, drawn; a budget of 'whole' tries all."
    ) in same.notes()
    assert Counter(trial.label for trial in same.trials) == {"md": 2, "pow-d": 2}
    for name in ("lr", "d"):  # every value is tried once
        assert len({trial.settings[name] for trial in same.of("pow-d")}) == 2
    assert tuned(both, grid, budget=2).as_dict() == same.as_dict()
    whole = tuned(both, grid, budget="whole")
    assert whole.notes()[0].startswith("Not the same budget for every scheme, as some have fewer")
    assert "md 2, pow-d 4 configurations x 2 runs x 4 rounds" in whole.notes()[0]
    assert tuned(both, grid, budget=3).notes()[0].startswith("Not the same budget")


def test_a_scheme_without_a_choice_does_not_take_it_from_others() -> None:
    found = tuned(("md:m=3", "pow-d:m=3"), {"d": [3, 6]})
    assert Counter(trial.label for trial in found.trials) == {"md": 1, "pow-d": 2}
    assert found.notes()[0] == (
        "The same budget for every scheme with a choice: 2 configurations x 2 runs x 4 rounds; "
        "the grid leaves none to md."
    )


def test_one_seed_says_that_it_cannot_tell() -> None:
    notes = tuned(seeds=1).notes()
    assert any("not told from 1 other; it leads the next by" in note for note in notes)
    assert any("one run each has no spread" in note for note in notes)


def test_scores() -> None:
    trace = compare(PROBLEM, "md:m=3", rounds=6, seeds=1, jobs=1, work=WORK, evaluate_every=2)
    (run,) = trace.traces
    known = run.accuracy[1::2]
    assert score(run, "accuracy", 2) == known[-2:].mean()
    assert score(run, "accuracy", 50) == score(run, "area", 1) == known.mean()
    assert score(run, "loss", 1) == -run.test_loss[-1]
    bare = replace(run, accuracy=np.full(6, np.nan))
    with pytest.raises(BadInput, match="no validation accuracy"):
        score(bare, "accuracy", 1)


def test_centralised_training_is_tuned_with_the_same_budget() -> None:
    found = tuned(grid={"lr": [1e-4, 0.3]}, centralised=50, by="loss")
    assert found.labels == ("md", "centralised")
    assert found.notes()[0].startswith("The same budget for every scheme: 2 configurations")
    assert found.best["centralised"].settings == {"lr": 0.3}
    assert found.as_dict()["chosen"]["centralised"] == "centralised(samples=50)+work:lr=0.3"
    assert set(found.chosen) == {"md"}
    judged = compare(PROBLEM, found.chosen, rounds=3, seeds=1, jobs=1, work=WORK,
                     centralised=found.centralised)  # fmt: skip
    plain = compare(PROBLEM, found.chosen, rounds=3, seeds=1, jobs=1, centralised=50,
                    work=replace(WORK, lr=0.3))  # fmt: skip
    one, other = judged.of("centralised")[0], plain.of("centralised")[0]
    np.testing.assert_array_equal(one.model, other.model)
    assert tuned().centralised is None
