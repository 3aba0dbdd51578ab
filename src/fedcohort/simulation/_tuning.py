"""Settings chosen on validation data: the test set is for the verdict, and is not looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.parameters import Maybe, Whole, is_whole
from fedcohort.server._trace import Trace
from fedcohort.simulation._arms import Arm, Which, labelled
from fedcohort.simulation._centralized import Centralised, upper_lines
from fedcohort.simulation._comparison import built_options, compare
from fedcohort.simulation._engine import simulate
from fedcohort.simulation._problem import Problem
from fedcohort.simulation._storage import VALIDATION
from fedcohort.simulation._trials import (
    BY,
    Configuration,
    Grid,
    Trial,
    Tried,
    Tuning,
    axes_of,
    configurations,
    configured,
    named,
    smallest_choice,
    some_of,
)
from fedcohort.simulation._workers import Unit
from fedcohort.training import Task
from fedcohort.training._call_checks import check_task, says_how

FIRST_SEED = 1000
"""Runs that tune have other seeds than those that are judged (0, 1, ...): luck is not chosen."""
SHARE = 0.2
LAST = 5
WHOLE = "whole"
BUDGET = Whole(1, words=(WHOLE,))
OF_COMPARE = {"partitions", "jobs", "ray", "finished", "notes", "settings"}
"""Options that say where and how often runs are made; the others say what a run does."""


@says_how(
    'tune(problem, ["md:m=10"], {"lr": [0.01, 0.1]}, rounds=50)',
    compare,
    simulate,
    sets=("scheme", "seed", "keep", "before"),
)
def tune(
    problem: Problem | Task,
    schemes: Which | Sequence[Which] | Mapping[str, Which],
    grid: Grid,
    *,
    rounds: int,
    seeds: int | Sequence[int] = 3,
    validation: float = SHARE,
    budget: int | str | None = None,
    by: str | None = None,
    last: int = LAST,
    folder: str | Path | None = None,
    centralised: int | None = None,
    **options: Any,
) -> Tuning:
    """Try settings of schemes on validation data, and say which are best.

    Clients set a share of their training samples aside, and every configuration is trained on
    the rest; the test set takes no part, it is not even handed to the runs. The best
    configuration has the best mean over runs; one that diverges in any run is out. What is
    chosen is then judged on the test set, with other seeds::

        found = tune(problem, ["md", "pow-d"], {"lr": [0.01, 0.1, 1], "d": [10, 20]}, rounds=50)
        compare(problem, found.chosen, rounds=50)

    Parameters
    ----------
    problem, schemes, rounds
        As for `compare`; ``options`` (``jobs``, ``partitions``, ``work``, ...) are passed on.
    grid
        The values to try of each setting: of `LocalWork` (``lr``, ``batch``, ...), of the server's
        optimiser (``eta_g``), of a scheme (``d``, ``m``). A setting is tried where a scheme has
        it. ``"optimiser.momentum"``, ``"adam.eta_g"`` or ``"md.lr"`` say whose is meant: a kind of
        part, a part by name, or one scheme alone.
    seeds
        How many (1000, 1001, ...), or which.
    validation
        The share of its samples that a client sets aside; it keeps at least one.
    budget
        How many configurations of each scheme are tried. By default the same number for all:
        what the scheme with the fewest has, among those with a choice; of larger grids so many
        are drawn, such that values come up evenly. A number: at most so many of each.
        ``"whole"``: all that each has. `Tuning.notes` says where schemes did not get the same.
    by
        ``"accuracy"`` (the mean of the ``last`` evaluations), ``"area"`` (the mean of all) or
        ``"loss"``; by default accuracy where the task has it.
    folder
        Where runs are kept, as by `compare`: an interrupted search goes on.
    centralised
        Tune centralised training on so many samples a round, too; its local work has settings
        (``"centralised.lr"``), and `Tuning.centralised` is for `compare`.

    Examples
    --------
    >>> from fedcohort import Problem
    >>> problem = Problem("digits", "iid:n=4")
    >>> found = tune(problem, "md:m=2", {"lr": [1e-5, 0.1]}, rounds=2, seeds=2, jobs=1)
    >>> found.best["md"].settings
    {'lr': 0.1}
    """
    told = {key: options.pop(key) for key in set(options) & OF_COMPARE}
    found = search(
        problem,
        schemes,
        grid,
        rounds=rounds,
        validation=validation,
        budget=budget,
        by=by,
        last=last,
        centralised=centralised,
        common=options,
    )
    return found.run(seeds=seeds, folder=folder, **told)


@dataclass(frozen=True)
class Search:
    """What is to be tried; `run` tries it."""

    problem: Problem | Task
    tries: Mapping[str, tuple[str, Configuration, Tried]]
    """By the name of the runs: the scheme, the configuration, the arm."""
    grids: Mapping[str, int]
    rounds: int
    validation: float
    by: str | None
    last: int
    common: Mapping[str, Any]

    def run(
        self, *, seeds: int | Sequence[int] = 3, folder: str | Path | None = None, **options: Any
    ) -> Tuning:
        """Train every configuration and score it; options are those of `compare`."""
        if is_whole(seeds):
            seeds = range(FIRST_SEED, FIRST_SEED + seeds)  # type: ignore[operator]
        lost: list[Unit] = []
        told = {**(options.pop("settings", None) or {}), VALIDATION: self.validation}
        every = {name: arm for name, (_, _, arm) in self.tries.items()}
        comparison = compare(
            _validated(self.problem, self.validation),
            {name: arm for name, arm in every.items() if isinstance(arm, Arm)},
            centralised={n: arm for n, arm in every.items() if isinstance(arm, Centralised)},
            rounds=self.rounds,
            seeds=seeds,
            folder=folder,
            diverged=lambda unit, _: lost.append(unit),
            settings=told,
            **options,
            **self.common,
        )
        if comparison.interrupted:
            raise KeyboardInterrupt
        by = self.by or _measure(comparison.traces)
        runs = {Unit.of(trace): score(trace, by, self.last) for trace in comparison.traces}
        runs |= dict.fromkeys(lost, np.nan)
        trials = []
        for name, (label, configuration, arm) in self.tries.items():
            own = sorted(unit for unit in runs if unit.label == name)
            scores = np.array([runs[unit] for unit in own])
            blocks = tuple(unit.partition for unit in own)
            trials.append(Trial(label, configuration, arm, scores, blocks))
        found = Tuning(
            tuple(trials),
            self.grids,
            by,
            self.last,
            self.rounds,
            self.validation,
            self.common,
            comparison,
        )
        if found.best and comparison.folder is not None:  # nothing to choose from is an error
            found.write(comparison.folder)
        return found


def search(
    problem: Problem | Task,
    schemes: Which | Sequence[Which] | Mapping[str, Which],
    grid: Grid,
    *,
    rounds: int,
    validation: float = SHARE,
    budget: int | str | None = None,
    by: str | None = None,
    last: int = LAST,
    centralised: int | None = None,
    common: Mapping[str, Any],
) -> Search:
    """The configurations to try, as `tune` says; ``common`` are options of `simulate`."""
    if by is not None and by not in BY:
        raise UnknownName("score", by, BY)
    for name, given, range_ in (("last", last, Whole(1)), ("budget", budget, Maybe(BUDGET))):
        if not range_.accepts(given):
            raise BadParameter(name, "tune", str(range_), given)
    arms: dict[str, Tried] = {**labelled(schemes)}
    if centralised is not None:
        arms |= upper_lines(centralised)
    built = built_options(common)
    tries: dict[str, tuple[str, Configuration, Tried]] = {}
    axes = axes_of(arms, grid, built)
    every = {label: configurations(own, label) for label, own in axes.items()}
    grids = {label: len(own) for label, own in every.items()}
    most = smallest_choice(grids.values()) if budget is None else budget
    for label, own in every.items():
        count = len(own) if isinstance(most, str) else most
        for configuration in some_of(own, count, FIRST_SEED):
            values = "".join(f" {key}={value}" for key, value in named(configuration).items())
            arm = configured(arms[label], configuration, built)
            tries[f"{label}{values}"] = label, configuration, arm
    return Search(problem, tries, grids, rounds, validation, by, last, built)


def _validated(problem: Problem | Task, share: float) -> Problem | Task:
    """The same with validation data in place of the test set."""
    if isinstance(problem, Problem):
        return replace(problem, validation=share)
    check_task(problem, "tune")
    return problem.validation(share)


def _measure(traces: Sequence[Trace]) -> str:
    return "accuracy" if any(np.isfinite(trace.accuracy).any() for trace in traces) else "loss"


def score(trace: Trace, by: str, last: int) -> float:
    """How good a run was, the larger the better."""
    values = trace.test_loss if by == "loss" else trace.accuracy
    values = values[np.isfinite(values)]
    if not len(values):
        what = "loss" if by == "loss" else "accuracy"
        raise BadInput(f"The run {trace.label} has no validation {what} to be scored by.")
    if by == "area":
        return float(values.mean())
    mean = float(values[-last:].mean())
    return -mean if by == "loss" else mean
