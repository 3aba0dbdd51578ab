"""The recipes of FedSampling in small: what they compare, and what they compute."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from fedcohort import Problem
from fedcohort.recipes import Judged, Run, Scale, recipe
from fedcohort.recipes.fedsampling import figure_6
from fedcohort.recipes.fedsampling._runs import METHODS, Setting, methods, naive, tuned
from fedcohort.schemes.fedavg import FedAvg
from fedcohort.simulation.arms import Arm
from fedcohort.simulation.tuning import search

SMALL = Setting(samples=60, threshold=100)
DIGITS = {"data": "digits", "partition": "lognormal-sizes:n=40,sigma=1.0"}
"""They stand in for the news, which not everybody has."""


def test_methods_see_the_same_number_of_samples() -> None:
    task = Problem(DIGITS["data"], DIGITS["partition"]).task()
    arms = methods(SMALL, task)
    assert tuple(arms) == METHODS
    total, mean = float(task.sizes.sum()), float(task.sizes.mean())
    uniform = arms["FedAvg, uniform"]
    assert isinstance(uniform, Arm)
    assert uniform.scheme == FedAvg(round(60 / mean), "equal")
    fixed = naive(SMALL, task.sizes)
    assert fixed.rate * total == pytest.approx(60)
    expected = sum(1 - (1 - fixed.rate) ** int(n) for n in task.sizes) / 40
    assert fixed.answering == pytest.approx(expected)


def test_every_arm_has_the_same_budget_and_a_setting_that_it_has() -> None:
    task = Problem(DIGITS["data"], DIGITS["partition"]).task()
    found = search(task, methods(SMALL, task), tuned(METHODS).grid, rounds=1, centralised=60,
                   common={})  # fmt: skip
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
    assert len(left_out) == (6 if name == "fedsampling-fig4" else 0)
    assert all(place.stat().st_size for place in judged.write(tmp_path))
