"""Every case of the catalogue has a test named after it, or a reason in docs/reliability.md."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "reliability.md"
PARTS = {"A": (1, 33), "B": (34, 51), "C": (52, 68), "D": (69, 79), "E": (80, 96), "F": (97, 106)}
CASES = {f"{part}{i}" for part, (low, high) in PARTS.items() for i in range(low, high + 1)}


def covered() -> set[str]:
    names = " ".join(
        name
        for file in TESTS.rglob("test_*.py")
        for name in re.findall(r"^(?:def )?(test_[A-F][0-9]\w*)", file.read_text("utf-8"), re.M)
    )
    return set(re.findall(r"(?<=_)[A-F][0-9]+(?=_)", names))


def explained() -> set[str]:
    """Cases in the table of reasons."""
    return set(re.findall(r"^\| ([A-F][0-9]+) \|", PAGE.read_text("utf-8"), re.M))


def test_the_catalogue_is_complete() -> None:
    assert len(CASES) == 106
    assert CASES - covered() - explained() == set()


def test_nothing_is_explained_that_is_tested_or_no_case() -> None:
    assert explained() & covered() == set()
    assert (explained() | covered()) <= CASES
