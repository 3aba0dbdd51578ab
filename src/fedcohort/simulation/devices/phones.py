"""Measured phones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.errors import BadInput, brief
from fedcohort.core.parameters import Real, is_real
from fedcohort.core.types import Floats
from fedcohort.data.files import read_bytes
from fedcohort.data.places import Request, Source, first
from fedcohort.maths._draws import below
from fedcohort.simulation.devices.base import Speeds, Typical

FILE = "benchmark2score.json"
LIMIT = 1 << 24


@dataclass(frozen=True, kw_only=True)
class Phones(Typical):
    """Every client has one of 333 phones, as fast as AI-Benchmark measured it in February 2020.

    A phone needs the typical seconds times the median score over its own; lines are log-normal,
    for nothing was measured of them. The scores (``devices/benchmark2score.json`` of
    PKU-Chengxu/FLASH, from ai-benchmark.com) are read from ``FEDCOHORT_DATA``.

    Parameters
    ----------
    network
        How different their lines are: sigma of the log-normal law.
    """

    network: Annotated[float, Real(0, 10)] = 1.0

    name: ClassVar[str] = "phones"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        scores = phone_scores()
        mine = scores[below(rng, len(scores), n)]
        seconds, down, up = self.typical(n)
        line = np.exp(self.network * rng.standard_normal(n))
        return Speeds(seconds * float(np.median(scores)) / mine, down / line, up / line)


def phone_scores() -> Floats:
    """(phones,) the scores, in ascending order."""

    def sources(folder: Path) -> Iterator[Source[Floats]]:
        for path in (folder / "devices" / FILE, folder / FILE):
            if path.is_file():
                yield Source(path, lambda path=path: _read(path))  # type: ignore[misc]

    return first(Request(), "phones", sources, [f"devices/{FILE}"])


def _read(path: Path) -> Floats:
    try:
        told = json.loads(read_bytes(path, LIMIT))
        scores = [float(score) for score in told.values()]
        if not scores or not all(is_real(score) and score > 0 for score in scores):
            raise ValueError("scores must be numbers above 0")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise BadInput(f"'{path}' must map phones to their scores ({brief(error)}).") from None
    return np.sort(scores)
