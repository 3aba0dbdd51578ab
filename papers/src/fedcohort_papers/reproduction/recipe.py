"""What a recipe is: a figure or table of a paper as data.

Its *cells* are comparisons (who trains on what, by which schemes), its *scales* say how much of
them is run, its *claims* what the paper says of the outcome and when that counts as seen.
"""

from __future__ import annotations

import dis
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeAlias

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.fingerprint import source_digest
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.types import Array, fields_not_at_default, plain_settings, settings_digest
from fedcohort.simulation import Problem
from fedcohort.simulation._arms import Which
from fedcohort.simulation._trials import Grid
from fedcohort.training import LocalWork, Task

if TYPE_CHECKING:
    from fedcohort_papers.reproduction.drawing import Panel
    from fedcohort_papers.reproduction.findings import Judge

SCALES = ("quick", "standard", "full")
"""A minute; under an hour for all recipes of a paper; as in the paper. On two cores."""
KINDS = ("theory", "printed", "sound", "oracle", "toy")
"""Kinds of claims; see `Claim`."""
Arms: TypeAlias = Sequence[Which] | Mapping[str, Which]
"""As `compare` takes them: words, schemes, or either by label."""


@dataclass(frozen=True)
class Tuned:
    """Settings that are chosen on validation data before a cell is run, as by `fedcohort.tune`.

    Parameters
    ----------
    grid
        The values to try: ``{"md.lr": (0.1, 1), ...}``, or without the label for all arms.
    shared
        The label of an arm whose choice holds for all; by default every arm makes its own.
    seeds
        Runs of every configuration, with seeds of their own, on the first division.
    """

    grid: Grid
    shared: str = ""
    seeds: int = 2


@dataclass(frozen=True)
class Cell:
    """One comparison.

    Parameters
    ----------
    name
        As in claims and folders.
    problem
        Data, partition and model. Partition k of several is that of ``partition_seed + k``.
    arms
        Words such as ``"md:m=10"`` or ``"md:m=10+scaffold"``, schemes, a mapping from label to
        either; or a function of the task that gives them, where they depend on the clients' sizes:
        one with a name, or `functools.partial` of it.
    rounds, work
        T, and what a chosen client does.
    options
        Other options of `compare`: ``evaluate_every``, ``centralised``, ``measures``, ...
    tuned
        What is chosen on validation data first: step sizes that a paper does not print.
    """

    name: str
    problem: Problem
    arms: Arms | Callable[[Task], Arms]
    rounds: int
    work: LocalWork = field(default_factory=LocalWork)
    options: Mapping[str, Any] = field(default_factory=dict)
    tuned: Tuned | None = None

    def at(self, scale: Scale) -> Cell:
        """The cell as it is run at a scale."""
        rounds = self.rounds if scale.rounds is None else scale.rounds
        changed = self._changed({"rounds": rounds, **scale.change})
        return changed._changed(scale.each.get(self.name, {}))

    def _changed(self, change: Mapping[str, Any]) -> Cell:
        """With other settings; of ``problem`` and ``options`` only those that are named."""
        changes = dict(change)
        problem = replace(self.problem, **changes.pop("problem", {}))
        options = {**self.options, **changes.pop("options", {})}
        return replace(self, problem=problem, options=options, **changes)


@dataclass(frozen=True)
class Scale:
    """How much of a recipe is run.

    Parameters
    ----------
    seeds, partitions
        How many of each: every arm runs on every partition with every seed.
    changed
        In words, what is not as in the paper; empty where nothing is. It is printed.
    minutes
        How long it takes on two cores, where that was measured.
    rounds
        Of every cell; None for what each says.
    only
        The names of the cells that are run; None for all.
    change
        What else of every cell is otherwise: ``work``, ``arms``; settings of ``problem`` and
        ``options`` by name, the others stay.
    each
        The same for one cell alone, by its name; it comes after ``rounds`` and ``change``.
    numbers
        What a computed recipe wants to know: repetitions, points of a grid, ...
    """

    seeds: int = 1
    partitions: int = 1
    changed: str = ""
    minutes: float | None = None
    rounds: int | None = None
    only: tuple[str, ...] | None = None
    change: Mapping[str, Any] = field(default_factory=dict)
    each: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    numbers: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("seeds", "partitions"):
            if not is_whole(getattr(self, name)) or getattr(self, name) < 1:
                raise BadParameter(name, "a scale", "an int of at least 1", getattr(self, name))


