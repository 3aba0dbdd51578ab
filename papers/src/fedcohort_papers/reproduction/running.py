"""Run a recipe in a folder that can be resumed: every finished run stays, and is never repeated.

``FOLDER/runs/CELL`` is a run folder of `compare`, a page of which `fedcohort report` writes;
``FOLDER/tuning/CELL`` has the runs by which its settings were chosen, where they were;
``FOLDER/computed/seed-S.npz`` is what a recipe without training found. The same seeds give the
same numbers; runs of other seeds and partitions than are asked for may be there, and do not count.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, BadParameter, Diverged, UnequalWork
from fedcohort._internal.files import file_name
from fedcohort.server import Trace
from fedcohort.simulation import Comparison, Problem, compare
from fedcohort.simulation._problem import reading_once
from fedcohort.simulation._storage import run_file
from fedcohort.simulation._workers import Unit
from fedcohort_papers.reproduction.recipe import Arms, Cell, Computed, Recipe, Scale
from fedcohort_papers.reproduction.results import Results
from fedcohort_papers.reproduction.tuned import Choice, choose

KIND = "computed"
SECONDS = "seconds"
Tell = Callable[[str], None]
"""Hears in words how far it is."""
Diverging = dict[tuple[str, str], set[Unit]]
"""By cell and arm: runs that left the finite numbers."""


class Interrupted(KeyboardInterrupt):
    """Stopped by the user; what is finished is kept."""


@dataclass(frozen=True)
class Run:
    """One execution of a recipe: at which scale, where, on how many processes."""

    recipe: Recipe
    scale_name: str
    scale: Scale
    folder: Path
    seed: int = 0
    partition: int = 0
    """The first division, counted from that of every cell."""
    jobs: int = -1
    ray: str | None = None
    tell: Tell = lambda text: None

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        scale: str,
        folder: Path,
        *,
        seeds: int | None = None,
        partitions: int | None = None,
        **how: Any,
    ) -> Run:
        """At a scale by name, with other numbers of seeds and partitions where they are given."""
        chosen = recipe.scale(scale)
        recipe.settings(chosen)  # a setting without a name is refused before hours of runs
        given = {"seeds": seeds, "partitions": partitions, "partition": how.get("partition", 0)}
        for name, number in recipe.idle(scale, **given).items():
            why = f"{int(name != 'partition')} at the scale '{scale}', for it makes no difference"
            owner = f"the recipe '{recipe.name}'"
            raise BadParameter(name, owner, why, number, f"Leave --{name} out.")
        other = {name: given[name] for name in ("seeds", "partitions") if given[name] is not None}
        return cls(recipe, scale, replace(chosen, **other), folder, **how)

    def __call__(self) -> Results:
        """All runs and numbers, computed or found in the folder."""
        cells = self.recipe.cells_at(self.scale)
        if self.ray is not None and not cells:
            self.tell("it computes here, in this process: --ray makes no difference")
        chosen: dict[str, Choice] = {}
        lost: Diverging = {}
        runs: dict[str, tuple[Comparison, ...]] = {}
        with reading_once(), _saying_which(self.folder):
            for number, cell in enumerate(cells, 1):
                many = self.scale.partitions
                of = f", {many} partitions" if many > 1 else ""
                self.tell(f"cell {number} of {len(cells)}: {cell.name}{of}")
                chosen[cell.name] = self._tuned(cell)
                runs[cell.name] = self._cell(cell, chosen[cell.name], lost)
        tuned = {name: choice.facts for name, choice in chosen.items() if choice.facts}
        computed = self._computed()
        counts = {arm: len(units) for arm, units in lost.items()}
        traces = [trace for many in runs.values() for each in many for trace in each.traces]
        seconds = sum((float(trace.seconds.sum()) for trace in traces), 0.0)
        seconds += sum(choice.seconds for choice in chosen.values())
        seconds += sum(each.seconds for each in computed.values())
        return Results(
            self.recipe, self.scale, self.scale_name, runs, computed, tuned, counts, seconds,
            self.seed, self.partition,
        )  # fmt: skip

    @property
    def seeds(self) -> range:
        """The seeds of every arm on every partition."""
        return range(self.seed, self.seed + self.scale.seeds)

    def divisions(self, cell: Cell) -> list[int]:
        """The seeds of the divisions that a cell is run on."""
        first = cell.problem.partition_seed + self.partition
        return list(range(first, first + self.scale.partitions))

    def _tuned(self, cell: Cell) -> Choice:
        """Settings that are chosen first, on validation data."""
        if cell.tuned is None:
            return Choice()
        self.tell("settings are chosen on validation data")
        arms = cell.arms(cell.problem.task()) if callable(cell.arms) else cell.arms
        how = {"jobs": self.jobs, "ray": self.ray, "settings": {"recipe": self.recipe.name}}
        return choose(cell, arms, self.tuning(cell), **how)

    def tuning(self, cell: Cell) -> Path:
        """Where the runs are kept by which the settings of a cell are chosen."""
        return self.folder / "tuning" / file_name(cell.name)

    def places(self, cell: Cell, label: str) -> list[Path]:
        """Where the runs of an arm are kept, on every partition with every seed."""
        place, base = self._place(cell), cell.problem.partition_seed
        found = []
        for number in self.divisions(cell):
            own, filed = place, None if number == base else number
            if callable(cell.arms):  # a folder for every partition
                own, filed = place / f"partition-{number}", None
            found += [run_file(own, label, seed, filed) for seed in self.seeds]
        return found

    def _place(self, cell: Cell) -> Path:
        return self.folder / "runs" / file_name(cell.name)

    def _cell(self, cell: Cell, choice: Choice, lost: Diverging) -> tuple[Comparison, ...]:
        """The runs of a cell: one comparison, or one per partition where arms depend on it."""
        place = self._place(cell)
        if not callable(cell.arms):
            over = {"partitions": self.divisions(cell)}
            return (self._compare(cell, cell.problem, cell.arms, choice, place, lost, **over),)
        problems = [replace(cell.problem, partition_seed=seed) for seed in self.divisions(cell)]
        depending = [cell.arms(problem.task()) for problem in problems]
        found: list[Comparison] = []
        for last in self.seeds:  # one seed on all of them, then the next
            found = [
                self._compare(cell, problem, arms, choice,
                              place / f"partition-{problem.partition_seed}", lost,
                              seeds=range(self.seed, last + 1))
                for problem, arms in zip(problems, depending, strict=True)
            ]  # fmt: skip
        return tuple(found)

    def _compare(
        self,
        cell: Cell,
        problem: Problem,
        arms: Arms,
        choice: Choice,
        place: Path,
        lost: Diverging,
        **over: Any,
    ) -> Comparison:
        def hear(unit: Unit, error: Diverged) -> None:
            lost.setdefault((cell.name, unit.label), set()).add(unit)
            self.tell(f"{unit.label}, partition {unit.partition}, seed {unit.seed}: {error}")

        with warnings.catch_warnings():  # a paper's local work is as it is
            warnings.simplefilter("ignore", UnequalWork)
            done = compare(
                problem,
                choice.arms(arms, cell.options),
                rounds=cell.rounds,
                folder=place,
                jobs=self.jobs,
                ray=self.ray,
                work=cell.work,
                settings={"recipe": self.recipe.name},
                diverged=hear,
                **{"seeds": self.seeds, **over},
                **choice.options(cell.options),
            )
        if done.interrupted:
            raise Interrupted
        return done

    def _computed(self) -> dict[int, Computed]:
        if self.recipe.compute is None:
            return {}
        missing = [seed for seed in self.seeds if self.kept(seed) is None]
        if missing:
            self.tell(f"computing, {len(missing)} of {len(self.seeds)} seeds")
        calls = (joblib.delayed(_compute)(self.recipe.compute, self.scale, seed, self._file(seed),
                                          self._facts(seed)) for seed in missing)  # fmt: skip
        jobs = self.jobs if len(missing) > 1 else 1
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            joblib.Parallel(n_jobs=jobs)(calls)
        found = {seed: self.kept(seed) for seed in self.seeds}
        return {seed: each for seed, each in found.items() if each is not None}

    def _file(self, seed: int) -> Path:
        return (self.folder / "computed" / f"seed-{seed}.npz").absolute()

    def _facts(self, seed: int) -> dict[str, Any]:
        """What decides the numbers: if any of it is another, they are computed again."""
        from fedcohort import __version__

        return {
            "kind": KIND,
            "recipe": self.recipe.name,
            "numbers": repr(sorted(self.scale.numbers.items())),
            "seed": seed,
            "code": self.recipe.code,
            "version": __version__,
            **({"recipe version": self.recipe.version} if self.recipe.version > 1 else {}),
        }

    def kept(self, seed: int) -> Computed | None:
        """What was computed with a seed; None where it is not there, or of another recipe."""
        if not self._file(seed).is_file():
            return None
        try:
            header, arrays = store.load(self._file(seed), KIND)
        except BadCheckpoint:
            return None  # a number that cannot be read is computed again
        return _read(arrays) if header == self._facts(seed) else None


@contextlib.contextmanager
def _saying_which(folder: Path) -> Iterator[None]:
    """A run that cannot be read is named, with what to do."""
    try:
        yield
    except BadCheckpoint:
        for part in ("runs", "tuning"):
            for file in sorted((folder / part).glob("**/*.npz")):
                try:
                    Trace.load(file)
                except BadCheckpoint as error:
                    again = "Delete that file and run this again: only its run is repeated."
                    raise BadCheckpoint(f"{error} {again}") from None
        raise


def _compute(
    function: Callable[[Scale, int], Computed],
    scale: Scale,
    seed: int,
    place: Path,
    facts: Mapping[str, Any],
) -> None:
    computed = timed(function, scale, seed)
    arrays = {f"column.{name}": np.asarray(each) for name, each in computed.columns.items()}
    arrays |= {
        f"sample.{name}": np.asarray(each, dtype=np.float64)
        for name, each in computed.samples.items()
    }
    store.save(place, facts, {**arrays, SECONDS: np.array(computed.seconds)})


def timed(function: Callable[[Scale, int], Computed], scale: Scale, seed: int) -> Computed:
    """What a function computes, with the processor's seconds that it took."""
    started = time.process_time()
    computed = function(scale, seed)
    return replace(computed, seconds=time.process_time() - started)


def _read(arrays: Mapping[str, Any]) -> Computed:
    columns = {k.removeprefix("column."): v for k, v in arrays.items() if k.startswith("column.")}
    samples = {k.removeprefix("sample."): v for k, v in arrays.items() if k.startswith("sample.")}
    return Computed(columns, samples, float(arrays.get(SECONDS, 0.0)))
