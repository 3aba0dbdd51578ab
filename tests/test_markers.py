"""A test with a marker of its own is run by the make target that has it, or by none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
FOLDERS = {"ray": "tests/simulation", "flower": "tests/flower", "parity": "tests/flower"}
FOLDERS |= {"site": "tests/site", "adapters": "tests/adapters", "recipes": "papers/tests/recipes"}


@pytest.mark.parametrize("marker", FOLDERS)
def test_marked_tests_lie_where_the_make_target_looks(marker: str) -> None:
    folder = FOLDERS[marker]
    assert re.search(rf"pytest .* {folder}\b", MAKEFILE)
    marked = [
        path.parent.relative_to(ROOT).as_posix()
        for tests in ("tests", "papers/tests")
        for path in (ROOT / tests).rglob("test_*.py")
        if f"mark.{marker}" + "\n" in path.read_text(encoding="utf-8")
    ]
    assert set(marked) <= {folder}
