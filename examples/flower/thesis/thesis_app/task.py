"""The data, the model and the local work of the thesis, as its recipes have them."""

from functools import cache

from fedcohort.simulation import Problem, Task
from fedcohort_papers.recipes.thesis._federations import MODEL, WORK

__all__ = ["WORK", "task"]


@cache
def task(clients: int) -> Task:
    """Fashion-MNIST, each class spread over the clients by Dirichlet(0.05)."""
    division = f"dirichlet-per-class:n={clients},alpha=0.05,min_size=10"
    return Problem("fashion-mnist", division, model=MODEL).task()
