"""docs/reproduction.md is what the generator makes of the results that are kept."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fedcohort.core.errors import BadInput
from fedcohort.recipes import Cell, Claim, Close, Computed, Exact, Judged, Recipe, Run, Scale
from fedcohort.reproduction.findings import NOT_RUN
from fedcohort.simulation.problem import Problem
from helpers.makers import DOCS, loaded

maker = loaded("make_reproduction")
BEGIN, kept, page = maker.BEGIN, maker.kept, maker.page


def test_the_page_is_made_of_the_results() -> None:
    written = (DOCS / "reproduction.md").read_text(encoding="utf-8")
    assert maker.made() == written, "run `make reproduction`"


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
    assert "\n| A paper | 1 | 0 | 0 | 0 | 0 | 1 | – |\n" in made
    assert "old" not in made
    assert (
        "\nNot run yet: `fedcohort reproduce mine --scale standard`\n\n| claim | printed |\n"
        in made
    )
    assert "42 \\| 43 (once 54)" in made


def test_a_claim_names_the_scale_that_runs_its_cells() -> None:
    problem = Problem("digits", "iid:n=4")
    cells = tuple(Cell(name, problem, ["full"], rounds=1) for name in ("one", "other"))
    scales = {name: Scale(only=only) for name, only in (
        ("quick", None), ("standard", ("one",)), ("full", None))}  # fmt: skip
    claims = tuple(
        Claim(f"of {name}", "1", Close("accuracy", (name, "full"), 1, 0.1), "wrong", see)
        for name, see in (("one", ""), ("other", "theory.md"))
    )
    made = page(TEXT, [replace(RECIPE, cells=cells, scales=scales, claims=claims)], [])
    standard, full = made.split("--scale standard")[1].split("--scale full")
    assert "| of one | 1 (wrong) |" in standard
    assert "| of other | 1 ([wrong](theory.md)) |" in full
    assert "<li>of one: <em>accuracy of full (one) is within ±0.1 of 1, two" in full


def test_ours_are_counted_apart_and_what_was_chosen_late_is_marked(tmp_path: Path) -> None:
    ours = replace(RECIPE.claims[0], statement="we ask", ours=True, exploratory="bound after a run")
    mine = replace(RECIPE, claims=(*RECIPE.claims, ours))
    facts = Judged.of(Run.of(mine, "quick", tmp_path)()).as_dict()
    made = page(TEXT, [mine], [facts])
    assert "\n| A paper | 1 | 1 | 0 | 0 | 0 | 0 | 1 reproduced |\n" in made
    assert "| we ask (ours; exploratory: bound after a run) | 42" in made


def test_claims_that_a_scale_did_not_run_are_not_run_yet(tmp_path: Path) -> None:
    facts = Judged.of(Run.of(RECIPE, "quick", tmp_path)()).as_dict()
    facts["claims"][0]["verdict"] = NOT_RUN
    assert "Not run yet" in page(TEXT, [RECIPE], [facts])


def test_which_seeds_and_what_was_tuned_stand_on_the_page(tmp_path: Path) -> None:
    edge = "md: lr=5.0 is the smallest value of the grid; a better one may lie beyond."
    tuned = {"one": {"chosen": {"md": {"lr": 5.0}}, "shared": False, "tried": {"md": 2}, "runs": 1,
                     "rounds": 3, "notes": ["The same budget.", edge]}}  # fmt: skip
    facts = {**Judged.of(Run.of(RECIPE, "quick", tmp_path)()).as_dict(), "seed": 5, "tuned": tuned}
    made = page(TEXT, [RECIPE], [facts])
    assert "`fedcohort reproduce mine --scale quick --seed 5`, 1 seed (5), 1 partition, " in made
    assert f"md lr = 5. {edge}\n" in made
    assert "The same budget" not in made


def test_results_by_the_largest_scale_and_this_criterion(tmp_path: Path) -> None:
    for name in ("quick", "standard"):
        facts = Judged.of(Run.of(RECIPE, name, tmp_path / name)()).as_dict()
        (tmp_path / f"mine-{name}.json").write_text(json.dumps(facts))
    results = kept(tmp_path)
    made = page(TEXT, [RECIPE], results)
    assert "`fedcohort reproduce mine --scale standard`, 2 seeds, 1 partition, " in made
    assert "| the answer | 42 \\| 43 (once 54) | 42 | **reproduced** |\n" in made
    assert "\n| A paper | 1 | 1 | 0 | 0 | 0 | 0 | – |\n" in made
    changed = replace(RECIPE, claims=(replace(RECIPE.claims[0], judge=Exact("answer", 42, 1)),))
    assert "Not run yet" in page(TEXT, [changed], results)
    older = [{**each, "digest": "another"} for each in results]
    assert "Not run yet" in page(TEXT, [RECIPE], older)
    older = [{k: v for k, v in each.items() if k != "digest"} for each in results]
    assert "Not run yet" in page(TEXT, [RECIPE], older)  # from before there was such a digest
    assert "Not run yet" in page(TEXT, [replace(RECIPE, version=2)], results)
    (tmp_path / "mine-quick.json").rename(tmp_path / "mine.json")
    with pytest.raises(BadInput, match=r"must be named 'mine-quick\.json'"):
        kept(tmp_path)
    with pytest.raises(BadInput, match="must have the line"):
        page("# Page", [RECIPE], results)
