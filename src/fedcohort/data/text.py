"""Short texts with a label: words are counted and weighed, so that a linear model can learn.

A collection is one file, ``NAME.json`` or ``NAME.json.gz``: a list of objects with the texts
``title`` and ``body``, the label ``topic``, ``split`` ("train" or "test") and, if known, the
``place`` that a story belongs to, which is its natural client.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.core.errors import BadInput, DataNotFound
from fedcohort.core.types import Array, Ints
from fedcohort.data.dataset import Dataset
from fedcohort.data.files import read_bytes
from fedcohort.data.images import search_folders

LARGEST = 256 << 20
"""Bytes that a collection may have when unpacked."""
WORD = re.compile(r"[a-z]{2,}")
FIELDS = ("title", "body", "topic", "split")


def load_collection(name: str, file: str, root: Path | None, words: int) -> Dataset:
    """A collection of texts as a data set of ``words`` features."""
    stories = _read(_find(name, file, root))
    parts = {part: [s for s in stories if s["split"] == part] for part in ("train", "test")}
    if not parts["train"] or not parts["test"]:
        raise BadInput(f"The collection '{name}' must have stories of both splits.")
    topics = sorted({story["topic"] for story in stories})
    counts = {part: [_words(story) for story in some] for part, some in parts.items()}
    vocabulary, rarity = _vocabulary(counts["train"], words)
    x = {part: tf_idf(some, vocabulary, rarity) for part, some in counts.items()}
    y = {part: _labels(some, topics) for part, some in parts.items()}
    places: Array = np.array([str(story.get("place", "")) for story in parts["train"]])
    return Dataset(name, x["train"], y["train"], x["test"], y["test"], len(topics), places)


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


def _vocabulary(texts: Sequence[Counter[str]], words: int) -> tuple[list[str], list[float]]:
    """The most frequent words that stand in less than half of the texts, and log(N / df)."""
    frequency = Counter(word for counts in texts for word in counts)
    telling = [(df, word) for word, df in frequency.items() if 2 * df < len(texts)]
    chosen = sorted(telling, key=lambda pair: (-pair[0], pair[1]))[:words]
    if not chosen:
        raise BadInput("The texts of a collection must have words in common; they have none.")
    return [word for _, word in chosen], [float(np.log(len(texts) / df)) for df, _ in chosen]


def _words(story: Mapping[str, Any]) -> Counter[str]:
    return Counter(WORD.findall(f"{story['title']} {story['body']}".lower()))


def _labels(stories: Sequence[Mapping[str, Any]], topics: Sequence[str]) -> Ints:
    number = {topic: i for i, topic in enumerate(topics)}
    return np.array([number[story["topic"]] for story in stories], dtype=np.int64)


def _find(name: str, file: str, root: Path | None) -> Path:
    folders = search_folders(root)
    for folder in folders:
        for place in (folder / f"{file}.json.gz", folder / f"{file}.json"):
            if os.path.isfile(place):
                return place
    places = ", ".join(f"'{folder}'" for folder in folders)
    raise DataNotFound(
        f"The data set '{name}' was not found: no {file}.json[.gz] in {places}. "
        "Set FEDCOHORT_DATA to a folder that holds it; fedcohort.data.text says what is in it."
    )


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        stories = json.loads(read_bytes(path, LARGEST))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"'{path}' is not JSON ({error}): delete it.") from None
    fits = isinstance(stories, list) and all(
        isinstance(s, dict) and all(isinstance(s.get(key), str) for key in FIELDS) for s in stories
    )
    if not fits:
        raise BadInput(f"'{path}' must be a list of objects with the texts {', '.join(FIELDS)}.")
    return list(stories)
