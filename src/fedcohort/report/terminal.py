"""The summary in the terminal: a rich table, plain text when piped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich import box
from rich.cells import cell_len
from rich.console import Console, JustifyMethod
from rich.table import Table
from rich.text import Text

from fedcohort.report.combine import parts
from fedcohort.report.facts import summary, target_of
from fedcohort.report.measures import measured
from fedcohort.report.story import apart, chance, headline
from fedcohort.report.words import amount, byte_count, duration, p_value, ratio

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

PIPED = 200
BETWEEN = 2
"""Spaces between two columns."""
FIRST_TO_GO = ("Time", "Best", "Gini", "Bytes", "p", "± sd", "Rounds", "Gap")
"""Columns in the order in which a narrow terminal loses them."""


def print_summary(
    comparison: Comparison, target: float | None = None, console: Console | None = None
) -> None:
    """Print one line per scheme, the best first; a table for every problem."""
    out = console or Console()
    if console is None and not out.is_terminal:
        out = Console(width=PIPED)  # a pipe has no width; nothing must be cut
    if apart(comparison):
        _say(out, apart(comparison))
    left_out: dict[str, None] = {}
    for name, part in parts(comparison):
        if name:
            out.print(Text(f"\n{name}"), style="bold")
        rows = summary(part, target)
        table, dropped = fitted(summary_columns(part, rows, target), out, FIRST_TO_GO)
        out.print(table)
        left_out |= dict.fromkeys(dropped)
        _say(out, f"{headline(part, rows)} {chance(part, rows)}")
    if left_out:
        _say(out, f"Left out for want of room, see the report: {', '.join(left_out)}.")


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
        "Best": [measure.text(row.best) for row in facts],
        "Gap": ["best" if np.isnan(r.difference) else measure.gap(r.difference) for r in facts],
        "p": [p_value(row.p_holm) for row in facts],
        f"Rounds{there}": [amount(row.rounds_to_target) for row in facts],
        f"Bytes{there}": [byte_count(row.bytes_to_target) for row in facts],
        "Time": [duration(row.seconds) for row in facts],
        "Gini": [ratio(row.gini) for row in facts],
    }


def fitted(
    columns: Mapping[str, Sequence[str]],
    console: Console,
    first_to_go: Iterable[str],
    left: Sequence[str] = (),
) -> tuple[Table, list[str]]:
    """A table no cell of which is folded, and the headings of the columns it had to lose.

    ``first_to_go`` are beginnings of headings. The first column is never lost; it and those
    named in ``left`` are aligned to the left. Headings may be folded, between words.
    """
    shown = dict(columns)
    for beginning in first_to_go:
        if _total(_narrow(shown)) <= console.width:
            break
        shown = {k: cells for k, cells in shown.items() if not k.startswith(beginning)}
    widths = _narrow(shown)
    for heading, width in widths.items():
        wish = max(width, cell_len(heading))
        if _total(widths) + wish - width <= console.width:
            widths[heading] = wish
    # No box when piped: nothing but the numbers.
    lines = box.SIMPLE_HEAD if console.is_terminal else None
    table = Table(box=lines, show_edge=False, pad_edge=False, padding=(0, BETWEEN - 1, 0, 0))
    if lines is None:
        table.padding = (0, BETWEEN, 0, 0)
    for number, (heading, width) in enumerate(widths.items()):
        side: JustifyMethod = "left" if number == 0 or heading in left else "right"
        table.add_column(Text(heading, "bold"), justify=side, width=width, no_wrap=False)
    for row in zip(*shown.values(), strict=True):
        table.add_row(*(Text(cell) for cell in row))  # never read as markup
    return table, [heading for heading in columns if heading not in shown]


def _narrow(columns: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """The least width of every column: its widest cell, or the longest word above it."""
    return {
        heading: max(cell_len(text) for text in (*cells, *heading.split()))
        for heading, cells in columns.items()
    }


def _total(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + BETWEEN * (len(widths) - 1)
