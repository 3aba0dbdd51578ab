"""Shakespeare's plays, a client for each role, to tell which character comes next."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Whole
from fedcohort._internal.types import Array
from fedcohort.data._dataset import Dataset
from fedcohort.data._sources import Request, Source, first, packed_or_not
from fedcohort.data.sets.femnist import Users, leaf_sources
from fedcohort.data.sets.text import read_json

FILE = "shakespeare_roles"
ALPHABET = "\n !\"&'(),-.0123456789:;>?ABCDEFGHIJKLMNOPQRSTUVWXYZ[]abcdefghijklmnopqrstuvwxyz}"
"""LEAF's 80 characters; any other is read as a blank."""
LEAF_LENGTH = 80
TRAIN_SHARE = 0.8
NOBODY = -1

_CODES = np.full(256, ALPHABET.index(" "), dtype=np.uint8)
_CODES[[ord(character) for character in ALPHABET]] = np.arange(len(ALPHABET))


def shakespeare(
    request: Request,
    length: Annotated[int, Whole(1)] = LEAF_LENGTH,
    step: Annotated[int, Whole(1)] = 1,
) -> Dataset:
    """The plays by role: ``length`` characters, and the label is the one that follows.

    Of each role the first 80 % of the text are for training and the rest for testing, as in
    LEAF; roles of which nothing would be left for training are left out. Read from LEAF's
    ``shakespeare/data/{train,test}/*.json``, which is cut already, or from
    ``shakespeare_roles.json[.gz]``: ``{"roles": {role: [speech, ...]}}``.

    Parameters
    ----------
    request
        Where to look.
    length
        Characters of a sample.
    step
        A sample begins at every so many characters of a text. With 1, as in LEAF, samples are
        views of the text: 80 characters take one byte, until they go to another process.
    """
    wanted = [f"{FILE}.json[.gz]", "shakespeare/data/train/*.json"]
    found = first(request, "shakespeare", _sources, wanted)
    parts = _windows(found, length, step) if isinstance(found, dict) else _cut(found, length)
    (x_train, y_train, roles_train), (x_test, y_test, roles_test) = parts
    return Dataset(
        "shakespeare",
        x_train,
        y_train.astype(np.int64),
        x_test,
        y_test.astype(np.int64),
        len(ALPHABET),
        roles_train,
        scaled=False,
        groups_test=roles_test,
        vocabulary=len(ALPHABET),
    )


Part = tuple[Array, Array, Array]
"""Samples (N, length), the characters that follow, and whose they are; see `NOBODY`."""


def encode(text: str) -> Array:
    """The numbers of the characters of a text in the `ALPHABET`.

    >>> encode("No $!").tolist()
    [38, 67, 1, 1, 2]
    """
    return _CODES[np.frombuffer(text.encode("latin-1", "replace"), dtype=np.uint8)]


def _sources(folder: Path) -> Iterator[Source[dict[str, str] | tuple[Users, Users]]]:
    place = packed_or_not(folder, f"{FILE}.json")
    if place is not None:
        yield Source(place, lambda: _read_roles(place))
    for source in leaf_sources(folder, "shakespeare"):
        yield Source(source.path, source.read)


def _read_roles(path: Path) -> dict[str, str]:
    """The text of each role, its speeches in one line each."""
    told = read_json(path)
    roles = told.get("roles") if isinstance(told, dict) else None
    fits = isinstance(roles, dict) and all(
        isinstance(speeches, list) and all(isinstance(speech, str) for speech in speeches)
        for speeches in roles.values()
    )
    if not fits or not roles:
        raise BadInput(f"'{path}' must have 'roles', an object of lists of speeches.")
    return {role: " ".join(map(_one_line, speeches)) for role, speeches in roles.items()}


def _one_line(speech: str) -> str:
    return re.sub(r"\s+", " ", speech).strip()


def _windows(roles: Mapping[str, str], length: int, step: int) -> tuple[Part, Part]:
    """Views of one text for training and one for testing.

    Where a window crosses from one role to the next it is nobody's.
    """
    kept = {
        role: encode(text) for role, text in roles.items() if int(TRAIN_SHARE * len(text)) > length
    }
    if not kept:
        raise BadInput(f"No role speaks more than {length} characters: lower 'length'.")
    train, test = {}, {}
    for role, text in kept.items():
        cut = int(TRAIN_SHARE * len(text))
        train[role], test[role] = text[:cut], text[cut - length :]
    return _views(train, length, step), _views(test, length, step)


def _views(texts: Mapping[str, Array], length: int, step: int) -> Part:
    whole = np.concatenate(list(texts.values()))
    x = sliding_window_view(whole, length)[:-1:step]
    y = whole[length::step]
    owner = np.full(len(whole), NOBODY)
    start = 0
    for i, text in enumerate(texts.values()):
        owner[start : start + len(text) - length] = i
        start += len(text)
    return x, y, owner[: len(whole) - length : step]


def _cut(users: tuple[Users, Users], length: int) -> tuple[Part, Part]:
    """Samples as LEAF has cut them."""
    if length != LEAF_LENGTH:
        raise BadInput(
            f"LEAF's samples of Shakespeare have {LEAF_LENGTH} characters, not {length}."
        )
    number = {role: i for i, role in enumerate(dict.fromkeys([*users[0], *users[1]]))}
    train, test = (_encoded(part, number) for part in users)
    return train, test


def _encoded(users: Users, number: Mapping[str, int]) -> Part:
    x: list[Any] = [text for texts, _ in users.values() for text in texts]
    y: list[Any] = [text for _, texts in users.values() for text in texts]
    fits = all(isinstance(text, str) and len(text) == LEAF_LENGTH for text in x) and all(
        isinstance(text, str) and len(text) == 1 for text in y
    )
    if not fits or not x:
        raise BadInput(
            f"LEAF's Shakespeare must hold texts of {LEAF_LENGTH} characters and of one."
        )
    owner = np.repeat([number[role] for role in users], [len(texts) for texts, _ in users.values()])
    return encode("".join(x)).reshape(-1, LEAF_LENGTH), encode("".join(y)), owner
