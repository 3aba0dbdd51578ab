"""Where learning problems were imported from before they had a package of their own."""

from __future__ import annotations

import importlib

import pytest

from fedcohort import learning, simulation


@pytest.mark.parametrize("name", ["MLP", "Evaluation", "LocalWork", "Quadratic", "Softmax", "Task"])
def test_the_simulator_still_shows_them(name: str) -> None:
    assert getattr(simulation, name) is getattr(learning, name)


@pytest.mark.parametrize(("module", "name"), [("tasks", "Task"), ("work", "LocalWork")])
def test_old_modules_say_where_they_went(module: str, name: str) -> None:
    old = importlib.import_module(f"fedcohort.simulation.{module}")
    with pytest.warns(DeprecationWarning, match=f"import {name} from there"):
        found = getattr(old, name)
    assert found is getattr(learning, name)
    with pytest.raises(AttributeError, match="no attribute 'Federation'"):
        old.Federation  # noqa: B018 - looking it up is the test
