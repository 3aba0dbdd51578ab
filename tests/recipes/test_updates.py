"""The recipes of the schemes that look at updates, in small, and verdicts that can fail."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort import LocalWork, scheme, simulate
from fedcohort.core.errors import BadParameter
from fedcohort.learning import Quadratic
from fedcohort.recipes import recipes, updates
from fedcohort.recipes.updates import Setting, _memory_verdicts, _sooner, all_seen_after

SMALL = Setting("digits", 4, 4, 4, LocalWork(steps=2, batch=10, lr=0.1))


@pytest.fixture(autouse=True)
def few_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digits on 20 clients stand in for MNIST on 100."""
    divisions = {
        "one class per client": ("one-class-per-client", {"n": 20, "per_client": 25}),
        "Dirichlet 0.1": ("dirichlet-per-client", {"n": 20, "alpha": 0.1}),
    }
    monkeypatch.setattr(updates, "PARTITIONS", divisions)
    updates.task.cache_clear()


def test_recipes_are_discovered() -> None:
    assert {"hcsfed-table1", "clustered-similarity", "memory"} <= set(recipes())


def test_the_table_has_a_row_for_every_stage() -> None:
    outcome = updates.table_1(3, 1, SMALL)
    assert outcome.columns["what"].tolist()[:3] == ["uniform", "importance", "cluster"]
    assert (outcome.columns["mean"] == 5).all()  # 4 rounds do not do
    assert not outcome.holds
    asked = dict(zip(outcome.columns["what"], outcome.columns["MB per round"], strict=True))
    assert asked["hcsfed"] > 2 * asked["uniform"] >= 2 * asked["hcsfed, stale features"]


def test_the_target_and_memory_recipes_run(tmp_path) -> None:
    outcome = updates.target(0, 2, SMALL)
    assert len(outcome.columns["target"]) == 4
    outcome.write(tmp_path, "target")
    outcome = updates.memory(0, 1, SMALL)
    assert len(outcome.columns["what"]) == 12
    assert len(outcome.verdicts) == 12
    with pytest.raises(BadParameter, match="'seeds'"):
        updates.memory(0, 0, SMALL)


def test_verdicts_can_hold_and_fail() -> None:
    uniform = np.array([30.0, 36.0])
    assert _sooner(np.array([10.0, 12.0]), uniform, "x", 3.0).holds
    assert not _sooner(np.array([11.0, 12.0]), uniform, "x", 3.0).holds
    assert not _sooner(uniform, uniform, "x", 2.0).holds
    level = {"c, plain": np.array([80.0]), "c, memory": np.array([79.0])}
    spread = {"c, plain": np.array([2.0]), "c, memory": np.array([0.5])}
    assert [v.holds for v in _memory_verdicts("c", level, spread)] == [True, False]


def test_when_everybody_was_seen() -> None:
    task = Quadratic(np.zeros((6, 1)))
    work = LocalWork(steps=1, batch=None)
    assert all_seen_after(simulate(task, "full", rounds=2, work=work)) == 1
    few = simulate(task, scheme("uniform", m=1), rounds=3, work=work)
    assert all_seen_after(few) == 4
