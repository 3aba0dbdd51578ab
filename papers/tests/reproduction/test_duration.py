"""How long a recipe takes: it scales with what is run, a slow arm shows, and nothing is written."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from fedcohort import LocalWork, Problem
from fedcohort._internal.errors import Diverged
from fedcohort.cli import app
from fedcohort.selection import Cohort, Scheme
from fedcohort.simulation import _comparison as comparison
from fedcohort_papers import command
from fedcohort_papers.recipes import Alike, Cell, Claim, Computed, Exact, Recipe, Run, Scale, Tuned
from fedcohort_papers.reproduction import duration as module
from fedcohort_papers.reproduction.duration import Duration, Pace, Part, duration

ROUND, FIRST, FIXED, EVALUATION = 2.0, 5.0, 7.0, 0.5
"""Seconds of a run whose cost is known."""


@dataclass(frozen=True)
class Told:
    """A trace, as far as it is looked at."""

    seconds: Any


class Clock:
    """Time that passes when a run says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def process_time(self) -> float:
        return self.now

    def perf_counter(self) -> float:
        return 3 * self.now  # others are at work on the machine, too


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Runs take as long as the constants say; a scheme that is called slow ten times as long."""
    clock = Clock()

    def run(self: Any, task: Any, *, rounds: int, evaluate_every: int = 1, **_: Any) -> Told:
        times = 10.0 if self.name == "uniform" else 1.0
        at = np.arange(rounds) + 1
        seconds = np.zeros((rounds, 3))
        seconds[:, 1] = times * np.where(at == 1, FIRST, ROUND)
        seconds[:, 2] = EVALUATION * ((at % evaluate_every == 0) | (at == rounds))
        clock.now += FIXED + seconds.sum()
        return Told(3 * seconds)  # as the clock on the wall has it

    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(module, "ENOUGH", 1000.0)
    monkeypatch.setattr(comparison.Arm, "run", run)
    monkeypatch.setattr(comparison.Centralised, "run", run)
    return clock


ARMS = {"md": "md:m=2", "slow": "uniform:m=2"}
CLAIM = Claim("as good", "0.9", Alike("accuracy", "md", "slow", within=0.5))
CELL = Cell("digits", Problem("digits", "iid:n=6"), ARMS, 100, LocalWork(steps=2, batch=10, lr=0.1))
RECIPE = Recipe(
    "one", "Two schemes", "A paper",
    cells=(CELL,), scales={"quick": Scale(seeds=3, partitions=2)}, claims=(CLAIM,),
)  # fmt: skip


def found(recipe: Recipe, folder: Path, **how: Any) -> Duration:
    return duration(Run.of(recipe, "quick", folder, jobs=1, **how))


def run_of(rounds: int, times: float = 1.0, evaluations: int | None = None) -> float:
    """Seconds of a run, by hand."""
    of_rounds = times * (FIRST + (rounds - 1) * ROUND)
    return FIXED + of_rounds + (rounds if evaluations is None else evaluations) * EVALUATION


def test_it_is_what_the_runs_cost(known: Clock, tmp_path: Path) -> None:
    whole = found(RECIPE, tmp_path)
    each = {part.arm: part.each for part in whole.parts}
    assert each == pytest.approx({"md": run_of(100), "slow": run_of(100, 10.0)})
    assert whole.whole == pytest.approx(6 * sum(each.values()))  # 3 seeds, 2 partitions
    assert whole.left == whole.whole
    assert whole.on(4) == pytest.approx(whole.whole / 4)
    assert whole.on(1000) == pytest.approx(each["slow"])  # a run is on one core
    assert list(tmp_path.iterdir()) == []


def test_it_grows_with_rounds_seeds_and_evaluations(known: Clock, tmp_path: Path) -> None:
    longer = replace(RECIPE, scales={"quick": Scale(seeds=5, rounds=1000)})
    each = {part.arm: part for part in found(longer, tmp_path).parts}
    assert each["md"].each == pytest.approx(run_of(1000))
    assert each["md"].runs == 5
    seldom = replace(CELL, options={"evaluate_every": 30})
    parts = found(replace(RECIPE, cells=(seldom,)), tmp_path).parts
    assert parts[0].each == pytest.approx(run_of(100, evaluations=4))  # 30, 60, 90, 100


def test_one_round_is_enough_where_it_is_long(
    known: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ENOUGH", 1.0)
    parts = found(RECIPE, tmp_path).parts
    assert known.now == pytest.approx(run_of(1) + run_of(1, 10.0))
    assert parts[0].each == pytest.approx(FIXED + 100 * (FIRST + EVALUATION))


def test_a_run_that_diverges_ends_there(known: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(self: Any, task: Any, **_: Any) -> Any:
        known.now += 1.5
        raise Diverged("an update is not finite")

    monkeypatch.setattr(comparison.Arm, "run", run)
    assert found(RECIPE, Path("nowhere")).parts[0].each == 1.5


def the_arms(task: Any) -> Any:
    return ARMS


@pytest.mark.parametrize("depending", [False, True])
def test_tuning_and_centralised_training_count(
    depending: bool, known: Clock, tmp_path: Path
) -> None:
    tuned = Tuned({"lr": (0.1, 0.3, 1.0)}, seeds=2)
    arms: Any = the_arms if depending else ARMS
    cell = replace(CELL, tuned=tuned, options={"centralised": 20}, arms=arms)
    runs = {part.arm: part.runs for part in found(replace(RECIPE, cells=(cell,)), tmp_path).parts}
    assert runs == {"md": 6 + 6, "slow": 6 + 6, "centralised": 6 + 6}
    shared = replace(cell, tuned=replace(tuned, shared="md"))
    runs = {p.arm: p.runs for p in found(replace(RECIPE, cells=(shared,)), tmp_path).parts}
    assert runs == {"md": 6 + 6, "slow": 6, "centralised": 6}


@pytest.mark.parametrize("depending", [False, True])
def test_what_is_in_the_folder_is_done(depending: bool, tmp_path: Path) -> None:
    arms: Any = the_arms if depending else ARMS
    tuned = Tuned({"lr": (0.1, 0.3)}, seeds=1)
    cell = replace(CELL, arms=arms, tuned=tuned)
    recipe = replace(RECIPE, cells=(cell,), scales={"quick": Scale(partitions=2, rounds=2)})
    assert [part.left for part in found(recipe, tmp_path).parts] == [4, 4]
    Run.of(recipe, "quick", tmp_path, jobs=1)()
    done = found(recipe, tmp_path)
    assert (done.left, done.on(2)) == (0, 0)
    assert done.whole > 0
    assert [part.left for part in found(recipe, tmp_path, seeds=3).parts] == [4, 4]
    longer = replace(recipe, scales={"quick": Scale(partitions=2, rounds=4)})
    assert [part.left for part in found(longer, tmp_path).parts] == [2, 2]  # half of four each
    place = next(tmp_path.glob("runs/**/*.npz"))
    place.write_bytes(b"damaged")
    assert sum(part.left for part in found(recipe, tmp_path).parts) == 1


@dataclass(frozen=True)
class Sleepless(Scheme[None]):
    """Thinks for a while before it chooses."""

    name = "sleepless"
    paper = "none"

    def select(self, state: Any, federation: Any, context: Any, rng: Any) -> Any:
        until = time.process_time() + 0.05
        while time.process_time() < until:
            pass
        return Cohort.of([0], [1.0])
        yield


def test_a_slow_arm_shows(tmp_path: Path) -> None:
    cell = replace(CELL, arms={"md": "md:m=2", "slow": Sleepless()})
    parts = {part.arm: part.each for part in found(replace(RECIPE, cells=(cell,)), tmp_path).parts}
    assert parts["slow"] > 2.5  # 100 rounds of 0.05 s, by a difference of a few on a busy machine
    assert parts["slow"] > 2 * parts["md"]


def computed(scale: Scale, seed: int) -> Computed:
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    return Computed(samples={"two": 2.0 + seed * 0})


def test_what_is_computed(tmp_path: Path) -> None:
    recipe = Recipe(
        "computed", "Two", "A paper", compute=computed, scales={"quick": Scale(seeds=4)},
        claims=(Claim("two", "2", Exact("two", 2.0, 0.0)),),
    )  # fmt: skip
    (part,) = found(recipe, tmp_path).parts
    assert (part.runs, part.left) == (4, 4)
    assert 0.05 <= part.each < 1
    results = Run.of(recipe, "quick", tmp_path, jobs=1, seeds=3)()
    assert results.seconds == pytest.approx(sum(e.seconds for e in results.computed.values()))
    assert results.seconds >= 0.15
    (part,) = found(recipe, tmp_path).parts
    assert part.left == 1
    assert part.each == pytest.approx(results.seconds / 3)  # as those that are there took


def test_seconds_are_those_of_all_runs_whenever_they_were_made(tmp_path: Path) -> None:
    cell = replace(CELL, tuned=Tuned({"lr": (0.1, 0.3)}, seeds=1))
    recipe = replace(RECIPE, cells=(cell,), scales={"quick": Scale(rounds=2)})
    first = Run.of(recipe, "quick", tmp_path, jobs=1)()
    more = Run.of(recipe, "quick", tmp_path, jobs=1, seeds=2)()
    traces = more.runs["digits"][0].traces
    added = sum(float(t.seconds.sum()) for t in traces if t.seed == 1)
    assert more.seconds == pytest.approx(first.seconds + added)
    assert Run.of(recipe, "quick", tmp_path, jobs=1, seeds=2)().seconds == more.seconds


def test_no_core_is_of_use_where_nothing_is_left() -> None:
    assert Duration("r", "p", ()).on(2) == 0
    assert Duration("r", "p", (Part("c", "a", 2, 0.5, 10.0),)).on(2) == 5.0
    assert Pace(1.0, 2.0, 3.0).run(10, 4) == 1 + 20 + 3 * 3


def test_the_command(known: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(RECIPE, name="two", paper="Another")
    none = replace(RECIPE, name="none", scales={"full": Scale()})
    monkeypatch.setattr(command, "recipe", lambda name: RECIPE)
    monkeypatch.setattr(command, "recipes", lambda: {"one": RECIPE, "two": other, "none": none})
    monkeypatch.chdir(tmp_path)

    def said(*words: str) -> Result:
        done = CliRunner().invoke(app(), ["reproduce", *words, "--time", "--jobs", "1"])
        assert done.exit_code == 0, done.output
        return done

    one = said("one").stdout
    assert "slow" in one.splitlines()[1]  # the dearest arm first
    assert f"{6 * (run_of(100) + run_of(100, 10.0)) / 3600:.1f} h" in one
    both = said("--all", "--scale", "quick")
    assert "Another" in both.stdout
    assert "none: has no scale 'quick', left out." in both.stderr
    facts = json.loads(said("--all", "--paper", "another", "--json").stdout)
    assert [each["recipe"] for each in facts] == ["two"]
    assert list(tmp_path.iterdir()) == []
