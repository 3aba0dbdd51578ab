"""All facts as CSV files, safe to open in a spreadsheet."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from fedcohort.report.panels import of_each
from fedcohort.report.panels.base import Shown

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison

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
