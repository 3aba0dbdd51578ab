"""``fedcohort check``: prove what a scheme claims."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort.cli.tables import read_importance
from fedcohort.schemes import SCHEMES, find, scheme
from fedcohort.selection._federation import Federation, importance_of
from fedcohort.testing import FEDERATIONS, Subject, check_scheme


def _subject(word: str) -> Subject:
    """A class by its name alone, which stands for all its variants; with settings, a scheme."""
    return scheme(word) if ":" in word else find(word)


def _federations(importance: str) -> dict[str, dict[str, Federation]]:
    """Where to check, if not where it is done by default: the same with other importances."""
    wanted = read_importance(importance)
    if not isinstance(wanted, str):
        given = Federation(importance_of(wanted, np.ones(len(wanted))))
        return {"federations": {importance: given}}
    if wanted == "size":
        return {}
    sizes = FEDERATIONS.items()
    return {"federations": {k: Federation(importance_of(wanted, s), s) for k, s in sizes}}


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Schemes, or paths of files with one, with settings as in hcsfed:weights=paper; "
            "all by default. Without settings each choice of a scheme is checked in turn."
        ),
    ] = None,
    importance: Annotated[
        str, typer.Option(help="Check where clients count equal, by size, or as in a CSV file.")
    ] = "size",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run every check on a scheme: claims by enumeration, purity, state, bad input."""
    where: dict[str, Any] = _federations(importance)
    subjects = {word: _subject(word) for word in names or SCHEMES}
    results = [
        {"scheme": word, **asdict(result), "outcome": result.outcome}
        for word, subject in subjects.items()
        for result in check_scheme(subject, stop=False, **where)
    ]
    failed = [row for row in results if not row["passed"]]
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        _print(results)
    if failed:
        raise typer.Exit(1)


COLOURS = {"ok": "green", "FAILED": "red", "–": "dim"}


def _print(results: list[dict[str, Any]]) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("scheme", "check", "result", "detail"):
        table.add_column(column, overflow="fold")
    told = set()
    for row in results:
        complaint = (row["scheme"], row["detail"].partition(": ")[2])  # on whichever federation
        detail = "as above" if complaint in told else row["detail"]
        if row["outcome"] == "FAILED":
            told.add(complaint)
        cells = Text(row["outcome"], style=COLOURS[row["outcome"]]), Text(detail)
        table.add_row(row["scheme"], row["name"], *cells)
    console = Console()
    console.print(table)
    counts = Counter(row["outcome"] for row in results)
    console.print(
        f"{counts['ok']} checks passed, {counts['FAILED']} failed, "
        f"{counts['–']} have nothing to say (–)."
    )
