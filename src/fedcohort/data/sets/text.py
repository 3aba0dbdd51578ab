"""Newsgroups and Reuters, and text as bags of words."""

from __future__ import annotations

import html
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.parameters import Maybe, Whole
from fedcohort._internal.types import Array, Ints
from fedcohort.data._dataset import Dataset, coded_groups
from fedcohort.data._files import read_bytes
from fedcohort.data._sources import Request, Source, first, packed_or_not

# Short texts with a label: words are counted and weighed, or numbered one after another.
#
# A collection is one file, ``NAME.json`` or ``NAME.json.gz``: a list of objects with the texts
# ``title`` and ``body``, the label ``topic``, ``split`` ("train" or "test") and, if known, the
# ``place`` that a story belongs to, which is its natural client.

LARGEST = 256 << 20
"""Bytes that a collection may have when unpacked."""
WORD = re.compile(r"[a-z]{2,}")
FIELDS = ("title", "body", "topic", "split")
NO_WORD, UNKNOWN = 0, 1
"""The tokens that fill up a short text, and that stand for words of no vocabulary."""

Story: TypeAlias = Mapping[str, Any]


def _of_stories(
    name: str, stories: Sequence[Story], words: int, length: int | None = None
) -> Dataset:
    """A collection of texts as a data set.

    Parameters
    ----------
    name, stories
        The set and its texts.
    words
        How many words are known: the most frequent that are in less than half of the texts.
    length
        None: a sample is the tf-idf of its words, (words,). Else it is the tokens of its first
        ``length`` words, for models that read: 0 fills up, 1 is any other word, 2 the most
        frequent one.
    """
    parts = {part: [s for s in stories if s["split"] == part] for part in ("train", "test")}
    if not parts["train"] or not parts["test"]:
        raise BadInput(f"The collection '{name}' must have stories of both splits.")
    topics = sorted({story["topic"] for story in stories})
    read = {part: [_words(story) for story in some] for part, some in parts.items()}
    counts = {part: [Counter(each) for each in some] for part, some in read.items()}
    vocabulary, rarity = _vocabulary(counts["train"], words)
    if length is None:
        x = {part: tf_idf(some, vocabulary, rarity) for part, some in counts.items()}
    else:
        x = {part: tokens(some, vocabulary, length) for part, some in read.items()}
    y = {part: _labels(some, topics) for part, some in parts.items()}
    places, names = coded_groups(
        {part: (story.get("place", "") for story in some) for part, some in parts.items()}
    )
    known = bool((places["train"] >= 0).any())
    return Dataset(
        name,
        x["train"],
        y["train"],
        x["test"],
        y["test"],
        len(topics),
        places["train"] if known else None,
        scaled=length is None,
        groups_test=places["test"] if known else None,
        vocabulary=None if length is None else 2 + len(vocabulary),
        group_names=names if known else None,
    )


def tf_idf(
    texts: Sequence[Mapping[str, int]], vocabulary: Sequence[str], rarity: Sequence[float]
) -> Array:
    """(N, words) float32: (1 + log count) times rarity, each row scaled to length 1.

    >>> tf_idf([{"gold": 1, "oil": 1}], ["gold", "oil"], [1.0, 1.0]).round(3)
    array([[0.707, 0.707]], dtype=float32)
    """
    column = {word: j for j, word in enumerate(vocabulary)}
    out = np.zeros((len(texts), len(vocabulary)))
    for row, counts in zip(out, texts, strict=True):
        for word, count in counts.items():
            if word in column:
                row[column[word]] = (1.0 + np.log(count)) * rarity[column[word]]
    lengths = np.linalg.norm(out, axis=1, keepdims=True)
    return np.asarray(out / np.maximum(lengths, 1e-12), dtype=np.float32).clip(0, 1)


def tokens(texts: Iterable[Sequence[str]], vocabulary: Sequence[str], length: int) -> Array:
    """(N, length) int32: the numbers of the first words of each text.

    >>> tokens([["gold", "or", "oil"], ["oil"]], ["gold", "oil"], 3).tolist()
    [[2, 1, 3], [3, 0, 0]]
    """
    number = {word: j for j, word in enumerate(vocabulary, UNKNOWN + 1)}
    rows = [[number.get(word, UNKNOWN) for word in text[:length]] for text in texts]
    filled = [row + [NO_WORD] * (length - len(row)) for row in rows]
    return np.array(filled, dtype=np.int32).reshape(-1, length)


def _vocabulary(texts: Sequence[Counter[str]], words: int) -> tuple[list[str], list[float]]:
    """The most frequent words that stand in less than half of the texts, and log(N / df)."""
    frequency = Counter(word for counts in texts for word in counts)
    telling = [(df, word) for word, df in frequency.items() if 2 * df < len(texts)]
    chosen = sorted(telling, key=lambda pair: (-pair[0], pair[1]))[:words]
    if not chosen:
        raise BadInput("The texts of a collection must have words in common; they have none.")
    return [word for _, word in chosen], [float(np.log(len(texts) / df)) for df, _ in chosen]


def _words(story: Story) -> list[str]:
    return WORD.findall(f"{story['title']} {story['body']}".lower())


def _labels(stories: Sequence[Story], topics: Sequence[str]) -> Ints:
    number = {topic: i for i, topic in enumerate(topics)}
    return np.array([number[story["topic"]] for story in stories], dtype=np.int64)


def collections(folder: Path, file: str) -> Iterator[Source[list[dict[str, Any]]]]:
    """The file of a collection in a folder, if it is there."""
    place = packed_or_not(folder, f"{file}.json")
    if place is not None:
        yield Source(place, lambda: read_stories(place))


def read_stories(path: Path) -> list[dict[str, Any]]:
    """The stories of a collection, checked."""
    stories = read_json(path)
    fits = isinstance(stories, list) and all(
        isinstance(s, dict) and all(isinstance(s.get(key), str) for key in FIELDS) for s in stories
    )
    if not fits:
        raise BadInput(f"'{path}' must be a list of objects with the texts {', '.join(FIELDS)}.")
    return list(stories)


def read_json(path: Path, limit: int = LARGEST) -> Any:
    """What a JSON file holds; one sentence if it is none."""
    try:
        return json.loads(read_bytes(path, limit))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(f"'{path}' is not JSON ({str(error)[:120]}): delete it.") from None


# Posts of twenty newsgroups by author: many clients, most with a single sample.

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
    ``length`` as for `fedcohort.data.sets.text._of_stories`.
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
    return _of_stories("newsgroups", stories, words, length)


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


# Stories of Reuters-21578, for research only (copyright Reuters), so never downloaded.

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
    ``words`` and ``length`` as for `fedcohort.data.sets.text._of_stories`.
    """
    wanted = [f"{REUTERS_FILE}.json[.gz]", "reuters21578/reut2-*.sgm[.gz]"]
    stories = first(request, "reuters", _reuters_sources, wanted)
    return _of_stories("reuters", stories, words, length)


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
