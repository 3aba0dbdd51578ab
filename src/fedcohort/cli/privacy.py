"""The commands ``price`` and ``audit``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from fedcohort._internal.errors import BadInput, FedcohortError, MissingExtra
from fedcohort.cli.options import typed
from fedcohort.cli.tables import ColumnOption, ImportanceOption, SizesOption, clients_given
from fedcohort.privacy import Price, noise_for
from fedcohort.privacy import price as price_of
from fedcohort.privacy._accounting import ADJACENCIES, REPLACE_ONE
from fedcohort.privacy._price import law
from fedcohort.report._format import counted
from fedcohort.report._text_table import fit_table, say, wide
from fedcohort.schemes import SCHEMES

# ``fedcohort price``: what a scheme costs in privacy.

TABLES = {".csv", ".tsv", ".txt"}
"""Endings by which a file of sizes is told from a scheme."""
NOT_COVERED = (
    "Not covered: sizes and how many clients there are (public, as is the law); whoever sees "
    "single updates (the server, without secure aggregation); what a scheme asks. The seed is a "
    "secret: who knows it knows who took part. docs/privacy.md has the theorems."
)


def price(
    context: typer.Context,
    schemes: Annotated[
        list[str] | None,
        typer.Argument(help="Schemes; all if none. A CSV file of sizes may stand among them."),
    ] = None,
    n: Annotated[int | None, typer.Option("-n", help="So many clients, of equal size.")] = None,
    sizes: SizesOption = None,
    column: ColumnOption = None,
    importance: ImportanceOption = "size",
    m: Annotated[int, typer.Option("-m", help="Clients per round.")] = 10,
    rounds: Annotated[int, typer.Option("--rounds", "-T", help="How many rounds.")] = 100,
    noise: Annotated[
        float, typer.Option(help="Deviation of the noise over what one client can change.")
    ] = 1.0,
    delta: Annotated[float, typer.Option(help="Chance with which the promise may fail.")] = 1e-5,
    epsilon: Annotated[
        float | None, typer.Option(help="Find the noise for this epsilon instead.")
    ] = None,
    adjacency: Annotated[
        str, typer.Option(help="What a client might do instead: add-remove, replace-one, or both.")
    ] = "add-remove",
    accountant: Annotated[str, typer.Option(help="pld (tight), or rdp.")] = "pld",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a scheme costs in privacy when noise is added to the sum of clipped updates."""
    if {"noise", "epsilon"} <= set(typed(context)):
        raise BadInput("--epsilon finds the noise that it takes: leave out --noise or --epsilon.")
    files = [word for word in schemes or [] if Path(word).suffix.lower() in TABLES]
    typed_schemes = [word for word in schemes or [] if word not in files]
    if len(files) + (sizes is not None) > 1:
        raise BadInput("Give the file of sizes once: as a word or by --sizes.")
    federation = clients_given(n, Path(files[0]) if files else sizes, column, importance)
    kinds = ADJACENCIES if adjacency == "both" else (adjacency,)
    words, found = list[str](), list[Price]()
    left_out: dict[str, FedcohortError] = {}
    for word in typed_schemes:  # before any of them is priced, which takes a while
        law(SCHEMES.build(word, otherwise={"m": m}), federation, 1)
    for word in typed_schemes or list(SCHEMES):
        try:
            scheme, costs = SCHEMES.build(word, otherwise={"m": m}), list[Price]()
            for kind in kinds:
                how: dict[str, Any] = {"adjacency": kind, "accountant": accountant}
                used = noise
                if epsilon is not None:
                    used = noise_for(scheme, federation, rounds, epsilon, delta, **how)
                costs.append(price_of(scheme, federation, rounds, used, delta, **how))
        except FedcohortError as error:
            if typed_schemes or isinstance(error, MissingExtra):
                raise
            left_out[word] = error
        else:
            words += [word + " (oracle)" * scheme.oracle] * len(costs)
            found += costs
    if not found:
        raise next(iter(left_out.values()))
    console = wide()
    if as_json:
        told = [{**each.as_dict(), "guarantee": each.guarantee()} for each in found]
        told += [{"scheme": word, "not_applicable": str(left_out[word])} for word in left_out]
        print(json.dumps(told if len(told) != 1 else told[0], indent=2))
        return
    if len(found) == 1:
        show(found[0], console)
    else:
        show_all(words, found, console)
    for word, reason in left_out.items():
        say(console, f"Not applicable: {word}. {reason}")


