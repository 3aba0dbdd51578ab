"""Words of the command line, as in `fedcohort.core.words`: values read, schemes built."""

from __future__ import annotations

import json
from typing import Any

from fedcohort.cli.files import in_file
from fedcohort.core.parameters import constraints
from fedcohort.core.scheme import Scheme
from fedcohort.core.words import read, split
from fedcohort.schemes import find


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


def find_scheme(name: str) -> type[Scheme[Any]]:
    """The class of schemes of that name, or in the file at that path."""
    return in_file(name) if name.endswith(".py") else find(name)


def parse_scheme(word: str, m: int | None = None) -> Scheme[Any]:
    """The scheme of that word; ``m`` is the cohort size where the word does not give one.

    >>> parse_scheme("clustered-size:ties=index", m=5)
    ClusteredSize(m=5, ties='index', dedicate_large=False)
    """
    name, texts = split(word)
    cls = find_scheme(name)
    settings = read(cls, cls.name, texts)
    if m is not None and "m" in constraints(cls):
        settings.setdefault("m", m)
    return cls.build(**settings)
