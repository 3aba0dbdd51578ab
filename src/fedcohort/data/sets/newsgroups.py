"""Posts of twenty newsgroups by author: many clients, most with a single sample."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Maybe, Whole
from fedcohort.data.dataset import Dataset
from fedcohort.data.files import read_bytes
from fedcohort.data.places import Request, Source, first, packed_or_not
from fedcohort.data.text import of_stories, read_json

NEWSGROUPS_FILE = "mini_newsgroups"
FOLDERS = ("mini_newsgroups", "20_newsgroups")
NEWSGROUPS_FIELDS = {"group": str, "subject": str, "text": str, "author": int | str}
LARGEST_NEWSGROUPS = 1 << 20
"""Bytes of a post."""


def newsgroups(
    request: Request,
    words: Annotated[int, Whole(1)] = 1000,
    length: Annotated[int | None, Maybe(Whole(1))] = None,
) -> Dataset:
    """Posts of twenty newsgroups by author; every fifth post of a group is for testing.

    Read from ``mini_newsgroups.json[.gz]`` (a list of objects with ``group``, ``subject``,
    ``text`` and ``author``), or from the folders ``mini_newsgroups`` or ``20_newsgroups`` of the
    UCI archive, with one file per post, in which the ``From:`` line is the author. ``words`` and
    ``length`` as for `fedcohort.data.text.of_stories`.
    """
    wanted = [f"{NEWSGROUPS_FILE}.json[.gz]", *(f"{each}/*/*" for each in FOLDERS)]
    posts = first(request, "newsgroups", _newsgroups_sources, wanted)
    seen: Counter[str] = Counter()
    stories = []
    for post in posts:
        rank = seen[post["group"]] = seen[post["group"]] + 1
        stories.append(
            {
                "title": post["subject"],
                "body": post["text"],
                "topic": post["group"],
                "place": str(post["author"]),
                "split": "train" if rank % 5 else "test",
            }
        )
    return of_stories("newsgroups", stories, words, length)


def _newsgroups_sources(folder: Path) -> Iterator[Source[list[dict[str, Any]]]]:
    place = packed_or_not(folder, f"{NEWSGROUPS_FILE}.json")
    if place is not None:
        yield Source(place, lambda: _read_list(place))
    for name in FOLDERS:
        if os.path.isdir(folder / name):
            yield Source(folder / name, lambda name=name: _read_folder(folder / name))  # type: ignore[misc]


def _read_list(path: Path) -> list[dict[str, Any]]:
    posts = read_json(path)
    fits = isinstance(posts, list) and all(
        isinstance(post, dict)
        and all(isinstance(post.get(key), kind) for key, kind in NEWSGROUPS_FIELDS.items())
        for post in posts
    )
    if not fits:
        raise BadInput(f"'{path}' must be a list of objects with {', '.join(NEWSGROUPS_FIELDS)}.")
    return list(posts)


def _read_folder(folder: Path) -> list[dict[str, Any]]:
    posts = []
    for group in sorted(folder.iterdir()):
        for path in sorted(group.iterdir()) if group.is_dir() else []:
            head, _, text = read_bytes(path, LARGEST_NEWSGROUPS).decode("latin-1").partition("\n\n")
            posts.append(
                {
                    "group": group.name,
                    "subject": _header(head, "Subject"),
                    "author": _header(head, "From"),
                    "text": text,
                }
            )
    if not posts:
        raise BadInput(f"'{folder}' must hold a folder of posts for each group; it has none.")
    return posts


def _header(head: str, name: str) -> str:
    found = re.search(rf"^{name}:[ \t]*(.*?)\s*$", head, re.MULTILINE)
    return "" if found is None else found[1]
