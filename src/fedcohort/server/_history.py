"""The records of a run, appended to a file of its folder as the rounds end.

One process writes: whoever holds the folder. Anybody may `read` at any time, while the run goes on
or after it was killed; what a crash left unfinished does not count.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort._internal import files, store
from fedcohort._internal.errors import BadCheckpoint, brief, quoted
from fedcohort._internal.files import is_held
from fedcohort._internal.types import Ints
from fedcohort.server._records import Record, joined

FILE = "history.jsonl"
LOCK = "lock"
"""Held, in the folder, by the process that carries the run."""
SOURCES = ("train", "evaluate", "server")
"""Who measured: clients as they trained, clients that evaluated, the server itself."""
_REMEDY = "restore the file, or delete it; the run does not need it, its report does."


class _Journal(files.Journal):
    damaged = "The history of rounds {path} is damaged at line {line}: " + _REMEDY


class History:
    """Where a run leaves what happened, round by round.

    Parameters
    ----------
    folder
        Of the run; it must exist when the first line is written.
    """

    def __init__(self, folder: Path) -> None:
        self._journal = _Journal(folder / FILE)
        self._told: dict[str, Any] | None = None  # None: not read yet

    def settings(self, told: Mapping[str, Any]) -> None:
        """What decides the run; what was told before and has not changed is not written again.

        ``scheme`` (its name), ``parameters`` and ``seed`` are needed; ``rounds`` is how many there
        shall be. ``ids``, ``importance`` and ``sizes`` are those of the clients, in the order in
        which records count them: told again when clients come, they hold from the next record on.
        ``disclosures`` are what the server learns, as the scheme says beforehand.
        """
        known = self._known()
        plain = {key: _plain(value) for key, value in told.items()}
        new = {key: value for key, value in plain.items() if known.get(key, known) != value}
        if new:
            self._append({"settings": new})
            known.update(new)

    def append(self, record: Record) -> None:
        """The record of a round; a round that is played again is written again."""
        self._append({"record": {**record.as_json(), "metrics": _numbers(record.metrics)}})

    def metrics(self, round: int, told: Mapping[str, float], source: str = "") -> None:
        """What was measured of the model after a round, and by whom (see `SOURCES`)."""
        named = {f"{source}/{name}" if source else name: value for name, value in told.items()}
        if named:
            self._append({"round": round, "metrics": _numbers(named)})

    def _known(self) -> dict[str, Any]:
        if self._told is None:
            lines = self._journal.read()
            self._told = {}
            for line in lines:
                told = line.get("settings", {})
                self._told.update(told if isinstance(told, dict) else {})
        return self._told

    def _append(self, line: dict[str, Any]) -> None:
        self._known()
        self._journal.append(line)


def is_history(folder: Path) -> bool:
    """Whether a folder holds the records of a run."""
    return (folder / FILE).is_file()


def is_running(folder: Path) -> bool:
    """Whether the run of a folder is going on now."""
    return is_held(folder / LOCK)


def read(folder: Path) -> tuple[dict[str, Any], list[Record]]:
    """Settings and records of a run, be it over, going on or dead; nothing is changed.

    Clients are counted as the last settings do, in all records.
    """
    settings: dict[str, Any] = {}
    found: list[tuple[Record, list[Any]]] = []
    metrics: dict[int, dict[str, float]] = {}
    where = quoted(folder / FILE)
    try:
        lines = _Journal(folder / FILE).peek()
    except FileNotFoundError:
        raise BadCheckpoint(
            f"{quoted(folder)} holds no records of a run: it has no {FILE}."
        ) from None
    except OSError as error:
        raise BadCheckpoint(f"{where} cannot be read: {error.strerror}.") from None
    with whole(folder):
        former = [name for line in lines for name in line.get("settings", {})]
    store.refuse_former(folder / FILE, "history of rounds", former)
    with whole(folder):
        for line in lines:
            settings.update(line.get("settings", {}))
            if "record" in line:
                found.append((_record(line["record"]), settings.get("ids", [])))
            elif "metrics" in line:
                metrics.setdefault(int(line["round"]), {}).update(_floats(line["metrics"]))
        ids = settings.get("ids", [])
        records = [record if own == ids else _moved(record, own, ids) for record, own in found]
        return settings, joined(records, metrics)


@contextlib.contextmanager
def whole(folder: Path) -> Iterator[None]:
    """Tell what is wrong with the records of a folder in one sentence, which names the file."""
    try:
        yield
    except Exception as error:  # forged contents fail wherever they are used first
        where, why = quoted(folder / FILE), brief(error).removesuffix(".")
        raise BadCheckpoint(
            f"{where} is damaged or of another version ({why}): {_REMEDY}"
        ) from error


def _moved(record: Record, before: list[Any], now: list[Any]) -> Record:
    """A record of the time before clients came: they have other positions now."""
    try:
        where = {key: i for i, key in enumerate(now)}
        places: Ints = np.array([where[key] for key in before], dtype=np.int64)
        cohort = replace(record.cohort, clients=places[record.cohort.clients])
        took, late = (
            {name: (places[who], each) for name, (who, each) in noted.items()}
            for noted in (record.latencies, record.late)
        )
        invited = places[record.invited]
        return replace(record, cohort=cohort, invited=invited, latencies=took, late=late)
    except (KeyError, IndexError, TypeError) as error:
        raise BadCheckpoint(
            f"The record of round {record.round} names a client that is not known ({brief(error)})."
        ) from None


def _record(told: Mapping[str, Any]) -> Record:
    return Record.from_json({**told, "metrics": _floats(told["metrics"])})


def _numbers(metrics: Mapping[str, Any]) -> dict[str, float | None]:
    """Single numbers; JSON has neither infinity nor NaN."""
    single = {k: float(v) for k, v in metrics.items() if np.ndim(v) == 0}
    return {name: value if math.isfinite(value) else None for name, value in single.items()}


def _floats(metrics: Mapping[str, float | None]) -> dict[str, float]:
    return {k: math.nan if v is None else float(v) for k, v in metrics.items()}


def _plain(value: Any) -> Any:
    """A setting as JSON has it; what it has no word for, in words."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(inner) for inner in value]
    fits = value is None or isinstance(value, str | bool | int)
    return value if fits or (isinstance(value, float) and math.isfinite(value)) else str(value)
