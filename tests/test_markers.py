"""A test with a marker of its own is run by the make target that has it, or by none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MAKEFILE = (HERE.parent / "Makefile").read_text(encoding="utf-8")
FOLDERS = {"ray": "simulation", "flower": "flower", "parity": "flower", "recipes": "recipes"}
FOLDERS |= {"site": "site", "adapters": "adapters"}


@pytest.mark.parametrize("marker", FOLDERS)
def test_marked_tests_lie_where_the_make_target_looks(marker: str) -> None:
    folder = FOLDERS[marker]
    assert re.search(rf"pytest .*tests/{folder}\b", MAKEFILE)
    marked = [
        path.relative_to(HERE).parts[0]
        for path in HERE.rglob("test_*.py")
        if f"mark.{marker}" + "\n" in path.read_text(encoding="utf-8")
    ]
    assert set(marked) <= {folder}
