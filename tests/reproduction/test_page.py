"""docs/reproduction.md is what the generator makes of the results that are kept."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedcohort.core.errors import BadInput
from fedcohort.recipes import Claim, Computed, Exact, Judged, Recipe, Run, Scale
from fedcohort.reproduction.page import BEGIN, kept, page

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_is_made_of_the_results() -> None:
    spec = importlib.util.spec_from_file_location("maker", DOCS / "make_reproduction.py")
    assert spec is not None
    assert spec.loader is not None
    maker = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(maker)
    page = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert maker.made() == page, "run `make reproduction`"


def compute(scale: Scale, seed: int) -> Computed:
    return Computed(samples={"answer": 42.0})


RECIPE = Recipe(
    "mine",
    "The answer",
    "A paper",
    where="Table 1",
    compute=compute,
    scales={"quick": Scale(), "standard": Scale(seeds=2)},
    claims=(Claim("the answer", "42 | 43", Exact("answer", 42, 0), erratum="once 54"),),
)
TEXT = f"# Page\n\nWords.\n\n{BEGIN}\nold"


def test_a_claim_that_no_run_has_seen(tmp_path: Path) -> None:
    made = page(TEXT, [RECIPE], [])
    assert made.startswith(f"# Page\n\nWords.\n\n{BEGIN}\n\n| paper | claims |")
    assert "\n## A paper\n\n### Table 1: `mine`\n\nThe answer.\n" in made
    assert "\n| A paper | 1 | 0 | 0 | 0 | 0 | 1 |\n" in made
    assert "old" not in made
    assert (
        "\nNot run yet: `fedcohort reproduce mine --scale standard`\n\n| claim | printed |\n"
        in made
    )
    assert "42 \\| 43 (once 54)" in made


def test_results_by_the_largest_scale_and_this_criterion(tmp_path: Path) -> None:
    for name in ("quick", "standard"):
        facts = Judged.of(Run.of(RECIPE, name, tmp_path / name)()).as_dict()
        (tmp_path / f"mine-{name}.json").write_text(json.dumps(facts))
    results = kept(tmp_path)
    made = page(TEXT, [RECIPE], results)
    assert "`fedcohort reproduce mine --scale standard`, 2 seeds, 1 partition, " in made
    assert "| the answer | 42 \\| 43 (once 54) | 42 | **reproduced** |\n" in made
    assert "\n| A paper | 1 | 1 | 0 | 0 | 0 | 0 |\n" in made
    changed = replace(RECIPE, claims=(replace(RECIPE.claims[0], judge=Exact("answer", 42, 1)),))
    assert "Not run yet" in page(TEXT, [changed], results)
    (tmp_path / "mine-quick.json").rename(tmp_path / "mine.json")
    with pytest.raises(BadInput, match=r"must be named 'mine-quick\.json'"):
        kept(tmp_path)
    with pytest.raises(BadInput, match="must have the line"):
        page("# Page", [RECIPE], results)
