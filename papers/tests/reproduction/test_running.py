"""A recipe runs in a folder: killed, it goes on; run again, it computes nothing."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure

from fedcohort import Comparison, LocalWork, Problem
from fedcohort import data as data_sets
from fedcohort._internal.errors import BadCheckpoint, BadInput, BadParameter, UnknownName
from fedcohort.selection import Cohort, Scheme
from fedcohort.simulation import _comparison as comparison
from fedcohort_papers.recipes import (
    Alike,
    Along,
    Bars,
    Cell,
    Claim,
    Columns,
    Computed,
    Curves,
    Drawn,
    Every,
    Exact,
    Judged,
    Recipe,
    Results,
    Run,
    Scale,
    Tuned,
    difference,
)
from fedcohort_papers.reproduction import drawing, running
from fedcohort_papers.reproduction.tuned import told

WORK = LocalWork(steps=2, batch=10, lr=0.1)
CLAIM = Claim("md is as good as uniform", "0.9", Alike("accuracy", "md", "uniform", within=0.5))
CLAIM_OF_TWO = Claim(
    "md is as good", "0.9", Alike("accuracy", ("digits", "md"), ("again", "md"), within=0.5)
)
CELL = Cell("digits", Problem("digits", "iid:n=6"), ["md:m=2", "uniform:m=2"], 4, WORK)
TINY = Recipe(
    "tiny",
    "Two schemes",
    "A paper",
    where="Figure 7",
    cells=(CELL,),
    scales={"quick": Scale(seeds=2, rounds=3, changed="3 rounds instead of 4.")},
    claims=(CLAIM,),
    panels=(
        Curves("accuracy", printed={"md": 0.9}),
        Bars("accuracy", printed={"md": 0.9}),
        Along("accuracy", {"digits": 1.0}, "x", printed={"md": ([1.0], [0.9])}),
    ),
    shows="Two curves & 100 % of $nothing$.",
)


def ran(recipe: Recipe, folder: Path, **how: int) -> Judged:
    return Judged.of(Run.of(recipe, "quick", folder, jobs=1, **how)())


def test_run_written_and_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = ran(TINY, tmp_path).write(tmp_path)
    assert {place.suffix for place in places} == {".png", ".pdf", ".csv", ".json", ".md", ".tex"}
    assert (tmp_path / "tiny.pdf").read_bytes()[:4] == b"%PDF"
    facts = json.loads((tmp_path / "tiny.json").read_text())
    assert facts["changed"] == "3 rounds instead of 4."
    assert (facts["scale"], facts["seeds"], facts["partitions"]) == ("quick", 2, 1)
    lines = (tmp_path / "tiny.csv").read_text().splitlines()
    assert lines[0] == "cell,arm,partition,seed,accuracy"
    assert len(lines) == 1 + 2 * 2
    curves = (tmp_path / "tiny-curves.csv").read_text().splitlines()
    assert len(curves) == 1 + 2 * 3
    assert r"95 \%" not in (tmp_path / "tiny.tex").read_text()
    assert r"5 \%" in (tmp_path / "tiny.tex").read_text()

    def never(*_: object, **__: object) -> None:
        raise AssertionError("nothing is left to be computed")

    monkeypatch.setattr(comparison.Arm, "run", never)
    before = {p: p.read_bytes() for p in places if p.suffix != ".png"}
    (tmp_path / "tiny.json").write_text(
        (tmp_path / "tiny.json").read_text().replace(facts["date"], "2020-01-01")
    )
    ran(TINY, tmp_path).write(tmp_path)
    for place, content in before.items():
        if place.suffix != ".json":
            assert place.read_bytes() == content, place
    assert json.loads((tmp_path / "tiny.json").read_text()) == {**facts, "date": "2020-01-01"}


def test_who_asks_for_a_report_on_a_recipe_is_shown_where_its_runs_are(tmp_path: Path) -> None:
    ran(TINY, tmp_path)
    there = tmp_path / "runs" / "digits"
    with pytest.raises(BadCheckpoint, match=rf"no settings\.json; .* '{there}' is one\.$"):
        Comparison.load(tmp_path)
    assert len(Comparison.load(there).traces) == 4


def test_seeds_and_partitions_add_to_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran(TINY, tmp_path)
    before = {p: p.read_bytes() for p in tmp_path.glob("runs/**/*.npz")}
    computed, real = [], comparison.Arm.run

    def counted(self: comparison.Arm, task: Any, **options: Any) -> Any:
        if options["rounds"] > 1:  # not the trial round
            computed.append(options["seed"])
        return real(self, task, **options)

    monkeypatch.setattr(comparison.Arm, "run", counted)
    more = ran(TINY, tmp_path, seeds=4)
    assert sorted(computed) == [2, 2, 3, 3]  # two arms, and none of the seeds that were there
    assert all(p.read_bytes() == content for p, content in before.items())
    assert more.findings[0].units == 4
    computed.clear()
    ran(TINY, tmp_path)  # fewer again: all are there
    assert computed == []
    ran(TINY, tmp_path, partitions=2)
    assert len(computed) == 2 * 2  # of the second partition


def test_cells_with_the_same_data_read_them_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, real = [], data_sets.load

    def load(name: str, **options: Any) -> Any:
        read.append(name)
        return real(name, **options)

    monkeypatch.setattr(data_sets, "load", load)
    two = replace(
        TINY, cells=(CELL, replace(CELL, name="again")), claims=(CLAIM_OF_TWO,), panels=()
    )
    ran(two, tmp_path)
    assert read == ["digits"]
    CELL.problem.task()  # outside everybody reads for himself
    assert read == ["digits"] * 2


def test_partitions_are_the_units(tmp_path: Path) -> None:
    found = ran(TINY, tmp_path, seeds=1, partitions=3).findings[0]
    assert (found.units, found.unit) == (3, "partition")
    more = ran(TINY, tmp_path, seeds=2, partitions=3).findings[0]
    assert (more.units, more.unit) == (3, "partition")


def counting_arms(seen: list[int], task: Any) -> dict[str, str]:
    seen.append(len(task.sizes))
    return {"md": "md:m=2", "uniform": f"uniform:m={len(seen)}"}


def two_arms(task: Any) -> list[str]:
    return ["md:m=2", "uniform:m=2"]


def choosing_arms(task: Any) -> Any:
    return CHOOSING.arms


def test_arms_that_depend_on_the_clients(tmp_path: Path) -> None:
    seen: list[int] = []
    cell = replace(CELL, arms=partial(counting_arms, seen))
    found = ran(replace(TINY, cells=(cell,)), tmp_path, partitions=2, seeds=1)
    assert seen == [6, 6]
    assert found.findings[0].unit == "partition"
    counts = [t.distinct[0] for t in found.results.traces("uniform").values()]
    assert counts == [1, 2]


def test_runs_go_seed_by_seed_where_arms_depend_on_the_division(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order, real = [], comparison.Arm.run

    def counted(self: comparison.Arm, task: Any, **options: Any) -> Any:
        if options["rounds"] > 1:
            order.append((options["settings"]["seed"], options["settings"]["partition"]))
        return real(self, task, **options)

    monkeypatch.setattr(comparison.Arm, "run", counted)
    cell = replace(CELL, arms=two_arms)
    ran(replace(TINY, cells=(cell,)), tmp_path, partitions=2, seeds=2)
    assert order == [(seed, at) for seed in (0, 1) for at in (0, 0, 1, 1)]


GRID = {"lr": (0.3, 300.0)}
CHOOSING = replace(
    CELL, tuned=Tuned(GRID, seeds=1), options={"centralised": 20},
    arms={"md": "md:m=2", "uniform": "uniform:m=2"},
)  # fmt: skip


def blinded(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on the test set is worthless: whoever chooses by it chooses at random."""
    real = data_sets.load

    def load(name: str, **options: Any) -> Any:
        whole = real(name, **options)
        return replace(whole, x_test=np.zeros_like(whole.x_test), y_test=whole.y_test[::-1])

    monkeypatch.setattr(data_sets, "load", load)


