"""``fedcohort check``: prove what a scheme claims."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedcohort.cli.words import find_scheme, parse_scheme
from fedcohort.schemes import schemes
from fedcohort.testing import Subject, check_scheme


def _subject(word: str) -> Subject:
    """A class by its name alone, which stands for all its variants; with settings, a scheme."""
    return parse_scheme(word) if ":" in word else find_scheme(word)


def check(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Schemes, or paths of files with one, with settings as in hcsfed:weights=paper; "
            "all by default. Without settings each choice of a scheme is checked in turn."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run every check on a scheme: claims by enumeration, purity, state, bad input."""
    subjects = {word: _subject(word) for word in names or schemes()}
    results = [
        {"scheme": word, **asdict(result)}
        for word, subject in subjects.items()
        for result in check_scheme(subject, stop=False)
    ]
    failed = [row for row in results if not row["passed"]]
    if as_json:
        print(json.dumps(results, indent=2))
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for column in ("scheme", "check", "result", "detail"):
            table.add_column(column, overflow="fold")
        for row in results:
            result = "[green]ok[/]" if row["passed"] else "[red]FAILED[/]"
            table.add_row(row["scheme"], row["name"], result, row["detail"])
        console = Console()
        console.print(table)
        console.print(f"{len(results) - len(failed)} checks passed, {len(failed)} failed.")
    if failed:
        raise typer.Exit(1)
