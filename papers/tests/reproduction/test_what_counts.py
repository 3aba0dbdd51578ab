"""What a verdict is about: the seeds asked for, the cells of a scale, a paper's own claims."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, Problem
from fedcohort._internal.errors import BadParameter
from fedcohort_papers.recipes import (
    Alike,
    Cell,
    Claim,
    Computed,
    Contrast,
    Exact,
    Judged,
    Recipe,
    Run,
    Scale,
    difference,
)

WORK = LocalWork(steps=2, batch=10, lr=0.1)
CELL = Cell("digits", Problem("digits", "iid:n=6"), ["md:m=2", "uniform:m=2"], 4, WORK)
TINY = Recipe(
    "tiny",
    "Two schemes",
    "A paper",
    where="Figure 7",
    cells=(CELL,),
    scales={"quick": Scale(seeds=2, rounds=3)},
    claims=(Claim("as good", "0.9", Alike("accuracy", "md", "uniform", within=0.5)),),
)


def drawn(scale: Scale, seed: int) -> Computed:
    return Computed(samples={"drawn": 0.2 + np.random.default_rng(seed).normal(size=4)})


def two(scale: Scale, seed: int) -> Computed:
    return Computed(samples={"two": 2.0 + seed * 0})


COMPUTED = Recipe(
    "computed",
    "Two",
    "A paper",
    compute=two,
    scales={"quick": Scale()},
    claims=(Claim("two", "2", Exact("two", 2.0, 0.0)),),
)


def ran(recipe: Recipe, folder: Path, **how: int) -> Judged:
    return Judged.of(Run.of(recipe, "quick", folder, jobs=1, **how)())


def the_arms(task: Any) -> Any:
    return CELL.arms


@pytest.mark.parametrize("depending", [False, True])
def test_only_the_seeds_and_partitions_that_are_asked_for_count(
    depending: bool, tmp_path: Path
) -> None:
    """Others in the folder are runs that were looked at: they are not mixed with new ones."""
    arms: Any = the_arms if depending else CELL.arms
    recipe = replace(TINY, cells=(replace(CELL, arms=arms),))
    ran(recipe, tmp_path, seeds=3).write(tmp_path)
    judged = ran(recipe, tmp_path, seed=3, seeds=4)
    assert [seed for _, seed in judged.results.traces("md")] == [3, 4, 5, 6]
    assert judged.findings[0].units == 4
    facts = judged.as_dict()
    assert (facts["seed"], facts["seeds"]) == (3, 4)
    judged.write(tmp_path)
    assert "4 seeds (3 to 6), 1 partition" in (tmp_path / "tiny.md").read_text()
    later = ran(recipe, tmp_path, seeds=1, partition=1, partitions=3)
    assert [number for number, _ in later.results.traces("md")] == [1, 2, 3]
    assert later.findings[0].unit == "partition"
    assert (later.as_dict()["partition"], later.as_dict()["partitions"]) == (1, 3)
    alone = ran(recipe, tmp_path / "alone", seeds=1, partition=1, partitions=3)
    assert later.findings == alone.findings


def test_a_remedy_names_new_seeds_or_partitions(tmp_path: Path) -> None:
    open_ = replace(TINY, claims=(Claim("?", "?", difference("accuracy", "md", "uniform")),))
    for how, said in (
        ({"seed": 2, "seeds": 3}, r"\d+ new seeds would decide .*: --seed 5 --seeds \d+"),
        ({"seeds": 1, "partitions": 3}, r"\d+ new partitions .*: --partition 3 --partitions \d+"),
    ):
        (claim,) = ran(open_, tmp_path, **how).as_dict()["claims"]
        assert re.fullmatch(said, claim["remedy"]), claim


def test_a_remedy_of_repetitions_names_seeds(tmp_path: Path) -> None:
    """Every seed brings four of them."""
    judge = Contrast("computed", {"drawn": 1.0})
    open_ = replace(COMPUTED, claims=(Claim("?", "?", judge),), compute=drawn)
    (claim,) = ran(open_, tmp_path, seeds=2).as_dict()["claims"]
    many = -(-claim["needed"] // 4)
    assert claim["remedy"].startswith(f"{claim['needed']} new repetitions would decide")
    assert claim["remedy"].endswith(f": --seed 2 --seeds {many}")


def test_a_claim_on_cells_that_a_scale_leaves_out_is_not_run(tmp_path: Path) -> None:
    far = replace(CELL, name="far")
    claims = (
        Claim("near", "1", Alike("accuracy", ("digits", "md"), ("digits", "uniform"), within=5)),
        Claim("far", "1", Alike("accuracy", ("far", "md"), ("far", "uniform"), within=5)),
    )
    scales = {"quick": Scale(seeds=3, rounds=2, only=("digits",)), "full": Scale(seeds=3)}
    two = replace(TINY, cells=(CELL, far), claims=claims, scales=scales)
    judged = ran(two, tmp_path)
    assert [each.verdict for each in judged.findings] == ["reproduced", "not run at this scale"]
    assert judged.verdict == "reproduced"
    assert judged.as_dict()["claims"][1]["found"] == "'far' is run at the scale full"
    assert judged.as_dict()["claims"][1]["remedy"] == ""
    assert ran(replace(two, claims=claims[1:]), tmp_path).verdict == "undecided"


def test_a_paper_is_judged_by_its_own_claims(tmp_path: Path) -> None:
    wrong = Claim("three", "2", Exact("two", 3.0, 0.0), ours=True, exploratory="after a look")
    judged = ran(replace(COMPUTED, claims=(*COMPUTED.claims, wrong)), tmp_path)
    assert [each.verdict for each in judged.findings] == ["reproduced", "not reproduced"]
    assert judged.verdict == "reproduced"
    assert judged.as_dict()["claims"][1]["ours"]
    judged.write(tmp_path)
    assert "| three (ours; exploratory: after a look) |" in (tmp_path / "computed.md").read_text()
    assert ran(replace(COMPUTED, claims=(wrong,)), tmp_path).verdict == "not reproduced"


def test_numbers_that_make_no_difference_are_refused(tmp_path: Path) -> None:
    """What is recorded was done: a computed recipe divides no data, and may draw nothing."""
    with pytest.raises(BadParameter, match=r"'partitions' parameter of the recipe 'computed' must"):
        Run.of(COMPUTED, "quick", tmp_path, partitions=5)
    with pytest.raises(
        BadParameter, match=r"must be 0 at the scale 'quick'.*Leave --partition out"
    ):
        Run.of(COMPUTED, "quick", tmp_path, partition=5)
    assert Run.of(COMPUTED, "quick", tmp_path, seeds=5, partitions=1).scale.seeds == 5
    fixed = replace(COMPUTED, compute=lambda scale, seed: Computed(samples={"two": 2.0}))
    with pytest.raises(BadParameter, match="'seeds' parameter"):
        Run.of(fixed, "quick", tmp_path, seeds=5)
    assert Run.of(TINY, "quick", tmp_path, seeds=5, partitions=5).scale.partitions == 5

    def inner(scale: Scale, seed: int) -> Computed:
        return Computed(samples={"two": max(2.0 for _ in range(seed + 1))})

    def outer(scale: Scale, seed: int) -> Computed:
        return Computed(samples={"two": [2.0 + 0 * seed for _ in range(2)]})  # in a scope within

    for compute in (inner, outer):
        assert Run.of(replace(COMPUTED, compute=compute), "quick", tmp_path, seeds=5)
