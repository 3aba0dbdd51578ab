"""The figures of all panels as files for papers: PNG, SVG, PDF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from fedcohort._internal.errors import UnknownName
from fedcohort.report.draw.paper import COLUMN, FORMATS, GOLDEN, LOOK, UNDATED
from fedcohort.report.panels import of_each
from fedcohort.report.panels.base import Shown

if TYPE_CHECKING:
    from fedcohort.simulation import Comparison


def write_pictures(
    comparison: Comparison,
    folder: str | os.PathLike[str],
    target: float | None = None,
    *,
    width: float = COLUMN,
    formats: Sequence[str] = FORMATS,
) -> list[Path]:
    """Draw all pictures into ``folder``; ``width`` in inches."""
    for kind in formats:
        if kind not in FORMATS:
            raise UnknownName("format", kind, FORMATS)
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    shown, written = Shown.of(comparison, target), []
    with mpl.rc_context(LOOK):
        for _, pictures in of_each(lambda panel: panel.pictures(shown)):
            for name, paint in pictures.items():
                figure = Figure(figsize=(width, GOLDEN * width), layout="constrained")
                paint(figure)
                for kind in formats:
                    path = place / f"{name}.{kind}"
                    figure.savefig(path, dpi=300, metadata=UNDATED.get(kind))
                    written.append(path)
    return written