@pytest.mark.parametrize("depending", [False, True])
def test_step_sizes_are_chosen_on_validation_data(
    depending: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blinded(monkeypatch)
    arms: Any = choosing_arms if depending else CHOOSING.arms
    tuned = replace(TINY, cells=(replace(CHOOSING, arms=arms),), panels=())
    judged = ran(tuned, tmp_path, partitions=2)
    facts = json.loads(json.dumps(judged.as_dict()))["tuned"]["digits"]
    assert facts["chosen"] == {label: {"lr": 0.3} for label in ("md", "uniform", "centralised")}
    assert set(facts["tried"].values()) == {2}
    runs = [t for c in judged.results.runs["digits"] for t in c.traces]
    assert len(runs) == 3 * 2 * 2
    kept = [c.settings["schemes"] for c in judged.results.runs["digits"]]
    assert all(word.endswith("+work:lr=0.3") for words in kept for word in words.values())
    monkeypatch.setattr(comparison.Arm, "run", None)  # all that is computed is there
    monkeypatch.setattr(comparison.Centralised, "run", None)
    assert ran(tuned, tmp_path, partitions=2).as_dict() == judged.as_dict()


def test_a_choice_for_all(tmp_path: Path) -> None:
    shared = replace(CHOOSING, tuned=Tuned(GRID, shared="md", seeds=1))
    judged = ran(replace(TINY, cells=(shared,), panels=()), tmp_path)
    facts = judged.as_dict()["tuned"]["digits"]
    assert facts["chosen"] == {"md": {"lr": 0.3}}
    assert told(facts) == (
        "chosen on validation data, of 2 values each, 1 run of 3 rounds, for all arms: md lr = 0.3."
        " md: lr=0.3 is the smallest value of the grid; a better one may lie beyond."
    )
    words = judged.results.runs["digits"][0].settings["schemes"]
    assert words["uniform"] == "uniform(m=2)+work:lr=0.3"
    assert words["centralised"] == "centralised(samples=20)+work:lr=0.3"
    nobody = replace(CHOOSING, tuned=Tuned(GRID, shared="mad"))
    with pytest.raises(UnknownName, match="no arm named 'mad'"):
        ran(replace(TINY, cells=(nobody,)), tmp_path / "other")


def test_one_natural_division_has_no_others(tmp_path: Path) -> None:
    cell = replace(CELL, problem=Problem("heart-disease", "natural", model="logistic"))
    if not Path(os.environ.get("FEDCOHORT_DATA", "-"), "heart_disease_4sites.npz").is_file():
        pytest.skip("set FEDCOHORT_DATA to a folder with heart_disease_4sites.npz")
    with pytest.raises(BadInput, match="natural"):
        ran(replace(TINY, cells=(cell,)), tmp_path, partitions=2)


# -- computed recipes ----------------------------------------------------------------------------


def numbers(scale: Scale, seed: int) -> Computed:
    x = np.arange(scale.numbers["points"])
    return Computed({"x": x, "y": x**2, "name": np.array(["a"] * len(x))}, {"two": 2.0 + seed * 0})


COMPUTED = Recipe(
    "computed",
    "Squares",
    "A paper",
    compute=numbers,
    scales={"quick": Scale(seeds=2, numbers={"points": 3})},
    claims=(Claim("two", "2", Exact("two", 2.0, 0.0)),),
    panels=(
        Columns("x", {"y": "squares"}, printed={"y": 4.0}, log="y"),
        Drawn(lambda axes, results: axes.plot(results.columns["y"]), "own"),
    ),
)


def test_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = ran(COMPUTED, tmp_path)
    assert first.verdict == "reproduced"
    assert list(first.results.columns["y"]) == [0, 1, 4]
    first.write(tmp_path)
    assert (tmp_path / "computed.csv").read_text().splitlines()[-1] == "2,4,a"
    calls = []
    monkeypatch.setattr(running, "_compute", lambda *given: calls.append(given))
    assert ran(COMPUTED, tmp_path).verdict == "reproduced"
    assert calls == []
    (tmp_path / "computed" / "seed-1.npz").write_bytes(b"damaged")
    ran(COMPUTED, tmp_path)
    assert [given[2] for given in calls] == [1]  # the seed that cannot be read, again


def test_what_is_computed_beside_runs_has_a_table_of_its_own(tmp_path: Path) -> None:
    both = replace(
        COMPUTED, cells=(CELL,), scales={"quick": Scale(rounds=1, numbers={"points": 3})}
    )
    ran(both, tmp_path).write(tmp_path)
    lines = (tmp_path / "computed-computed.csv").read_text().splitlines()
    assert (lines[0], lines[-1]) == ("x,y,name", "2,4,a")
    assert (tmp_path / "computed.csv").read_text().startswith("cell,arm,partition,seed,")
    assert not (tmp_path / "computed-curves.csv").exists()


def test_other_numbers_are_computed_again(tmp_path: Path) -> None:
    ran(COMPUTED, tmp_path)
    other = replace(COMPUTED, scales={"quick": Scale(numbers={"points": 5})})
    assert len(ran(other, tmp_path).results.columns["y"]) == 5


# -- killed --------------------------------------------------------------------------------------

SLOW = """
import time
from fedcohort import LocalWork, Problem
from fedcohort import data as data_sets
from fedcohort_papers.recipes import Cell, Claim, Recipe, Scale, difference

SLOW = Recipe(
    "slow", "Two schemes", "A paper",
    cells=(Cell("digits", Problem("digits", "iid:n=6"), ["md:m=2", "uniform:m=2"], 3,
                LocalWork(steps=2)),),
    scales={"quick": Scale(seeds=3)},
    claims=(Claim("one", "two", difference("accuracy", "md", "uniform")),),
)
"""
DRIVER = """
import sys, time
from fedcohort.simulation import _arms as arms
from fedcohort.cli import main
real = arms.Arm.run
def slowly(self, task, **options):
    time.sleep(0.3 if options["rounds"] > 1 else 0)
    return real(self, task, **options)
arms.Arm.run = slowly
sys.argv = ["fedcohort", "reproduce", "./slow.py", "--out", sys.argv[1], "--jobs", "1", "--json"]
main()
"""


def test_a_killed_reproduction_goes_on(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = [sys.executable, "-c", DRIVER]
    killed = subprocess.Popen([*words, "one"], cwd=tmp_path, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 120
        while len(list(tmp_path.glob("one/runs/digits/*.npz"))) < 3:
            assert time.monotonic() < until, killed.poll()
            time.sleep(0.02)
    finally:
        killed.send_signal(signal.SIGKILL)
        killed.communicate()
    runs = {p: p.stat().st_mtime_ns for p in tmp_path.glob("one/runs/digits/*.npz")}
    assert 3 <= len(runs) < 6
    assert not (tmp_path / "one" / "slow.json").exists()
    done = [
        subprocess.run([*words, name], cwd=tmp_path, capture_output=True, text=True, timeout=300)
        for name in ("one", "two", "one")
    ]
    assert [each.returncode for each in done] == [3, 3, 3], done[0].stderr
    assert all(p.stat().st_mtime_ns == at for p, at in runs.items())  # never repeated
    found = [json.loads(each.stdout) for each in done]
    assert found[2] == found[0]  # to the second that it took
    assert found[1]["claims"] == found[0]["claims"]  # as one that was never killed


# -- bad recipes ---------------------------------------------------------------------------------


def test_a_recipe_that_is_none() -> None:
    with pytest.raises(BadInput, match="must have cells, or compute"):
        Recipe("x", "t", "p", scales={"quick": Scale()}, claims=(CLAIM,))
    with pytest.raises(BadParameter, match="'kind' parameter of a claim must be one of theory"):
        replace(TINY.claims[0], kind="proof")
    with pytest.raises(BadInput, match="must have a scale"):
        replace(TINY, scales={})
    with pytest.raises(BadInput, match="must claim something"):
        replace(TINY, claims=())
    with pytest.raises(UnknownName, match="scale"):
        replace(TINY, scales={"fast": Scale()})
    with pytest.raises(BadInput, match="one name"):
        replace(TINY, cells=(CELL, CELL))
    with pytest.raises(BadInput, match="has no scale 'full'; it has quick"):
        TINY.scale("full")
    with pytest.raises(BadParameter, match="seeds"):
        Scale(seeds=0)
    with pytest.raises(BadInput, match="one length"):
        Computed({"a": np.ones(2), "b": np.ones(3)})


def test_a_scale_changes_cells() -> None:
    scale = Scale(
        rounds=2,
        change={
            "problem": {"partition": "iid:n=3"},
            "options": {"evaluate_every": 2},
            "work": LocalWork(steps=1),
        },
        only=("digits",),
    )
    (cell,) = TINY.cells_at(scale)
    assert cell.problem == Problem("digits", "iid:n=3")
    assert (cell.rounds, cell.work.steps, dict(cell.options)) == (2, 1, {"evaluate_every": 2})
    assert TINY.cells_at(Scale(only=())) == ()


def test_a_damaged_run_is_named_with_what_to_do(tmp_path: Path) -> None:
    ran(TINY, tmp_path)
    damaged = sorted(tmp_path.glob("runs/digits/*.npz"))[1]
    damaged.write_bytes(b"damaged")
    with pytest.raises(BadCheckpoint, match=rf"'{damaged}' is damaged.*Delete that file and run"):
        ran(TINY, tmp_path)
    damaged.unlink()
    assert ran(TINY, tmp_path).findings[0].units == 2


def test_an_undecided_claim_says_so(tmp_path: Path) -> None:
    claim = Claim("?", "?", difference("accuracy", "md", "uniform"))
    judged = ran(replace(TINY, claims=(claim,)), tmp_path, seeds=1)
    assert judged.verdict == "undecided"
    assert isinstance(judged.results, Results)
    facts = judged.as_dict()
    few = "too few seeds to know their spread: run at least 3: --seeds 3"
    assert facts["claims"][0]["remedy"] == few


def test_a_panel_of_what_is_not_run_says_so_and_so_do_the_curves(tmp_path: Path) -> None:
    both = (CELL, replace(CELL, name="again"))
    panels = (
        Curves(cell="digits"),
        Curves(cell="again", title="later"),
        Bars("accuracy", of=[("again", "md")]),
        Along("accuracy", {"again": 1.0}, "x"),
    )
    claim = Claim("?", "?", difference("accuracy", ("digits", "md"), ("digits", "uniform")))
    scales = {
        "quick": Scale(seeds=2, rounds=3, only=("digits",)),
        "full": Scale(seeds=2, rounds=3),
    }
    recipe = replace(TINY, cells=both, claims=(claim,), panels=panels, scales=scales)
    judged = ran(recipe, tmp_path)
    assert all(place.stat().st_size for place in judged.write(tmp_path))
    axes = Figure().add_subplot()
    for panel in panels[1:]:
        drawing._draw(panel, axes, judged.results)
        said = " ".join(axes.texts[0].get_text().split())
        assert said == "Not run at this scale: 'again' is run at the scale full"
        assert axes.get_title() == panel.title
    curves = list(csv.reader((tmp_path / "tiny-curves.csv").read_text().splitlines()))
    assert curves[0] == ["curve", "cell", "arm", "round", "mean", "sd", "note"]
    assert curves[-1] == ["accuracy", "again", "", "", "", "", said]
    assert len(curves) == 1 + 2 * 3 + 1
    full = Judged.of(Run.of(recipe, "full", tmp_path / "full", jobs=1)())
    assert len(list(full.curves())) == 1 + 2 * 2 * 3


@dataclass(frozen=True)
class Wild(Scheme):
    """Everybody, with weights beyond all numbers on divisions but the first, or everywhere."""

    name: ClassVar[str] = "wild"
    everywhere: ClassVar[bool] = False

    def select(self, state: Any, federation: Any, context: Any, rng: Any) -> Any:
        first = federation.sizes[0] == FIRST_SIZE and not self.everywhere
        weight = 1.0 if first or context.round < 1 else 1e300
        return Cohort.of(range(len(federation)), federation.importance * weight)
        yield


class Wilder(Wild):
    everywhere = True


FIRST_SIZE = 0


@pytest.mark.parametrize(("kind", "said"), [(Wild, "wild diverged in 2 runs"),
                                            (Wilder, "Every run of 'wild' diverged.")])  # fmt: skip
def test_a_run_that_diverges_decides_nothing_and_ends_nothing(
    kind: type[Wild], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem("digits", "dirichlet-per-class:n=6,alpha=0.5")
    monkeypatch.setattr(sys.modules[__name__], "FIRST_SIZE", int(problem.task().sizes[0]))
    arms = {"md": "md:m=2", "uniform": "uniform:m=2", "wild": kind()}
    cell = replace(CELL, problem=problem, arms=arms)
    claims = (
        CLAIM,
        Claim("wild is as good", "1", Alike("accuracy", "wild", "md", within=1.0)),
        Claim("both", "1", Every(CLAIM.judge, Alike("accuracy", "wild", "md", within=1.0))),
    )
    scales = {"quick": Scale(partitions=3, rounds=3, changed="3 rounds instead of 4.")}
    panels = (*TINY.panels, Curves(arms=("md", "wild")), Bars("best", of=["wild", "md"]))
    recipe = replace(TINY, cells=(cell,), scales=scales, claims=claims, panels=panels)
    judged = ran(recipe, tmp_path)
    assert [each.units for each in judged.findings[:1]] == [3]
    assert judged.findings[0].verdict == "reproduced"
    for found in judged.findings[1:]:
        assert found.verdict == "undecided"
        assert said in f"{found.found} {found.remedy}"
    assert all(place.stat().st_size for place in judged.write(tmp_path))
