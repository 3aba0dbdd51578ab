"""Types of arrays, checked conversions, and plain values that JSON can hold."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import partial
from hashlib import blake2b
from pathlib import PurePath
from types import BuiltinFunctionType, FunctionType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fedcohort._internal.errors import BadInput, shown
from fedcohort._internal.parameters import spec

# Array types, named after what they hold. Shapes stand in comments: ``# (n,)``.

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
"""64-bit integers; of dtype object (Python integers) only where 64 bits would overflow."""
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[Any]


# Read the arrays that callers pass, or raise an error of one sentence.


def as_array(values: Any, must: str) -> Array:
    """An array; rows of different lengths, say, are refused by the sentence ``must``.

    >>> as_array([[1], [1, 2]], "Updates must be a table")
    Traceback (most recent call last):
    fedcohort._internal.errors.BadInput: Updates must be a table; got [[1], [1, 2]].
    """
    try:
        return np.asarray(values)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{must}; got {shown(values)}.") from None


def as_floats(values: Any, must: str) -> Floats:
    """The same, as floats."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise BadInput(f"{must}; got {shown(values)}.") from None


# Values as JSON has them, and the digest of settings that are written in them.

_ABSENT = object()


def for_json(value: Any) -> Any:
    """The same, with None for numbers that are not finite: JSON has no word for those.

    >>> for_json({"epsilon": float("inf"), "curve": ((0.5, 1.5), (1.0, float("inf")))})
    {'epsilon': None, 'curve': ((0.5, 1.5), (1.0, None))}
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: for_json(each) for key, each in value.items()}
    if isinstance(value, list):
        return [for_json(each) for each in value]
    return tuple(for_json(each) for each in value) if isinstance(value, tuple) else value


def plain_settings(value: Any, path: str) -> Any:
    """Return a setting in JSON values, without module paths or source text.

    Fields at their default are left out, so a new field with a default changes nothing. A part
    becomes its word, a function its name. ``path`` names the setting in the error message.

    >>> from fedcohort.schemes.classical import MD
    >>> plain_settings({"arms": (MD(m=3), "full"), "lr": np.float64(0.5)}, "mine")
    {'arms': ['md:m=3', 'full'], 'lr': 0.5}
    >>> plain_settings(lambda task: ["full"], "mine.arms")
    Traceback (most recent call last):
    ...
    fedcohort._internal.errors.BadInput: The setting 'mine.arms' must be a plain value, or a ...
    """
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind in "biufU":
        return plain_settings(value.tolist(), path)
    if value is None or isinstance(value, int | str):
        return value
    if isinstance(value, PurePath):
        return value.as_posix()
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {str(key): plain_settings(each, f"{path}.{key}") for key, each in value.items()}
    if isinstance(value, list | tuple | range):
        return [plain_settings(each, f"{path}[{i}]") for i, each in enumerate(value)]
    if isinstance(value, partial):
        function = plain_settings(value.func, path)
        named = function if isinstance(function, dict) else {"function": function}
        given = {"args": value.args, **value.keywords}
        return {**named, "given": plain_settings(given, path)}
    if isinstance(value, FunctionType | BuiltinFunctionType | np.ufunc | type):
        return {"function": _function_name(value, path)}
    if is_dataclass(value):
        return _dataclass_settings(value, path)
    raise _no_plain_value(path, shown(value), "make its class a frozen dataclass with a name.")


def _function_name(function: Any, path: str) -> str:
    if function.__name__ == "<lambda>":
        raise _no_plain_value(path, "a lambda", "define a function with 'def'.")
    if getattr(function, "__closure__", None):
        got = f"the function '{function.__name__}', which reads variables around it"
        raise _no_plain_value(path, got, "pass them as arguments through functools.partial.")
    return str(function.__name__)


def _no_plain_value(path: str, got: str, remedy: str) -> BadInput:
    must = "must be a plain value, or a part or function with a name"
    return BadInput(f"The setting '{path}' {must}. Got {got}; {remedy}")


def _dataclass_settings(value: Any, path: str) -> Any:
    """Return the word of a part, the fields of a record, or the name of an opaque value."""
    part = getattr(type(value), "name", None)
    try:
        settings = fields_not_at_default(value, path)
    except BadInput:
        own = getattr(value, "name", None)
        if isinstance(own, str) and own != part and "name" in value.__dataclass_fields__:
            return own
        raise
    if isinstance(part, str):
        return spec(part, settings) if all(map(_flat, settings.values())) else {part: settings}
    if callable(value):
        got = f"a callable {type(value).__name__} without a name"
        raise _no_plain_value(path, got, "give its class a class attribute 'name'.")
    return settings


def _flat(setting: Any) -> bool:
    """Return whether a word can hold a setting: brackets in it would be lost."""
    parts = setting if isinstance(setting, list) else [setting]
    return not any(isinstance(part, dict | list) for part in parts)


def fields_not_at_default(value: Any, path: str) -> dict[str, Any]:
    """Return the fields of a dataclass as plain settings, without those at their default."""
    settings = {}
    for field in fields(value):
        name = f"{path}.{field.name}"
        setting = plain_settings(getattr(value, field.name), name)
        if _default(field) is MISSING or setting != plain_settings(_default(field), name):
            settings[field.name] = setting
    return settings


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def settings_digest(settings: Mapping[str, Any]) -> str:
    """Return a digest of plain settings, whatever the order of their names.

    >>> settings_digest({"m": 3, "lr": 0.5}) == settings_digest({"lr": 0.5, "m": 3})
    True
    """
    text = json.dumps(settings, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return blake2b(text.encode(), digest_size=16).hexdigest()


def changed_settings(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yield one line per setting that differs.

    >>> list(changed_settings({"work": {"lr": 0.5}}, {"work": {"lr": 0.1, "mu": 1}}))
    ['work.lr: 0.5 before, 0.1 now', 'work.mu: absent before, 1 now']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in dict.fromkeys([*old, *new]):
            inner = f"{path}.{name}" if path else name
            yield from changed_settings(old.get(name, _ABSENT), new.get(name, _ABSENT), inner)
    elif old != new:
        before, now = ("absent" if each is _ABSENT else repr(each) for each in (old, new))
        yield f"{path}: {before} before, {now} now"
