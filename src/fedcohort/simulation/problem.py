"""A learning problem in words: which data, divided how, learnt by which model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from fedcohort import data as data_sets
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort._internal.random import stream
from fedcohort._internal.registry import Prepared
from fedcohort.data.partition import PARTITIONS, Partition
from fedcohort.selection._federation import importance_of
from fedcohort.training import ClientData, LearningTask, Model, Task
from fedcohort.training._call_checks import check_model
from fedcohort.training._client_data import hold_out
from fedcohort.training._model import MODELS

__all__ = ["MODELS", "OTHERWISE", "Loaded", "Problem", "reading_once"]

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
