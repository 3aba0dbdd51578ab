"""How long choosing takes, scheme by scheme, on this machine: python benchmarks/tools/bench.py."""

from __future__ import annotations

import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any

import numpy as np
import typer
from rich.console import Console
from rich.progress import track
from rich.text import Text

from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.parameters import Whole
from fedcohort._internal.random import stream
from fedcohort._internal.types import Array, Ints
from fedcohort.cli.running import CLIENTS_LIMIT, check_options
from fedcohort.cli.tables import read_importance
from fedcohort.report._text_table import fit_table, wide
from fedcohort.schemes import SCHEMES
from fedcohort.selection._cohort import Replies
from fedcohort.selection._federation import Federation, importance_of
from fedcohort.selection._queries import ROUND_LIMIT, Ask
from fedcohort.selection._scheme import Scheme
from fedcohort.selection._scripted import ScriptedClient
from fedcohort.server._selector import Selector

YARDSTICK = "uniform"


def bench(
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SCHEME]...", help="Schemes, as in `compare`; all by default."),
    ] = None,
    clients: Annotated[int, typer.Option("--clients", "-n", min=1, help="Clients.")] = 1000,
    m: Annotated[int, typer.Option("--m", "-m", min=1, help="Clients per round.")] = 10,
    parameters: Annotated[
        int, typer.Option("--parameters", "-d", min=1, help="Numbers in an update.")
    ] = 1000,
    rounds: Annotated[int, typer.Option("--rounds", min=2, help="Rounds to time.")] = 5,
    importance: Annotated[
        str, typer.Option(help="What clients count for: equal, size, or a CSV file.")
    ] = "size",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time what the server does in a round, for every scheme side by side.

    Processor time of the server alone: what clients need to answer is not counted, nor is
    training. Sizes are log-normal; losses, labels and updates are made up.
    """
    often = {"--rounds": (Whole(2, ROUND_LIMIT), rounds)}
    check_options({"--clients": (Whole(1, CLIENTS_LIMIT), clients), **often})
    sizes = _sizes(clients)
    federation = Federation(importance_of(read_importance(importance), sizes), sizes)
    wanted = [YARDSTICK, YARDSTICK, *(words or SCHEMES)]  # the first only warms up
    # Built before the first is timed: a mistake in one is told at once.
    choosers = [SCHEMES.build(word, otherwise={"m": m}) for word in wanted]
    rows = []
    for seed, chooser in enumerate(_shown(choosers)):
        # Everyone has clients of its own, as labels that were grouped before are recognised.
        rows.append(_row(chooser, Script(federation, parameters, seed), rounds))
        rows[-1]["scheme"] = wanted[seed]
    _, yardstick, *rows = rows
    rows = [yardstick if row["scheme"] == YARDSTICK else row for row in rows]  # it is once itself
    for row in rows:
        known = row["round"] is not None and yardstick["round"]
        row["times uniform"] = row["round"] / yardstick["round"] if known else None
    if as_json:
        print(json.dumps(rows, indent=2))
    else:
        _print(rows, clients, m)


def _shown(choosers: list[Scheme[Any]]) -> Iterable[Scheme[Any]]:
    """With a bar where somebody looks."""
    bar = {"console": Console(stderr=True), "disable": not sys.stderr.isatty()}
    return track(choosers, "timing", transient=True, **bar)  # type: ignore[arg-type]


def _sizes(n: int) -> Ints:
    return 1 + (100 * stream(0, "bench").lognormal(0.0, 1.0, n)).astype(np.int64)


@dataclass
class Script:
    """Answers of made-up clients, each measured once, and the time that took."""

    federation: Federation
    parameters: int
    seed: int
    spent: float = 0.0
    known: dict[Any, Any] = field(default_factory=dict)

    def __call__(self, ask: Ask) -> Array:
        begun = time.process_time()
        rows = np.array([self._answer(ask, i) for i in ask.clients.tolist()])
        self.spent += time.process_time() - begun
        return rows

    def _answer(self, ask: Ask, i: int) -> Any:
        key = ask.signal.name, tuple(ask.settings.items()), i
        if key not in self.known:
            sizes = self.federation.sizes
            size = 1 if sizes is None else int(sizes[i])
            client = ScriptedClient(i, size, self.seed, self.parameters)
            self.known[key] = client.says(ask.signal, ask.settings)
        return self.known[key]

    def seconds(self, work: Callable[[], object]) -> float:
        """Processor time of some work without that of the answers."""
        begun, answering = time.process_time(), self.spent
        work()
        return time.process_time() - begun - (self.spent - answering)


TIMES = ("start", "first choice", "a choice", "learning", "round")


def _row(scheme: Scheme[Any], script: Script, rounds: int) -> dict[str, Any]:
    """The times of a scheme, or why it has none."""
    row: dict[str, Any] = {"scheme": scheme.name, **dict.fromkeys(TIMES), "note": ""}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)
        try:
            return row | _timed(scheme, script, rounds)
        except FedcohortError as error:
            return row | {"note": str(error)}


def _timed(scheme: Scheme[Any], script: Script, rounds: int) -> dict[str, float]:
    selector = Selector(scheme, script.federation, seed=0, ask=script)
    start = script.seconds(selector.start)
    choices, lessons = [], []
    for _ in range(rounds):
        choices.append(script.seconds(selector.select))
        chosen = np.empty(0, np.int64) if selector.pending is None else selector.pending.clients
        replies = Replies(chosen, {s.name: script(Ask(s, chosen)) for s in scheme.listens})
        lessons.append(script.seconds(partial(selector.observe, replies)))
    choice, lesson = statistics.median(choices[1:]), statistics.median(lessons[1:])
    found = start, choices[0], choice, lesson, choice + lesson
    return dict(zip(TIMES, found, strict=True))


def _print(rows: list[dict[str, Any]], clients: int, m: int, out: Console | None = None) -> None:
    """The table; why a scheme has no times stands below it, where there is room."""
    console = wide(out)
    columns = {
        "scheme": [row["scheme"] for row in rows],
        **{name: [_milliseconds(row[name]) for row in rows] for name in TIMES},
        "times uniform": [_ratio(row["times uniform"]) for row in rows],
    }
    console.print(f"{clients:,} clients, {m} a round; milliseconds of processor time\n")
    table, dropped = fit_table(columns, console, FIRST_TO_GO)
    console.print(table)
    if dropped:
        console.print(f"In a wider window, or with --json: {', '.join(dropped)}.")
    for row in rows:
        if row["note"]:
            console.print(Text(f"{row['scheme']}: {row['note']}"))


FIRST_TO_GO = ("learning", "first choice", "start", "a choice", "times")
"""Columns in the order in which a narrow window loses them."""


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


def _milliseconds(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{1e3 * seconds:,.{0 if seconds >= 0.1 else 2}f}"


if __name__ == "__main__":
    try:
        typer.run(bench)
    except FedcohortError as error:
        sys.exit(f"Error: {error}")
