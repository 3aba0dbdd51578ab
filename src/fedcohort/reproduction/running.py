"""Run a recipe in a folder that can be resumed: every finished run stays, and is never repeated.

``FOLDER/runs/CELL`` is a run folder of `compare`, a page of which `fedcohort report` writes;
``FOLDER/computed/seed-S.npz`` is what a recipe without training found. The same seeds give the
same numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from fedcohort.core import store
from fedcohort.core.errors import BadCheckpoint
from fedcohort.core.files import file_name
from fedcohort.core.fingerprint import source_digest
from fedcohort.reproduction.recipe import Arms, Cell, Computed, Recipe, Scale
from fedcohort.reproduction.results import Results
from fedcohort.simulation.comparison import Comparison, compare
from fedcohort.simulation.problem import Problem, reading_once

KIND = "computed"
Tell = Callable[[str], None]
"""Hears in words how far it is."""


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
        chosen = chosen if seeds is None else replace(chosen, seeds=seeds)
        chosen = chosen if partitions is None else replace(chosen, partitions=partitions)
        return cls(recipe, scale, chosen, folder, **how)

    def __call__(self) -> Results:
        """All runs and numbers, computed or found in the folder."""
        cells = self.recipe.cells_at(self.scale)
        with reading_once():
            runs = {
                cell.name: self._cell(cell, f"{number} of {len(cells)}")
                for number, cell in enumerate(cells, 1)
            }
        return Results(self.recipe, self.scale, self.scale_name, runs, self._computed())

    @property
    def seeds(self) -> range:
        """The seeds of every arm on every partition."""
        return range(self.seed, self.seed + self.scale.seeds)

    def _cell(self, cell: Cell, which: str) -> tuple[Comparison, ...]:
        """The runs of a cell: one comparison, or one per partition where arms depend on it."""
        of = f", {self.scale.partitions} partitions" if self.scale.partitions > 1 else ""
        self.tell(f"cell {which}: {cell.name}{of}")
        place = self.folder / "runs" / file_name(cell.name)
        if not callable(cell.arms):
            return (self._compare(cell, cell.problem, cell.arms, self.scale.partitions, place),)
        found = []
        for number in range(self.scale.partitions):
            seed = cell.problem.partition_seed + number
            problem = replace(cell.problem, partition_seed=seed)
            arms = cell.arms(problem.task())
            found.append(self._compare(cell, problem, arms, 1, place / f"partition-{seed}"))
        return tuple(found)

    def _compare(
        self, cell: Cell, problem: Problem, arms: Arms, partitions: int, place: Path
    ) -> Comparison:
        done = compare(
            problem,
            arms,
            rounds=cell.rounds,
            seeds=self.seeds,
            partitions=partitions,
            folder=place,
            jobs=self.jobs,
            ray=self.ray,
            work=cell.work,
            settings={"recipe": self.recipe.name},
            **cell.options,
        )
        if done.interrupted:
            raise Interrupted
        return done

    def _computed(self) -> dict[int, Computed]:
        if self.recipe.compute is None:
            return {}
        missing = [seed for seed in self.seeds if self._kept(seed) is None]
        if missing:
            self.tell(f"computing, {len(missing)} of {len(self.seeds)} seeds")
        calls = (joblib.delayed(_compute)(self.recipe.compute, self.scale, seed, self._place(seed),
                                          self._facts(seed)) for seed in missing)  # fmt: skip
        jobs = self.jobs if len(missing) > 1 else 1
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            joblib.Parallel(n_jobs=jobs)(calls)
        found = {seed: self._kept(seed) for seed in self.seeds}
        return {seed: each for seed, each in found.items() if each is not None}

    def _place(self, seed: int) -> Path:
        return (self.folder / "computed" / f"seed-{seed}.npz").absolute()

    def _facts(self, seed: int) -> dict[str, Any]:
        """What decides the numbers: if any of it is another, they are computed again."""
        from fedcohort import __version__

        function: Any = getattr(self.recipe.compute, "func", self.recipe.compute)  # of a partial
        return {
            "kind": KIND,
            "recipe": self.recipe.name,
            "numbers": repr(sorted(self.scale.numbers.items())),
            "seed": seed,
            "code": source_digest(function),
            "version": __version__,
        }

    def _kept(self, seed: int) -> Computed | None:
        if not self._place(seed).is_file():
            return None
        try:
            header, arrays = store.load(self._place(seed), KIND)
        except BadCheckpoint:
            return None  # a number that cannot be read is computed again
        return _read(arrays) if header == self._facts(seed) else None


def _compute(
    function: Callable[[Scale, int], Computed],
    scale: Scale,
    seed: int,
    place: Path,
    facts: Mapping[str, Any],
) -> None:
    computed = function(scale, seed)
    arrays = {f"column.{name}": np.asarray(each) for name, each in computed.columns.items()}
    arrays |= {
        f"sample.{name}": np.asarray(each, dtype=np.float64)
        for name, each in computed.samples.items()
    }
    store.save(place, facts, arrays)


def _read(arrays: Mapping[str, Any]) -> Computed:
    columns = {k.removeprefix("column."): v for k, v in arrays.items() if k.startswith("column.")}
    samples = {k.removeprefix("sample."): v for k, v in arrays.items() if k.startswith("sample.")}
    return Computed(columns, samples)
