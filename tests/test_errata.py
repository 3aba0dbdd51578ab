"""docs/errata.md is made of its records, and each record names a test that exists."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from helpers.makers import loaded

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def maker() -> Any:
    return loaded("make_errata")


def test_the_page_is_made_of_the_records(maker: Any) -> None:
    page = (ROOT / "docs" / "errata.md").read_text(encoding="utf-8")
    assert maker.made() == page, "run `make errata`"


def test_every_named_test_exists(maker: Any) -> None:
    for erratum in maker.ERRATA:
        if erratum.test:
            path, _, name = erratum.test.partition("::")
            tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
            names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
            assert name in names, erratum.test


def test_every_record_is_complete_and_stands_once(maker: Any) -> None:
    places = [(erratum.paper, erratum.place) for erratum in maker.ERRATA]
    assert len(set(places)) == len(places)
    for erratum in maker.ERRATA:
        assert all((erratum.place, erratum.printed, erratum.correct, erratum.counterexample))
