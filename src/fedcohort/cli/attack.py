"""``fedcohort attack``: what a few liars get out of every scheme, before and after hardening."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from fedcohort.cli.running import part_option
from fedcohort.core.errors import BadInput, FedcohortError
from fedcohort.core.scheme import Scheme
from fedcohort.schemes import SCHEMES
from fedcohort.server.guards import GUARDS, guards
from fedcohort.testing.attackers import LIES, Influence, attacked, lies_to

_SETTINGS = {"poisson": "poisson:cap=true"}
"""With a size that is large enough there is no law without it."""


def attack(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[SCHEME]...",
            help="Schemes, as in `compare`; by default all, and pow-d with all as candidates.",
        ),
    ] = None,
    clients: Annotated[int, typer.Option("--clients", "-n", min=2, help="Clients.")] = 1000,
    m: Annotated[int, typer.Option("--m", "-m", min=1, help="Clients per round.")] = 20,
    attackers: Annotated[
        int | None, typer.Option(min=1, help="How many of the clients lie; 1 % by default.")
    ] = None,
    rounds: Annotated[int, typer.Option("--rounds", "-T", min=1, help="Rounds.")] = 400,
    seed: Annotated[int, typer.Option(min=0, help="Of the clients and of all draws.")] = 0,
    guard: Annotated[
        list[str] | None,
        part_option("Only this (repeatable), as in clip:times=3", GUARDS, "--guard"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Let clients lie about sizes, losses, updates and data: what they get, scheme by scheme.

    Shares, in percent, of the places in all cohorts, of the weight, and of the length of the
    server's steps: first as schemes are published, then hardened. Nobody trains.
    """
    liars = max(1, clients // 100) if attackers is None else attackers
    if liars >= clients:
        raise BadInput(f"The option --attackers must be below --clients. Got {liars} instead.")
    named = words or [*(_SETTINGS.get(name, name) for name in SCHEMES), f"pow-d:d={clients}"]
    built = [SCHEMES.build(word, otherwise={"m": m}) for word in named]
    tried = [(w, s, lie) for w, s in zip(named, built, strict=True) for lie in lies_to(s)]
    bar = {"console": Console(stderr=True), "disable": not sys.stderr.isatty()}
    fleet: dict[str, Any] = {"n": clients, "attackers": liars, "rounds": rounds, "seed": seed}
    rows = [
        {"scheme": word, "lie": lie, **_both(scheme, lie, guard, fleet)}
        for word, scheme, lie in track(tried, "attacking", transient=True, **bar)  # type: ignore[arg-type]
    ]
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    _print(rows, f"{liars} of {clients:,} clients lie; {m} a round, {rounds} rounds; percent")


def _both(
    scheme: Scheme[Any], lie: str, guard: list[str] | None, fleet: dict[str, Any]
) -> dict[str, Any]:
    try:
        before = attacked(scheme, lie, **fleet)
        after = attacked(scheme, lie, hardened=guards(guard or True), **fleet)
    except FedcohortError as error:
        return {"before": None, "hardened": None, "note": str(error)}
    return {"before": before._asdict(), "hardened": after._asdict(), "note": ""}


def _print(rows: list[dict[str, Any]], title: str) -> None:
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in ("scheme", "lie"):
        table.add_column(column, no_wrap=True)
    for when in ("", "hardened "):
        for column in Influence._fields:
            table.add_column(f"{when}{column}", justify="right")
    for row in rows:
        found = [row[when] for when in ("before", "hardened")]
        cells = [f"{100 * share:.1f}" for each in found if each for share in each.values()]
        table.add_row(row["scheme"], row["lie"], *(cells or [row["note"]]))
    console = Console()
    console = console if console.is_terminal else Console(width=120)
    console.print(f"{title}\n", highlight=False)
    console.print(table)
    console.print()
    for lie, what in LIES.items():
        console.print(f"{lie}: {what}", highlight=False)
    console.print("all: all of them at once", highlight=False)
