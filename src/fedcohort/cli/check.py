"""``fedcohort check``: prove what a scheme claims."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedcohort.schemes import find, schemes
from fedcohort.testing import check_scheme


def check(
    names: Annotated[list[str] | None, typer.Argument(help="Schemes; all by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run every check on a scheme: claims by enumeration, purity, state, bad input."""
    classes = [find(name) for name in names or schemes()]
    results = [
        {"scheme": cls.name, **asdict(result)}
        for cls in classes
        for result in check_scheme(cls, stop=False)
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
