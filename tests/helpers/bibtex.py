"""A parser of BibTeX that takes nothing on trust."""

from __future__ import annotations

import re

REQUIRED = {
    "article": {"journal"},
    "book": {"publisher"},
    "inproceedings": {"booktitle"},
    "mastersthesis": {"school"},
    "phdthesis": {"school"},
    "misc": {"eprint"},
}


def parsed(text):
    """[(type, key, fields)]; anything that is neither entry nor comment is an error."""
    out = []
    rest = "\n".join(line for line in text.splitlines() if not line.startswith("%")).strip()
    while rest:
        head = re.match(r"@(\w+)\{([a-z0-9]+),\s*", rest)
        assert head, rest[:80]
        rest, fields = rest[head.end() :], {}
        while not rest.startswith("}"):
            name = re.match(r"(\w+) = (?=\{)", rest)
            assert name, rest[:80]
            value, rest = braced(rest[name.end() :])
            assert name[1] not in fields
            fields[name[1]] = value
            assert rest.startswith(",")
            rest = rest[1:].lstrip()
        out.append((head[1], head[2], fields))
        rest = rest[1:].lstrip()
    return out


def braced(text):
    """What stands between the first brace and its partner, and what comes after."""
    depth = 0
    for place, letter in enumerate(text):
        if text[place - 1 : place] == "\\":
            continue
        depth += (letter == "{") - (letter == "}")
        if depth == 0:
            return text[1:place], text[place + 1 :]
    raise AssertionError(f"no closing brace: {text[:80]}")


def check(text):
    entries = parsed(text)
    keys = [key for _, key, _ in entries]
    assert len(set(keys)) == len(keys)
    assert text.isascii()
    for kind, _, fields in entries:
        assert fields.keys() >= {"author", "title", "year", *REQUIRED[kind]}
        assert re.fullmatch(r"\d{4}", fields["year"])
        assert all(value.strip("{} ") for value in fields.values())
        for value in fields.values():  # special characters are escaped
            assert not re.search(r"(?<!\\)[&%$#_]", value)
    return entries
