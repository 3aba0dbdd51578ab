"""What a recipe found: runs by cell and partition, computed numbers by seed; read by claims."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import blake2b
from typing import Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.types import Array, Floats
from fedcohort.server import Trace
from fedcohort.simulation import Comparison
from fedcohort_papers.reproduction.measures import Measure, measure, never
from fedcohort_papers.reproduction.recipe import Computed, Recipe, Scale

Of: TypeAlias = str | tuple[str, str]
"""An arm by its label, or (cell, label) where a recipe has several cells."""
COMPUTED = "computed"
"""The measure whose arms are the samples of a computed recipe."""


class NoRuns(BadInput):
    """A claim or a panel is about runs that are not there."""

    @property
    def said(self) -> str:
        """Why there are none, in words."""
        return str(self)


class NotRun(NoRuns):
    """They are of a cell that this scale leaves out."""

    @property
    def said(self) -> str:
        return f"Not run at this scale: {self}"


class AllDiverged(NoRuns):
    """They are of an arm of which no run is left."""


@dataclass(frozen=True)
class Values:
    """One number per unit: per partition where there are several, otherwise per seed.

    Seeds on one partition share it and are not independent repetitions of anything that depends
    on how data is divided; their mean is the value of the partition.
    """

    by_unit: Mapping[int, float]
    unit: str
    never: int = 0
    """Runs that did not reach what the measure waits for: their numbers are lower bounds."""
    lost: int = 0
    """Runs that diverged, and are not among these."""
    runs: int = 0
    """How many there are."""
    digest: str = ""
    """Of all that was measured of them and of their last models: the same where they are."""

    def paired(self, other: Values) -> tuple[Floats, Floats]:
        """The values of both in the units that both have."""
        if self.unit != other.unit:
            raise BadInput(
                f"A claim must not mix {self.unit}s with {other.unit}s; give both cells as many "
                "partitions."
            )
        both = [key for key in self.by_unit if key in other.by_unit]
        pairs = np.array([[self.by_unit[key], other.by_unit[key]] for key in both])
        pairs = pairs.reshape(-1, 2)
        pairs = pairs[np.isfinite(pairs).all(axis=1)]
        return pairs[:, 0], pairs[:, 1]

    @property
    def numbers(self) -> Floats:
        """(units,)."""
        return np.array(list(self.by_unit.values()), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Results:
    """All that a claim may look at."""

    recipe: Recipe
    scale: Scale
    scale_name: str = "quick"
    runs: Mapping[str, tuple[Comparison, ...]] = field(default_factory=dict)
    """By cell: one comparison, or one for every partition."""
    computed: Mapping[int, Computed] = field(default_factory=dict)
    """By seed."""
    tuned: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By cell: which settings were chosen on validation data, in plain values."""
    lost: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By cell and arm: how many runs diverged."""
    seconds: float = 0.0
    """Of all that is counted in, those that tuned as well, whenever it was run."""
    seed: int = 0
    """The first; others in the folder are not looked at."""
    partition: int = 0
    """The first, counted from that of the recipe."""

    def arms(self, cell: str | None = None) -> tuple[str, ...]:
        """The labels of a cell, in order; an arm may have diverged on some partitions."""
        return tuple(dict.fromkeys(arm for each in self._cell(cell) for arm in each.labels))

    def _cell(self, name: str | None) -> tuple[Comparison, ...]:
        if name is None:
            if len(self.runs) != 1:
                raise BadInput(
                    f"The recipe '{self.recipe.name}' has several cells; say which: (cell, arm)."
                )
            return next(iter(self.runs.values()))
        if name not in self.runs:
            if any(cell.name == name for cell in self.recipe.cells):
                there = [
                    scale
                    for scale, how in self.recipe.scales.items()
                    if any(cell.name == name for cell in self.recipe.cells_at(how))
                ]
                where = f"the scale {' or '.join(there)}" if there else "no scale"
                raise NotRun(f"'{name}' is run at {where}")
            raise UnknownName("cell", name, self.runs)
        return self.runs[name]

    def traces(self, of: Of) -> dict[tuple[int, int], Trace]:
        """The runs of an arm by (partition, seed)."""
        cell, label = (None, of) if isinstance(of, str) else of
        found = {
            (trace.partition, trace.seed): trace
            for comparison in self._cell(cell)
            for trace in comparison.of(label)
        }
        if not found:
            if (cell or next(iter(self.runs)), label) in self.lost:
                raise AllDiverged(f"Every run of '{label}' diverged.")
            raise UnknownName("arm", label, self.arms(cell))
        return found

    def chance(self, of: Of) -> float:
        """The accuracy of guessing, one over the number of classes of an arm's task."""
        classes = next(iter(self.traces(of).values())).label_histograms.shape[1]
        if classes == 0:
            raise BadInput(
                f"The task of '{of}' has no classes to guess; say what its accuracy must be above."
            )
        return 1 / float(classes)

    def values(self, which: Measure, of: Of) -> Values:
        """A measure of an arm, one number per unit."""
        if which == COMPUTED:
            return self._samples(of)
        how = measure(which)
        traces = self.traces(of)
        found = {key: how(trace) for key, trace in traces.items()}
        missed = sum(never(which, traces[key], value) for key, value in found.items())
        cell, label = (next(iter(self.runs)), of) if isinstance(of, str) else of
        lost = self.lost.get((cell, label), 0)
        partitions = sorted({partition for partition, _ in found})
        if len(partitions) == 1 and not (lost and self.scale.partitions > 1):
            seeds = {seed: value for (_, seed), value in found.items()}
            return Values(seeds, "seed", missed, lost, len(found), _digest(traces))
        means = {
            p: float(np.mean([value for (at, _), value in found.items() if at == p]))
            for p in partitions
        }
        return Values(means, "partition", missed, lost, len(found), _digest(traces))

    def _samples(self, name: Of) -> Values:
        rows: list[float] = []
        for computed in self.computed.values():
            if not isinstance(name, str) or name not in computed.samples:
                raise UnknownName("sample", name, computed.samples)
            rows += np.asarray(computed.samples[name], dtype=np.float64).ravel().tolist()
        return Values(dict(enumerate(rows)), "repetition")

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """The columns of a computed recipe: those of its first seed."""
        return next(iter(self.computed.values())).columns if self.computed else {}


@dataclass(frozen=True, eq=False)
class Watched(Results):
    """The same, noting whose values were taken."""

    seen: dict[Of, Values] = field(default_factory=dict)

    @classmethod
    def of(cls, results: Results) -> Watched:
        """Of results that are looked at from now on."""
        return cls(**{each.name: getattr(results, each.name) for each in fields(results)})

    def values(self, which: Measure, of: Of) -> Values:
        found = self.seen[of] = super().values(which, of)
        return found


def _digest(traces: Mapping[tuple[int, int], Trace]) -> str:
    """Tells runs of one arm from those of another, unit by unit, to the last bit."""
    found = blake2b(digest_size=16)
    for unit, trace in traces.items():
        found.update(repr(unit).encode())
        for curve in (trace.accuracy, trace.train_loss, trace.test_loss, trace.model):
            found.update(curve.tobytes())
    return found.hexdigest()
