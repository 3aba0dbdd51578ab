"""Stories of Reuters-21578, for research only (copyright Reuters), so never downloaded."""

from __future__ import annotations

from typing import Annotated

from fedcohort.core.parameters import Whole
from fedcohort.data.dataset import Dataset
from fedcohort.data.sets.base import Request
from fedcohort.data.text import load_collection


def reuters(request: Request, words: Annotated[int, Whole(1)] = 400) -> Dataset:
    """Single-topic stories of the ten largest topics of Reuters-21578, by tf-idf of words."""
    return load_collection("reuters", "reuters21578_top10_by_place", request.root, words)
