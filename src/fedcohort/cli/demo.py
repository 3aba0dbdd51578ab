"""``fedcohort demo``: seven ways of choosing clients on real data, in a minute or two."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedcohort._internal.parameters import Whole
from fedcohort.cli.places import check_places
from fedcohort.cli.running import check_options, run
from fedcohort.cli.tables import read_importance
from fedcohort.schemes import SCHEMES as ALL_SCHEMES
from fedcohort.selection._queries import ROUND_LIMIT
from fedcohort.simulation import LocalWork
from fedcohort.simulation._comparison import default_seeds
from fedcohort.simulation._engine import SEEDS_LIMIT
from fedcohort.simulation._problem import Problem

SCHEMES = (
    "fedavg",
    "uniform",
    "md",
    "clustered-size",
    "clustered-similarity",
    "optimal",
    "target",
)
PROBLEM = Problem("digits", "one-class-per-client", {"n": 50, "per_client": 25})
WORK = LocalWork(steps=20, batch=10, lr=0.1)
TARGET = 0.85


def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder.")] = None,
    rounds: Annotated[int, typer.Option(help="How many rounds.")] = 100,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = default_seeds(len(SCHEMES)),
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
) -> None:
    """Compare seven schemes: handwritten digits, 50 clients with one class each, 10 a round."""
    check_options(
        {"--rounds": (Whole(1, ROUND_LIMIT), rounds), "--seeds": (Whole(1, SEEDS_LIMIT), seeds)}
    )
    check_places({"--out": out})
    problem = replace(PROBLEM, importance=read_importance(importance))
    folder = out or Path("runs") / "demo"
    print("Handwritten digits on 50 clients that hold one class each; 10 clients a round.")
    run(
        problem,
        [ALL_SCHEMES.build(name, otherwise={"m": 10}) for name in SCHEMES],
        rounds=rounds,
        seeds=range(seeds),
        folder=folder,
        out=folder,  # the default is always the same: the same command goes on
        target=TARGET,
        work=WORK,
    )
