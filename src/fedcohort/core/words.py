"""One way to name a thing with its settings: ``name:setting=value,setting=value``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import constraints


def split(word: str) -> tuple[str, dict[str, str]]:
    """The name and its settings as text; a value may contain commas if it is a tuple.

    >>> split("pow-d:m=3,d=6")
    ('pow-d', {'m': '3', 'd': '6'})
    >>> split("target:groups=0,0,1")
    ('target', {'groups': '0,0,1'})
    """
    name, _, rest = word.partition(":")
    settings: dict[str, str] = {}
    last = ""
    for part in rest.split(",") if rest else []:
        key, equals, value = part.partition("=")
        if equals:
            last = key.strip().replace("-", "_")
            if last in settings:
                raise BadInput(f"'{word}' gives the setting '{last}' twice.")
            settings[last] = value.strip()
        elif last:
            settings[last] += f",{part.strip()}"
        else:
            raise BadInput(f"'{word}' must read name:setting=value,...; '{part}' has no '='.")
    return name.strip(), settings


def read(cls: type, owner: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Settings of a dataclass as its declared ranges read them; ``owner`` is named in errors.

    A setting that is not declared stays a text: whoever builds the thing refuses it.
    """
    declared = constraints(cls)
    settings: dict[str, Any] = {}
    for key, text in texts.items():
        try:
            settings[key] = declared[key].parse(text) if key in declared else text
        except ValueError:
            raise BadParameter(key, owner, str(declared[key]), text) from None
    return settings
