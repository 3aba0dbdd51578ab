"""``fedcohort schemes``: what there is to choose from."""

from __future__ import annotations

import inspect
import json
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from fedcohort.cli.words import find_scheme
from fedcohort.core.parameters import constraints
from fedcohort.core.scheme import Claim, Scheme
from fedcohort.schemes import schemes as all_schemes


def schemes(
    names: Annotated[list[str] | None, typer.Argument(help="Only these, or ./mine.py.")] = None,
    cite: Annotated[bool, typer.Option("--cite", help="Print the papers instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List every scheme: what it claims, asks and takes."""
    rows = [describe(find_scheme(name)) for name in names or all_schemes()]
    if as_json:
        print(json.dumps(rows, indent=2))
    elif cite:
        for row in rows:
            print(f"{row['name']}: {row['paper']}")
    else:
        _print(rows, detailed=bool(names))


def describe(cls: type[Scheme[Any]]) -> dict[str, Any]:
    """All that a scheme declares, in plain values."""
    declared = constraints(cls)
    text = inspect.getdoc(cls) or ""
    return {
        "name": cls.name,
        "summary": text.split("\n\n")[0].replace("\n", " "),
        "unbiased": Claim.UNBIASED in cls.claims,
        "claims": sorted(claim.value for claim in cls.claims),
        "asks": sorted(signal.name for signal in cls.asks),
        "listens": sorted(signal.name for signal in cls.listens),
        "parameters": {
            field.name: {
                "must be": str(declared.get(field.name, "")),
                "default": None if field.default is MISSING else field.default,
            }
            for field in fields(cls)  # type: ignore[arg-type]
        },
        "paper": str(cls.paper),
        "text": text,
    }


def _print(rows: list[dict[str, Any]], detailed: bool) -> None:
    console = Console()
    if detailed:
        for row in rows:
            console.rule(row["name"])
            console.print(row["text"], markup=False, highlight=False)
            console.print(f"\n{row['paper']}", markup=False, highlight=False)
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("scheme", "unbiased", "asks", "listens", "parameters", "what it does"):
        table.add_column(column, overflow="fold", no_wrap=column == "scheme")
    for row in rows:
        table.add_row(
            row["name"],
            "yes" if row["unbiased"] else "no",
            ", ".join(row["asks"]) or "-",
            ", ".join(row["listens"]) or "-",
            " ".join(f"{k}={v['default']}" for k, v in row["parameters"].items()) or "-",
            row["summary"],
        )
    console.print(table)
    console.print("\nMore on one: fedcohort schemes NAME. Papers: fedcohort schemes --cite.")
