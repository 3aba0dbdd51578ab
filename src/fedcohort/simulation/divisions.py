"""The divisions of a comparison: one task for every way in which data are spread over clients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.random import checked_seed
from fedcohort.simulation.problem import Loaded, Problem
from fedcohort.training import Task
from fedcohort.training._call_checks import check_task

LIMIT = 10_000
"""So many divisions a comparison may have."""


Source: TypeAlias = Task | Loaded
"""A task that is there already, or the data that a worker builds it from when it comes to it."""


@dataclass(frozen=True)
class Divisions:
    """Where the task of every division comes from, by number.

    Parameters
    ----------
    sources
        What the task of each is, or is built from; it is sent to where the runs are.
    base
        The division whose runs are filed without its number, as if it were the only one.
    first
        The task of one of them: all have its name and kind.
    fingerprints
        Of the tasks that are known by no words.
    settings
        To be kept with the runs.
    """

    sources: Mapping[int, Source]
    base: int
    first: Task
    fingerprints: Callable[[], dict[int, str]]
    settings: Mapping[str, Any]

    @property
    def numbers(self) -> list[int]:
        """In the order of the runs."""
        return list(self.sources)

    def filed(self, number: int) -> int | None:
        """What the names of its files say."""
        return None if number == self.base else number


Given: TypeAlias = Task | Problem | Sequence[Task] | Mapping[int, Task] | Divisions
"""What `compare` trains on: one task, a problem, or tasks of one's own, one per division."""


def divisions(given: Given, partitions: int | Sequence[int] | None = None) -> Divisions:
    """The divisions that a comparison runs on.

    Those of a problem are drawn from the seeds ``partitions``, or so many from its own on. The
    data are read once, and a task is built where it is used. Tasks of one's own are numbered
    from 0 on, or by the keys of a mapping.
    """
    if isinstance(given, Problem):
        return _of_problem(given, _seeds(given, partitions))
    if partitions is not None:
        raise BadInput(
            "The 'partitions' parameter of compare divides the data of a Problem. Got "
            f"{type(given).__name__} instead: give a Problem, or a list of tasks, one per division."
        )
    if isinstance(given, Divisions):
        return given
    tasks = _own(given)
    first = next(iter(tasks.values()))
    others = {task.name for task in tasks.values()} - {first.name}
    if others:
        raise BadInput(
            "The tasks of a comparison must be divisions of the same problem. Got "
            f"'{first.name}' and '{others.pop()}'; compare them in two comparisons."
        )

    def fingerprints() -> dict[int, str]:
        return {number: task.fingerprint() for number, task in tasks.items()}

    return Divisions(tasks, 0, first, fingerprints, {})


def task_of(source: Source, number: int) -> Task:
    """The task of a division."""
    return source.task(number) if isinstance(source, Loaded) else source


def _own(given: Task | Sequence[Task] | Mapping[int, Task]) -> dict[int, Task]:
    """Tasks by number."""
    listed: Any = given if isinstance(given, Mapping) else [given]
    if isinstance(given, list | tuple):
        listed = given
    numbered = listed if isinstance(listed, Mapping) else dict(enumerate(listed))
    if not numbered:
        raise BadInput("A comparison needs at least one task; got none.")
    for task in numbered.values():
        check_task(task, "compare")
    return {checked_seed(number, "compare"): task for number, task in numbered.items()}


def _of_problem(problem: Problem, seeds: Sequence[int]) -> Divisions:
    """The first division stands for all in the fingerprint: words, data and version are the same.

    A single task is built here, so that workers share its arrays.
    """
    loaded, base = problem.loaded(), problem.partition_seed
    first = loaded.task(base)
    sources: dict[int, Source] = dict.fromkeys(seeds, loaded)
    if list(seeds) == [base]:
        sources = {base: first}
    if len(seeds) > 1:
        _refuse_one_for_all(loaded, seeds)
    told = {"problem": problem.settings()}
    return Divisions(sources, base, first, lambda: {base: first.fingerprint()}, told)


def _refuse_one_for_all(loaded: Loaded, seeds: Sequence[int]) -> None:
    """A division that no seed changes is one, however often it is drawn."""
    one, other = (loaded.division(seed).clients for seed in seeds[:2])
    if len(one) == len(other) and all(map(np.array_equal, one, other)):
        raise BadInput(
            f"The partition '{loaded.divide.spec}' divides the data in the same way for every "
            "seed, so there is one division only; leave 'partitions' out and take more seeds."
        )


def _seeds(problem: Problem, partitions: int | Sequence[int] | None) -> list[int]:
    base = problem.partition_seed
    if partitions is None:
        return [base]
    if is_whole(partitions):
        if not 1 <= partitions <= LIMIT:  # type: ignore[operator]
            raise BadParameter("partitions", "compare", f"from 1 to {LIMIT} divisions", partitions)
        return list(range(base, base + partitions))  # type: ignore[operator]
    listed = [checked_seed(seed, "compare") for seed in partitions]  # type: ignore[union-attr]
    if not listed or len(set(listed)) < len(listed):
        raise BadParameter("partitions", "compare", "a number, or distinct seeds", partitions)
    return listed
