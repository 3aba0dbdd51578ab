"""The data, the model and the local work: the same on the server, on clients, in a simulation."""

from functools import cache

from fedcohort.simulation import LocalWork, Problem, Task

WORK = LocalWork(steps=20, batch=20, lr=0.1)


@cache
def task(clients: int) -> Task:
    """Digits, unevenly divided: sizes and labels differ from client to client."""
    return Problem("digits", "dirichlet-per-class", {"n": clients, "alpha": 0.5}).task()
