"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import OneOf, Real, Whole
from fedcohort.cli.running import check_jobs, check_options
from fedcohort.cli.tables import read_importance
from fedcohort.selection._queries import ROUND_LIMIT
from fedcohort.server._aggregators import aggregator
from fedcohort.server._dropouts import dropout_rule
from fedcohort.server._guards import guards
from fedcohort.server._optimizers import optimiser
from fedcohort.server._stragglers import straggler_rule
from fedcohort.simulation import Always, Arm, LocalWork
from fedcohort.simulation._arms import arm
from fedcohort.simulation._availability import availability
from fedcohort.simulation._devices import devices
from fedcohort.simulation._engine import SEEDS_LIMIT
from fedcohort.simulation._environment import DropOuts
from fedcohort.simulation._measures import known_measures
from fedcohort.simulation._problem import LIMIT, Problem
from fedcohort.training._algorithms import algorithm
from fedcohort.training._local import BATCHES

# Where commands may write.


def check_places(options: dict[str, Path | None]) -> None:
    """Refuse a dash where a file or folder is written: it would be one of that name."""
    for name, place in options.items():
        if place is not None and str(place) == "-":
            raise BadInput(
                f"The option {name} must be a path. Got - instead, which is none: only --json "
                "and `report --latex -` write to standard output."
            )


PICTURES = (".png", ".svg", ".pdf")
"""What a single picture may be written as."""
PAGES = (".html", ".htm")
"""What a page may be called, so that a browser opens it."""


def check_file(option: str, place: Path | None, endings: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a place where no such file can be written."""
    if place is None:
        return
    check_places({option: place})
    if place.is_dir():
        raise BadInput(
            f"The option {option} must be a file. Got {place} instead, which is a folder: name a "
            "file in it."
        )
    if endings and place.suffix.lower() not in endings:
        *first, last = endings
        raise BadInput(
            f"The option {option} must end in {', '.join(first)} or {last}. Got {place} instead."
        )
    there = next(parent for parent in place.absolute().parents if parent.exists())
    if not there.is_dir():
        raise BadInput(
            f"The option {option} must be a file in a folder. Got {place} instead, and {there} is "
            "no folder."
        )


def check_folders(options: dict[str, Path | None]) -> None:
    """Refuse, before anything is computed, a file where a folder is written."""
    check_places(options)
    for name, place in options.items():
        if place is not None and place.exists() and not place.is_dir():
            raise BadInput(
                f"The option {name} must be a folder. Got {place} instead, which is a file."
            )


# What the options that `compare` and `tune` share mean.


@dataclass(frozen=True)
class Experiment:
    """What is trained on, who chooses, and the options of `fedcohort.compare`."""

    problem: Problem
    arms: list[Arm]
    options: dict[str, Any]


def understood(**words: Any) -> Experiment:
    """The parameters of `fedcohort.cli.compare.compare`, checked and built."""
    given = SimpleNamespace(**words)
    _check(given)
    known_measures(given.measure or ())
    options: dict[str, Any] = {
        "work": LocalWork(
            steps=20 if given.steps is None and given.epochs is None else given.steps,
            epochs=given.epochs,
            batch=given.batch or None,
            lr=given.lr,
            decay=given.decay,
            mu=given.mu,
            batches=given.batches,
            momentum=given.momentum,
            clip=given.clip,
            schedule=given.schedule,
        ),
        "optimiser": optimiser(given.step),
        "aggregator": aggregator(given.estimate),
        "availability": availability(given.available),
        "algorithm": algorithm(given.local),
        "evaluate_every": given.every,
        **_told(evaluate_on=given.evaluate_on, measures=given.measure or None, defer=given.defer),
    }
    if given.devices is not None:
        options["devices"] = devices(given.devices)
    if given.stragglers is not None:
        options["stragglers"] = straggler_rule(given.stragglers)
    if given.dropouts is not None:
        options["dropouts"] = DropOuts(Always(), dropout_rule(given.dropouts))
    if given.hardened or given.guard:
        if given.hardened and given.guard:
            raise BadInput("Give --hardened for all guards, or --guard for some, not both.")
        options["hardened"] = guards(given.guard or True)
    problem = Problem(
        given.data,
        given.partition,
        model=given.model,
        partition_seed=given.partition_seed,
        importance=read_importance(given.importance),
        data_options=_told(samples=given.samples, labels=given.labels, groups=given.groups),
    )
    arms = [arm(word, otherwise={"m": given.m}) for word in given.schemes]
    return Experiment(problem, arms, options)


def _check(given: SimpleNamespace) -> None:
    often, once, positive = Whole(1, ROUND_LIMIT), Whole(1), Real(0, open_low=True)
    check_options(
        {
            "-m": (once, given.m),
            "--rounds": (often, given.rounds),
            "--seeds": (Whole(1, SEEDS_LIMIT), given.seeds),
            "--seed": (Whole(0), given.seed),
            "--partition-seed": (Whole(0), given.partition_seed),
            "--partitions": (Whole(1, LIMIT), given.partitions),
            "--steps": (once, given.steps),
            "--epochs": (once, given.epochs),
            "--batch": (Whole(0), given.batch),
            "--lr": (positive, given.lr),
            "--decay": (Real(0), given.decay),
            "--mu": (Real(0), given.mu),
            "--batches": (OneOf(BATCHES), given.batches),
            "--momentum": (Real(0), given.momentum),
            "--clip": (positive, given.clip),
            "--every": (often, given.every),
            "--evaluate-on": (often, given.evaluate_on),
            "--defer": (often, given.defer),
        }
    )
    check_jobs(given.jobs)
    check_places({"--out": given.out})
    if given.steps is not None and given.epochs is not None:
        raise BadInput("Give --steps or --epochs, not both.")


def dated(folder: str) -> Path:
    """A place for runs that were not given one."""
    return Path(folder) / datetime.now().strftime("%Y%m%d-%H%M%S")


def _told(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


# Which words of a command were typed, and which stand there by default.


def typed(context: typer.Context) -> dict[str, str]:
    """The options that were typed, by parameter, each as it is spelt at length."""
    out = {}
    for option in context.command.params:
        name = option.name or ""
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            out[name] = max(option.opts, key=len)
    return out
