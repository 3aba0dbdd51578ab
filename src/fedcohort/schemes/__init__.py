"""One published scheme per file; discovered, never listed.

A file here that defines a `Scheme` with a ``name`` is found by the command line, the
comparison, the checks and the report. Other packages add theirs through the entry point group
``fedcohort.schemes``. What cannot be loaded is left out, with a warning.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import pkgutil
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from functools import cache, partial
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any

from fedcohort.core.errors import BadInput, FedcohortError, FedcohortWarning, UnknownName
from fedcohort.core.scheme import Scheme
from fedcohort.core.words import read, split

ENTRY_POINTS = "fedcohort.schemes"

SchemeClass = type[Scheme[Any]]


def schemes() -> dict[str, SchemeClass]:
    """Every scheme by name: those of this package and those of installed packages."""
    return _discovered()[0]


def scheme(word: str, **parameters: Any) -> Scheme[Any]:
    """The scheme of that name with these parameters, given by keyword or in the word itself.

    >>> scheme("md", m=5)
    MD(m=5)
    >>> scheme("clustered-size:m=5,ties=index")
    ClusteredSize(m=5, ties='index', dedicate_large=False)
    """
    name, texts = split(str(word))
    cls = find(name)
    twice = sorted(texts.keys() & parameters.keys())
    if twice:
        raise BadInput(f"'{word}' gives the setting '{twice[0]}', which is given by keyword, too.")
    return cls.build(**read(cls, cls.name, texts), **parameters)


def as_scheme(which: Scheme[Any] | str) -> Scheme[Any]:
    """A scheme, given itself or by a word as `scheme` takes it."""
    if isinstance(which, str):
        return scheme(which)
    if isinstance(which, Scheme):
        return which
    raise BadInput(f"A scheme must be a Scheme or its name; got {which!r}.")


def find(name: str) -> SchemeClass:
    """The class of that name; an unknown name gets the nearest one offered."""
    found, broken = _discovered()
    if name in broken and name not in found:
        raise BadInput(broken[name])
    if name not in found:
        raise UnknownName("scheme", name, found)
    return found[name]


def in_module(module: ModuleType) -> list[SchemeClass]:
    """The named schemes that a module itself defines."""
    classes = [cls for _, cls in inspect.getmembers(module, inspect.isclass)]
    return [
        checked(cls)
        for cls in classes
        if issubclass(cls, Scheme) and cls.__module__ == module.__name__ and "name" in vars(cls)
    ]


def checked(loaded: object) -> SchemeClass:
    """What is to be used as a scheme, or a sentence that says why it is none."""
    if not (inspect.isclass(loaded) and issubclass(loaded, Scheme)):
        raise BadInput(f"{loaded!r} is not a class of schemes: derive it from fedcohort.Scheme.")
    if not is_dataclass(loaded):
        raise BadInput(not_a_dataclass(loaded))
    return loaded


def not_a_dataclass(cls: type) -> str:
    """What to say of a class whose decorator was forgotten."""
    return f"{cls.__name__} is not a dataclass: write @dataclass(frozen=True) above the class."


def reason(error: Exception, file: str | None) -> str:
    """Why a file could not be loaded, and in which line of it."""
    if isinstance(error, FedcohortError):
        return str(error)
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if frame.filename == file), None)
    what = str(error)
    if isinstance(error, SyntaxError):
        line, what = error.lineno, error.msg
    where = "" if line is None else f" in line {line}"
    return f"{type(error).__name__}{where}: {what}."


@cache
def _discovered() -> tuple[dict[str, SchemeClass], dict[str, str]]:
    """Every scheme by name, and why those that are left out cannot be loaded."""
    found: dict[str, SchemeClass] = {}
    broken: dict[str, str] = {}
    for name, where, file, load in _sources():
        try:
            classes = load()
        except Exception as error:  # one broken scheme must not be everybody's trouble
            broken[name] = f"{where} cannot be loaded: {reason(error, file)}"
            left_out = f"{broken[name]} It is left out."
            warnings.warn(left_out, FedcohortWarning, stacklevel=4)
            continue
        for cls in classes:
            other = found.setdefault(cls.name, cls)
            if other is not cls:
                both = f"{_full_name(other)} and {_full_name(cls)}"
                raise FedcohortError(f"Two schemes are named '{cls.name}': {both}.")
    return dict(sorted(found.items())), broken


def _sources() -> Iterator[tuple[str, str, str | None, Callable[[], list[SchemeClass]]]]:
    """(name, what it is, its file, how to load it) of all that holds schemes."""
    for info in pkgutil.iter_modules(__path__):
        module = f"{__name__}.{info.name}"
        spec = importlib.util.find_spec(module)
        file = None if spec is None else spec.origin
        load = partial(_loaded, partial(importlib.import_module, module))
        yield info.name.replace("_", "-"), f"The scheme file '{file}'", file, load
    for point in entry_points(group=ENTRY_POINTS):
        what = f"The scheme '{point.name}' of another package ({point.value})"
        yield point.name, what, None, partial(_loaded, point.load)


def _loaded(load: Callable[[], Any]) -> list[SchemeClass]:
    loaded = load()
    return in_module(loaded) if inspect.ismodule(loaded) else [checked(loaded)]


def _full_name(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
