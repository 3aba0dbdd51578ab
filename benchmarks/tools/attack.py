"""What a few liars get out of every scheme: python benchmarks/tools/attack.py."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

from attackers import LIES, Influence, attacked, lies_to
from fedcohort._internal.errors import BadInput, FedcohortError
from fedcohort._internal.parameters import Whole
from fedcohort.cli.running import CLIENTS_LIMIT, check_options, part_option
from fedcohort.schemes import SCHEMES
from fedcohort.selection._queries import ROUND_LIMIT
from fedcohort.selection._scheme import Scheme
from fedcohort.server._guards import GUARDS, Guard, guards

_SETTINGS = {"poisson": "poisson:cap=true"}
"""With a size that is large enough there is no law without it."""
_LIE = max(map(len, LIES))


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
    server's steps: first as schemes are published, then hardened. Nobody trains. All schemes with
    the default settings take about ten minutes of one processor; every row is printed when it is
    known.
    """
    often = {"--rounds": (Whole(1, ROUND_LIMIT), rounds)}
    check_options({"--clients": (Whole(2, CLIENTS_LIMIT), clients), **often})
    liars = max(1, clients // 100) if attackers is None else attackers
    if liars >= clients:
        raise BadInput(f"The option --attackers must be below --clients. Got {liars} instead.")
    behind = guards(guard or True)
    named = words or [*(_SETTINGS.get(name, name) for name in SCHEMES), f"pow-d:d={clients}"]
    built = [SCHEMES.build(word, otherwise={"m": m}) for word in named]
    tried = [(w, s, lie) for w, s in zip(named, built, strict=True) for lie in lies_to(s)]
    fleet: dict[str, Any] = {"n": clients, "attackers": liars, "rounds": rounds, "seed": seed}
    wide = max(map(len, ["scheme", *named]))
    if not as_json:
        print(f"{liars} of {clients:,} clients lie; {m} a round, {rounds} rounds; percent\n")
        print(_header(wide), flush=True)
    rows = []
    for word, scheme, lie in tried:
        rows.append({"scheme": word, "lie": lie, **_both(scheme, lie, behind, fleet)})
        if as_json or not sys.stdout.isatty():
            print(f"[{len(rows)}/{len(tried)}] {word}, {lie}", file=sys.stderr)
        if not as_json:
            print(_line(rows[-1], wide), flush=True)
    if as_json:
        print(json.dumps(rows, indent=2))
        return
    print()
    for lie, what in {**LIES, "all": "all of them at once"}.items():
        print(f"{lie}: {what}")


def _both(
    scheme: Scheme[Any], lie: str, behind: tuple[Guard, ...], fleet: dict[str, Any]
) -> dict[str, Any]:
    try:
        before = attacked(scheme, lie, **fleet)
        after = attacked(scheme, lie, hardened=behind, **fleet)
    except FedcohortError as error:
        return {"before": None, "hardened": None, "note": str(error)}
    return {"before": before._asdict(), "hardened": after._asdict(), "note": ""}


def _header(wide: int) -> str:
    names = "".join(f"{name:>8}" for name in Influence._fields)
    over = f"{'':{wide + _LIE + 2}}{'as published':>{len(names)}}{'hardened':>{len(names)}}"
    return f"{over}\n{'scheme':{wide}}  {'lie':{_LIE}}{names}{names}"


def _line(row: dict[str, Any], wide: int) -> str:
    found = [row[when] for when in ("before", "hardened")]
    cells = [f"{100 * share:8.1f}" for each in found if each for share in each.values()]
    return f"{row['scheme']:{wide}}  {row['lie']:{_LIE}}{''.join(cells) or '  ' + row['note']}"


if __name__ == "__main__":
    try:
        typer.run(attack)
    except FedcohortError as error:
        sys.exit(f"Error: {error}")
