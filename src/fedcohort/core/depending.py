"""Declarations of a class that its parameters may narrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class _Depending(Generic[T]):
    """A descriptor: the class has the default, an instance its own."""

    def __init__(self, default: T, given: Callable[[Any], T]) -> None:
        self.default, self.given = default, given

    def __get__(self, instance: object | None, owner: type) -> T:
        return self.default if instance is None else self.given(instance)


def depending(default: T, given: Callable[[Any], T]) -> T:
    """A class attribute (``claims``, ``asks``, ``listens``) that depends on the parameters.

    ``default`` is what the class as such declares, ``given(scheme)`` what a scheme with its
    parameters does: paper mode gives up a claim, another source of information asks nobody.

    >>> class Scheme:
    ...     claims = depending({"unbiased"}, lambda scheme: set())
    >>> Scheme.claims, Scheme().claims
    ({'unbiased'}, set())
    """
    return cast("T", _Depending(default, given))
