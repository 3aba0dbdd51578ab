"""Stories of Reuters-21578, for research only (copyright Reuters), so never downloaded."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Maybe, Whole
from fedcohort.data.dataset import Dataset
from fedcohort.data.files import read_bytes
from fedcohort.data.places import Request, Source, first, packed_or_not
from fedcohort.data.text import collections, of_stories

REUTERS_FILE = "reuters21578_top10_by_place"
TOPICS = frozenset(
    ("acq", "coffee", "crude", "earn", "gold", "interest", "money-fx", "ship", "sugar", "trade")
)
LAST_DAY = (1987, 4, 7)
"""Stories until then are for training: the ModApte day, for the tags of it are often lost."""
MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
LARGEST_REUTERS = 16 << 20
"""Bytes of one of the 22 files."""


def reuters(
    request: Request,
    words: Annotated[int, Whole(1)] = 400,
    length: Annotated[int | None, Maybe(Whole(1))] = None,
) -> Dataset:
    """Single-topic stories of the ten largest topics of Reuters-21578, by place of origin.

    Read from ``reuters21578_top10_by_place.json[.gz]``, or from the original files
    ``reut2-000.sgm`` to ``reut2-021.sgm`` in a folder ``reuters21578``; both give the same.
    ``words`` and ``length`` as for `fedcohort.data.text.of_stories`.
    """
    wanted = [f"{REUTERS_FILE}.json[.gz]", "reuters21578/reut2-*.sgm[.gz]"]
    stories = first(request, "reuters", _reuters_sources, wanted)
    return of_stories("reuters", stories, words, length)


def _reuters_sources(folder: Path) -> Iterator[Source[list[dict[str, Any]]]]:
    yield from collections(folder, REUTERS_FILE)
    for place in (folder / "reuters21578", folder):
        if packed_or_not(place, "reut2-000.sgm"):
            yield Source(place, lambda place=place: read_sgml(place))  # type: ignore[misc]


def read_sgml(folder: Path) -> list[dict[str, Any]]:
    """The stories with one topic, of the ten, and a body, from the original files."""
    stories = []
    for number in range(22):
        path = packed_or_not(folder, f"reut2-{number:03}.sgm")
        if path is None:
            raise BadInput(f"'{folder}' is incomplete: it has no 'reut2-{number:03}.sgm'.")
        text = read_bytes(path, LARGEST_REUTERS).decode("latin-1")
        found = re.findall(r"<REUTERS\b[^>]*>(.*?)</REUTERS>", text, re.DOTALL)
        if not found:
            raise BadInput(f"'{os.fspath(path)}' must hold stories between <REUTERS> tags.")
        stories += [told for told in map(_story, found) if told is not None]
    return stories


def _story(text: str) -> dict[str, Any] | None:
    topics, places = (_listed(text, tag) for tag in ("TOPICS", "PLACES"))
    body = _between(text, "BODY")
    day = re.search(r"(\d{1,2})-([A-Z]{3})-(\d{4})", _between(text, "DATE"))
    if len(topics) != 1 or topics[0] not in TOPICS or not body or day is None:
        return None
    date = int(day[3]), 1 + MONTHS.index(day[2]) if day[2] in MONTHS else 13, int(day[1])
    return {
        "title": _between(text, "TITLE"),
        "body": body,
        "topic": topics[0],
        "place": places[0] if places else "unknown",
        "split": "train" if date <= LAST_DAY else "test",
    }


def _between(text: str, tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return "" if found is None else html.unescape(found[1])


def _listed(text: str, tag: str) -> list[str]:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
    return [] if found is None else re.findall(r"<D>(.*?)</D>", found[1])
