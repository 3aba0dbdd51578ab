"""A digest of all that a value holds; what cannot be told apart is refused, never skipped.

Run folders take two tasks with one digest for the same, so a digest that overlooks something
shows old runs for new problems.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from numbers import Number
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from fedcohort._internal.errors import BadInput

_SCRIPT = "__main__"
_KNOWN = {*sys.stdlib_module_names, "numpy", "torch", __name__.split(".")[0]} - {_SCRIPT}
"""Packages whose code counts by name: it is the version of them that decides."""

_OF_A_TEXT = "<string>"
"""The file of what `eval` and `exec` make."""

_ANNOTATE = "__annotate_func__"
"""What gives the annotations of a class since Python 3.14: the source has them already."""

_BLOCK_BYTES = 1 << 24


class _Plain:
    """An object that holds what its ``__dict__`` shows, and nothing else."""


def source_digest(code: type | FunctionType) -> str | None:
    """A digest of the text that a class or function was made from; None if it cannot be read.

    The whole module counts, with the helpers and constants that are there; of a script or a
    notebook only the thing itself, for the rest says what to run.
    """
    module = sys.modules.get(code.__module__)
    for source in (code,) if code.__module__ == _SCRIPT else (module, code):
        if isinstance(source, FunctionType) and source.__code__.co_filename == _OF_A_TEXT:
            continue  # Python 3.13 would give the text of ``python -c`` for any of them
        with contextlib.suppress(OSError, TypeError):
            text = inspect.getsource(source)  # type: ignore[arg-type]
            return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return None


class Digest:
    """Grows value by value; ``owner`` is named where a value cannot be told apart.

    >>> one, other = Digest("mine"), Digest("mine")
    >>> one.add("a", np.zeros(2))
    >>> other.add("a", np.zeros(3))
    >>> one.hex() == other.hex()
    False
    >>> one.add("lock", object())
    Traceback (most recent call last):
    ...
    fedcohort._internal.errors.BadInput: The attribute 'lock' of mine must hold data, or functions \
