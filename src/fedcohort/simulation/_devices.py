"""Models of devices: how fast clients are.

Each tells for every client how many seconds it computes on a sample and how many bytes it moves
in a second; `fedcohort.simulation._environment` makes a round's duration of it. Other packages
add theirs through the entry point group ``fedcohort.device_models``.
"""

from __future__ import annotations

import csv
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np

from fedcohort._internal.errors import BadInput, BadParameter, DataNotFound, brief
from fedcohort._internal.files import check_lines
from fedcohort._internal.parameters import Checked, Flag, Maybe, Numbers, Real, Whole, is_real
from fedcohort._internal.random import stream
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Floats
from fedcohort.data._files import read_bytes
from fedcohort.data._sources import Request, Source, first
from fedcohort.maths._draws import below, permutation

# What models of devices share.


FASTEST = 1e-9
"""Seconds per sample at least; a device that takes no time at all is a slip."""


class Speeds(NamedTuple):
    """What the devices of n clients can do."""

    seconds: Floats  # (n,) to train on one sample
    down: Floats  # (n,) bytes a second from the server
    up: Floats  # (n,) bytes a second to the server


@dataclass(frozen=True, kw_only=True)
class DeviceModel(Checked, ABC):
    """A model of the clients' devices.

    Parameters
    ----------
    jitter
        How much a device changes from round to round: all it does there takes ``exp(jitter e)``
        times as long, with e standard normal, the same for every scheme.
    profiled
        Whether the server knows beforehand how long a round usually takes each client, as after
        a run of profiling; otherwise it knows what it has measured.
    device_seed
        Which devices; by default every seed of a run has its own.
    """

    jitter: Annotated[float, Real(0, 10)] = 0.0
    profiled: Annotated[bool, Flag()] = False
    device_seed: Annotated[int | None, Maybe(Whole(0))] = None

    name: ClassVar[str]

    @abstractmethod
    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        """What the devices of n clients can do."""

    def of(self, n: int, seed: int) -> Speeds:
        """The devices of a run."""
        chosen = seed if self.device_seed is None else self.device_seed
        return self.speeds(n, stream(chosen, "devices"))

    def mood(self, n: int, seed: int, round: int) -> Floats | float:
        """(n,) how many times as long as usual everything takes each client in a round."""
        if not self.jitter:
            return 1.0
        noise = stream(seed, "jitter", round).standard_normal(n)
        return np.asarray(np.exp(self.jitter * noise))


MEGABIT = 1e6 / 8
"""Bytes."""


@dataclass(frozen=True, kw_only=True)
class Typical(DeviceModel):
    """A model that starts from a typical device.

    Parameters
    ----------
    seconds
        What the typical device needs for one sample.
    down, up
        What it moves, in megabits a second.
    """

    seconds: Annotated[float, Real(FASTEST)] = 0.01
    down: Annotated[float, Real(0, open_low=True)] = 20.0
    up: Annotated[float, Real(0, open_low=True)] = 10.0

    def typical(self, n: int) -> Speeds:
        """As many typical devices."""
        each = np.ones(n)
        return Speeds(self.seconds * each, MEGABIT * self.down * each, MEGABIT * self.up * each)


# All devices alike.


@dataclass(frozen=True, kw_only=True)
class Equal(Typical):
    """All devices alike; those with more data still take longer, if they work by epochs."""

    name: ClassVar[str] = "equal"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        return self.typical(n)


# A few kinds of devices.


@dataclass(frozen=True, kw_only=True)
class Groups(Typical):
    """Kinds of devices, each so many times slower than the typical one; who has which is drawn.

    Parameters
    ----------
    slower
        The factor of each kind, for its processor and its line alike.
    shares
        How common each kind is, up to a factor; equally by default.
    """

    slower: Annotated[tuple[float, ...], Numbers()] = (1.0, 3.0, 10.0)
    shares: Annotated[tuple[float, ...], Numbers()] = ()

    name: ClassVar[str] = "groups"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.slower or min(self.slower) <= 0:
            must = "a tuple of one number above 0 per kind"
            raise BadParameter("slower", self.name, must, self.slower)
        if self.shares and (len(self.shares) != len(self.slower) or not sum(self.shares)):
            must = f"a tuple of one number per kind ({len(self.slower)}), not all 0"
            raise BadParameter("shares", self.name, must, self.shares)

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        shares = np.array(self.shares or [1.0] * len(self.slower))
        edges = np.rint(n * np.cumsum(shares) / shares.sum())
        kinds = np.searchsorted(edges, np.arange(n), side="right")  # (n,) as many as their share
        factor = np.array(self.slower)[kinds][permutation(rng, n)]
        seconds, down, up = self.typical(n)
        return Speeds(seconds * factor, down / factor, up / factor)


