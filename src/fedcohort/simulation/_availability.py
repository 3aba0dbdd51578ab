"""Models of availability.

Each tells for a round which clients can take part, from a generator of that round alone, so
that schemes are compared on the same weather. Other packages add theirs through the entry point
group ``fedcohort.availability_models``.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np

from fedcohort._internal.errors import BadInput, DataNotFound, brief, shown
from fedcohort._internal.files import check_lines
from fedcohort._internal.parameters import Checked, Maybe, Real, Whole
from fedcohort._internal.random import stream
from fedcohort._internal.registry import Kind
from fedcohort._internal.types import Floats, Ints
from fedcohort.maths._draws import below, permutation

# What models of availability share.


class Availability(Checked, ABC):
    """A model of who can take part."""

    name: ClassVar[str]

    @abstractmethod
    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        """Positions of the clients that are there; None for all."""

    def latency(self, n: int, round: int, rng: np.random.Generator) -> Floats | None:
        """(n,) how long the round takes each client; None where the model does not say."""
        return None


class InTime(Availability):
    """A model of who can take part when, by the clock of devices; clients leave as they train."""

    @abstractmethod
    def until(self, n: int, now: float, seed: int) -> Floats:
        """(n,) when each client that is there at the second ``now`` leaves; ``now`` if it is away.

        The same for every scheme: it depends on nothing but what is given.
        """

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        raise BadInput(f"The availability model '{self.name}' needs devices, which make time.")


# Nobody is ever away.


@dataclass(frozen=True)
class Always(Availability):
    """Everyone, every round."""

    name: ClassVar[str] = "always"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        return None


# Groups of clients come in turn.


@dataclass(frozen=True)
class Cyclic(Availability):
    """Groups of clients in turn: day and night, time zones.

    Client i belongs to group ``i mod groups``; each group is there for ``stay`` rounds.
    """

    groups: Annotated[int, Whole(1)] = 4
    stay: Annotated[int, Whole(1)] = 1

    name: ClassVar[str] = "cyclic"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        turn = round // self.stay % self.groups
        return np.arange(turn, n, self.groups, dtype=np.int64)


# Devices of different speed.


@dataclass(frozen=True)
class Devices(Availability):
    """Everyone is there, on devices of different speed.

    The latency of client i in a round is ``exp(spread * s_i + jitter * e)``: s_i is standard
    normal and belongs to the device, e to the round. Seconds, if 1 is a second.

    Parameters
    ----------
    spread
        How different the devices are; 1 makes the slowest of 100 some 150 times slower than
        the fastest.
    jitter
        How much a device changes from round to round.
    seed
        Which devices.
    """

    spread: Annotated[float, Real(0)] = 1.0
    jitter: Annotated[float, Real(0)] = 0.1
    seed: Annotated[int, Whole(0)] = 0

    name: ClassVar[str] = "devices"

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        return None

    def latency(self, n: int, round: int, rng: np.random.Generator) -> Floats:
        devices = stream(self.seed, "devices").standard_normal(n)
        return np.exp(self.spread * devices + self.jitter * rng.standard_normal(n))


# Clients come and go independently.


@dataclass(frozen=True)
class Random(Availability):
    """Each client is there with its own probability, independently in every round.

    Parameters
    ----------
    probability
        Of every client, or of each (a tuple with one entry per client).
    """

    probability: float | tuple[float, ...] = 0.8

    name: ClassVar[str] = "random"

    def __post_init__(self) -> None:
        chances = np.atleast_1d(np.asarray(self.probability))
        if chances.dtype.kind not in "iuf" or not np.all((chances >= 0) & (chances <= 1)):
            raise BadInput(
                "The 'probability' parameter of random availability must be in [0, 1]. "
                f"Got {shown(self.probability)} instead."
            )

    def available(self, n: int, round: int, rng: np.random.Generator) -> Ints | None:
        chances = np.asarray(self.probability, dtype=float)
        if chances.ndim and len(chances) != n:
            raise BadInput(
                f"Random availability needs one probability per client: {n} clients, "
                f"{len(chances)} probabilities."
            )
        return np.flatnonzero(rng.random(n) < chances)


AVAILABILITIES: Kind[Availability] = Kind(
    "availability model", (__name__,), Availability, default="always"
)


def availability(which: Availability | str | None = None, **parameters: Any) -> Availability:
    """The availability model of that name; None is everyone, and a model is itself.

    >>> import numpy as np
    >>> availability("cyclic:groups=2").available(5, 1, np.random.default_rng(0))
    array([1, 3])
    """
    return AVAILABILITIES.build(which, **parameters)


# What models with sessions of random lengths share.


CYCLES = 16
"""Sessions that are drawn at a time; those of a client are the same whoever asks, and when."""


@dataclass(frozen=True)
class Alternating(InTime):
    """Sessions and absences in turn, of random lengths, each client on its own.

    A run starts in balance: at every second a client is online with probability
    online / (online + offline).

    Parameters
    ----------
    online
        Seconds that a session lasts, on average.
    offline
        Seconds between two sessions, on average.
    """

    online: Annotated[float, Real(0, open_low=True)] = 600.0
    offline: Annotated[float, Real(0, open_low=True)] = 1200.0

    @abstractmethod
    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        """Lengths of sessions with mean 1."""

    @abstractmethod
    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        """Remaining lengths of n such sessions that are under way at a random time.

        Long sessions are under way more often: the density of the remaining length is
        P(length > x).
        """

    def until(self, n: int, now: float, seed: int) -> Floats:
        """Each client starts within a session, or within an absence (exponential, no memory)."""
        rng = stream(seed, "sessions")
        starts_online = rng.random(n) < self.online / (self.online + self.offline)
        first_on = np.where(starts_online, self.online * self.remaining(rng, n), 0.0)
        block, begin, out = 0, np.zeros(n), np.full(n, float(now))
        waiting = np.arange(n)
        while len(waiting):
            rng = stream(seed, "sessions", block + 1)
            # Numbers of all clients are drawn, so that each client keeps its own.
            on = self.online * self.lengths(rng, (n, CYCLES))
            if block == 0:
                on[:, 0] = first_on
            off = self.offline * rng.standard_exponential((n, CYCLES))
            ends = begin[:, None] + np.cumsum(on + off, axis=1)
            starts = np.column_stack([begin, ends[:, :-1]])  # exact: `ends - on - off` is not
            inside = (starts <= now) & (now < starts + on)
            there = inside[waiting].any(axis=1)
            place = inside[waiting].argmax(axis=1)
            out[waiting[there]] = (starts + on)[waiting[there], place[there]]
            waiting = waiting[ends[waiting, -1] <= now]
            begin, block = ends[:, -1], block + 1
        return out


# Times at which clients are there, repeated for as long as a run lasts.
#
# The period of a client is repeated for ever: the time modulo the period is found by bisection,
# without any index that would have to be moved along or reset. (Published codes keep one,
# move it a step a call and do not reset it at the wrap: a phone that is online 41 % of the time is
# online 7 % from the second pass on.)


@dataclass(frozen=True)
class Intervals:
    """Intervals in which a client is there, [start, end), within a period that repeats.

    They are sorted and apart from one another, as `Intervals.of` makes them; an interval may reach
    over the end of the period into its next pass.

    >>> there = Intervals.of([(20.0, 30.0), (90.0, 110.0)], period=100.0)
    >>> there.until(95.0), there.until(105.0), there.until(15.0)
    (110.0, 110.0, 15.0)
    """

    starts: tuple[float, ...]
    ends: tuple[float, ...]
    period: float
    always: bool = field(default=False)

    @classmethod
    def of(cls, intervals: Sequence[tuple[float, float]], period: float) -> Intervals:
        """Any intervals: they are folded into one period, and joined where they meet."""
        if not (math.isfinite(period) and period > 0):
            raise BadInput(f"The period of a trace must be a number above 0; got {shown(period)}.")
        pieces: list[tuple[float, float]] = []
        for start, end in intervals:
            if not (math.isfinite(start) and math.isfinite(end) and start <= end):
                raise BadInput(f"An interval of a trace must end after it starts: {start}, {end}.")
            if end - start >= period:
                return cls((), (), period, always=True)
            first = start % period
            last = first + (end - start)
            pieces += [(first, min(last, period)), *([(0.0, last - period)] * (last > period))]
        joined: list[list[float]] = []
        for start, end in sorted(piece for piece in pieces if piece[0] < piece[1]):
            if joined and start <= joined[-1][1]:
                joined[-1][1] = max(joined[-1][1], end)
            else:
                joined.append([start, end])
        if joined == [[0.0, period]]:
            return cls((), (), period, always=True)
        if len(joined) > 1 and joined[0][0] == 0.0 and joined[-1][1] == period:
            joined[-1][1] += joined.pop(0)[1]  # it goes on into the next pass
        return cls(tuple(s for s, _ in joined), tuple(e for _, e in joined), period)

    def until(self, now: float) -> float:
        """When a client that is there leaves; ``now`` if it is not there."""
        if self.always:
            return math.inf
        if not self.starts:
            return now
        place = now % self.period
        for at in (place, place + self.period):  # the last interval may reach over the wrap
            k = bisect_right(self.starts, at) - 1
            if k >= 0 and at < self.ends[k]:
                return now + (self.ends[k] - at)
        return now


# Day and night, by time zone.


DAY, HOUR = 86_400.0, 3600.0


@dataclass(frozen=True)
class Diurnal(InTime):
    """Every client is there for some hours of its own day, for instance when its phone charges.

    Parameters
    ----------
    begins
        The hour of the local day at which a client comes, on average.
    hours
        For how long it stays.
    spread
        How much both differ between clients: the standard deviation, in hours.
    zones
        So many time zones, evenly around the globe; each client lives in one of them.
    """

    begins: Annotated[float, Real(0, 24)] = 22.0
    hours: Annotated[float, Real(0, 24)] = 8.0
    spread: Annotated[float, Real(0, 24)] = 1.0
    zones: Annotated[int, Whole(1, 24)] = 24

    name: ClassVar[str] = "diurnal"

    def until(self, n: int, now: float, seed: int) -> Floats:
        rng = stream(seed, "time zones")
        zone = below(rng, self.zones, n) * (24 / self.zones)
        begins, hours = self.spread * rng.standard_normal((2, n))
        stays = HOUR * np.clip(self.hours + hours, 0.0, 24.0)
        since = (now - HOUR * (self.begins + begins - zone)) % DAY  # since it last came
        stays = np.where(stays >= DAY, np.inf, stays)
        return np.where(since < stays, now + (stays - since), now)


# Clients come and go without memory.


@dataclass(frozen=True)
class Markov(Alternating):
    """Each client is a Markov chain in continuous time: exponential sessions and absences."""

    name: ClassVar[str] = "markov"

    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.standard_exponential(shape)

    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        return rng.standard_exponential(n)


# Clients come and go: sessions of random lengths.


@dataclass(frozen=True)
class Sessions(Alternating):
    """Heavy-tailed sessions, as of phones: log-normal lengths; absences are exponential.

    With ``sigma=1.27`` half of them last at most 45 % of the mean.

    Parameters
    ----------
    sigma
        Of the log-normal law: how unlike sessions are.
    """

    sigma: Annotated[float, Real(0, 5)] = 1.27

    name: ClassVar[str] = "sessions"

    def lengths(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return np.exp(self.sigma * rng.standard_normal(shape) - self.sigma**2 / 2)

    def remaining(self, rng: np.random.Generator, n: int) -> Any:
        """A uniform part of a session drawn in proportion to its length: log-normal, too."""
        lengths = np.exp(self.sigma * rng.standard_normal(n) + self.sigma**2 / 2)
        return rng.random(n) * lengths


# When clients were really there.


WEEK = 7 * 24 * 3600.0


@dataclass(frozen=True)
class Replay(InTime):
    """When clients were there, from a file, over and over again.

    The file has a line of JSON for every interval, ``{"client": "a", "start": 0, "end": 300}`` in
    seconds; ``"period"`` in the first line of a client says after how long its trace starts anew.
    `benchmarks/tools/fedscale.py` makes it of FedScale's. Clients of a run are given
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
