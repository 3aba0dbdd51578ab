"""Every recipe runs at its quick scale and judges its claims; what it finds is not asserted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fedcohort.core.errors import DataNotFound, MissingExtra
from fedcohort.recipes import NOT_RUN, SCALES, VERDICTS, Judged, Recipe, Run, recipe, recipes

NAMES = [name for name, each in recipes().items() if each.run is None]


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
    places = judged.write(tmp_path)
    assert all(place.stat().st_size for place in places)
    facts = json.loads((tmp_path / f"{name}.json").read_text())
    assert facts["verdict"] in VERDICTS
    for claim in facts["claims"]:
        assert claim["verdict"] in (*VERDICTS, NOT_RUN)
        assert claim["found"]
        assert "not measured" not in claim["found"], claim
