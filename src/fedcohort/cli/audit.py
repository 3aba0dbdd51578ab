"""``fedcohort audit``: attack the noise, and hold what is found against its price."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fedcohort.cli.columns import ColumnOption, clients_given
from fedcohort.report._text_table import fit_table, wide
from fedcohort.schemes import SCHEMES


def audit(
    schemes: Annotated[list[str], typer.Argument(help="Which schemes.")],
    n: Annotated[int | None, typer.Option("-n", help="So many clients, of equal size.")] = None,
    sizes: Annotated[
        Path | None, typer.Option(help="CSV: one column of sizes, id,size, or more columns.")
    ] = None,
    column: ColumnOption = None,
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
    m: Annotated[int, typer.Option("-m", help="Clients per round.")] = 5,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 2,
    noise: Annotated[float, typer.Option(help="Noise multiplier, as for `price`.")] = 2.0,
    delta: Annotated[float, typer.Option(help="Chance with which the promise may fail.")] = 1e-3,
    adjacency: Annotated[str, typer.Option(help="add-remove or replace-one.")] = "add-remove",
    trials: Annotated[int, typer.Option(help="Runs of each of the two worlds.")] = 20_000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.")] = 0.999,
    seed: Annotated[int, typer.Option(help="Of the cohorts.")] = 0,
    planted: Annotated[
        bool, typer.Option("--planted", help="Attack noise for 1/m under unequal weights instead.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Attack the noise on the sums with a canary client: a lower bound on epsilon.

    Ends with 2 if an attack finds more than the price promises.
    """
    from fedcohort.simulation._audit import audit as attack  # the simulator takes a while

    federation = clients_given(n, sizes, column, importance)
    found = [
        attack(
            SCHEMES.build(word, otherwise={"m": m}), federation, rounds, noise, delta,
            adjacency=adjacency, trials=trials, confidence=confidence, seed=seed, planted=planted,
        )
        for word in schemes
    ]  # fmt: skip
    if as_json:
        print(json.dumps([each.as_dict() for each in found], indent=2))
    else:
        console = wide()
        columns = {
            "scheme": list(schemes),
            "epsilon is at least": [f"{each.lower:.3f}" for each in found],
            "price": [f"{each.promised:.3f}" for each in found],
            "": ["BROKEN" if each.broken else "holds" for each in found],
        }
        console.print(fit_table(columns, console, (), left=("",))[0])
        print(
            f"A canary client and {trials:,} runs with it and without; confidence {confidence:g}, "
            f"{adjacency}. What an attack does not find it does not rule out: the price does."
        )
    if any(each.broken for each in found):
        raise typer.Exit(2)
