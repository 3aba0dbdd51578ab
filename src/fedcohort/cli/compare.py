"""The commands ``compare`` and ``demo``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from fedcohort._internal.parameters import OneOf, Real, Whole
from fedcohort.cli.options import check_places, dated, understood
from fedcohort.cli.running import (
    CrossingOption,
    RayOption,
    ReferenceOption,
    check_options,
    part_option,
    run,
)
from fedcohort.cli.tables import ImportanceOption, read_importance
from fedcohort.data.partition import PARTITIONS
from fedcohort.data.sets import DATA_SETS
from fedcohort.schemes import SCHEMES as ALL_SCHEMES
from fedcohort.selection._queries import ROUND_LIMIT
from fedcohort.server._aggregators import AGGREGATORS
from fedcohort.server._dropouts import RULES
from fedcohort.server._guards import GUARDS
from fedcohort.server._optimizers import OPTIMISERS
from fedcohort.server._stragglers import STRAGGLERS
from fedcohort.server._trace import CROSSINGS, SUSTAINED
from fedcohort.simulation import LocalWork
from fedcohort.simulation._availability import AVAILABILITIES
from fedcohort.simulation._comparison import default_seeds
from fedcohort.simulation._devices import DEVICES
from fedcohort.simulation._engine import SEEDS_LIMIT
from fedcohort.simulation._measures import MEASURES
from fedcohort.simulation._problem import OTHERWISE, Problem
from fedcohort.training._algorithms import ALGORITHMS
from fedcohort.training._local import SCHEDULES
from fedcohort.training._model import MODELS

# ``fedcohort compare``: schemes x seeds on a data set, with a report.

BY_DEFAULT = f"natural where the data name clients, else {OTHERWISE}"
"""How data is divided without --partition."""


def compare(
    schemes: Annotated[
        list[str],
        typer.Argument(
            help="Schemes, with settings as in pow-d:d=6,m=3; or a file, as in ./mine.py:m=3; "
            "with an algorithm, optimiser, aggregator or local work of its own, as in "
            "md+fedprox:mu=0.1 or md+work:lr=0.5."
        ),
    ],
    data: Annotated[str, part_option("Data set", DATA_SETS), DATA_SETS] = "digits",
    samples: Annotated[
        str | None, typer.Option(help="With --data file.npz: the array of the samples.")
    ] = None,
    labels: Annotated[
        str | None, typer.Option(help="With --data file.npz: the array of the labels.")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(help="With --data file.npz: the array with the client id of each sample."),
    ] = None,
    partition: Annotated[
        str | None,
        part_option("How data is divided, as in iid:n=100", PARTITIONS, default=BY_DEFAULT),
        PARTITIONS,
    ] = None,
    model: Annotated[str, part_option("Model, as in mlp:hidden=50", MODELS), MODELS] = "softmax",
    importance: ImportanceOption = "size",
    m: Annotated[int, typer.Option("-m", help="Clients per round, where a scheme has an m.")] = 10,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 100,
    seeds: Annotated[
        int | None,
        typer.Option(
            help="How many seeds; by default 8, or 11 for more than 7 schemes, with which the "
            "exact test can decide at 5 %."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The first seed; the others follow.")] = 0,
    partition_seed: Annotated[
        int, typer.Option(help="Decides how data is divided, the same for all runs.")
    ] = 0,
    partitions: Annotated[
        int,
        typer.Option(
            help="How many divisions of the data, from --partition-seed on: every scheme runs "
            "with every seed on each, and what is said holds for more than one federation."
        ),
    ] = 1,
    steps: Annotated[int | None, typer.Option(help="Local SGD steps (default 20).")] = None,
    epochs: Annotated[int | None, typer.Option(help="Local epochs, instead of steps.")] = None,
    batch: Annotated[int, typer.Option(help="Samples per step; 0 for all.")] = 10,
    lr: Annotated[float, typer.Option(help="Local step size.")] = 0.1,
    decay: Annotated[float, typer.Option(help="Weight decay.")] = 0.0,
    mu: Annotated[float, typer.Option(help="FedProx's proximal term.")] = 0.0,
    batches: Annotated[
        str, typer.Option(help="Samples of a step: in passes over the data, or fresh ones.")
    ] = "passes",
    momentum: Annotated[float, typer.Option(help="Momentum of local steps.")] = 0.0,
    clip: Annotated[
        float | None, typer.Option(help="The longest gradient of a local step.")
    ] = None,
    schedule: Annotated[
        str,
        part_option("Step size by round, as in step:every=150,factor=0.5", SCHEDULES),
        SCHEDULES,
    ] = "constant",
    step: Annotated[
        str,
        part_option("The server's step, as in adam:eta_g=0.1", OPTIMISERS, "--optimiser"),
        OPTIMISERS,
    ] = "sgd",
    estimate: Annotated[
        str, part_option("What answers are made into", AGGREGATORS, "--aggregator"), AGGREGATORS
    ] = "plain",
    available: Annotated[
        str,
        part_option("Who is there, as in cyclic:groups=4", AVAILABILITIES, "--availability"),
        AVAILABILITIES,
    ] = "always",
    devices: Annotated[
        str | None,
        part_option("How fast clients are, as in lognormal:sigma=1: rounds take time", DEVICES),
        DEVICES,
    ] = None,
    stragglers: Annotated[
        str | None,
        part_option("When a round stops waiting, as in over-commit:factor=1.3", STRAGGLERS),
        STRAGGLERS,
    ] = None,
    dropouts: Annotated[
        str | None, part_option("Weights when chosen clients do not answer", RULES), RULES
    ] = None,
    local: Annotated[
        str,
        part_option("What a client does, as in fedprox:mu=0.1", ALGORITHMS, "--algorithm"),
        ALGORITHMS,
    ] = "sgd",
    hardened: Annotated[
        bool, typer.Option("--hardened", help="Do what can be done about clients that lie.")
    ] = False,
    guard: Annotated[
        list[str] | None,
        part_option("Of that only this (repeatable), as in clip:times=3", GUARDS, "--guard"),
        GUARDS,
    ] = None,
    centralised: Annotated[
        int | None, typer.Option(help="Train on all data in one place, too: samples a round.")
    ] = None,
    target: Annotated[
        float | None,
        typer.Option(
            help="The test accuracy that counts as there; by default the largest multiple of "
            "5 % that half of the schemes are at in the end."
        ),
    ] = None,
    crossing: CrossingOption = SUSTAINED,
    reference: ReferenceOption = None,
    every: Annotated[int, typer.Option(help="Evaluate every so many rounds.")] = 1,
    evaluate_on: Annotated[
        int | None,
        typer.Option(help="Evaluate on about so many samples, always the same; default all."),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help=f"What else is measured: {', '.join(MEASURES)}. May be repeated; by default what "
            "suits the data."
        ),
    ] = None,
    defer: Annotated[
        int | None, typer.Option(help="Evaluate so many models together (default 16).")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run folder; an existing one is resumed.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes; -1 for all cores.")] = -1,
    ray: RayOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
) -> None:
    """Compare schemes and write a report.

    Local training is short by default, for small data: 20 steps on 10 samples, step size 0.1.
    In Python, LocalWork() is 50 steps on 50 samples, step size 0.01.
    """
    experiment = understood(**locals())
    check_options(
        {
            "--centralised": (Whole(1), centralised),
            "--target": (Real(0, 1, open_low=True), target),
            "--crossing": (OneOf(tuple(CROSSINGS)), crossing),
        }
    )
    if seeds is None:
        seeds = default_seeds(len(experiment.arms) + (centralised is not None))
    run(
        experiment.problem,
        experiment.arms,
        rounds=rounds,
        seeds=range(seed, seed + seeds),
        partitions=partitions,
        folder=out or dated("runs"),
        out=out,
        target=target,
        crossing=crossing,
        reference=reference,
        as_json=as_json,
        centralised=centralised,
        jobs=jobs,
        ray=ray,
        **experiment.options,
    )


# ``fedcohort demo``: seven ways of choosing clients on real data, in a minute or two.

SCHEMES = ("fedavg", "uniform", "md", "clustered-size", "clustered-similarity", "optimal", "target")
PROBLEM = Problem("digits", "one-class-per-client", {"n": 50, "per_client": 25})
WORK = LocalWork(steps=20, batch=10, lr=0.1)
TARGET = 0.85


def demo(
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder.")] = None,
    rounds: Annotated[int, typer.Option(help="How many rounds.")] = 100,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = default_seeds(len(SCHEMES)),
    importance: ImportanceOption = "size",
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
