"""What a recipe trains is seen in a panel and in a claim; what no paper prints is called ours."""

from __future__ import annotations

import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any

import pytest

from fedcohort.simulation import Problem
from fedcohort_papers.recipes import (
    Bars,
    Cell,
    Claim,
    Curves,
    Recipe,
    Scale,
    difference,
    recipe,
    recipes,
)

NAMES = list(recipes())
NOT_PRINTED = ("not printed", "not in the", "left to future research", "not tried by")


def named(part: Any) -> Iterator[str]:
    """All strings that a panel or a criterion holds, those that its functions close over, too."""
    if isinstance(part, str):
        yield part
    elif is_dataclass(part):
        for each in fields(part):
            yield from named(getattr(part, each.name))
    elif isinstance(part, Mapping):
        yield from named([*part.keys(), *part.values()])
    elif isinstance(part, list | tuple):
        for each in part:
            yield from named(each)
    elif isinstance(part, partial):
        yield from named([part.func, *part.args, *part.keywords.values()])
    elif isinstance(part, types.FunctionType):
        yield from named([cell.cell_contents for cell in part.__closure__ or ()])


def unseen(one: Recipe, parts: tuple[Any, ...], scale: Scale) -> set[str]:
    """The cells that are run at a scale and that none of the parts is about."""
    cells = {cell.name for cell in one.cells_at(scale)}
    if len(one.cells) == 1 and parts:
        return set()  # parts need not name it
    return cells - set(named(parts))


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_in_a_panel_and_in_a_claim(name: str) -> None:
    one = recipe(name)
    for scale in one.scales.values():
        assert not unseen(one, one.panels, scale), "no panel shows it"
        assert not unseen(one, one.claims, scale), "no claim is about it"


def test_a_cell_that_nothing_shows_is_found() -> None:
    cells = tuple(Cell(name, Problem("digits", "iid:n=5"), ["md"], 1) for name in "ab")
    first, second = (("a", "md"), ("a", "uniform")), (("b", "md"), ("b", "uniform"))
    one = Recipe(
        "mine", "", "", cells=cells, scales={"quick": Scale(), "full": Scale(only=("a",))},
        claims=(Claim("", "", difference("accuracy", *first)),), panels=(Bars("best", cell="a"),),
    )  # fmt: skip
    assert unseen(one, one.claims, one.scales["quick"]) == {"b"}
    assert unseen(one, one.panels, one.scales["quick"]) == {"b"}
    assert not unseen(one, one.panels, one.scales["full"])
    both = (Curves(cell="b"), Claim("", "", difference("accuracy", *second)))
    assert not unseen(one, (*one.panels, both[0]), one.scales["quick"])
    assert not unseen(one, (*one.claims, both[1]), one.scales["quick"])


@pytest.mark.parametrize("name", NAMES)
def test_what_no_paper_prints_is_ours(name: str) -> None:
    for claim in recipe(name).claims:
        if claim.printed.startswith(NOT_PRINTED):
            assert claim.ours, claim.statement


@pytest.mark.parametrize("name", NAMES)
def test_two_to_four_readings_are_listed(name: str) -> None:
    one = recipe(name)
    if all(claim.ours for claim in one.claims):
        return  # no paper leaves a choice open
    assert 2 <= len(one.readings) <= 4


@pytest.mark.parametrize("name", NAMES)
def test_an_erratum_is_derived_somewhere(name: str) -> None:
    for claim in recipe(name).claims:
        assert bool(claim.see) >= bool(claim.erratum), claim.statement
