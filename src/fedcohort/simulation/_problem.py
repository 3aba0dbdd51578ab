"""A problem: data, partition and training, and the partitions of a comparison."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from fedcohort import data as data_sets
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.parameters import is_whole
from fedcohort._internal.random import checked_seed, stream
from fedcohort._internal.registry import Prepared
from fedcohort.data.partition import PARTITIONS, Partition
from fedcohort.selection._federation import importance_of
from fedcohort.training import ClientData, LearningTask, Model, Task
from fedcohort.training._call_checks import check_model, check_task
from fedcohort.training._client_data import hold_out
from fedcohort.training._model import MODELS

# A learning problem in words: which data, divided how, learnt by which model.

OTHERWISE = "one-class-per-client:n=50,per_client=25"
"""How data that is no federation of its own is divided, unless it is said."""


@dataclass(frozen=True)
class Loaded:
    """A problem whose data are in memory; every seed divides them anew."""

    dataset: data_sets.Dataset
    divide: Prepared
    model: Prepared
    importance: str | ArrayLike
    validation: float | None = None
    told: bool = True  # how data are divided; else the default does

    def division(self, seed: int) -> Partition:
        """Who holds what."""
        try:
            divided: Partition = self.divide(
                y=self.dataset.y_train,
                rng=stream(seed, "partition"),
                groups=self.dataset.groups_train,
                groups_test=self.dataset.groups_test,
                group_names=self.dataset.group_names,
            )
        except BadParameter as error:
            if self.told:
                raise
            raise BadInput(
                f"These data cannot be divided as by default ({self.divide.spec}): say how "
                f"with 'partition' (--partition), as in iid:n=10. {error}"
            ) from error
        return divided

    def task(self, seed: int) -> Task:
        """The task of one division."""
        dataset, division = self.dataset, self.division(seed)
        if self.validation is not None:
            dataset, division = _validated(dataset, division, self.validation, seed)
        wanted = importance_of(self.importance, division.sizes)
        given = {} if wanted is None else {"importance": wanted}
        made: Task = self.model(dataset, division, **given)
        if division.names:
            made.ids = division.names
        return made


def _learnt(model: Model) -> Callable[..., Task]:
    """The task of a model that is there already."""

    def task(dataset: Any, division: Any, importance: ArrayLike | None = None) -> Task:
        data = ClientData.from_partition(dataset, division)
        return LearningTask(model, data, importance=importance)

    return task


def _validated(
    dataset: data_sets.Dataset, division: Partition, share: float, seed: int
) -> tuple[data_sets.Dataset, Partition]:
    """What clients set aside, in their order, instead of the test set."""
    kept, aside = hold_out(division.clients, dataset.y_train, share, seed)
    held = np.concatenate(aside)
    own = None
    if division.test is not None:
        own = tuple(np.split(np.arange(len(held)), np.cumsum([len(a) for a in aside])[:-1]))
    x, y = dataset.x_train[held], dataset.y_train[held]
    return (
        replace(dataset, x_test=x, y_test=y, groups_test=None),
        replace(division, clients=tuple(kept), test=own, tested=None),
    )


_LAST: ContextVar[dict[tuple[str, str], data_sets.Dataset] | None] = ContextVar(
    "_LAST", default=None
)


@contextmanager
def reading_once() -> Iterator[None]:
    """Problems in here that follow one another with the same data read them once.

    To unpack CIFAR-10 takes longer than a short run on it.
    """
    token = _LAST.set({})
    try:
        yield
    finally:
        _LAST.reset(token)


@dataclass(frozen=True)
class Problem:
    """What a comparison trains on; `task` builds it.

    The division is drawn from its own seed, so that all runs of a comparison share it, or, with
    ``compare(problem, ..., partitions=5)``, the runs on each of the divisions from this seed on.

    Parameters
    ----------
    data, partition, model
        Words, as on the command line; the model may be one of your own, ``TorchModel(net)``.
        Without a partition, a data set that is a federation of its own keeps its clients
        (``"natural"``); others are divided as `OTHERWISE` says.
    partition_options, model_options, data_options
        Settings of these parts that do not stand in the word.
    partition_seed
        Decides how data is divided.
    importance
        What clients count for: by ``"size"``, all ``"equal"``, or one number each.
    validation
        The share of its samples that every client sets aside as the test set of this problem, in
        place of the test set of the data, of which then nothing is left: for choosing settings
        (`fedcohort.tune`). None for the data as they are.

    Examples
    --------
    >>> Problem("digits", "iid:n=5", model="mlp:hidden=20").task().sizes
    array([289, 289, 288, 288, 288])
    """

    data: str = "digits"
    partition: str | None = None
    partition_options: Mapping[str, Any] = field(default_factory=dict)
    model: str | Model = "softmax"
    model_options: Mapping[str, Any] = field(default_factory=dict)
    partition_seed: int = 0
    importance: str | ArrayLike = "size"
    data_options: Mapping[str, Any] = field(default_factory=dict)
    validation: float | None = None

    def _parts(self) -> tuple[Prepared, Prepared]:
        if isinstance(self.model, str):
            model = MODELS.build(self.model, **self.model_options)
        else:
            check_model(self.model, "Problem")
            if self.model_options:
                raise BadInput("The 'model_options' of Problem go with a model that is a word.")
            model = Prepared(self.model.name, {}, _learnt(self.model))
        word = self._default if self.partition is None else self.partition
        return PARTITIONS.build(word, **self.partition_options), model

    @cached_property
    def _default(self) -> str:
        """The partition if none is given; `task` notes it when it has read the data."""
        return "natural" if self._load().natural else OTHERWISE

    def _load(self) -> data_sets.Dataset:
        last = _LAST.get()
        if last is None:
            return data_sets.load(self.data, **self.data_options)
        key = self.data, repr(sorted(self.data_options.items()))
        if key not in last:
            last.clear()  # one at a time: they are large
            last[key] = data_sets.load(self.data, **self.data_options)
        return last[key]

    def loaded(self) -> Loaded:
        """The data, read once, and the parts that divide and learn it."""
        if self.partition is not None:
            self._parts()  # a wrong word shows before data are read
        dataset = self._load()
        self.__dict__["_default"] = "natural" if dataset.natural else OTHERWISE
        told = self.partition is not None
        return Loaded(dataset, *self._parts(), self.importance, self.validation, told)

    def task(self) -> Task:
        """Load, divide and set up the model."""
        return self.loaded().task(self.partition_seed)

    def settings(self) -> dict[str, Any]:
        """In plain values, to be kept with the runs; parts by their words, with all settings."""
        divide, model = self._parts()
        words = {"partition": divide.spec, "model": model.spec}
        if self.data_options:
            words["data"] = data_sets.spec(self.data, **self.data_options)
        told = asdict(replace(self, model=model.name))
        kept = {key: value for key, value in told.items() if not key.endswith("options")}
        if self.validation is None:
            del kept["validation"]  # as in folders of before there was one
        if not isinstance(self.importance, str):
            kept["importance"] = np.asarray(self.importance).tolist()
        return kept | words


# The divisions of a comparison: one task for every way in which data are spread over clients.

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
