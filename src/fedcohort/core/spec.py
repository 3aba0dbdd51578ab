"""One way to name a part with its settings: ``name:setting=value,setting=value``.

The same in Python, on the command line and in what is kept with a run. A value in brackets is
taken whole, so that it may be a part with settings of its own: ``memory:guess=[ridge:alpha=1]``.
What `spec` writes, `split` and the declared ranges read back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from fedcohort.core.errors import BadInput, shown


def split(word: str) -> tuple[str, dict[str, str]]:
    """The name and its settings as text; a value may contain commas if it is a tuple.

    >>> split("pow-d:m=3,d=6")
    ('pow-d', {'m': '3', 'd': '6'})
    >>> split("target:groups=0,0,1")
    ('target', {'groups': '0,0,1'})
    >>> split("memory:guess=[ridge:alpha=1,beta=2]")
    ('memory', {'guess': '[ridge:alpha=1,beta=2]'})
    """
    name, _, rest = word.partition(":")
    settings: dict[str, str] = {}
    last = ""
    for piece in pieces(rest) if rest else []:
        key, equals, value = piece.partition("=")
        if equals and "[" not in key:
            last = key.strip().replace("-", "_")
            if last in settings:
                raise BadInput(f"{shown(word)} gives the setting {shown(last)} twice.")
            settings[last] = value.strip()
        elif last:
            settings[last] += f",{piece.strip()}"
        else:
            must = "must read name:setting=value,..."
            raise BadInput(f"{shown(word)} {must}; {shown(piece)} has no '='.")
    return name.strip(), settings


def pieces(text: str) -> list[str]:
    """What stands between commas, except in brackets.

    >>> pieces("1,[a:b=1,c=2],")
    ['1', '[a:b=1,c=2]', '']
    """
    found, depth = [""], 0
    for sign in text:
        depth += (sign == "[") - (sign == "]")
        if depth < 0:
            break
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    if depth:
        raise BadInput(f"{shown(text)} must close every bracket that it opens, and no other.")
    return found


def elements(text: str) -> list[str]:
    """The elements of a tuple; as in Python, a single one is followed by a comma.

    >>> elements("0.5,"), elements("1,2"), elements(",")
    (['0.5'], ['1', '2'], [])
    """
    text = bare(text)
    return [] if text == "," else pieces(text.removesuffix(","))


def bare(text: str) -> str:
    """The value without the brackets around it.

    >>> bare("[ridge:alpha=1]"), bare("[a],[b]")
    ('ridge:alpha=1', '[a],[b]')
    """
    depth = 0
    for place, sign in enumerate(text, 1):
        depth += (sign == "[") - (sign == "]")
        if depth == 0 and place < len(text):  # no pair of brackets holds all of it
            return text
    return text[1:-1] if depth == 0 and text.startswith("[") else text


def value(text: str) -> Any:
    """A value whose range nobody declared: a number, a truth value, None, a tuple or a word.

    >>> value("0.1"), value("true"), value("0.1,0.2"), value("0.5,"), value("word")
    (0.1, True, (0.1, 0.2), (0.5,), 'word')
    """
    if "," in text and bare(text) == text:
        return tuple(value(part) for part in elements(text))
    if text.lower() in {"true", "false", "none"}:
        return {"true": True, "false": False, "none": None}[text.lower()]
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):  # no JSON, too many digits, brackets without end
        return bare(text)
    return read if isinstance(read, int | float) else bare(text)


def written(given: object) -> str:
    """A value as it stands in a word; one sentence where it cannot stand there.

    >>> written(True), written(None), written((1,)), written("a, b")
    ('true', 'none', '1,', '[a, b]')
    """
    if hasattr(given, "spec"):
        text = str(given.spec)
        return f"[{text}]" if ":" in text else text
    if isinstance(given, tuple | list):
        inner = ",".join(written(part) for part in given)
        return f"{inner}," if len(given) < 2 else inner
    if given is None or isinstance(given, bool):
        return str(given).lower()
    if isinstance(given, int | float):
        return repr(given)
    if isinstance(given, str):
        plain = given and not re.search(r"[\s,=\[\]]", given)
        text = given if plain else f"[{given}]"
        if bare(text) == given:
            return text
    raise BadInput(
        f"{shown(given)} cannot be written as a setting in a word; pass the part itself."
    )


def spec(name: str, settings: Mapping[str, object]) -> str:
    """The word of a part with all its settings.

    >>> spec("adam", {"eta_g": 0.1, "beta1": 0.9})
    'adam:eta_g=0.1,beta1=0.9'
    """
    given = ",".join(f"{key}={written(each)}" for key, each in settings.items())
    return f"{name}:{given}" if given else name
