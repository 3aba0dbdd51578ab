"""The recipes of FedSampling in small: what they compute, and verdicts that can fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import data
from fedcohort.core.errors import BadParameter
from fedcohort.recipes import _fedsampling_runs as fedsampling_runs
from fedcohort.recipes import fedsampling, recipes
from fedcohort.recipes._fedsampling_runs import (
    Setting,
    Table,
    UniformAverage,
    alike,
    below,
    jumps,
    level,
    long_tail,
    methods,
    naive,
)
from fedcohort.simulation import LocalWork, simulate
from fedcohort.testing import check_scheme

SMALL = Setting(clients=40, samples=60, rounds=8, lr=1.0, every=2, threshold=100)


@pytest.fixture(autouse=True)
def digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits stand in for the news, which not everybody has."""
    monkeypatch.setattr(fedsampling_runs, "_news", lambda: data.load("digits"))


def test_recipes_are_discovered() -> None:
    assert {f"fedsampling-fig{i}" for i in (3, 4, 5, 6)} <= set(recipes())


def test_methods_see_the_same_number_of_samples() -> None:
    task = long_tail(SMALL, 1.0, seed=0)
    runs = methods(SMALL, task)
    assert len(runs) == 5 + 8
    total, mean = float(task.sizes.sum()), float(task.sizes.mean())
    uniform = runs["FedAvg, uniform"](0)
    assert uniform.distinct.tolist() == [round(60 / mean)] * 8
    fixed = naive(SMALL, task.sizes)
    assert fixed.rate * total == pytest.approx(60)
    expected = sum(1 - (1 - fixed.rate) ** int(n) for n in task.sizes) / 40
    assert fixed.answering == pytest.approx(expected)


def test_uniform_average_is_a_sound_scheme() -> None:
    failed = [r for r in check_scheme(UniformAverage(m=2)) if not r.passed]
    assert failed == []


def test_level_and_jumps_by_hand() -> None:
    task = long_tail(SMALL, 1.0, seed=0)
    work = LocalWork(steps=1, batch=None, lr=1.0)
    trace = simulate(task, "full", rounds=8, work=work, evaluate_every=2)
    seen = trace.accuracy[1::2]
    assert level(trace) == seen[-1]
    assert jumps(trace) == pytest.approx(abs(seen[3] - seen[2]))


def test_verdicts_hold_and_fail() -> None:
    table = Table.of({"a": [0.90, 0.91], "b": [0.905, 0.914], "c": [0.93, 0.935]})
    assert alike(table, "a", "b", "").holds
    assert not alike(table, "a", "c", "").holds
    assert below(table, "a", "c", "").holds
    assert not below(table, "c", "a", "").holds
    assert not below(table, "a", "b", "").holds  # by too little
    assert "-2.8 points (-3.0 to -2.5)" in below(table, "a", "c", "").found
    assert table.columns["mean"].tolist() == pytest.approx([0.905, 0.9095, 0.9325])


def test_the_printed_setting_is_not_usable() -> None:
    verdict = fedsampling.published_setting()
    assert not verdict.holds
    assert "278% of N" in verdict.found


@pytest.mark.parametrize("figure", [fedsampling.figure_3, fedsampling.figure_4])
def test_a_figure_in_small(
    figure: object, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setattr(fedsampling, "Setting", lambda **_: SMALL)
    monkeypatch.setattr(fedsampling, "SIGMAS", (0.5, 1.0))
    outcome = figure(0, 1)  # type: ignore[operator]
    assert len(outcome.verdicts) >= 5
    assert np.isfinite(outcome.columns["mean"]).all()
    places = outcome.write(tmp_path, "figure")
    assert all(place.stat().st_size > 0 for place in places)


def test_figure_6_in_small(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setattr(fedsampling, "Setting", lambda **_: replace(SMALL, rounds=2))
    monkeypatch.setattr(fedsampling, "published_setting", lambda: alike(
        Table.of({"a": [1.0], "b": [1.0]}), "a", "b", ""))  # fmt: skip
    outcome = fedsampling.figure_6(0, 1)
    by_name = dict(zip(outcome.columns["what"], outcome.columns["relative error"], strict=True))
    assert by_name["paper, eps=3, M=1000"] > 5 * by_name["levels, eps=3, M=1000"]
    assert outcome.write(tmp_path, "figure")


@pytest.mark.parametrize("seeds", [0, 1.5, "many"])
def test_bad_repetitions(seeds: object) -> None:
    with pytest.raises(BadParameter, match="seeds"):
        fedsampling.figure_3(0, seeds)  # type: ignore[arg-type]
