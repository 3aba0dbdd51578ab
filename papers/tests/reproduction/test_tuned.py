"""What a cell's grid makes a recipe try."""

from __future__ import annotations

from collections import Counter

from fedcohort import LocalWork, Problem
from fedcohort_papers.reproduction import Cell, Tuned
from fedcohort_papers.reproduction.tuned import searched


def test_a_recipe_tries_all_that_it_lists() -> None:
    problem = Problem("digits", "dirichlet-per-class:n=8,alpha=0.5")
    work = LocalWork(steps=10, batch=5, lr=0.1)
    cell = Cell("digits", problem, ["md:m=3", "pow-d:m=3"], rounds=4, work=work)
    found = searched(cell, Tuned({"lr": (0.1, 0.3), "d": (3, 6)}), ["md:m=3", "pow-d:m=3"])
    assert Counter(label for label, *_ in found.tries.values()) == {"md": 2, "pow-d": 4}
