"""One published scheme per file; discovered, never listed.

A file here that defines a `Scheme` with a ``name`` is found by the command line, the
comparison, the checks and the report. Other packages add theirs through the entry point group
``fedcohort.schemes``.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import warnings
from collections.abc import Iterator
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from fedcohort.core.errors import FedcohortError, FedcohortWarning, UnknownName
from fedcohort.core.scheme import Scheme

ENTRY_POINTS = "fedcohort.schemes"


@cache
def schemes() -> dict[str, type[Scheme[Any]]]:
    """Every scheme by name: those of this package and those of installed packages."""
    found: dict[str, type[Scheme[Any]]] = {}
    for cls in _all_classes():
        other = found.setdefault(cls.name, cls)
        if other is not cls:
            raise FedcohortError(
                f"Two schemes are named '{cls.name}': {_full_name(other)} and {_full_name(cls)}."
            )
    return dict(sorted(found.items()))


def scheme(name: str, **parameters: Any) -> Scheme[Any]:
    """The scheme of that name with these parameters.

    >>> scheme("md", m=5)
    MD(m=5)
    """
    return find(name).build(**parameters)


def find(name: str) -> type[Scheme[Any]]:
    """The class of that name; an unknown name gets the nearest one offered."""
    if name not in schemes():
        raise UnknownName("scheme", name, schemes())
    return schemes()[name]


def in_module(module: ModuleType) -> Iterator[type[Scheme[Any]]]:
    """The named schemes that a module itself defines."""
    for _, cls in inspect.getmembers(module, inspect.isclass):
        if issubclass(cls, Scheme) and cls.__module__ == module.__name__ and "name" in vars(cls):
            yield cls


def _all_classes() -> Iterator[type[Scheme[Any]]]:
    for info in pkgutil.iter_modules(__path__):
        yield from in_module(importlib.import_module(f"{__name__}.{info.name}"))
    for point in entry_points(group=ENTRY_POINTS):
        try:
            loaded = point.load()
        except Exception as error:  # another package's trouble must not be everybody's
            warnings.warn(
                f"The schemes '{point.value}' of another package cannot be loaded: {error}.",
                FedcohortWarning,
                stacklevel=4,
            )
            continue
        if inspect.ismodule(loaded):
            yield from in_module(loaded)
        else:
            yield loaded


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