def show(price: Price, console: Console) -> None:
    """One scheme: every number with its meaning."""
    tell = partial(say, console)
    tell(f"{price.scheme}: {_setting(price)}\n", "bold")
    lines = [("epsilon", f"{price.epsilon:.4g}")]
    if price.curve:
        lines[0] = ("epsilon of the worst-off client", f"{price.epsilon:.4g}")
        lines += [
            (f"of the cheapest {share:.0%}, at most", f"{cost:.4g}")
            for share, cost in price.curve[:-1:2]
        ]
    if price.seen > price.epsilon:
        lines.append(("if it is known who took part", f"{price.seen:.4g}"))
    lines.append(("of one draw in every round", f"{price.unamplified:.4g}"))
    widest = max(len(name) for name, _ in lines)
    for name, value in lines:
        tell(f"{name:{widest}}  {value:>8}", indent=2)
    if price.deviation is not None and price.largest_weight is not None:
        tell(
            f"\nNoise {price.noise:.4g} is a standard deviation of {price.deviation:.4g} clipping "
            f"norms on the sum: one draw weighs at most {price.largest_weight:.4g}"
            + (", and a client may send the opposite." if price.adjacency == REPLACE_ONE else ".")
        )
    tell(f"Law: {price.how}.")
    tell(f"\n{price.guarantee()}")
    tell(NOT_COVERED)


def show_all(words: list[str], prices: list[Price], console: Console) -> None:
    """A table, the cheapest first; schemes as they were typed."""
    tell = partial(say, console)
    same = len({price.noise for price in prices}) == 1
    alike = len({price.adjacency for price in prices}) == 1
    tell(f"{_setting(prices[0], same, alike)}\n")
    order = sorted(
        range(len(prices)),
        key=lambda i: (not prices[i].covered, prices[i].epsilon, prices[i].noise),
    )
    rows = [prices[i] for i in order]
    columns = {
        "scheme": [words[i] for i in order],
        **({} if alike else {"neighbour": [price.adjacency for price in rows]}),
        "epsilon": [f"{price.epsilon:.4g}{'' if price.covered else ' *'}" for price in rows],
        "median": [f"{price.median:.4g}" for price in rows],
        "if seen who": [f"{price.seen:.4g}" for price in rows],
        **({} if same else {"noise": [f"{price.noise:.4g}" for price in rows]}),
        "deviation": [
            "-" if price.deviation is None else f"{price.deviation:.4g}" for price in rows
        ],
        "law": [price.how for price in rows],
    }
    table, dropped = fit_table(columns, console, ("law", "deviation", "median"), left=("law",))
    console.print(table)
    if "law" in dropped:  # what the numbers follow from: below the table there is room for it
        dropped.remove("law")
        for law, names in _by_law(columns["scheme"], columns["law"]).items():
            tell(f"{', '.join(names)}: {law}", indent=2)
    if dropped:
        tell(f"In a wider window, or with --json: {', '.join(dropped)}.")
    if not all(price.covered for price in rows):
        tell("* of the sums alone: the choice looks at data, which is not covered.")
    tell(f"\n{NOT_COVERED}")


def _by_law(schemes: list[str], laws: list[str]) -> dict[str, list[str]]:
    """The schemes of every law, each once, in the order of the table."""
    pairs = dict.fromkeys(zip(schemes, laws, strict=True))
    return {law: [name for name, its_law in pairs if its_law == law] for law in laws}


def _setting(price: Price, noise: bool = True, alike: bool = True) -> str:
    loud = f"noise {price.noise:.4g}, " if noise else ""
    neighbour = f"{price.adjacency}, " if alike else ""
    return (
        f"{counted(price.n, 'client')}, {counted(price.rounds, 'round')}, {loud}"
        f"delta {price.delta:g}, {neighbour}{price.accountant}"
    )


# ``fedcohort audit``: attack the noise, and hold what is found against its price.


def audit(
    schemes: Annotated[list[str], typer.Argument(help="Which schemes.")],
    n: Annotated[int | None, typer.Option("-n", help="So many clients, of equal size.")] = None,
    sizes: SizesOption = None,
    column: ColumnOption = None,
    importance: ImportanceOption = "size",
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
