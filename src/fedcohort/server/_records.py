"""The record of a round, and the latencies that clients have shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadCheckpoint, brief
from fedcohort._internal.types import Floats, Ints
from fedcohort.selection._cohort import Cohort
from fedcohort.server._ledger import Entry

# How long clients take, as the server's own clock has it.
#
# A client cannot say that it is faster than it is: what counts is when its answer was there. (It
# can be fast by not training; that is a lie about its update.)

Latencies: TypeAlias = Mapping[str, Floats]
"""(n,) each: seconds, by purpose (``"training"``, or the name of a question); NaN: not known."""
Measured: TypeAlias = Mapping[str, tuple[Ints, Floats]]
"""What was measured in a round: clients and their seconds, by purpose."""
RECENT = 0.5
"""What the last measurement counts for; the rest is what was believed before."""


@dataclass
class Stopwatch:
    """The measurements of one round."""

    measured: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)
    late: dict[str, tuple[Ints, Floats]] = field(default_factory=dict)

    def note(self, purpose: str, clients: Ints, seconds: Floats, *, late: bool = False) -> None:
        """So long these clients took; at least so long, if they were not there by then."""
        book = self.late if late else self.measured
        before = book.get(purpose, (clients[:0], seconds[:0]))
        joined = np.concatenate([before[0], clients]), np.concatenate([before[1], seconds])
        if len(joined[0]):
            book[purpose] = joined

    def believed(self, before: Latencies, n: int) -> Latencies:
        """What is believed after the round.

        >>> watch = Stopwatch()
        >>> watch.note("training", np.array([1]), np.array([4.0]))
        >>> watch.note("training", np.array([2]), np.array([9.0]), late=True)
        >>> watch.believed({"training": np.array([1.0, 2.0, np.nan])}, 3)["training"].tolist()
        [1.0, 3.0, 9.0]
        """
        if not self.measured and not self.late:
            return before
        out = dict(before)
        for purpose in dict.fromkeys([*self.measured, *self.late]):
            known = before.get(purpose)
            now = np.full(n, np.nan) if known is None else known.copy()
            clients, seconds = self.measured.get(purpose, _NOTHING)
            old = now[clients]
            now[clients] = np.where(np.isnan(old), seconds, old + RECENT * (seconds - old))
            clients, seconds = self.late.get(purpose, _NOTHING)
            now[clients] = np.fmax(now[clients], seconds)
            out[purpose] = now
        return out


_NOTHING: tuple[Ints, Floats] = np.zeros(0, dtype=np.int64), np.zeros(0)


def moved(latencies: Latencies, came_from: Ints) -> Latencies:
    """The same after clients came or left; -1 for a client that is new."""
    return {
        purpose: np.where(came_from < 0, np.nan, seconds[came_from])
        for purpose, seconds in latencies.items()
    }


# What happened in a round, as one record; a run is the list of them.
#
# Records are appended, one per round, by whoever carries the rounds: the simulator keeps them in
# memory, a deployment writes them to its folder. A trace, the ledger and the report are made of
# records and of nothing else, so they can be made of a run that is still going or was killed.


@dataclass(frozen=True, eq=False)
class Record:
    """One round.

    Parameters
    ----------
    round
        Which, counted from 0.
    cohort
        Who counted, with which weights: after drop-outs and corrections. Empty in a void round.
    invited
        (k,) everybody who was asked to train, replacements included.
    available
        How many clients could have been chosen.
    void
        Whether too few answered, or nobody was there, so that no step was taken.
    filled
        The share of the draws that somebody answered.
    entries
        The lines of the ledger since the record before.
    faults
        How many reports were rejected for which reason.
    seconds
        Of the server's own clock: choosing (questions included), training.
    metrics
        What was measured of the model after the round; it may come later, see `joined`.
    time
        How long the round took by the virtual clock of a simulation; None without one.
    latencies
        Who took how long, by purpose: clients and their seconds, as the server measured them.
    late
        Who was not there when waiting ended, and when that was.
    """

    round: int
    cohort: Cohort
    invited: Ints
    available: int
    void: bool = False
    filled: float = 1.0
    entries: tuple[Entry, ...] = ()
    faults: Mapping[str, int] = field(default_factory=dict)
    seconds: tuple[float, float] = (0.0, 0.0)
    metrics: Mapping[str, float] = field(default_factory=dict)
    time: float | None = None
    latencies: Measured = field(default_factory=dict)
    late: Measured = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """In plain values; floats keep every bit."""
        cohort = self.cohort
        return {
            "round": self.round,
            "clients": cohort.clients.tolist(),
            "weights": cohort.weights.tolist(),
            "draws": cohort.draws.tolist(),
            "data_rate": cohort.data_rate,
            "per_sample": cohort.per_sample,
            "invited": self.invited.tolist(),
            "available": self.available,
            "void": self.void,
            "filled": self.filled,
            "entries": [list(entry) for entry in self.entries],
            "faults": dict(self.faults),
            "seconds": list(self.seconds),
            "metrics": dict(self.metrics),
            **({} if self.time is None else {"time": self.time}),
            **({"latencies": _pairs(self.latencies)} if self.latencies else {}),
            **({"late": _pairs(self.late)} if self.late else {}),
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Record:
        """What `as_json` wrote."""
        try:
            cohort = Cohort(
                np.array(told["clients"], dtype=np.int64),
                np.array(told["weights"], dtype=np.float64),
                np.array(told["draws"], dtype=np.int64),
                float(told["data_rate"]),
                bool(told["per_sample"]),
            )
            return cls(
                round=int(told["round"]),
                cohort=cohort,
                invited=np.array(told["invited"], dtype=np.int64),
                available=int(told["available"]),
                void=bool(told["void"]),
                filled=float(told["filled"]),
                entries=tuple(Entry.checked(entry) for entry in told["entries"]),
                faults=dict(told["faults"]),
                seconds=(float(told["seconds"][0]), float(told["seconds"][1])),
                metrics=dict(told["metrics"]),
                time=None if told.get("time") is None else float(told["time"]),
                latencies=_read_pairs(told.get("latencies", {})),
                late=_read_pairs(told.get("late", {})),
            )
        except (ArithmeticError, KeyError, TypeError, ValueError, IndexError) as error:
            raise BadCheckpoint(f"A record of a round cannot be read ({brief(error)}).") from None


def _pairs(latencies: Measured) -> dict[str, list[list[float]]]:
    return {name: [who.tolist(), took.tolist()] for name, (who, took) in latencies.items()}


def _read_pairs(told: Mapping[str, Any]) -> Measured:
    out = {
        name: (np.array(who, dtype=np.int64), np.array(took, dtype=np.float64))
        for name, (who, took) in told.items()
    }
    for who, took in out.values():
        if who.ndim != 1 or who.shape != took.shape or np.any(who < 0) or not np.all(took >= 0):
            raise ValueError("latencies are pairs of clients and seconds")
    return out


def joined(records: Iterable[Record], metrics: Mapping[int, Mapping[str, float]]) -> list[Record]:
    """The records in the order of their rounds, each with the metrics that came later.

    Of two records of one round the later one counts: a server that was killed in a round plays
    it again.
    """
    last = {record.round: record for record in records}
    return [
        replace(last[round], metrics={**last[round].metrics, **metrics.get(round, {})})
        for round in sorted(last)
    ]


def believed(records: Iterable[Record], n: int) -> Latencies:
    """How long each of n clients was believed to take, after all these rounds."""
    known: Latencies = {}
    for record in records:
        known = Stopwatch(dict(record.latencies), dict(record.late)).believed(known, n)
    return known
