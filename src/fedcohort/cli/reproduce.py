"""``fedcohort reproduce``: a paper's figure from one command, with a verdict."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from fedcohort.cli.running import check_options
from fedcohort.core.parameters import Whole
from fedcohort.recipes import Outcome, Recipe, recipe, recipes
from fedcohort.simulation.engine import SEEDS_LIMIT


def reproduce(
    name: Annotated[str | None, typer.Argument(help="Which; none lists them.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder; reproduced/NAME by default.")
    ] = None,
    seed: Annotated[int, typer.Option(help="First seed.")] = 0,
    seeds: Annotated[
        int | None, typer.Option(help="Repetitions; as many as the paper by default.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Repeat a figure or table of a paper: PNG, CSV, JSON and a verdict."""
    if name is None:
        _list(list(recipes().values()), as_json)
        return
    chosen = recipe(name)
    check_options({"--seed": (Whole(0), seed), "--seeds": (Whole(1, SEEDS_LIMIT), seeds)})
    folder = out or Path("reproduced") / name
    folder.mkdir(parents=True, exist_ok=True)  # before, not after, the hours of computing
    print(f"{name}: {chosen.title}. This may take a while.", file=sys.stderr)
    try:
        outcome = chosen.run(seed, seeds)
    except KeyboardInterrupt:
        print("Interrupted: nothing is written until a recipe is finished.", file=sys.stderr)
        raise typer.Exit(130) from None
    places = outcome.write(folder, name)
    if as_json:
        print(json.dumps({**chosen.as_dict(), **outcome.as_dict(name)}, indent=2))
    else:
        _show(chosen, outcome)
        print("Written: " + ", ".join(str(place) for place in places))
    if not outcome.holds:
        raise typer.Exit(2)


def _list(all_of_them: list[Recipe], as_json: bool) -> None:
    if as_json:
        print(json.dumps([each.as_dict() for each in all_of_them], indent=2))
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("recipe", "what it shows", "paper", "repetitions"):
        table.add_column(column, no_wrap=column == "recipe", overflow="fold")
    for each in all_of_them:
        table.add_row(each.name, each.title, each.paper, each.repetitions)
    Console().print(table)


def _show(chosen: Recipe, outcome: Outcome) -> None:
    console = Console()
    console.print(f"{chosen.title}\n{chosen.paper}\n", markup=False, highlight=False)
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("", "statement", "expected", "found"):
        table.add_column(column, overflow="fold")
    for statement, expected, found, holds in outcome.verdicts:
        mark = "[green]holds[/green]" if holds else "[red]FAILS[/red]"
        table.add_row(mark, statement, expected, found)
    console.print(table)
    for note in outcome.notes:
        console.print(f"Note: {note}", markup=False, highlight=False)
