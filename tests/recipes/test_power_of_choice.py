"""The thesis' figures in small, and its federations where Fashion-MNIST is at hand."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from fedcohort import data
from fedcohort.maths.hellinger import rms
from fedcohort.recipes import power_of_choice, recipes
from fedcohort.recipes.power_of_choice import SETTINGS, Setting
from fedcohort.simulation import LocalWork

HERE = Path(os.environ.get("FEDCOHORT_DATA", "-"), "fashion_mnist.npz").is_file()
NEEDS_DATA = pytest.mark.skipif(
    not HERE, reason="set FEDCOHORT_DATA to a folder with fashion_mnist.npz"
)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits stand in for the images, and a few rounds for many."""
    monkeypatch.setattr(power_of_choice, "_images", lambda: data.load("digits"))
    little = (Setting(30, 0.1, 0.9), Setting(10, 0.1, 0.9), Setting(30, 0.5, 0.8))
    monkeypatch.setattr(power_of_choice, "SETTINGS", little)
    monkeypatch.setattr(power_of_choice, "ROUNDS", 10)
    monkeypatch.setattr(power_of_choice, "HALF", 5)
    monkeypatch.setattr(power_of_choice, "CANDIDATES", (4, 6, 10, 20, 30))
    monkeypatch.setattr(power_of_choice, "WORK", LocalWork(steps=3, batch=10, lr=0.1))


def test_recipes_are_discovered() -> None:
    assert {"thesis-table-4-1", "thesis-fig-1-1", "thesis-table-4-3"} <= set(recipes())


@pytest.mark.usefixtures("small")
def test_silhouettes_stand_beside_the_thesis(tmp_path: Path) -> None:
    outcome = power_of_choice.table_4_1(0, 1)
    assert len(outcome.columns["found"]) == 18
    assert outcome.columns["thesis"][:3].tolist() == [0.452, 0.438, 0.231]
    low, mean, high = (outcome.columns[name] for name in ("lowest", "found", "highest"))
    some = np.isfinite(mean)
    assert np.all((low[some] <= mean[some]) & (mean[some] <= high[some]))
    assert all(place.stat().st_size for place in outcome.write(tmp_path, "table"))


@pytest.mark.usefixtures("small")
def test_curves_f1_and_verdicts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power_of_choice, "CANDIDATES", (4, 6, 10, 50, 100))
    monkeypatch.setattr(
        power_of_choice, "scheme", lambda name, m, d: original(name, m=m, d=min(d, 30))
    )
    outcome = power_of_choice.figure_1_1(0, 1)
    assert outcome.columns["round"].tolist() == [5, 10]
    assert np.all(np.diff(outcome.columns["accuracy d=6"]) >= 0)  # the best so far
    assert np.all(np.diff(outcome.columns["loss d=6"]) <= 0)
    assert any("F1 by class" in note for note in outcome.notes)
    assert all(place.stat().st_size for place in outcome.write(tmp_path, "figure"))


original = power_of_choice.scheme


@pytest.mark.usefixtures("small")
def test_clustered_beside_plain() -> None:
    outcome = power_of_choice.table_4_3(0, 1)
    assert {"accuracy pow-d", "accuracy average-loss", "accuracy best-loss"} <= set(outcome.columns)
    assert len(outcome.verdicts) == 3


@NEEDS_DATA
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_federations_of_the_thesis(setting: Setting) -> None:
    task = setting.task(1)
    assert len(task.sizes) == setting.clients
    assert task.sizes.min() >= 1
    assert int(task.sizes.sum()) == 60_000
    assert abs(rms(task.label_histograms) - setting.distance) < 0.04


@NEEDS_DATA
@pytest.mark.slow
def test_what_holds_of_table_4_1() -> None:
    # Not: within 0.1 of the print for K = 30, and P(X|y) below P(y) at HD 0.8; see the docs.
    verdicts = {v.statement: v.holds for v in power_of_choice.table_4_1(0, 2).verdicts}
    assert verdicts["RMS Hellinger distances of the federations"]
    assert verdicts["DBSCAN and OPTICS beat K-Medoids in all three federations"]
    assert verdicts["less distance between clients, worse clusters"]
