"""The summary in the terminal: a rich table, plain text when piped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from fedcohort._internal.html import duration
from fedcohort.report.draw.styles import ORACLE
from fedcohort.report.facts.combine import marked, parts
from fedcohort.report.facts.conditions import is_carried
from fedcohort.report.facts.measures import MEASURED_HERE, Measure, measured
from fedcohort.report.facts.ranking import summary, target_of
from fedcohort.report.facts.spent import clocked
from fedcohort.report.show.format import (
    amount,
    byte_count,
    corrected_p,
    interval,
    ratio,
    short,
)
from fedcohort.report.show.prose import (
    apart,
    beside,
    chance,
    hardened,
    headline,
    how_far,
    lacking,
    once,
    tested_across,
    unlike,
    unranked,
    validated,
)
from fedcohort.report.show.table import fit_table, wide

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

MORE = {
    "Clients' own tests": MEASURED_HERE["client_accuracy"],
    "Worst tenth": MEASURED_HERE["client_worst_tenth"],
    "Spread": MEASURED_HERE["client_spread"],
    "F1": MEASURED_HERE["f1"],
    "Perplexity": MEASURED_HERE["perplexity"],
}
SPREADS = {"± divisions": "sd_partitions", "± seeds": "sd_seeds"}
FIRST_TO_GO = (
    "Computed in", "Best", "Gini", "Bytes", "Spread", "± sd", "± seeds", "± divisions",
    "Perplexity", "F1", "Worst tenth",
    "Clients'", "Time", "Rounds", "95 % interval", "p", "Gap",
)  # fmt: skip
"""Columns in the order in which a narrow terminal loses them."""


def print_summary(
    comparison: Comparison, target: float | None = None, console: Console | None = None
) -> None:
    """Print one line per scheme, the best first; a table for every problem."""
    out, comparison = console or wide(), marked(comparison, ORACLE)
    if apart(comparison):
        _say(out, apart(comparison))
    left_out: dict[str, None] = {}
    for name, part in parts(comparison):
        if name:
            out.print(Text(f"\n{name}"), style="bold")
        rows = summary(part, target)
        table, dropped = fit_table(summary_columns(part, rows, target), out, FIRST_TO_GO)
        out.print(table)
        left_out |= dict.fromkeys(dropped)
        far = f"{how_far(part)}." if how_far(part) else ""
        notes = (
            unranked(part, rows),
            lacking(part),
            once(part),
            far,
            beside(part),
            validated(part),
            hardened(part),
        )
        said = (headline(part, rows), chance(part, rows), *notes, unlike(part))
        _say(out, " ".join(filter(None, said)))
    if tested_across(comparison):
        _say(out, f"\n{tested_across(comparison)}")
    if left_out:
        _say(out, f"Left out for want of room, see the report: {', '.join(left_out)}.")


def _tests(comparison: Comparison, measure: Measure, rows: list[Any]) -> dict[str, list[str]]:
    """The gaps to the reference, their intervals and p values."""
    return {
        "Gap": [
            "reference" if row.scheme == comparison.reference else measure.gap(row.difference)
            for row in rows
        ],
        "95 % interval": [interval(measure, row.low, row.high) for row in rows],
        "p": [corrected_p(row) for row in rows],
    }


def _times(comparison: Comparison, rows: list[Any], there: str) -> dict[str, list[str]]:
    """Time on the devices, where it was simulated, and apart what the simulator took itself."""
    own = "Time" if is_carried(comparison) else "Computed in"
    out = {own: [duration(row.seconds) for row in rows]}
    if not clocked(comparison):
        return out
    simulated = [duration(row.time_to_target if there else row.time) for row in rows]
    return {f"Time{there}": simulated, **out}


def _say(out: Console, words: str) -> None:
    out.print(Text(words), soft_wrap=not out.is_terminal)


def summary_columns(
    comparison: Comparison, rows: pd.DataFrame, target: float | None
) -> dict[str, list[str]]:
    """The cells of `print_summary` by heading."""
    measure, goal = measured(comparison)[0], target_of(comparison, target)
    there = "" if goal is None else f" to {goal:.0%}"
    facts = list(rows.itertuples())
    return {
        "Scheme": [str(row.scheme) for row in facts],
        f"Final {measure.words}": [measure.text(row.final) for row in facts],
        "± sd": [measure.gap(row.final_sd).lstrip("+") for row in facts],
        **{
            heading: [measure.gap(getattr(row, name)).lstrip("+") for row in facts]
            for heading, name in SPREADS.items()
            if name in rows
        },
        "Best": [measure.text(row.best) for row in facts],
        **_tests(comparison, measure, facts),
        f"Rounds{there}": [amount(row.rounds_to_target) for row in facts],
        f"Bytes{there}": [byte_count(row.bytes_to_target) for row in facts],
        **_times(comparison, facts, there),
        **({"Void rounds": [short(r.void) for r in facts]} if rows["void"].any() else {}),
        "Gini": [ratio(row.gini) for row in facts],
        **{
            heading: [more.text(getattr(row, more.name)) for row in facts]
            for heading, more in MORE.items()
            if more.name in rows
        },
    }
