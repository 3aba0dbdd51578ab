"""What `compare` and `demo` share: say what is disclosed, run with a live view, report."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from fedcohort import report
from fedcohort.core.disclosure import Disclosure
from fedcohort.core.scheme import Scheme
from fedcohort.simulation import Comparison, Task, compare
from fedcohort.simulation.comparison import labelled
from fedcohort.simulation.engine import check_rounds


def run(
    task: Task,
    schemes: Sequence[Scheme[Any]],
    *,
    rounds: int,
    seeds: int,
    folder: Path,
    target: float,
    as_json: bool = False,
    centralised: int | None = None,
    **options: Any,
) -> None:
    """Compare, and end with the table, the page, and where it is."""
    check_rounds("rounds", rounds)
    print(disclosed(schemes, rounds), file=sys.stderr)
    labels = [*labelled(schemes), *(["centralised"] if centralised else [])]
    with report.watch(labels, seeds, rounds) as view:
        comparison = compare(
            task,
            schemes,
            rounds=rounds,
            seeds=seeds,
            folder=folder,
            centralised=centralised,
            notes=view.notes,
            finished=view.finished,
            **options,
        )
    _conclude(comparison, folder, target, as_json)


def disclosed(schemes: Sequence[Scheme[Any]], rounds: int) -> str:
    """What the server will learn of every client; schemes that disclose the same together."""
    alike: dict[tuple[Disclosure, ...], list[str]] = {}
    for label, scheme in labelled(schemes).items():
        alike.setdefault(scheme.disclosures(rounds), []).append(label)
    lines = ["What the server will learn of the clients:"]
    for learnt, labels in alike.items():
        lines.append(f"  {', '.join(labels)}")
        lines += [f"    {each}" for each in learnt]
    return "\n".join(lines)


def _conclude(comparison: Comparison, folder: Path, target: float, as_json: bool) -> None:
    if comparison.interrupted:
        print("Interrupted: the same command goes on where it stopped.", file=sys.stderr)
    if not comparison.traces:
        raise typer.Exit(130)
    if as_json:
        print(report.summary(comparison, target).to_json(orient="records", indent=2))
    else:
        report.print_summary(comparison, target)
    page = report.write(comparison, folder / "report.html", target)
    print(f"Report: {page}", file=sys.stderr if as_json else sys.stdout)