# Devices of log-normal speed.


@dataclass(frozen=True, kw_only=True)
class Lognormal(Typical):
    """Seconds per sample and line speeds are log-normal around a typical device.

    Parameters
    ----------
    sigma
        How different processors are: 1 makes the slowest of 100 some 150 times slower than the
        fastest.
    network
        The same of their lines, independently of the processor; as ``sigma`` by default.
    """

    sigma: Annotated[float, Real(0, 10)] = 1.0
    network: Annotated[float | None, Maybe(Real(0, 10))] = None

    name: ClassVar[str] = "lognormal"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        seconds, down, up = self.typical(n)
        processor, line = np.exp(rng.standard_normal((2, n)))  # a slow line is slow both ways
        spread = self.sigma if self.network is None else self.network
        return Speeds(seconds * processor**self.sigma, down / line**spread, up / line**spread)


# Measured phones.


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


# Devices that a user has measured.


COLUMNS = "client,seconds,down,up"


@dataclass(frozen=True, kw_only=True)
class Table(DeviceModel):
    """The devices of a file: CSV with the columns client, seconds, down and up.

    One line per client, by its position from 0; seconds per sample, bytes a second down and up.
    With a header line of these names the columns may stand in any order.

    Parameters
    ----------
    path
        The file.
    """

    path: str

    name: ClassVar[str] = "table"

    def speeds(self, n: int, rng: np.random.Generator) -> Speeds:
        rows, order = np.full((n, 3), np.nan), [0, 1, 2, 3]
        for line, cells in _lines(Path(self.path)):
            where = f"'{self.path}', line {line}"
            if len(cells) != 4:
                raise BadInput(f"{where}: must have the columns {COLUMNS}; got {len(cells)}.")
            if line == 1 and all(math.isnan(_number(cell)) for cell in cells):
                order = _order([cell.strip().lower() for cell in cells], where)
                continue
            client, *numbers = (_number(cells[place]) for place in order)
            if not (client.is_integer() and 0 <= client < n) or not math.isnan(
                rows[int(client), 0]
            ):
                must = f"a client is a position from 0 to {n - 1}, each once"
                raise BadInput(f"{where}: {must}; got {cells[order[0]][:40]!r}.")
            if not all(0 < number < math.inf for number in numbers):
                raise BadInput(f"{where}: seconds, down and up must be numbers above 0.")
            rows[int(client)] = numbers
        missing = np.flatnonzero(np.isnan(rows[:, 0]))
        if len(missing):
            raise BadInput(
                f"'{self.path}' must have one line for each of {n} clients; client {missing[0]} "
                "is missing."
            )
        return Speeds(*rows.T)


def _lines(path: Path) -> list[tuple[int, list[str]]]:
    check_lines(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, skipinitialspace=True)
            return [(reader.line_num, cells) for cells in reader if any(cells)]
    except (FileNotFoundError, IsADirectoryError):
        raise DataNotFound(f"There is no file '{path}'.") from None
    except (UnicodeDecodeError, csv.Error):
        raise BadInput(f"'{path}' must be a text file (UTF-8, CSV); it is not.") from None


def _order(header: list[str], where: str) -> list[int]:
    """Where the columns stand, as the header names them."""
    names = COLUMNS.split(",")
    if sorted(header) != sorted(names):
        said = ",".join(header)[:80]
        raise BadInput(f"{where}: the header must name the columns {COLUMNS}; got {said!r}.")
    return [header.index(name) for name in names]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


DEVICES: Kind[DeviceModel] = Kind("device model", (__name__,), DeviceModel)


def devices(which: DeviceModel | str, **parameters: Any) -> DeviceModel:
    """The device model of that name; a model is itself.

    >>> devices("lognormal:sigma=0.5").sigma
    0.5
    """
    return DEVICES.build(which, **parameters)
