"""Where commands may write."""

from __future__ import annotations

from pathlib import Path

from fedcohort.core.errors import BadInput


def check_places(options: dict[str, Path | None]) -> None:
    """Refuse a dash where a file or folder is written: it would be one of that name."""
    for name, place in options.items():
        if place is not None and str(place) == "-":
            raise BadInput(
                f"The option {name} must be a path. Got - instead, which is none: only --json "
                "and `report --latex -` write to standard output."
            )
