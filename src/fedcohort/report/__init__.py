"""From traces to tables, and from tables to the terminal, one HTML page and pictures.

Heavy libraries (pandas, plotly, matplotlib) are loaded when a report is made, not before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from fedcohort.report._figure import Drawing
    from fedcohort.simulation import Comparison
    from fedcohort.simulation._progress import Watch

__all__ = [
    "combined",
    "figures",
    "pairwise",
    "print_summary",
    "summary",
    "to_latex",
    "to_mlflow",
    "to_tensorboard",
    "watch",
    "write",
    "write_csv",
    "write_pictures",
]


def summary(
    comparison: Comparison, target: float | None = None, *, reference: str | None = None
) -> pd.DataFrame:
    """One row per scheme, the best first; the ranking that the report shows.

    ``reference`` names the scheme that the others are tested against, here and in all functions
    below; by default that of the comparison, see `Comparison.reference`.
    """
    from fedcohort.report import _ranking

    return _ranking.summary(comparison.against(reference), target)


def pairwise(comparison: Comparison, references: Sequence[str] | str | None = None) -> pd.DataFrame:
    """Every scheme against the reference, or against other ones; paired by partition and seed.

    ``"all"`` requests every scheme against every other.
    """
    from fedcohort.report import _ranking

    return _ranking.pairwise(comparison, references)


def to_latex(
    comparison: Comparison, target: float | None = None, *, reference: str | None = None
) -> str:
    """The summary as a table for LaTeX (package booktabs)."""
    from fedcohort.report import _tables

    return _tables.table(comparison.against(reference), target)


def print_summary(
    comparison: Comparison,
    target: float | None = None,
    console: Console | None = None,
    *,
    reference: str | None = None,
) -> None:
    """Print the summary: a table in a terminal, plain text when piped."""
    from fedcohort.report import _tables

    _tables.print_summary(comparison.against(reference), target, console)


def write(
    comparison: Comparison,
    path: str | os.PathLike[str],
    target: float | None = None,
    *,
    reference: str | None = None,
) -> Path:
    """Write the page: one HTML file that needs no server, no network and nothing beside it."""
    from fedcohort.report import _page

    return _page.write(comparison.against(reference), path, target)


def write_csv(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    target: float | None = None,
    *,
    reference: str | None = None,
) -> list[Path]:
    """Write all tables as CSV."""
    from fedcohort.report import _tables

    return _tables.write_csv(comparison.against(reference), folder, target)


def write_pictures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    target: float | None = None,
    *,
    width: float = 3.35,
    formats: Sequence[str] = ("png", "svg", "pdf"),
) -> list[Path]:
    """Draw pictures for papers, as wide as a column (in inches)."""
    from fedcohort.report import _print_figures

    return _print_figures.write_pictures(comparison, folder, target, width=width, formats=formats)


def figures(comparison: Comparison, target: float | None = None) -> dict[str, Drawing]:
    """The figures of the page by their keys, in its order; a notebook shows each as it is."""
    from fedcohort.report._panel import Shown, drawings, of_each

    shown = Shown.of(comparison, target)
    found = [
        each for _, row in of_each(lambda panel: drawings(panel.content(shown))) for each in row
    ]
    return {each.key: each for each in found}


def combined(comparisons: Sequence[Comparison]) -> Comparison:
    """Several comparisons as one."""
    from fedcohort.report import _runs

    return _runs.combined(comparisons)


def watch(
    labels: Sequence[str],
    seeds: int,
    rounds: int,
    console: Console | None = None,
    partitions: int = 1,
) -> Watch:
    """A live view of a running comparison; see `fedcohort.simulation._progress.Watch`."""
    from fedcohort.simulation._progress import Watch

    if console is None:
        return Watch(labels, seeds, rounds, partitions=partitions)
    return Watch(labels, seeds, rounds, console, partitions=partitions)


def to_tensorboard(comparison: Comparison, folder: str | os.PathLike[str]) -> list[Path]:
    """Write all runs for TensorBoard."""
    from fedcohort.report import _trackers

    return _trackers.to_tensorboard(comparison, folder)


def to_mlflow(comparison: Comparison, uri: str, experiment: str = "fedcohort") -> list[str]:
    """Log all runs to MLflow."""
    from fedcohort.report import _trackers

    return _trackers.to_mlflow(comparison, uri, experiment)
