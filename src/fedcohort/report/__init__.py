"""From traces to tables, and from tables to the terminal, one HTML page and pictures.

Heavy libraries (pandas, plotly, matplotlib) are loaded when a report is made, not before.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from fedcohort.simulation import Comparison

__all__ = ["print_summary", "summary", "write"]


def summary(comparison: Comparison, target: float | None = None) -> pd.DataFrame:
    """One row per scheme, the best first; see `fedcohort.report.facts.summary`."""
    from fedcohort.report import facts

    return facts.summary(comparison, target)


def print_summary(
    comparison: Comparison, target: float | None = None, console: Console | None = None
) -> None:
    """Print the summary: a table in a terminal, plain text when piped."""
    from fedcohort.report import terminal

    terminal.print_summary(comparison, target, console)


def write(
    comparison: Comparison, path: str | os.PathLike[str], target: float | None = None
) -> Path:
    """Write the page: one HTML file that needs no server, no network and nothing beside it."""
    from fedcohort.report import page

    return page.write(comparison, path, target)