@dataclass(frozen=True)
class Computed:
    """What a recipe without training found with one seed.

    Parameters
    ----------
    columns
        The data of the figure: columns of equal length, by name.
    samples
        Numbers that claims are about, by name: one each, or several that are independent.
    seconds
        Of the processor that it took; whoever runs the recipe notes it.
    """

    columns: Mapping[str, Array] = field(default_factory=dict)
    samples: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        lengths = {len(column) for column in self.columns.values()}
        if len(lengths) > 1:
            raise BadInput(f"The columns of a recipe must have one length; got {lengths}.")


@dataclass(frozen=True)
class Claim:
    """One statement of a paper, and when it counts as seen.

    Parameters
    ----------
    statement
        What the paper says.
    printed
        The numbers, and where they stand.
    judge
        The criterion, from `fedcohort_papers.reproduction.judges`; it is written before the run.
    erratum
        In a few words, what is wrong in print, or not said there.
    see
        The page of docs where that is derived, ``theory.md#...``.
    ours
        Asked by us: the paper does not say so. It is judged and shown, but counted apart.
    exploratory
        What was chosen after looking at results, in a few words: then it is no test.
    kind
        ``"theory"``: a statement that is proved or computed without training. ``"printed"``: runs
        of the schemes and baselines as the paper prints them. ``"sound"``: runs of a corrected
        scheme. ``"oracle"``: runs of a scheme that uses information no server has. ``"toy"``: an
        identity, or an illustration on a made-up example.
    reading_of
        The statement of the same recipe that this claim judges by another reading of the paper.
        It is ``ours``; it counts in the robustness of that statement alone.
    """

    statement: str
    printed: str
    judge: Judge
    erratum: str = ""
    see: str = ""
    ours: bool = False
    exploratory: str = ""
    kind: str = "printed"
    reading_of: str = ""

    def __post_init__(self) -> None:
        if self.reading_of and not self.ours:
            raise BadParameter("ours", "a claim with reading_of", "True", self.ours)
        if self.kind not in KINDS:
            raise BadParameter("kind", "a claim", f"one of {', '.join(KINDS)}", self.kind)


