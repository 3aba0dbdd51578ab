"""Parts of the server by their names, as schemes have them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

from fedcohort.core.errors import UnknownName

T = TypeVar("T")


def named(
    kind: str, known: Mapping[str, type[T]], name: object, parameters: Mapping[str, Any]
) -> T:
    """The part of that name with these settings; a wrong name of either gets the nearest one."""
    part = known.get(name) if isinstance(name, str) else None
    if part is None:
        raise UnknownName(kind, name, known)
    settings = [field.name for field in fields(part)]  # type: ignore[arg-type]
    for given in parameters:
        if given not in settings:
            raise UnknownName(f"parameter of {name}", given, settings)
    return part(**parameters)
