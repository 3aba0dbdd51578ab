"""Every recipe runs at its quick scale and judges its claims; what it finds is not asserted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from fedcohort._internal.errors import DataNotFound, MissingExtra
from fedcohort.simulation import Problem
from fedcohort_papers.recipes import (
    NOT_RUN,
    SCALES,
    VERDICTS,
    Bars,
    Cell,
    Claim,
    Judged,
    Recipe,
    Results,
    Run,
    Scale,
    difference,
    recipe,
    recipes,
)

NAMES = list(recipes())
SAME: dict[str, set[tuple[str, str, str]]] = {
    # The heaviest groups fill their distributions: no client is left for line 12.
    "clustered-fig8": {
        (cell, "Algorithm 2", "Algorithm 2, corrected") for cell in ("N = 10", "N = 500")
    },
    # As printed, BestLoss25 is Data (an erratum). As long as no client wins two short lists, both
    # versions of a strategy are the same; this scale has a few rounds.
    "thesis-fig-4-12": {
        *(
            (f"d = {d}, w = {w}", "Data", "BestLoss25")
            for d, w in ((6, 3), (8, 4), (10, 5), (16, 8))
        ),
        ("d = 16, w = 8", "BestLoss", "BestLoss, corrected"),
    },
    "thesis-fig-4-16": {("K = 100, HD 0.8", "AverageLoss", "AverageLoss, corrected")},
    "thesis-fig-4-22": {(cell, "Data", "BestLoss25") for cell in ("one machine", "phones")},
}
"""By recipe: arms of a cell that may be the same, with the reason above."""


def same_runs(results: Results) -> Iterator[tuple[str, str, str]]:
    """Cell and two arms that end with the same model in every run: no claim can tell them apart."""
    for cell in results.runs:
        models = {
            arm: [trace.model for trace in results.traces((cell, arm)).values()]
            for arm in results.arms(cell)
            if (cell, arm) not in results.lost
        }
        for (one, mine), (other, its) in combinations(models.items(), 2):
            if all(map(np.array_equal, mine, its)):
                yield cell, one, other


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_says_what_it_needs_to(name: str) -> None:
    one: Recipe = recipe(name)
    assert "quick" in one.scales
    assert one.where
    assert one.panels, "a recipe draws something"
    for key, scale in one.scales.items():
        assert key in SCALES
        if key == "quick" and one.cells:
            assert scale.changed, "what a quick scale cuts is said"
        assert one.cells_at(scale) or one.compute is not None
    for claim in one.claims:
        assert claim.printed
        assert str(claim.judge)
    assert len({claim.statement for claim in one.claims}) == len(one.claims)


@pytest.mark.recipes
@pytest.mark.parametrize("name", NAMES)
def test_every_recipe_runs(name: str, tmp_path: Path) -> None:
    # In this process: a worker that grew by a data set is replaced with a warning, which is an
    # error here and ends the thread that would have read the others' answers.
    try:
        judged = Judged.of(Run.of(recipe(name), "quick", tmp_path, jobs=1)())
    except (DataNotFound, MissingExtra) as missing:
        pytest.skip(str(missing))
    assert set(same_runs(judged.results)) <= SAME.get(name, set())
    places = judged.write(tmp_path)
    assert all(place.stat().st_size for place in places)
    facts = json.loads((tmp_path / f"{name}.json").read_text())
    assert facts["verdict"] in VERDICTS
    for claim in facts["claims"]:
        assert claim["verdict"] in (*VERDICTS, NOT_RUN)
        assert claim["found"]
        assert "not measured" not in claim["found"], claim


def test_arms_that_are_the_same_are_found(tmp_path: Path) -> None:
    arms = {"one": "md:m=2", "other": "md:m=2", "another": "uniform:m=2"}
    one = Recipe(
        "mine",
        "",
        "",
        cells=(Cell("digits", Problem("digits", "iid:n=6"), arms, rounds=2),),
        scales={"quick": Scale(seeds=2)},
        claims=(Claim("", "", difference("accuracy", "one", "other")),),
        panels=(Bars("accuracy"),),
    )
    results = Run.of(one, "quick", tmp_path, jobs=1)()
    assert list(same_runs(results)) == [("digits", "one", "other")]
