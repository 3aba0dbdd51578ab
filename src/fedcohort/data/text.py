"""Short texts with a label: words are counted and weighed, or numbered one after another.

A collection is one file, ``NAME.json`` or ``NAME.json.gz``: a list of objects with the texts
``title`` and ``body``, the label ``topic``, ``split`` ("train" or "test") and, if known, the
``place`` that a story belongs to, which is its natural client.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput
from fedcohort._internal.types import Array, Ints
from fedcohort.data.dataset import Dataset, coded_groups
from fedcohort.data.files import read_bytes
from fedcohort.data.places import Source, packed_or_not

LARGEST = 256 << 20
"""Bytes that a collection may have when unpacked."""
WORD = re.compile(r"[a-z]{2,}")
FIELDS = ("title", "body", "topic", "split")
NO_WORD, UNKNOWN = 0, 1
"""The tokens that fill up a short text, and that stand for words of no vocabulary."""

Story: TypeAlias = Mapping[str, Any]


def of_stories(
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
