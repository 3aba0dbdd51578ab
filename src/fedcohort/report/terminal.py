"""The summary in the terminal: a rich table, plain text when piped."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from fedcohort.report.facts import summary, target_of
from fedcohort.report.measures import measured
from fedcohort.report.story import chance, headline
from fedcohort.report.words import amount, byte_count, duration, p_value, ratio

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

PIPED = 200


def print_summary(
    comparison: Comparison, target: float | None = None, console: Console | None = None
) -> None:
    """Print one line per scheme, the best first."""
    out = console or Console()
    if console is None and not out.is_terminal:
        out = Console(width=PIPED)  # a pipe has no width; nothing must be cut
    table = summary(comparison, target)
    out.print(summary_table(comparison, table, target, plain=not out.is_terminal))
    out.print(
        Text(f"{headline(comparison, table)} {chance(comparison, table)}"),
        soft_wrap=not out.is_terminal,
    )


def summary_table(
    comparison: Comparison, rows: pd.DataFrame, target: float | None, plain: bool
) -> Table:
    """The table of `print_summary`."""
    measure, goal = measured(comparison)[0], target_of(comparison, target)
    table = Table(box=None if plain else box.SIMPLE_HEAD, pad_edge=not plain)
    table.add_column("Scheme", no_wrap=True)
    there = "" if goal is None else f" to {goal:.0%}"
    for heading in (
        f"Final {measure.words}",
        "± sd",
        "Best",
        "Gap",
        "p",
        f"Rounds{there}",
        f"Bytes{there}",
        "Time",
        "Gini",
    ):
        table.add_column(heading, justify="right")
    for row in rows.itertuples():
        table.add_row(
            Text(str(row.scheme)),  # never read as markup
            measure.text(row.final),
            measure.gap(row.final_sd).lstrip("+"),
            measure.text(row.best),
            "best" if np.isnan(row.difference) else measure.gap(row.difference),
            p_value(row.p_holm),
            amount(row.rounds_to_target),
            byte_count(row.bytes_to_target),
            duration(row.seconds),
            ratio(row.gini),
        )
    return table
