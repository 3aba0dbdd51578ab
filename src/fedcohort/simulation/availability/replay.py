"""When clients were really there."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.core.errors import BadInput, DataNotFound, brief
from fedcohort.core.files import check_lines
from fedcohort.core.parameters import Maybe, Real
from fedcohort.core.streams import stream
from fedcohort.core.types import Floats
from fedcohort.maths._draws import below, permutation
from fedcohort.simulation.availability._intervals import Intervals
from fedcohort.simulation.availability.base import InTime

WEEK = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Replay(InTime):
    """When clients were there, from a file, over and over again.

    The file has a line of JSON for every interval, ``{"client": "a", "start": 0, "end": 300}`` in
    seconds; ``"period"`` in the first line of a client says after how long its trace starts anew.
    `fedcohort.simulation.fedscale` makes it of FedScale's. Clients of a run are given
    clients of the file at random, each once, or several times where the file has fewer.

    Parameters
    ----------
    path
        The file.
    period
        Seconds after which traces start anew, where the file does not say; a week by default.
    """

    path: str
    period: Annotated[float | None, Maybe(Real(0, open_low=True))] = None

    name: ClassVar[str] = "replay"

    def until(self, n: int, now: float, seed: int) -> Floats:
        try:
            written = Path(self.path).stat().st_mtime_ns
        except OSError:
            raise DataNotFound(f"There is no file '{self.path}'.") from None
        traces = _read(self.path, WEEK if self.period is None else self.period, written)
        rng = stream(seed, "whose trace")
        count = len(traces)
        mine = permutation(rng, count)[:n] if n <= count else below(rng, count, n)
        return np.array([traces[k].until(now) for k in mine.tolist()])


@lru_cache(maxsize=4)
def _read(path: str, period: float, written: int) -> tuple[Intervals, ...]:
    found: dict[str, list[tuple[float, float]]] = {}
    periods: dict[str, float] = {}
    try:
        check_lines(Path(path))
        with Path(path).open(encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    _take(json.loads(line), found, periods, f"'{path}', line {number}")
    except BadInput:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise BadInput(f"'{path}' must be a file of JSON lines ({brief(error)}).") from None
    if not found:
        raise BadInput(f"'{path}' has no client; a line reads {LINE}.")
    return tuple(Intervals.of(each, periods.get(who, period)) for who, each in found.items())


LINE = '{"client": "a", "start": 0, "end": 300}'


def _take(
    told: object, found: dict[str, list[tuple[float, float]]], periods: dict[str, float], where: str
) -> None:
    """One line: an interval, or a client that is never there, by its period alone."""
    if not isinstance(told, dict) or "client" not in told:
        raise BadInput(f"{where}: must read {LINE}.")
    who = str(told["client"])
    own = found.setdefault(who, [])
    if "period" in told:
        periods.setdefault(who, _seconds(told["period"], where, above=True))
    if "start" in told or "end" in told or "period" not in told:
        start, end = _seconds(told.get("start"), where), _seconds(told.get("end"), where)
        if end < start:
            raise BadInput(f"{where}: 'end' must not be before 'start'.")
        own.append((start, end))


def _seconds(given: object, where: str, *, above: bool = False) -> float:
    number = isinstance(given, int | float) and not isinstance(given, bool)
    if not number or not math.isfinite(given) or (above and given <= 0):  # type: ignore[arg-type,operator]
        raise BadInput(f"{where}: 'start', 'end' and 'period' must be numbers of seconds.")
    return float(given)  # type: ignore[arg-type]
