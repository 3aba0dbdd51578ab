"""The recipes of FedSampling in small: what they compare, and what they compute."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fedcohort import Problem
from fedcohort.schemes.classical import FedAvg
from fedcohort.simulation import Arm
from fedcohort.simulation._tuning import search
from fedcohort_papers.recipes import Judged, Run, Scale, recipe, recipes
from fedcohort_papers.recipes.fedsampling import figure_6
from fedcohort_papers.recipes.fedsampling._runs import (
    AS_PRINTED,
    CORRECTED,
    ESTIMATED,
    KNOWN,
    METHODS,
    SAME_SAMPLES,
    Setting,
    methods,
    naive,
    samples_by_size,
    tuned,
)

HERE = Path(os.environ.get("FEDCOHORT_DATA", "-"), "reuters21578_top10_by_place.json.gz").is_file()
NEEDS_DATA = pytest.mark.skipif(
    not HERE, reason="set FEDCOHORT_DATA to a folder with Reuters-21578"
)
SMALL = Setting(samples=60, threshold=100)
DIGITS = {"data": "digits", "partition": "lognormal-sizes:n=40,sigma=1.0"}
"""They stand in for the news, which not everybody has."""


def test_methods_see_the_same_number_of_samples() -> None:
    task = Problem(DIGITS["data"], DIGITS["partition"]).task()
    arms = methods(SMALL, task)
    assert tuple(name for name in arms if name != ESTIMATED) == METHODS
    total, mean = float(task.sizes.sum()), float(task.sizes.mean())
    uniform = arms["FedAvg, uniform"]
    assert isinstance(uniform, Arm)
    assert uniform.scheme == FedAvg(round(60 / mean), "equal")
    fixed = naive(SMALL, task.sizes)
    assert fixed.rate * total == pytest.approx(60)
    expected = sum(1 - (1 - fixed.rate) ** int(n) for n in task.sizes) / 40
    assert fixed.answering == pytest.approx(expected)
    same = arms[SAME_SAMPLES]
    assert isinstance(same, Arm)
    assert same.scheme.parameters["m"] * same.work.parameters["batch"] == pytest.approx(60, abs=1)


@NEEDS_DATA
def test_sampling_by_size_sees_many_times_k_samples() -> None:
    """The note says how many; expectations over the divisions that figures are run on."""
    found = []
    news = Problem("reuters", "lognormal-sizes:n=500,sigma=4").loaded()
    for division in range(20):
        sizes = news.division(division).sizes
        found.append(samples_by_size(9, sizes) / 100)
    assert (round(min(found)), round(max(found))) == (17, 47)


def test_only_the_printed_scheme_has_the_name_of_the_paper() -> None:
    task = Problem(DIGITS["data"], DIGITS["partition"]).task()
    arms = methods(SMALL, task)
    assert arms[AS_PRINTED].version == "printed"
    assert arms[CORRECTED].version == "corrected"
    assert arms[CORRECTED].mechanism == "levels"
    assert arms[KNOWN].mechanism == "exact"
    assert [name for name in arms if name == "FedSampling"] == [AS_PRINTED]


def test_claims_about_versions_say_their_kind() -> None:
    for name, one in recipes().items():
        if not name.startswith("fedsampling") or name == "fedsampling-fig1":
            continue
        assert 2 <= len(one.readings) <= 4, name
        for claim in one.claims:
            text = str(claim.judge)
            if AS_PRINTED in text.replace(KNOWN, "").replace(CORRECTED, "").replace(ESTIMATED, ""):
                assert claim.kind == "printed", claim.statement
            elif CORRECTED in text or ESTIMATED in text:
                assert (claim.kind, claim.ours) == ("sound", True), claim.statement
            elif KNOWN in text:
                assert (claim.kind, claim.ours) == ("oracle", True), claim.statement


def test_every_arm_has_the_same_budget_and_a_setting_that_it_has() -> None:
    task = Problem(DIGITS["data"], DIGITS["partition"]).task()
    arms = {name: arm for name, arm in methods(SMALL, task).items() if name in METHODS}
    found = search(task, arms, tuned(METHODS).grid, rounds=1, centralised=60, common={})
    assert set(found.grids) == {*METHODS, "centralised"}
    assert set(found.grids.values()) == {6}


def test_the_printed_setting_is_not_usable() -> None:
    found = figure_6.published(Scale(), 0).samples
    assert not found["standard error of N~ below 25 % of N"]
    assert found["standard error / N"] == pytest.approx(2.78, abs=0.005)
    assert found["the same by levels"] < 0.25


@pytest.mark.parametrize("name", ["fedsampling-fig3", "fedsampling-fig4"])
def test_a_figure_in_small(name: str, tmp_path: Path) -> None:
    one = recipe(name)
    scale = Scale(partitions=2, rounds=4, only=(one.cells[-1].name,), change={"problem": DIGITS})
    judged = Judged.of(Run.of(replace(one, scales={"quick": scale}), "quick", tmp_path, jobs=1)())
    units = {(finding.units, finding.unit) for finding in judged.findings}
    assert (2, "partition") in units
    left_out = [f.found for f in judged.findings if f.units == 0]
    assert all("is run at no scale" in text for text in left_out)
    assert len(left_out) == (12 if name == "fedsampling-fig4" else 0)
    assert all(place.stat().st_size for place in judged.write(tmp_path))