@dataclass(frozen=True)
class Recipe:
    """One figure or table of a paper.

    Parameters
    ----------
    name, title
        As on the command line; what it shows.
    paper, where
        The citation, the same for all recipes of a paper; the figure or table in it.
    cells
        The comparisons that are run.
    compute
        For what needs no training: ``compute(scale, seed)``. A recipe may have both.
    scales
        By name, of `SCALES`.
    claims
        What is judged.
    panels, shows
        What is drawn, from `fedcohort_papers.reproduction.drawing`; and in words what the printed
        figure shows, which stands beside it.
    notes
        Where this differs from the paper at every scale, and why.
    readings
        Choices that the paper leaves open, with the alternatives: ``"pixel scale: [0, 1] here;
        standardized or 0 to 255 are possible"``. They are listed before anything is run.
    version
        Raise it when ``compute``, a named function of a cell, or a default they rely on changes
        its meaning. Kept results of older versions then no longer count.
    """

    name: str
    title: str
    paper: str
    where: str = ""
    cells: tuple[Cell, ...] = ()
    compute: Callable[[Scale, int], Computed] | None = field(default=None, repr=False)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    panels: tuple[Panel, ...] = field(default=(), repr=False)
    shows: str = ""
    notes: tuple[str, ...] = ()
    readings: tuple[str, ...] = ()
    version: int = 1

    def __post_init__(self) -> None:
        if not is_whole(self.version) or self.version < 1:
            owner = f"the recipe '{self.name}'"
            raise BadParameter("version", owner, "an int of at least 1", self.version)
        if not self.cells and self.compute is None:
            raise BadInput(f"The recipe '{self.name}' must have cells, or compute something.")
        for key in self.scales:
            if key not in SCALES:
                raise UnknownName("scale", key, SCALES)
        if not self.scales:
            raise BadInput(f"The recipe '{self.name}' must have a scale: {', '.join(SCALES)}.")
        if not self.claims:
            raise BadInput(f"The recipe '{self.name}' must claim something.")
        names = [cell.name for cell in self.cells]
        if len(set(names)) < len(names):
            raise BadInput(f"Two cells of the recipe '{self.name}' have one name.")
        statements = [claim.statement for claim in self.claims if not claim.reading_of]
        for claim in self.claims:
            if claim.reading_of and claim.reading_of not in statements:
                raise UnknownName("claim", claim.reading_of, statements)

    @property
    def place(self) -> tuple[str, list[tuple[int, str]]]:
        """In lists: by paper, then by name, Figure 2 before Figure 10."""
        words = re.findall(r"\d+|\D+", self.name)
        return self.paper, [(int(word), "") if word.isdigit() else (0, word) for word in words]

    def scale(self, name: str) -> Scale:
        """The scale of that name."""
        if name not in SCALES:
            raise UnknownName("scale", name, SCALES)
        if name not in self.scales:
            has = ", ".join(self.scales)
            raise BadInput(f"The recipe '{self.name}' has no scale '{name}'; it has {has}.")
        return self.scales[name]

    def cells_at(self, scale: Scale) -> tuple[Cell, ...]:
        """The comparisons that are run at a scale."""
        wanted = [cell for cell in self.cells if scale.only is None or cell.name in scale.only]
        return tuple(cell.at(scale) for cell in wanted)

    def idle(self, scale: str, **given: int | None) -> dict[str, int]:
        """Of numbers of ``seeds`` and ``partitions`` those that would make no difference."""
        if self.cells_at(self.scale(scale)):
            return {}
        idle = {"partitions": 1, "partition": 0} | ({} if self._draws else {"seeds": 1})
        return {name: n for name, n in given.items() if n is not None and n != idle.get(name, n)}

    @property
    def _draws(self) -> bool:
        """Whether what is computed looks at its seed, as far as can be seen."""
        if not isinstance(self.compute, FunctionType) or self.compute.__code__.co_argcount < 2:
            return True
        seed = self.compute.__code__.co_varnames[1]
        used: list[object] = []
        for step in dis.get_instructions(self.compute):
            if "LOAD" in step.opname:  # of one variable, or of two at once
                used += step.argval if isinstance(step.argval, tuple) else [step.argval]
        return seed in used

    def settings(self, scale: Scale) -> dict[str, Any]:
        """Return the settings of a scale in plain values, without seeds and partitions."""
        cells = {}
        for cell in self.cells_at(scale):
            cells[cell.name] = fields_not_at_default(cell, f"{self.name}.cells.{cell.name}")
            del cells[cell.name]["name"]
        settings = {
            "version": self.version if self.version > 1 else None,
            "computes": self.compute is not None or None,
            "cells": cells,
            "numbers": plain_settings(scale.numbers, f"{self.name}.numbers"),
        }
        return {"recipe": self.name, **{key: each for key, each in settings.items() if each}}

    def digest(self, scale: Scale) -> str:
        """Return the digest of `settings`: a kept result with another digest does not count."""
        return settings_digest(self.settings(scale))

    @property
    def code(self) -> str | None:
        """Return a digest of the source of `compute`, by which a run folder notices an edit.

        None without `compute`, or where the source cannot be read.
        """
        function: Any = getattr(self.compute, "func", self.compute)  # of a partial
        return None if function is None else source_digest(function)

    def as_dict(self) -> dict[str, Any]:
        """What a listing shows, in plain values."""
        return {
            "name": self.name,
            "title": self.title,
            "paper": self.paper,
            "where": self.where,
            "scales": {
                name: {
                    "seeds": scale.seeds,
                    "partitions": scale.partitions,
                    "minutes": scale.minutes,
                    "changed": scale.changed,
                }
                for name, scale in self.scales.items()
            },
            "claims": [
                {
                    "statement": c.statement,
                    "printed": c.printed,
                    "criterion": str(c.judge),
                    "ours": c.ours,
                    "exploratory": c.exploratory,
                    "kind": c.kind,
                }
                for c in self.claims
            ],
        }
