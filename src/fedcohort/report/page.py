"""One self-contained HTML page."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from fedcohort.report import facts

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


def write(
    comparison: Comparison, path: str | os.PathLike[str], target: float | None = None
) -> Path:
    """Write the page of a comparison to ``path``."""
    place = Path(path)
    table = facts.summary(comparison, target).to_html(index=False)
    place.write_text(f"<!doctype html><meta charset=utf-8>{table}", encoding="utf-8")
    return place
