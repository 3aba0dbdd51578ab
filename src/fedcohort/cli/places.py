"""Where commands may write."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fedcohort._internal.errors import BadInput


def check_places(options: dict[str, Path | None]) -> None:
    """Refuse a dash where a file or folder is written: it would be one of that name."""
    for name, place in options.items():
        if place is not None and str(place) == "-":
            raise BadInput(
                f"The option {name} must be a path. Got - instead, which is none: only --json "
                "and `report --latex -` write to standard output."
            )


PICTURES = (".png", ".svg", ".pdf")
"""What a single picture may be written as."""
PAGES = (".html", ".htm")
"""What a page may be called, so that a browser opens it."""


def check_file(option: str, place: Path | None, endings: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a place where no such file can be written."""
    if place is None:
        return
    check_places({option: place})
    if place.is_dir():
        raise BadInput(
            f"The option {option} must be a file. Got {place} instead, which is a folder: name a "
            "file in it."
        )
    if endings and place.suffix.lower() not in endings:
        *first, last = endings
        raise BadInput(
            f"The option {option} must end in {', '.join(first)} or {last}. Got {place} instead."
        )
    there = next(parent for parent in place.absolute().parents if parent.exists())
    if not there.is_dir():
        raise BadInput(
            f"The option {option} must be a file in a folder. Got {place} instead, and {there} is "
            "no folder."
        )


def check_folders(options: dict[str, Path | None]) -> None:
    """Refuse, before anything is computed, a file where a folder is written."""
    check_places(options)
    for name, place in options.items():
        if place is not None and place.exists() and not place.is_dir():
            raise BadInput(
                f"The option {name} must be a folder. Got {place} instead, which is a file."
            )
