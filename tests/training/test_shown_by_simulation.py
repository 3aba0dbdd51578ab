"""Learning problems are shown where runs are made of them, too."""

from __future__ import annotations

import pytest

from fedcohort import simulation
from fedcohort import training as learning


@pytest.mark.parametrize("name", ["MLP", "Evaluation", "LocalWork", "Quadratic", "Softmax", "Task"])
def test_the_simulator_shows_them(name: str) -> None:
    assert getattr(simulation, name) is getattr(learning, name)