whose source can be read, to be told from another. Got object instead; give the class a method \
fingerprint(), or name the attribute in 'caches' if it decides nothing.
    """

    def __init__(self, owner: str) -> None:
        self._owner = owner
        self._digest = hashlib.blake2b(digest_size=16)
        self._open: dict[int, object] = {}  # what is being read: it may hold itself

    def hex(self) -> str:
        """The digest of all that was added, 32 digits."""
        return self._digest.hexdigest()

    def add(self, name: str, value: object) -> None:
        """Read a value to its last part; ``name`` says where it was found."""
        kind = type(value)
        self._note(name, f"{kind.__module__}.{kind.__qualname__}")
        if id(value) in self._open:
            return
        self._open[id(value)] = value
        try:
            if not (self._data(name, value) or self._code(name, value) or self._made(name, value)):
                raise BadInput(
                    f"The attribute '{name}' of {self._owner} must hold data, or functions whose "
                    f"source can be read, to be told from another. Got {kind.__name__} instead; "
                    "give the class a method fingerprint(), or name the attribute in 'caches' if "
                    "it decides nothing."
                )
        finally:
            del self._open[id(value)]

    def _note(self, *words: str) -> None:
        for word in words:
            self._digest.update(f"{len(word)}:{word}".encode())

    def _data(self, name: str, value: Any) -> bool:
        """Numbers, texts, arrays and containers."""
        if isinstance(value, np.generic | np.ndarray):
            return self._array(name, value)
        if isinstance(value, Mapping):
            items = [(("key", key), (f"{name}[{key!r}]", value[key])) for key in value]
            self._unordered(items)
            if isinstance(value, defaultdict):  # it decides what an absent key is
                self.add(f"{name}.default_factory", value.default_factory)
        elif isinstance(value, Set):
            self._unordered([((name, part),) for part in value])
        elif isinstance(value, list | tuple):
            self._note(str(len(value)))
            for i, part in enumerate(value):
                self.add(f"{name}[{i}]", part)
        elif value is None or isinstance(
            value, Number | str | bytes | range | slice | Enum | PurePath
        ):
            self._note(repr(value))
        elif isinstance(value, np.dtype):
            self._note(value.str, repr(value.descr))
        else:
            return False
        if not isinstance(value, Enum):
            self._parts(name, getattr(value, "__dict__", {}).items())  # of a subclass
        return True

    def _array(self, name: str, value: Any) -> bool:
        if isinstance(value, np.ndarray) and type(value) not in (np.ndarray, np.memmap):
            return False  # masks and the like
        self._note(value.dtype.str, repr(value.dtype.descr), str(value.shape))
        if value.dtype == object and isinstance(value, np.ndarray):
            self._parts(name, enumerate(value.ravel().tolist()))
        elif value.dtype.hasobject:
            return False
        else:
            rows = np.atleast_1d(value)
            most = max(1, _BLOCK_BYTES // max(1, rows[:1].nbytes))
            for start in range(0, len(rows), most):  # a view is copied to be read
                block = np.ascontiguousarray(rows[start : start + most])
                self._digest.update(block.reshape(-1).view(np.uint8).data)
        return True

    def _unordered(self, items: Iterable[Iterable[tuple[str, object]]]) -> None:
        digests = []
        for item in items:
            each = Digest(self._owner)
            each._open = self._open
            for name, part in item:
                each.add(name, part)
            digests.append(each.hex())
        self._note(str(len(digests)), *sorted(digests))

    def _parts(self, name: str, parts: Iterable[tuple[object, object]]) -> None:
        for key, part in parts:
            self.add(f"{name}.{key}", part)

    def _code(self, name: str, value: Any) -> bool:
        """Classes, functions and modules."""
        if isinstance(value, type):
            return all(self._class(name, each) for each in value.__mro__)
        if isinstance(value, FunctionType):
            return self._function(name, value)
        if isinstance(value, MethodType):
            self._parts(name, [("__func__", value.__func__), ("__self__", value.__self__)])
        elif isinstance(value, functools.partial):
            self.add(f"{name}(...)", (value.func, value.args, value.keywords))
        elif isinstance(value, BuiltinFunctionType | np.ufunc | ModuleType):
            self._note(str(getattr(value, "__module__", "")), value.__name__)
        elif callable(value) and isinstance(getattr(value, "__wrapped__", None), FunctionType):
            self.add(f"{name}.__wrapped__", value.__wrapped__)  # functools.cache and the like
        else:
            return False
        return True

    def _class(self, name: str, kind: type) -> bool:
        self._note(f"{kind.__module__}.{kind.__qualname__}")
        if kind.__module__.split(".")[0] in _KNOWN:
            return True
        text = source_digest(kind)
        if text is None:
            return False
        self._note(text)
        for attribute, value in sorted(vars(kind).items()):
            if attribute == _ANNOTATE:
                continue
            for part in (value, *(getattr(value, each, None) for each in ("__func__", "fget"))):
                if isinstance(part, FunctionType):
                    self._note(attribute, _place(part))
                    self._captured(f"{name}.{attribute}", part)
        return True

    def _function(self, name: str, function: FunctionType) -> bool:
        self._note(f"{function.__module__}.{function.__qualname__}")
        if function.__module__.split(".")[0] in _KNOWN:
            return True
        text = source_digest(function)
        if text is None:
            return False
        self._note(text, _place(function))
        self._parts(name, [("(defaults)", (function.__defaults__, function.__kwdefaults__))])
        self._captured(name, function)
        return True

    def _captured(self, name: str, function: FunctionType) -> None:
        """What the code reads from around it: closures; and, in a script, global variables."""
        cells = function.__closure__ or ()
        for variable, cell in zip(function.__code__.co_freevars, cells, strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # not bound yet
                continue
            self.add(f"{name}.{variable}", value)
        if function.__module__ == _SCRIPT:
            known = function.__globals__
            self._parts(name, [(g, known[g]) for g in _names(function.__code__) if g in known])

    def _made(self, name: str, value: Any) -> bool:
        """Objects: dataclasses, and those of plain classes by their attributes."""
        known = getattr(value, "fingerprint", None)
        if callable(known):
            self._note(str(known()))
            return True
        if is_dataclass(value):
            parts = {field.name: getattr(value, field.name) for field in fields(value)}
            parts |= attributes(value) if hasattr(value, "__dict__") else {}
        elif hasattr(value, "__dict__") and type(value).__basicsize__ <= _Plain.__basicsize__:
            parts = attributes(value)
        else:
            return False
        if not self._code(name, type(value)):
            return False
        self._parts(name, sorted(parts.items()))
        return True


def attributes(value: object, caches: Iterable[str] = ()) -> dict[str, Any]:
    """The attributes of an object, without what is declared to be computed from the others."""
    kind = type(value)
    return {
        name: part
        for name, part in vars(value).items()
        if name not in caches
        and not isinstance(inspect.getattr_static(kind, name, None), functools.cached_property)
    }


def _place(function: FunctionType) -> str:
    """Which part of the source it is: there may be two on a line."""
    code = function.__code__
    spots: list[Any] = [spot for spot in code.co_positions() if None not in spot]
    line = 0 if function.__module__ == _SCRIPT else code.co_firstlineno
    lines = [line - code.co_firstlineno for spot in spots for line in spot[:2]]
    columns = [column for spot in spots for column in spot[2:]]
    if not any(columns):  # Python was told to leave them out, or is 3.12 and returns a constant
        return f"{line} {_compiled(code)}"
    return f"{line} {min(lines)} {min(columns)} {max(lines)} {max(columns)}"


def _compiled(code: CodeType) -> str:
    """What code does, with the names and constants that it takes."""
    constants = [
        _compiled(each) if isinstance(each, CodeType)
        else repr(sorted(map(repr, each))) if isinstance(each, frozenset)  # in no order of theirs
        else repr(each)
        for each in code.co_consts
    ]  # fmt: skip
    return f"{code.co_code.hex()} {code.co_names} {code.co_freevars} {constants}"


def _names(code: CodeType) -> list[str]:
    """The global names that code and what is nested in it read."""
    nested = [
        name for part in code.co_consts if isinstance(part, CodeType) for name in _names(part)
    ]
    return sorted({*code.co_names, *nested})
