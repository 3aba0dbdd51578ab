"""The pages of results are made of recipes, kept results and records of statements."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort.simulation import Problem
from fedcohort_papers.recipes import (
    Alike,
    Cell,
    Claim,
    Close,
    Computed,
    Exact,
    Judged,
    Own,
    Recipe,
    Run,
    Scale,
    order,
)
from fedcohort_papers.reproduction.findings import NOT_RUN, UNDECIDED
from helpers.makers import DOCS, loaded

maker = loaded("make_reproduction")


def compute(scale: Scale, seed: int) -> Computed:
    return Computed(samples={"answer": 42.0})


RECIPE = Recipe(
    "mine",
    "The answer",
    "Qi, Wu, Lyu, Huang, Xie (IJCAI 2023), FedSampling",
    where="Table 1",
    compute=compute,
    scales={"quick": Scale(), "standard": Scale(seeds=2, minutes=3)},
    claims=(Claim("the answer", "42 | 43", Exact("answer", 42, 0), erratum="once 54"),),
)
TEXT = f"# Page\n\nWords.\n\n{maker.BEGIN}\nold\n{maker.END}\n\n## More\n"


@pytest.fixture(autouse=True)
def records(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "real" not in request.fixturenames:
        monkeypatch.setattr(maker, "_records", lambda name, what: ())


@pytest.fixture
def real() -> None:
    """Read the records of docs/statements."""


def judged(recipe: Recipe, scale: str, folder: Path) -> dict[str, Any]:
    return Judged.of(Run.of(recipe, scale, folder)()).as_dict()


def overview(recipe: Recipe, results: Sequence[Any], text: str = TEXT) -> str:
    return str(maker.pages({maker.OVERVIEW: text}, maker.rows([recipe], results))[maker.OVERVIEW])


def paper(recipe: Recipe, results: Sequence[Any] = ()) -> str:
    made = maker.pages({}, maker.rows([recipe], results))
    return str(made["reproduction/fedsampling.md"])


def test_the_pages_are_made_of_the_results(real: None) -> None:
    for path, text in maker.made().items():
        assert (DOCS / path).read_text(encoding="utf-8") == text, f"run `make reproduction`: {path}"


def test_the_home_page_has_the_sentence_that_is_counted() -> None:
    assert maker.COVERAGE.search((DOCS / "index.md").read_text(encoding="utf-8"))


def test_every_test_that_a_statement_names_exists(real: None) -> None:
    for name in maker.PAPERS:
        for each in maker._records(name, "STATEMENTS"):
            assert bool(each.test) != bool(each.why), each
            if each.test:
                path, _, test = each.test.partition("::")
                tree = ast.parse((DOCS.parent / path).read_text(encoding="utf-8"))
                names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
                assert test in names, each.test


def test_every_changed_criterion_names_a_recipe(real: None) -> None:
    for name in maker.PAPERS:
        for each in maker._records(name, "CHANGED"):
            assert set(each.recipe.split(", ")) <= maker.recipes().keys(), each
            assert all((each.before, each.verdict, each.now, each.reason)), each


def test_every_run_that_was_not_done_has_a_price(real: None) -> None:
    made = "".join(maker.made().values())
    undone = re.findall(r"^Not run yet: (.*)$", made, re.MULTILINE)
    assert undone
    assert [line for line in undone if " minutes on two cores." not in line] == []


def test_links_of_the_matrix_lead_to_sections(real: None) -> None:
    made = maker.made()
    links = re.findall(r"\]\((reproduction/\w+\.md)#([\w-]+)\)", made[maker.OVERVIEW])
    assert len(links) > 40
    for path, anchor in links:
        headings = [line[3:] for line in made[path].splitlines() if line.startswith("## ")]
        slugs = [re.sub(r"[^\w\- ]", "", each.lower()).replace(" ", "-") for each in headings]
        assert anchor in slugs


def test_a_claim_that_no_run_has_seen() -> None:
    made = overview(RECIPE, [])
    assert made.startswith(f"# Page\n\nWords.\n\n{maker.BEGIN}\n\n**1 claims about schemes as ")
    assert (
        "| [FedSampling](reproduction/fedsampling.md) | [Tab. 1](reproduction/fedsampling.md#"
        in made
    )
    assert "\n| FedSampling | 0 / 0 / 1 | – | – | – | – |\n" in made
    assert "old" not in made
    assert made.endswith(f"{maker.END}\n\n## More\n")
    page = paper(RECIPE)
    assert "\n## Table 1: `mine`\n\nThe answer.\n" in page
    assert (
        "\nNot run yet: `fedcohort reproduce mine --scale standard`; about 3 minutes on two "
        "cores.\n\n"
        "| claim | kind | printed |\n" in page
    )
    assert "| the answer | as printed | 42 \\| 43 (once 54) |" in page


def test_a_claim_names_the_scale_that_runs_its_cells() -> None:
    problem = Problem("digits", "iid:n=4")
    cells = tuple(Cell(name, problem, ["full"], rounds=1) for name in ("one", "other"))
    scales = {name: Scale(only=only) for name, only in (
        ("quick", None), ("standard", ("one",)), ("full", None))}  # fmt: skip
    claims = tuple(
        Claim(f"of {name}", "1", Close("accuracy", (name, "full"), 1, 0.1), "wrong", see)
        for name, see in (("one", ""), ("other", "theory.md"))
    )
    made = paper(replace(RECIPE, cells=cells, scales=scales, claims=claims))
    standard, full = made.split("--scale standard")[1].split("--scale full")
    assert "| of one | as printed | 1 (wrong) |" in standard
    assert "| of other | as printed | 1 ([wrong](../theory.md)) |" in full
    assert "<li>of one: <em>accuracy of full (one) is within ±0.1 of 1, two" in full


def test_own_claims_are_not_counted_and_late_choices_are_marked(tmp_path: Path) -> None:
    ours = replace(RECIPE.claims[0], statement="we ask", ours=True, exploratory="bound after a run")
    mine = replace(RECIPE, claims=(*RECIPE.claims, ours))
    facts = judged(mine, "quick", tmp_path)
    assert "\n| FedSampling | 1 / 1 / 1 | – | – | – | – |\n" in overview(mine, [facts])
    page = paper(mine, [facts])
    assert "| we ask (ours; exploratory: bound after a run) | as printed | 42" in page


def test_claims_are_counted_by_kind(tmp_path: Path) -> None:
    claims = tuple(replace(RECIPE.claims[0], statement=kind, kind=kind) for kind in
                   ("theory", "theory", "sound", "oracle", "toy"))  # fmt: skip
    mine = replace(RECIPE, claims=claims)
    made = overview(mine, [judged(mine, "quick", tmp_path)])
    assert "**0 claims about schemes as they are printed" in made
    assert "\n| FedSampling | – | 2 / 2 / 2 | 1 / 1 / 1 | 1 / 1 / 1 | 1 / 1 / 1 |\n" in made


def test_corrected_schemes_and_oracles_have_no_square_under_a_paper() -> None:
    claims = tuple(replace(RECIPE.claims[0], statement=kind, kind=kind) for kind in
                   ("printed", "theory", "sound", "oracle", "toy"))  # fmt: skip
    made = overview(replace(RECIPE, claims=claims), [])
    assert "#table-1-mine) ▫️▫️▫️ |" in made


def test_claims_beyond_the_papers_are_no_printed_scheme(tmp_path: Path) -> None:
    mine = replace(RECIPE, paper="what we tried")
    facts = judged(mine, "quick", tmp_path)
    made = maker.pages({}, maker.rows([mine], [facts]))["reproduction/beyond.md"]
    assert "| the answer | – | 42" in made


def test_statements_without_a_recipe_are_counted_and_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statements = (
        maker.Statement("(1)", "one holds", "tests/a.py::test_one"),
        maker.Statement("(2)", "two holds", "tests/a.py::test_two", holds=False),
        maker.Statement("Figure 9", "three holds", minutes=7, why="no data"),
    )
    change = maker.Changed("mine", "a > b", "reproduced", "a ≥ b", "at its bound", by_results=True)
    both = {"STATEMENTS": statements, "CHANGED": (change,)}
    monkeypatch.setattr(
        maker, "_records", lambda name, what: both[what] if name == "fedsampling" else ()
    )
    text = f"{TEXT}[9 claims of five papers](x.md), 8 of them run so far"
    made = overview(RECIPE, [], text)
    assert "\n| FedSampling | 0 / 0 / 2 | 1 / 2 / 2 | – | – | – |\n" in made
    assert made.endswith("[4 claims of five papers](x.md), 2 of them run so far")
    page = paper(RECIPE)
    assert "| (1) | one holds | 🟩 reproduced | [`test_one`](../../tests/a.py) | – |" in page
    assert "| (2) | two holds | 🟥 not reproduced |" in page
    assert "| Figure 9 | three holds | ▫️ not run yet | no data | 7 |" in page
    assert "| `mine` | a > b | reproduced | a ≥ b | yes | at its bound |" in page


def test_what_would_decide_a_claim_and_open_choices(tmp_path: Path) -> None:
    facts = judged(RECIPE, "standard", tmp_path)
    facts["claims"][0].update(verdict=UNDECIDED, needed=10, unit="seed", units=2)
    facts["seconds"] = 120.0  # for two seeds
    mine = replace(RECIPE, readings=("ties: by index here; at random is possible",))
    page = paper(mine, [facts])
    assert "2 minutes of one processor, " in page
    assert "⬜ **undecided** | 1 of 1 | 10 minutes |" in page
    assert "the paper leaves 1 choice open" in page
    assert "\n* ties: by index here; at random is possible\n" in page


def test_other_readings_count_in_the_robustness_alone(tmp_path: Path) -> None:
    one = RECIPE.claims[0]
    others = tuple(
        Claim(f"reading {wanted}", "42", Exact("answer", wanted, 0), ours=True,
              reading_of=one.statement, kind=kind)
        for wanted, kind in ((42.0, "printed"), (43.0, "sound"))
    )  # fmt: skip
    mine = replace(RECIPE, claims=(one, *others))
    facts = judged(mine, "quick", tmp_path)
    page = paper(mine, [facts])
    assert "| 42 | 🟩 **reproduced** | 2 of 3 | – |" in page
    assert "| reading 43.0 (ours) | sound | 42 | 42 | 🟥 **not reproduced** | – | – |" in page
    assert "\n| FedSampling | 1 / 1 / 1 | – | – | – | – |\n" in overview(mine, [facts])
    facts["claims"][2]["verdict"] = NOT_RUN
    assert "| 42 | 🟩 **reproduced** | 2 of 2 | – |" in paper(mine, [facts])
    with pytest.raises(BadParameter, match="'ours' parameter of a claim with reading_of"):
        replace(others[0], ours=False)
    with pytest.raises(UnknownName, match="no such statement"):
        replace(mine, claims=(one, replace(others[0], reading_of="no such statement")))


def test_claims_that_a_scale_did_not_run_are_not_run_yet(tmp_path: Path) -> None:
    facts = judged(RECIPE, "quick", tmp_path)
    facts["claims"][0]["verdict"] = NOT_RUN
    assert "Not run yet" in paper(RECIPE, [facts])


def test_which_seeds_and_what_was_tuned_stand_on_the_page(tmp_path: Path) -> None:
    edge = "md: lr=5.0 is the smallest value of the grid; a better one may lie beyond."
    tuned = {"one": {"chosen": {"md": {"lr": 5.0}}, "shared": False, "tried": {"md": 2}, "runs": 1,
                     "rounds": 3, "notes": ["The same budget.", edge]}}  # fmt: skip
    facts = {**judged(RECIPE, "quick", tmp_path), "seed": 5, "tuned": tuned}
    made = paper(RECIPE, [facts])
    assert "`fedcohort reproduce mine --scale quick --seed 5`, 1 seed (5), 1 partition, " in made
    assert f"md lr = 5. {edge}\n" in made
    assert "The same budget" not in made


def test_results_by_the_largest_scale_and_this_criterion(tmp_path: Path) -> None:
    for name in ("quick", "standard"):
        facts = judged(RECIPE, name, tmp_path / name)
        (tmp_path / f"mine-{name}.json").write_text(json.dumps(facts))
    results = maker.kept(tmp_path)
    made = paper(RECIPE, results)
    assert "`fedcohort reproduce mine --scale standard`, 2 seeds, 1 partition, " in made
    assert "| 42 \\| 43 (once 54) | 42 | 🟩 **reproduced** | 1 of 1 | – |\n" in made
    changed = replace(RECIPE, claims=(replace(RECIPE.claims[0], judge=Exact("answer", 42, 1)),))
    assert "Not run yet" in paper(changed, results)
    older = [{**each, "digest": "another"} for each in results]
    assert "Not run yet" in paper(RECIPE, older)
    older = [{k: v for k, v in each.items() if k != "digest"} for each in results]
    assert "Not run yet" in paper(RECIPE, older)  # from before there was such a digest
    assert "Not run yet" in paper(replace(RECIPE, version=2), results)
    (tmp_path / "mine-quick.json").rename(tmp_path / "mine.json")
    with pytest.raises(BadInput, match=r"must be named 'mine-quick\.json'"):
        maker.kept(tmp_path)
    with pytest.raises(BadInput, match="must have the lines"):
        overview(RECIPE, results, "# Page")


def test_a_result_counts_for_the_arms_that_are_as_they_were(tmp_path: Path) -> None:
    arms = {"one": "full", "two": "md:m=2", "three": "uniform:m=2"}
    claims = (
        Claim("one and two", "0", Alike("accuracy", "one", "two", 0.5)),
        Claim("all", "0", order("accuracy", ("one", "two", "three"))),
        Claim("own", "0", Own("anything", lambda results: results.values("accuracy", "one"), 0.5)),
    )

    def recipe(**changed: Any) -> Recipe:
        cell = Cell("cell", Problem("digits", "iid:n=4"), arms, rounds=2)
        return replace(RECIPE, compute=None, cells=(replace(cell, **changed),), claims=claims)

    facts = judged(recipe(), "quick", tmp_path)

    def counts(**changed: Any) -> list[bool]:
        every = maker.rows([recipe(**changed)], [json.loads(json.dumps(facts))])
        return [row.found is not None for row in every]

    assert counts() == [True, True, True]
    assert counts(arms={**arms, "three": "uniform:m=3"}) == [True, False, False]
    assert counts(arms={**arms, "four": "md:m=3"}) == [True, True, False]
    assert counts(arms={**arms, "two": "md:m=3"}) == [False, False, False]
    assert counts(arms={"two": "md:m=2", "three": "uniform:m=2"}) == [False, False, False]
    assert counts(rounds=3) == [False, False, False]
    assert counts(arms=list(arms.values())) == [False, False, False]


def test_a_computed_number_counts_whatever_the_arms_and_not_in_another_version(
    tmp_path: Path,
) -> None:
    def recipe(*arms: str, **changed: Any) -> Recipe:
        cell = Cell("cell", Problem("digits", "iid:n=4"), dict.fromkeys(arms, "full"), rounds=1)
        return replace(RECIPE, cells=(cell,), **changed)

    facts = judged(recipe("one"), "quick", tmp_path)
    for changed, counts in ((recipe("two"), True), (recipe("one", version=2), False)):
        (row,) = maker.rows([changed], [facts])
        assert (row.found is not None) == counts
