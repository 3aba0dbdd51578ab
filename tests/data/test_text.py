from __future__ import annotations

import gzip
import json
import math
import os
from pathlib import Path

import numpy as np
import pytest

from fedcohort import data
from fedcohort._internal.errors import BadInput, DataNotFound
from fedcohort.data._sources import Request, first
from fedcohort.data.sets.text import _of_stories, collections, tf_idf

STORIES = [
    {"title": "Gold up", "body": "gold gold mine", "topic": "gold", "split": "train", "place": "x"},
    {"title": "Oil", "body": "Oil well <OIL>", "topic": "crude", "split": "train", "place": "y"},
    {"title": "Mine", "body": "the old mine", "topic": "gold", "split": "train"},
    {"title": "Oil gold", "body": "", "topic": "crude", "split": "test"},
]


def load_collection(name: str, file: str, root: Path, words: int) -> data.Dataset:
    stories = first(Request(root), name, lambda folder: collections(folder, file), [file])
    return _of_stories(name, stories, words)


def write(folder: Path, stories: object, packed: bool = True) -> Path:
    text = stories if isinstance(stories, bytes) else json.dumps(stories).encode()
    path = folder / ("news.json.gz" if packed else "news.json")
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


@pytest.mark.parametrize("packed", [True, False])
def test_a_collection_by_hand(tmp_path: Path, packed: bool) -> None:
    write(tmp_path, STORIES, packed)
    found = load_collection("toy", "news", tmp_path, words=4)
    # In less than half of 3 texts: words of one text. "mine" stands in two. By name on ties.
    assert found.features == 4  # gold, oil, old, the
    assert found.classes == 2
    assert found.y_train.tolist() == [1, 0, 1]  # crude, gold
    assert found.groups_train is not None
    assert found.groups_train.tolist() == [0, 1, -1]
    assert found.group_names == ("x", "y")
    gold, oil = (1 + math.log(3)) * math.log(3), (1 + math.log(3)) * math.log(3)
    assert found.x_train[0].tolist() == [1, 0, 0, 0]
    assert gold == oil
    np.testing.assert_allclose(found.x_test[0], [math.sqrt(0.5), math.sqrt(0.5), 0, 0], rtol=1e-6)


def test_a_text_without_known_words_is_zero() -> None:
    assert tf_idf([{"unknown": 3}], ["gold"], [1.0]).tolist() == [[0.0]]


@pytest.mark.parametrize(
    ("stories", "says"),
    [
        (b"{", "is not JSON"),
        (b"\xff\xfe", "is not JSON"),
        ({"title": "x"}, "must be a list"),
        ([{"title": "x", "body": "y", "topic": 3, "split": "train"}], "must be a list"),
        (STORIES[:3], "both splits"),
        ([{**s, "title": "", "body": "1 2"} for s in STORIES], "words in common"),
    ],
)
def test_damage_is_one_sentence(tmp_path: Path, stories: object, says: str) -> None:
    write(tmp_path, stories)
    with pytest.raises(BadInput, match=says):
        load_collection("toy", "news", tmp_path, words=4)


def test_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDCOHORT_DATA", raising=False)
    with pytest.raises(DataNotFound, match="FEDCOHORT_DATA"):
        load_collection("toy", "no-such-news", tmp_path, words=4)


@pytest.mark.skipif(not os.environ.get("FEDCOHORT_DATA"), reason="FEDCOHORT_DATA is not set")
def test_reuters() -> None:
    try:
        news = data.load("reuters")
    except DataNotFound as missing:
        pytest.skip(str(missing))
    assert (len(news.y_train), len(news.y_test), news.classes) == (5303, 2219, 10)
    assert news.features == 400
    lengths = np.linalg.norm(news.x_train, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))
