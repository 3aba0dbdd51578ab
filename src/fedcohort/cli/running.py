"""What `compare` and `demo` share: say what is disclosed, run with a live view, report."""

from __future__ import annotations

import shlex
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from fedcohort import report
from fedcohort._internal.errors import BadInput, UnequalWork
from fedcohort._internal.parameters import Constraint
from fedcohort._internal.registry import Kind
from fedcohort.report._format import counted
from fedcohort.selection._scheme import Disclosure
from fedcohort.server._aggregators import Aggregator
from fedcohort.server._guards import Guard
from fedcohort.server._trace import SUSTAINED
from fedcohort.simulation import Comparison, compare
from fedcohort.simulation._arms import Which, labelled
from fedcohort.simulation._comparison import SHORTER, unequal_arms
from fedcohort.simulation._problem import Divisions, Problem, divisions
from fedcohort.simulation._storage import CROSSING
from fedcohort.simulation._workers import JOBS_LIMIT
from fedcohort.training._algorithms import Algorithm


def check_options(options: dict[str, tuple[Constraint, object]]) -> None:
    """Refuse what was given outside its range, by the name it has on the command line."""
    for name, (constraint, value) in options.items():
        if value is not None and not constraint.accepts(value):
            raise BadInput(f"The option {name} must be {constraint}. Got {value} instead.")


CLIENTS_LIMIT = 10_000_000
"""Made-up clients of a command."""


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that can be none."""
    if jobs == 0 or jobs > JOBS_LIMIT:
        must = f"a number of processes, {JOBS_LIMIT} at most, or -1 for all cores"
        raise BadInput(f"The option --jobs must be {must}. Got {jobs} instead.")


def part_option(text: str, kind: Kind[Any], *names: str, default: str | None = None) -> Any:
    """An option that takes a part: its help says what there is, and ``default`` what None means."""
    listed = f"{text}. One of {', '.join(kind)}, or ./file.py."
    return typer.Option(*names, help=listed, show_default=default or True)


CrossingOption: TypeAlias = Annotated[
    str,
    typer.Option(
        help="When the target counts as reached: sustained (the rolling mean over a twentieth of "
        "the evaluations stays there) or first (a single evaluation, which favours noise)."
    ),
]


ReferenceOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The scheme that all others are tested against; by default md if it is present, "
        "otherwise the first; never an oracle."
    ),
]


RayOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Run on the nodes of a Ray cluster: auto, host:port, or local for one that is "
        "started here."
    ),
]


def command_line() -> str:
    """What was typed, to be repeated."""
    return shlex.join(["fedcohort", *sys.argv[1:]])


def run(
    problem: Problem,
    schemes: Sequence[Which],
    *,
    rounds: int,
    seeds: Sequence[int],
    partitions: int = 1,
    folder: Path,
    out: Path | None,
    target: float | None,
    crossing: str = SUSTAINED,
    reference: str | None = None,
    as_json: bool = False,
    centralised: int | None = None,
    **options: Any,
) -> None:
    """Compare, and end with the table, the page, and where it is.

    ``out`` is the folder that the user named; ``folder`` that one, or a default.
    """
    behind: tuple[Guard, ...] = options.get("hardened", ())
    over = divisions(problem, partitions)  # what is wrong with data shows before anything is said
    print(
        disclosed(schemes, rounds, options.get("algorithm"), behind, options.get("aggregator")),
        file=sys.stderr,
    )
    print(partition_used(problem, over), file=sys.stderr)
    arms = labelled(schemes)
    for sentence in unequal_arms(over.first, arms, options):
        print(sentence, file=sys.stderr)
    labels = [*arms, *(["centralised"] if centralised else [])]
    command = command_line()
    kept: dict[str, Any] = {"command": command}
    if target is not None:
        kept["target"] = target
    if crossing != SUSTAINED:
        kept[CROSSING] = crossing
    with (
        report.watch(labels, len(seeds), rounds, partitions=partitions) as view,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UnequalWork)  # it is printed above
        comparison = compare(
            over,
            schemes,
            rounds=rounds,
            seeds=seeds,
            reference=reference,
            folder=folder,
            centralised=centralised,
            notes=view.notes,
            planned=view.planned,
            finished=view.finished,
            settings=kept,
            **options,
        )
    if view.found:
        print(f"Found in {folder}: {view.found}.", file=sys.stderr)
    if comparison.interrupted:
        again = command if out is not None else f"{command} --out {shlex.quote(str(folder))}"
        shorter = comparison.settings.get(SHORTER, 0)
        left = f"; {counted(shorter, 'run')} not yet extended, and left out" if shorter else ""
        print(f"Interrupted{left}. Go on with: {again}", file=sys.stderr)
    if comparison.traces:
        _conclude(comparison, folder, target, as_json)
    if comparison.interrupted:
        raise typer.Exit(130)


def partition_used(problem: Problem, over: Divisions) -> str:
    """Name the partition of a comparison and the sizes of its clients."""
    sizes = over.first.sizes
    low, high = int(sizes.min()), int(sizes.max())
    each = f"with {counted(low, 'sample')} each" if low == high else f"with {low} to {high} samples"
    default = " (by default)" if problem.partition is None else ""
    also = f", the first of {len(over.sources)} divisions" if len(over.sources) > 1 else ""
    partition = over.settings["problem"]["partition"]
    return f"Partition: {partition}{default}: {counted(len(sizes), 'client')} {each}{also}."


def disclosed(
    schemes: Sequence[Which],
    rounds: int,
    algorithm: Algorithm | None = None,
    behind: tuple[Guard, ...] = (),
    estimate: Aggregator | None = None,
) -> str:
    """What the server will learn of every client; schemes that disclose the same together."""
    alike: dict[tuple[Disclosure, ...], list[str]] = {}
    for label, arm in labelled(schemes).items():
        alike.setdefault(arm.disclosures(rounds, algorithm, behind, estimate), []).append(label)
    lines = ["What the server will learn of the clients:"]
    for learnt, labels in alike.items():
        lines.append(f"  {', '.join(labels)}")
        lines += [f"    {each}" for each in learnt]
    return "\n".join(lines)


def _conclude(comparison: Comparison, folder: Path, target: float | None, as_json: bool) -> None:
    if as_json:
        print(report.summary(comparison, target).to_json(orient="records", indent=2))
    else:
        report.print_summary(comparison, target)
    page = report.write(comparison, folder / "report.html", target)
    print(f"Report: {page}", file=sys.stderr if as_json else sys.stdout)
