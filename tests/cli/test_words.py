from __future__ import annotations

import pytest

from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.parameters import split, value
from fedcohort.schemes import SCHEMES


def parse(word):
    name, settings = split(word)
    return name, {key: value(text) for key, text in settings.items()}


def parse_scheme(word, m=None):
    return SCHEMES.build(word, otherwise={} if m is None else {"m": m})


def test_values() -> None:
    assert parse("x:a=1,b=0.5,c=true,d=word,e=1e-3") == (
        "x",
        {"a": 1, "b": 0.5, "c": True, "d": "word", "e": 0.001},
    )
    assert parse("x") == ("x", {})
    assert parse("x:p=0.1,0.2,q=3") == ("x", {"p": (0.1, 0.2), "q": 3})


def test_dashes_in_settings() -> None:
    assert split("clustered-size:dedicate-large=yes") == (
        "clustered-size",
        {"dedicate_large": "yes"},
    )


def test_schemes() -> None:
    assert parse_scheme("md", m=7).parameters == {"m": 7}
    assert parse_scheme("md:m=3", m=7).parameters == {"m": 3}
    assert parse_scheme("uniform:m=all").parameters == {"m": "all"}
    assert parse_scheme("full", m=7).parameters == {}
    assert parse_scheme("clustered-size:dedicate-large=yes", m=2).parameters["dedicate_large"]


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'md'"):
        parse_scheme("mdd")
    with pytest.raises(UnknownName, match="parameter of md named 'n'"):
        parse_scheme("md:n=3")
    with pytest.raises(BadParameter, match="'m' parameter of md must be an int of at least 1"):
        parse_scheme("md:m=many")
    with pytest.raises(BadParameter, match="Got 0 instead"):
        parse_scheme("md:m=0")
    with pytest.raises(BadInput, match="has no '='"):
        parse_scheme("md:3")
