"""``fedcohort compare``: schemes x seeds on a data set, with a report."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from fedcohort.algorithms import ALGORITHMS, algorithm
from fedcohort.cli.running import CrossingOption, check_options, part_option, run
from fedcohort.cli.tables import read_importance
from fedcohort.core.errors import BadInput, FedcohortWarning
from fedcohort.core.parameters import OneOf, Real, Whole
from fedcohort.core.renamed import successor
from fedcohort.data.partition import PARTITIONS
from fedcohort.data.sets import DATA_SETS
from fedcohort.learning.models import MODELS
from fedcohort.learning.schedules import SCHEDULES
from fedcohort.learning.work import BATCHES
from fedcohort.server.aggregators import AGGREGATORS, aggregator
from fedcohort.server.guards import GUARDS, guards
from fedcohort.server.optimisers import OPTIMISERS, optimiser
from fedcohort.simulation import LocalWork
from fedcohort.simulation.arms import arm
from fedcohort.simulation.availability import AVAILABILITIES, availability
from fedcohort.simulation.divisions import LIMIT
from fedcohort.simulation.engine import ROUND_LIMIT, SEEDS_LIMIT
from fedcohort.simulation.measures import MEASURES
from fedcohort.simulation.problem import Problem
from fedcohort.trace import CROSSINGS, SUSTAINED


def compare(
    schemes: Annotated[
        list[str],
        typer.Argument(
            help="Schemes, with settings as in pow-d:d=6,m=3; or a file, as in ./mine.py:m=3; "
            "with an algorithm, optimiser or aggregator of its own, as in md+fedprox:mu=0.1."
        ),
    ],
    data: Annotated[str, part_option("Data set", DATA_SETS), DATA_SETS] = "digits",
    labels: Annotated[
        str | None, typer.Option(help="With --data file.npz: which array holds the labels.")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="With --data file.npz: which array says whose a sample is.")
    ] = None,
    partition: Annotated[
        str | None, part_option("How data is divided, as in iid:n=100", PARTITIONS), PARTITIONS
    ] = None,
    model: Annotated[str, part_option("Model, as in mlp:hidden=50", MODELS), MODELS] = "softmax",
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
    m: Annotated[int, typer.Option("-m", help="Clients per round, where a scheme has an m.")] = 10,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 100,
    seeds: Annotated[int, typer.Option(help="How many seeds.")] = 5,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the table as JSON.")] = False,
    server: Annotated[str | None, typer.Option(hidden=True)] = None,
    estimator: Annotated[str | None, typer.Option(hidden=True)] = None,
) -> None:
    """Compare schemes and write a report.

    Local training is short by default, for small data: 20 steps on 10 samples, step size 0.1.
    In Python, LocalWork() is 50 steps on 50 samples, step size 0.01.
    """
    often, once, positive = Whole(1, ROUND_LIMIT), Whole(1), Real(0, open_low=True)
    check_options(
        {
            "-m": (once, m),
            "--rounds": (often, rounds),
            "--seeds": (Whole(1, SEEDS_LIMIT), seeds),
            "--seed": (Whole(0), seed),
            "--partition-seed": (Whole(0), partition_seed),
            "--partitions": (Whole(1, LIMIT), partitions),
            "--steps": (once, steps),
            "--epochs": (once, epochs),
            "--batch": (Whole(0), batch),
            "--lr": (positive, lr),
            "--decay": (Real(0), decay),
            "--mu": (Real(0), mu),
            "--batches": (OneOf(BATCHES), batches),
            "--momentum": (Real(0), momentum),
            "--clip": (positive, clip),
            "--centralised": (once, centralised),
            "--target": (Real(0, 1, open_low=True), target),
            "--crossing": (OneOf(tuple(CROSSINGS)), crossing),
            "--every": (often, every),
            "--evaluate-on": (often, evaluate_on),
            "--defer": (often, defer),
        }
    )
    if jobs == 0:
        raise BadInput("The option --jobs must be a number of processes, or -1 for all cores.")
    if steps is not None and epochs is not None:
        raise BadInput("Give --steps or --epochs, not both.")
    built = [arm(word, otherwise={"m": m}) for word in schemes]
    problem = Problem(
        data,
        partition,
        model=model,
        partition_seed=partition_seed,
        importance=read_importance(importance),
        data_options=_told(labels=labels, groups=groups),
    )
    options: dict[str, Any] = {
        "work": LocalWork(
            steps=20 if steps is None and epochs is None else steps,
            epochs=epochs,
            batch=batch or None,
            lr=lr,
            decay=decay,
            mu=mu,
            batches=batches,
            momentum=momentum,
            clip=clip,
            schedule=schedule,
        ),
        "optimiser": optimiser(_old("--server", server, "--optimiser") or step),
        "aggregator": aggregator(_old("--estimator", estimator, "--aggregator") or estimate),
        "availability": availability(available),
        "algorithm": algorithm(local),
        "evaluate_every": every,
        **_told(evaluate_on=evaluate_on, measures=measure or None, defer=defer),
    }
    if hardened or guard:
        if hardened and guard:
            raise BadInput("Give --hardened for all guards, or --guard for some, not both.")
        options["hardened"] = guards(guard or True)
    folder = out or Path("runs") / datetime.now().strftime("%Y%m%d-%H%M%S")
    run(
        problem,
        built,
        rounds=rounds,
        seeds=range(seed, seed + seeds),
        partitions=partitions,
        folder=folder,
        out=out,
        target=target,
        crossing=crossing,
        as_json=as_json,
        centralised=centralised,
        jobs=jobs,
        **options,
    )


def _old(old: str, given: str | None, new: str) -> str | None:
    return successor("compare", old, given, new, None, FedcohortWarning)


def _told(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}
