"""The summary in the terminal, and tables for LaTeX and CSV."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from rich.console import Console
from rich.text import Text

from fedcohort._internal.html import duration
from fedcohort.report._figure import ORACLE
from fedcohort.report._format import amount, byte_count, corrected_p, interval, ratio, short
from fedcohort.report._measures import MEASURED_HERE, Measure, measured
from fedcohort.report._panel import Shown, of_each
from fedcohort.report._ranking import summary, target_of
from fedcohort.report._result import (
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
from fedcohort.report._runs import is_carried, marked, parts
from fedcohort.report._spent import clocked
from fedcohort.report._text_table import fit_table, wide

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


# The summary in the terminal: a rich table, plain text when piped.

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


# The summary as a table for LaTeX: what a narrow terminal shows, with the best in bold.

_SPECIAL = {
    "\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--",
    "−": "$-$", "±": r"$\pm$", "<": r"$<$", ">": r"$>$", "|": r"\textbar{}",
}  # fmt: skip
NOT_PRINTED = ("Best", "Computed in")
"""What a terminal of 80 columns loses first: a page is narrow, too."""


def escaped(text: str) -> str:
    r"""A text in which nothing is a command.

    >>> print(escaped("a_b 5 %"))
    a\_b 5 \%
    """
    return "".join(_SPECIAL.get(letter, letter) for letter in " ".join(text.split()))


def table(comparison: Comparison, target: float | None = None) -> str:
    """A ``tabular`` for every problem, to be put into a ``table``; needs booktabs."""
    out = ["% needs \\usepackage{booktabs}"]
    for name, part in parts(marked(comparison, ORACLE)):
        rows = summary(part, target)
        columns = summary_columns(part, rows, target)
        columns = {head: cells for head, cells in columns.items() if head not in NOT_PRINTED}
        if name:
            out.append(f"% {' '.join(name.split())}")
        out += _tabular(columns)
    return "\n".join([*out, ""])


def _tabular(columns: Mapping[str, Sequence[str]]) -> list[str]:
    heads = [_broken(heading) for heading in columns]
    out = [rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}", r"\toprule"]
    out += [f"{' & '.join(heads)} \\\\", r"\midrule"]
    for number, row in enumerate(zip(*columns.values(), strict=True)):
        cells = [re.sub(r"(?<!\w)-(?=\d)", "$-$", escaped(cell)) for cell in row]
        if number == 0:  # the best comes first
            cells[:2] = [rf"\textbf{{{cell}}}" for cell in cells[:2]]
        out.append(f"{' & '.join(cells)} \\\\")
    return [*out, r"\bottomrule", r"\end{tabular}"]


def _broken(heading: str) -> str:
    """Over two lines, where it has as many words."""
    if " " not in heading or heading.startswith("±"):
        return escaped(heading)
    first, _, last = heading.partition(" to ")
    first, last = (first, f"to {last}") if last else heading.rsplit(" ", 1)
    return rf"\shortstack[r]{{{escaped(first)}\\{escaped(last)}}}"


# All facts as CSV files, safe to open in a spreadsheet.

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def sheets(comparison: Comparison, target: float | None = None) -> dict[str, pd.DataFrame]:
    """Every table of every panel, by name."""
    shown = Shown.of(comparison, target)
    return {
        name: table
        for _, tables in of_each(lambda panel: panel.tables(shown))
        for name, table in tables.items()
    }


def write_csv(
    comparison: Comparison, folder: str | os.PathLike[str], target: float | None = None
) -> list[Path]:
    """Write every table to ``folder``; text that a spreadsheet would run gets a quote in front."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, table in sheets(comparison, target).items():
        path = place / f"{name}.csv"
        harmless(table).to_csv(path, index=False)
        written.append(path)
    return written


def harmless(table: pd.DataFrame) -> pd.DataFrame:
    """The table with every heading and text cell that begins like a formula quoted.

    >>> harmless(pd.DataFrame({"scheme": ["=1+1", "md"], "gap": [-0.5, 0.0]}))
      scheme  gap
    0  '=1+1 -0.5
    1     md  0.0
    """
    out = table.copy()
    for name in out.columns:
        if not pd.api.types.is_numeric_dtype(out[name]):
            out[name] = [_quoted(value) for value in out[name]]
    out.columns = pd.Index([_quoted(name) for name in out.columns])
    return out


def _quoted(value: object) -> object:
    text = isinstance(value, str) and value.lstrip(" ").startswith(_FORMULA)
    return f"'{value}" if text else value
