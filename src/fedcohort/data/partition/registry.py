"""Partitions by name, for a command line: ``--partition dirichlet-per-client --alpha 0.1``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

import numpy as np

from fedcohort.core.errors import BadInput, BadParameter, UnknownName
from fedcohort.core.parameters import Whole
from fedcohort.core.types import Array
from fedcohort.data.partition.base import Partition, check, checked_labels
from fedcohort.data.partition.dirichlet import dirichlet_per_class, dirichlet_per_client
from fedcohort.data.partition.simple import (
    iid,
    label_shards,
    lognormal_sizes,
    natural,
    one_class_per_client,
)

PARTITIONS: Mapping[str, Callable[..., Partition]] = MappingProxyType(
    {
        function.__name__.replace("_", "-"): function
        for function in (
            iid,
            one_class_per_client,
            label_shards,
            dirichlet_per_client,
            dirichlet_per_class,
            lognormal_sizes,
            natural,
        )
    }
)
"""Every partition function by its name, with hyphens."""


def by_name(name: str) -> Callable[..., Partition]:
    """The partition function of that name.

    >>> by_name("label-shards") is label_shards
    True
    """
    if name not in PARTITIONS:
        raise UnknownName("partition", name, PARTITIONS)
    return PARTITIONS[name]


def options(name: str) -> tuple[str, ...]:
    """The settings that `make` takes for that partition.

    >>> options("dirichlet-per-class")
    ('n', 'alpha', 'min_size', 'retries', 'masked')
    """
    given = {"y", "rng", "groups"}
    names = [key for key in inspect.signature(by_name(name)).parameters if key not in given]
    return ("n", *names) if "sizes" in names else tuple(names)


def make(
    name: str,
    y: Array,
    rng: np.random.Generator,
    *,
    groups: Array | None = None,
    **settings: object,
) -> Partition:
    """One call for all partitions, in terms a command line has.

    Where a partition wants ``sizes``, ``n`` clients that hold all the data in equal parts may
    be asked for instead; ``groups`` are the natural ids of the data set.

    >>> y = np.repeat([0, 1], 10)
    >>> make("dirichlet-per-client", y, np.random.default_rng(0), n=4, alpha=0.1).sizes
    array([5, 5, 5, 5])
    """
    function, known = by_name(name), options(name)
    for setting in settings:
        if setting not in known:
            raise UnknownName(f"setting of the partition '{name}'", setting, known)
    parameters = inspect.signature(function).parameters
    if "groups" in parameters:
        return function(groups)
    if "sizes" in parameters and "n" in settings:
        settings["sizes"] = _equal_sizes(y, settings.pop("n"), name, settings)
    required = [key for key, value in parameters.items() if value.default is value.empty]
    for setting in required:
        if setting not in {"y", "rng", *settings}:
            key = "n" if setting == "sizes" else setting
            raise BadInput(
                f"The partition '{name}' needs a value for '{key}': write {name}:{key}=..."
            )
    return function(y=y, rng=rng, **settings)


def _equal_sizes(y: Array, n: object, name: str, settings: Mapping[str, object]) -> list[int]:
    if "sizes" in settings:
        raise BadParameter("n", name, "left out where 'sizes' are given", n)
    samples = len(checked_labels(y, name))
    check("n", name, Whole(1, samples), n)
    return [len(part) for part in np.array_split(np.arange(samples), cast(int, n))]
