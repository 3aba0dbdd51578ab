"""One way to name a thing with its settings: ``name:setting=value,setting=value``."""

from __future__ import annotations

import json
from typing import Any

from fedcohort.core.errors import BadInput, BadParameter
from fedcohort.core.parameters import constraints
from fedcohort.core.scheme import Scheme
from fedcohort.schemes import find


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
            settings[last] = value.strip()
        elif last:
            settings[last] += f",{part.strip()}"
        else:
            raise BadInput(f"'{word}' must read name:setting=value,...; '{part}' has no '='.")
    return name.strip(), settings


def parse(word: str) -> tuple[str, dict[str, Any]]:
    """The name and its settings, values read as numbers, truth values or words.

    >>> parse("dirichlet-per-client:n=100,alpha=0.1,paper=true")
    ('dirichlet-per-client', {'n': 100, 'alpha': 0.1, 'paper': True})
    """
    name, settings = split(word)
    return name, {key: _value(text) for key, text in settings.items()}


def _value(text: str) -> Any:
    if "," in text:
        return tuple(_value(part) for part in text.split(","))
    try:
        value = json.loads(text.lower() if text.lower() in {"true", "false"} else text)
    except json.JSONDecodeError:
        return text
    return value if isinstance(value, int | float | bool) else text


def parse_scheme(word: str, m: int | None = None) -> Scheme[Any]:
    """The scheme of that word; ``m`` is the cohort size where the word does not give one.

    >>> parse_scheme("clustered-size:ties=index", m=5)
    ClusteredSize(m=5, ties='index', dedicate_large=False)
    """
    name, texts = split(word)
    cls = find(name)
    declared = constraints(cls)
    settings: dict[str, Any] = {}
    for key, text in texts.items():
        if key not in declared:
            settings[key] = text  # `build` refuses it, with the nearest name
            continue
        try:
            settings[key] = declared[key].parse(text)
        except ValueError:
            raise BadParameter(key, name, str(declared[key]), text) from None
    if m is not None and "m" in declared and "m" not in settings:
        settings["m"] = m
    return cls.build(**settings)
