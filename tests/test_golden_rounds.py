"""Cohorts, weights and models of small runs are what they were: see helpers/golden.py.

Clients and draws must be equal. Weights and models may differ by 1e-9 of the largest of them,
because other processors add in another order.
"""

from __future__ import annotations

import json

import pytest

pytest.importorskip("flwr")
from fedcohort._internal.errors import BadInput
from helpers import golden

RUNS = dict(golden.cases())


@pytest.fixture(scope="module")
def recorded() -> dict:
    return json.loads(golden.FILE.read_text())


@pytest.mark.parametrize("key", RUNS)
def test_a_run_is_what_it_was(key: str, recorded: dict) -> None:
    now, then = RUNS[key](), recorded[key]
    assert now.plain()["clients"] == then["clients"]
    assert golden.agrees(now, then)


def test_nothing_else_is_recorded(recorded: dict) -> None:
    assert list(recorded) == list(RUNS)


@pytest.mark.parametrize("name", sorted(golden.WITHOUT_MEMORY))
@pytest.mark.parametrize("run", [golden.simulated, golden.on_flower])
def test_what_is_not_recorded_is_refused(name: str, run) -> None:
    with pytest.raises(BadInput, match="plain estimator"):
        run(name, "memory", False)
