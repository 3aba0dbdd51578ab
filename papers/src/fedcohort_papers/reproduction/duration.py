"""How long a recipe takes, before it is run: a few rounds of every arm are played and counted up.

Nothing is written. Seconds are those of one processor, so that other work on the machine does not
count; what is measured is the pace of this machine. Every division is taken to cost what the first
does, and every value of a tuning grid what the arm itself does. Reading data and drawing figures
are not counted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadCheckpoint, Diverged
from fedcohort.server import Trace
from fedcohort.simulation import Arm, Centralised
from fedcohort.simulation._arms import labelled
from fedcohort.simulation._centralized import upper_lines
from fedcohort.simulation._comparison import built_options
from fedcohort.simulation._problem import Loaded, reading_once
from fedcohort.simulation._storage import run_file
from fedcohort.simulation._tuning import FIRST_SEED
from fedcohort.simulation._workers import Processes
from fedcohort.training import Task
from fedcohort_papers.reproduction.recipe import Cell
from fedcohort_papers.reproduction.running import Run, timed
from fedcohort_papers.reproduction.tuned import CENTRAL, searched

ENOUGH = 1.0
"""Seconds of an arm: if one round takes as long, it is the only one."""
ROUNDS = 8
"""More are not played, however short they are."""
COMPUTED = "computed"


@dataclass(frozen=True)
class Pace:
    """Seconds of a run: before and after its rounds, per round, and per evaluation."""

    fixed: float
    round: float = 0.0
    evaluation: float = 0.0

    def run(self, rounds: int, every: int) -> float:
        """Of a whole run; the last round is evaluated in any case."""
        return self.fixed + rounds * self.round + -(-rounds // every) * self.evaluation


@dataclass(frozen=True)
class Part:
    """The runs of an arm in a cell, those that tune it included; or the seeds of `compute`."""

    cell: str
    arm: str
    runs: int
    left: float
    """How many are not in the folder; of one that is to be extended, the share that is missing."""
    each: float
    """Seconds of one."""


@dataclass(frozen=True)
class Duration:
    """Of a recipe, in seconds of one processor."""

    recipe: str
    paper: str
    parts: tuple[Part, ...]

    @property
    def whole(self) -> float:
        """From an empty folder."""
        return sum(part.runs * part.each for part in self.parts)

    @property
    def left(self) -> float:
        """With what is in the folder."""
        return sum(part.left * part.each for part in self.parts)

    def on(self, cores: int) -> float:
        """What is left, on so many cores; a run is on one, so the longest is the least."""
        longest = max((min(1.0, part.left) * part.each for part in self.parts), default=0.0)
        return max(self.left / cores, longest)

    def as_dict(self, cores: int) -> dict[str, Any]:
        """In plain values."""
        return {
            "recipe": self.recipe,
            "paper": self.paper,
            "processor_seconds": round(self.whole, 1),
            "left_seconds": round(self.left, 1),
            "cores": cores,
            "seconds_on_cores": round(self.on(cores), 1),
            "parts": [
                {"cell": part.cell, "arm": part.arm, "runs": part.runs, "left": part.left,
                 "seconds_each": round(part.each, 2)}
                for part in self.parts
            ],
        }  # fmt: skip


def duration(run: Run) -> Duration:
    """How long a run of a recipe takes, and how long what is left of it."""
    cells = {cell.name: cell for cell in run.recipe.cells_at(run.scale)}
    found: dict[str, list[Part]] = {name: [] for name in cells}
    with reading_once():
        calls = ((cell.problem.loaded(), cell) for cell in cells.values())
        for name, arms, paces in Processes(run.jobs).each(_paces, calls):
            found[name] = list(_parts(run, cells[name], arms, paces))
    parts = [part for each in found.values() for part in each]
    return Duration(run.recipe.name, run.recipe.paper, (*parts, *_computed(run)))


def _parts(
    run: Run, cell: Cell, arms: Mapping[str, Arm], paces: Mapping[str, Pace]
) -> Iterator[Part]:
    """The arms of a cell, and centralised training."""
    every = cell.options.get("evaluate_every", 1)
    tuning = list(_tuning(run, cell, arms))
    for label, pace in paces.items():
        places = [*run.places(cell, label), *(place for own, place in tuning if own == label)]
        left = sum(1 - _done(place, cell.rounds) for place in places)
        yield Part(cell.name, label, len(places), left, pace.run(cell.rounds, every))


def _tuning(run: Run, cell: Cell, arms: Mapping[str, Arm]) -> Iterator[tuple[str, Path]]:
    """The runs by which settings are chosen: whose they are, and where they are kept."""
    if cell.tuned is None:
        return
    for name, (label, *_) in searched(cell, cell.tuned, arms).tries.items():
        for seed in range(FIRST_SEED, FIRST_SEED + cell.tuned.seeds):
            yield label, run_file(run.tuning(cell), name, seed)


def _done(place: Path, rounds: int) -> float:
    """Which share of a run is there."""
    try:
        return min(1.0, Trace.load(place).rounds / rounds) if place.is_file() else 0.0
    except BadCheckpoint:
        return 0.0


def _paces(loaded: Loaded, cell: Cell) -> tuple[str, Mapping[str, Arm], dict[str, Pace]]:
    """Of every arm of a cell; in a process as the runs are."""
    task = loaded.task(cell.problem.partition_seed)
    options = {**built_options(cell.options), "work": cell.work}
    lines = options.pop(CENTRAL, None)
    arms = labelled(cell.arms(task) if callable(cell.arms) else cell.arms)
    named: dict[str, Arm | Centralised] = {**arms}
    named |= {} if lines is None else upper_lines(lines)
    paces = {label: _pace(arm, task, cell.rounds, options) for label, arm in named.items()}
    return cell.name, arms, paces


def _pace(arm: Arm | Centralised, task: Task, rounds: int, options: Mapping[str, Any]) -> Pace:
    """One round, and if that is short some more, which are then the ones that count."""
    found, seconds = _played(arm, task, 1, options)
    more = min(rounds, ROUNDS, int(ENOUGH / seconds))
    return found if more < 2 else _played(arm, task, more, options)[0]


def _played(
    arm: Arm | Centralised, task: Task, rounds: int, options: Mapping[str, Any]
) -> tuple[Pace, float]:
    """The pace of so many rounds, and the seconds that they took."""
    clock, started = time.perf_counter(), time.process_time()
    try:
        trace = arm.run(task, rounds=rounds, seed=FIRST_SEED, **options)
    except Diverged:  # so do the runs, which end there
        seconds = time.process_time() - started
        return Pace(seconds), seconds
    seconds = time.process_time() - started
    ours = seconds / (time.perf_counter() - clock)  # of the time that a trace tells
    own = ours * trace.seconds  # (T, 3) choosing, training, evaluation
    evaluations = int(np.count_nonzero(own[:, 2]))
    usual = float(own[min(1, rounds - 1) :, :2].sum(axis=1).mean())  # the first may do more
    evaluation = float(own[:, 2].sum()) / max(1, evaluations)
    fixed = seconds - rounds * usual - evaluations * evaluation
    return Pace(max(0.0, fixed), usual, evaluation), seconds


def _computed(run: Run) -> Iterator[Part]:
    """What seeds took that are in the folder, or else the first, which is computed for it."""
    if run.recipe.compute is None:
        return
    kept = {seed: run.kept(seed) for seed in run.seeds}
    left = [seed for seed, each in kept.items() if each is None]
    took = [each.seconds for each in kept.values() if each is not None and each.seconds]
    if not took:
        took = [
            each.seconds
            for each in Processes(1).each(timed, [(run.recipe.compute, run.scale, run.seed)])
        ]
    yield Part(COMPUTED, "", len(kept), len(left), float(np.mean(took)))
