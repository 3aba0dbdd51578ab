"""What happened in a run: frozen arrays that reports read; never the engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, get_type_hints

import numpy as np

from fedcohort._internal import html, store
from fedcohort._internal.errors import BadInput, UnknownName, brief
from fedcohort._internal.store import Shaped
from fedcohort._internal.types import Array, Bools, Floats, Ints
from fedcohort.maths._statistics import first_at, gini, jain, sustained_at
from fedcohort.selection import _queries
from fedcohort.selection._cohort import Cohort
from fedcohort.selection._scheme import Disclosure
from fedcohort.server._ledger import Booked, Cost, Entry, Ledger
from fedcohort.server._records import Latencies, Record, believed

KIND = "trace"
BY_NAME = {
    "pictures": "picture.", "metrics": "metric.", "faults": "fault.", "latencies": "latency.",
}  # fmt: skip
"""Fields that hold arrays by name, and what the names begin with in a file."""
_MOST = 2.0**53
"""Counts are below this, so that sums of them are exact and do not overflow."""
_LARGEST = 1e100
"""Numbers that reports sum up are below this."""
_ANY: Mapping[str, Any] = {"finite": False}
_COUNT: Mapping[str, Any] = {"low": 0, "below": _MOST}
_SUMMED: Mapping[str, Any] = {"low": -_LARGEST, "below": _LARGEST}
_LEVEL: Mapping[str, Any] = {"low": 0, "below": _LARGEST}
_SECONDS: Mapping[str, Any] = {**_LEVEL, **_ANY}
_SHAPES: Mapping[tuple[int | str, ...], Mapping[str, Mapping[str, Any]]] = {
    ("T",): {
        "train_loss": _ANY, "test_loss": _ANY, "accuracy": _ANY, "weight_sum": _SUMMED,
        "classes": {"low": -1, "below": _MOST}, "available": _COUNT, "messages": _COUNT,
        "bytes_down": _COUNT, "bytes_up": _COUNT, "cohort_ends": _COUNT, "void": _ANY,
        "filled": _LEVEL, "invited": _COUNT, "time": _SECONDS,
    },
    ("T", 3): {"seconds": _LEVEL},
    ("k",): {
        "cohort_clients": {"low": 0, "below": "n"}, "cohort_weights": _SUMMED,
        "cohort_draws": _COUNT,
    },
    ("n",): {
        "importance": _LEVEL, "sizes": _COUNT, "client_losses": _ANY,
        "client_accuracy": {**_ANY, "optional": True},
    },
    ("n", "classes"): {"label_histograms": _COUNT},
    ("d",): {"model": _ANY},
    (3,): {"initial": _ANY},
    ("f1",): {"f1": _ANY},
}  # fmt: skip
"""Shape and range of arrays: T rounds, n clients, k members of cohorts in all."""
GAPS = 100_000
"""So many rounds may have no record, in all: each takes memory as if it had one."""
CURVES = ("train_loss", "test_loss", "accuracy")
SUSTAINED = "sustained"
CROSSINGS = {SUSTAINED: sustained_at, "first": first_at}
"""When a target counts as reached."""
_OF_CLIENTS = {"ids", "importance", "sizes", "disclosures"}
"""What a trace keeps elsewhere than in its settings."""


@dataclass(frozen=True, eq=False)
class Trace:
    """One run of one scheme with one seed.

    Entry t of a per-round array is the state *after* round t (counted from 0); losses and
    accuracy are NaN in rounds that were not evaluated.
    """

    settings: Mapping[str, Any]
    """Everything that decides the run: scheme, parameters, task, work, server, seed, versions."""
    ledger: tuple[Mapping[str, Any], ...]
    """Cost and disclosure by purpose."""

    train_loss: Floats  # (T,) F(theta) over all clients
    test_loss: Floats  # (T,)
    accuracy: Floats  # (T,) on the test set
    weight_sum: Floats  # (T,) sum of the weights of the cohort
    classes: Ints  # (T,) classes present in the cohort; -1 where the task has none
    available: Ints  # (T,) how many clients could have been chosen
    messages: Ints  # (T,)
    bytes_down: Ints  # (T,)
    bytes_up: Ints  # (T,)
    seconds: Floats  # (T, 3) choosing (with questions), training, evaluation: of whoever ran it

    cohort_ends: Ints  # (T,) where each round's cohort ends in the three arrays below
    cohort_clients: Ints
    cohort_weights: Floats
    cohort_draws: Ints

    importance: Floats  # (n,)
    sizes: Ints  # (n,)
    label_histograms: Ints  # (n, classes), or (n, 0)
    client_losses: Floats  # (n,) of the last model
    model: Floats  # (d,) the last model
    pictures: Mapping[str, Array] = field(default_factory=dict)
    """What the scheme had to show at the end, as `Scheme.picture` names it (clusters, ...)."""
    metrics: Mapping[str, Floats] = field(default_factory=dict)
    """(T,) each: what clients or the server measured, by the name they gave it; NaN: not then."""
    faults: Mapping[str, Ints] = field(default_factory=dict)
    """(T,) each: how many reports were rejected, by reason."""
    void: Bools = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))  # (T,) no step
    filled: Floats = field(default_factory=lambda: np.zeros(0))  # (T,) share of draws answered
    invited: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # (T,) to train
    time: Floats = field(default_factory=lambda: np.zeros(0))
    """(T,) how long each round took by the virtual clock of a simulation; NaN without one."""
    latencies: Mapping[str, Floats] = field(default_factory=dict)
    """(n,) each: how many seconds clients took at last, by purpose, as measured; NaN: never."""
    initial: Floats = field(default_factory=lambda: np.full(3, np.nan))
    """(3,) training loss, test loss and accuracy of the model that the run started from."""
    client_accuracy: Floats = field(default_factory=lambda: np.zeros(0))
    """(n,) of the last model on each client's own test samples, NaN without any; or (0,)."""
    f1: Floats = field(default_factory=lambda: np.zeros(0))  # (classes,) of the last model, or (0,)
    disclosures: tuple[Disclosure, ...] = ()
    """What the server learns, as the scheme told beforehand."""
    ids: tuple[str | int, ...] = ()
    """(n,) the names of the clients, where they have others than 0, 1, ..."""

    def __post_init__(self) -> None:
        defaults: dict[str, Callable[[], Array]] = {
            "void": lambda: np.zeros(self.rounds, dtype=np.bool_),
            "filled": lambda: np.ones(self.rounds),
            "invited": lambda: self.distinct,
            "time": lambda: np.full(self.rounds, np.nan),
        }
        for name, fill in defaults.items():  # not in traces of older versions
            if len(getattr(self, name)) == 0:
                object.__setattr__(self, name, fill())
        object.__setattr__(self, "ledger", Booked(self.ledger))

    @classmethod
    def from_records(
        cls,
        settings: Mapping[str, Any],
        records: Iterable[Record],
        *,
        curves: Array | None = None,
        seconds: Floats | None = None,
        importance: Floats | None = None,
        sizes: Ints | None = None,
        label_histograms: Ints | None = None,
        client_losses: Floats | None = None,
        model: Floats | None = None,
        pictures: Mapping[str, Array] | None = None,
        latencies: Latencies | None = None,
        **last: Floats,
    ) -> Trace:
        """The trace of a run, from what happened in its rounds.

        Parameters
        ----------
        settings
            All that decides the run; ``ids``, ``importance``, ``sizes`` and ``disclosures`` may be
            among them, and become fields.
        records
            One per round, in order; a round without one counts as one in which nothing happened.
        curves
            (3, T) training loss, test loss, accuracy; by default the metrics that are called so.
        seconds
            (T,) how long evaluation took.
        importance, sizes, label_histograms, client_losses
            Of the clients, where the settings do not hold them; what is not known is 0, or NaN.
        model
            The last one; (0,) if it is not at hand.
        pictures
            What the scheme has to show.
        latencies
            How long clients take; by default as the records have it.
        last
            ``initial``, ``client_accuracy`` and ``f1``, where they are known.
        """
        rounds = {record.round: record for record in records}
        length = max(rounds, default=-1) + 1
        if min(rounds, default=0) < 0 or length > len(rounds) + GAPS:
            wrong = min(rounds) if min(rounds) < 0 else length - 1
            raise BadInput(f"a record names round {brief(wrong)}, of {len(rounds)} records")
        nothing = Record(-1, Cohort.empty(), _NOBODY, 0)
        every = [rounds.get(t, nothing) for t in range(length)]
        cohorts = [record.cohort for record in every]
        shares = _floats(settings["importance"] if importance is None else importance)
        numbers = settings.get("sizes") if sizes is None else sizes
        held = label_histograms
        if held is None:
            held = np.zeros((len(shares), 0), dtype=np.int64)
        metrics = _by_name([record.metrics for record in every], np.nan, np.float64)
        found = _named_curves(metrics, length) if curves is None else curves
        costs = np.array([_cost(record) for record in every], dtype=np.int64).reshape(length, 3)
        return cls(
            settings={k: v for k, v in settings.items() if k not in _OF_CLIENTS},
            ledger=Ledger(entries=[e for record in every for e in record.entries]).booked(),
            train_loss=found[0],
            test_loss=found[1],
            accuracy=found[2],
            weight_sum=np.array([cohort.weights.sum() for cohort in cohorts]),
            classes=np.array([_classes(held, cohort) for cohort in cohorts], dtype=np.int64),
            available=np.array([record.available for record in every], dtype=np.int64),
            messages=costs[:, 0],
            bytes_down=costs[:, 1],
            bytes_up=costs[:, 2],
            seconds=np.column_stack(
                [
                    np.array([record.seconds for record in every]).reshape(length, 2),
                    np.zeros(length) if seconds is None else seconds,
                ]
            ),
            cohort_ends=np.cumsum([len(cohort) for cohort in cohorts], dtype=np.int64),
            cohort_clients=_joined([cohort.clients for cohort in cohorts], np.int64),
            cohort_weights=_joined([cohort.weights for cohort in cohorts], np.float64),
            cohort_draws=_joined([cohort.draws for cohort in cohorts], np.int64),
            importance=shares,
            sizes=np.zeros(len(shares), np.int64) if numbers is None else np.asarray(numbers),
            label_histograms=held,
            client_losses=np.full(len(shares), np.nan) if client_losses is None else client_losses,
            model=np.zeros(0) if model is None else model,
            pictures=pictures or {},
            metrics=metrics,
            faults=_by_name([record.faults for record in every], 0, np.int64),
            void=np.array([record.void for record in every], dtype=np.bool_),
            filled=np.array([record.filled for record in every], dtype=np.float64),
            invited=np.array([len(record.invited) for record in every], dtype=np.int64),
            time=np.array([np.nan if r.time is None else r.time for r in every], np.float64),
            latencies=believed(every, len(shares)) if latencies is None else latencies,
            disclosures=_told(settings.get("disclosures", ())),
            ids=_ids(settings.get("ids", ())),
            **last,
        )

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.accuracy)

    @property
    def scheme(self) -> str:
        """The name of the scheme."""
        return str(self.settings["scheme"])

    @property
    def label(self) -> str:
        """What a report calls the run: the scheme, and whatever tells it from its like."""
        return str(self.settings.get("label", self.scheme))

    @property
    def seed(self) -> int:
        """The seed."""
        return int(self.settings["seed"])

    @property
    def partition(self) -> int:
        """Which division of the data among clients it ran on: the seed of that, or its number."""
        return int(self.settings.get("partition", 0))

    @property
    def run_seed(self) -> int:
        """What its coins were drawn from: the seed, or another on partitions other than 0."""
        return int(self.settings.get("run_seed", self.seed))

    @property
    def clocked(self) -> bool:
        """Whether a virtual clock ran."""
        return bool(np.isfinite(self.time).any())

    def last(self) -> tuple[str, float]:
        """What was measured last: the test accuracy, or the training loss where there is none."""
        for name, values in (("accuracy", self.accuracy), ("training loss", self.train_loss)):
            there = values[np.isfinite(values)]
            if len(there):
                return name, float(there[-1])
        return "training loss", float("nan")

    def __repr__(self) -> str:
        name, value = self.last()
        where = f", partition {self.partition}" if self.partition else ""
        done = f"{self.rounds} {html.plural(self.rounds, 'round')}, {name} {value:.4g}"
        return f"<Trace of {self.label}{where}, seed {self.seed}: {done}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: how it went on, whom it chose and what it cost."""
        curves = {"test accuracy": self.accuracy, "training loss": self.train_loss}
        known: list[tuple[str, Any]] = [
            (f"{name}, by round", html.curve(values, f"{name} by round"))
            for name, values in curves.items()
            if np.isfinite(values).sum() > 1
        ]
        never = int(np.count_nonzero(self.participation == 0))
        total = int(self.bytes_down.sum() + self.bytes_up.sum())
        known += [
            ("rounds of each client", html.bars(self.participation, "rounds of each client")),
            ("never chosen", f"{never} of {len(self.importance)} clients"),
            ("distinct clients a round", float(self.distinct.mean()) if self.rounds else None),
            ("rounds without a step", int(self.void.sum()) or None),
            ("messages", int(self.messages.sum())),
            ("bytes", total),
        ]
        return html.facts(repr(self).strip("<>"), known)

    def cohort(self, round: int) -> Cohort:
        """Who was chosen in a round."""
        start = int(self.cohort_ends[round - 1]) if round else 0
        inside = slice(start, int(self.cohort_ends[round]))
        return Cohort(
            self.cohort_clients[inside], self.cohort_weights[inside], self.cohort_draws[inside]
        )

    @property
    def distinct(self) -> Ints:
        """(T,) number of distinct clients in each cohort."""
        return np.diff(self.cohort_ends, prepend=0)

    @property
    def participation(self) -> Ints:
        """(n,) in how many rounds each client took part."""
        return np.bincount(self.cohort_clients, minlength=len(self.importance))

    @property
    def jain(self) -> float:
        """Jain's index of the participation: 1 if all are equal, 1/n if one does it all."""
        return jain(self.participation)

    @property
    def gini(self) -> float:
        """Gini coefficient of the participation: 0 if all are equal."""
        return gini(self.participation)

    def rounds_to(self, accuracy: float, crossing: str = SUSTAINED) -> int | None:
        """After how many rounds the test accuracy was at a target; None if it never was.

        Parameters
        ----------
        accuracy
            The target.
        crossing
            ``"sustained"``: from when on to the end the rolling mean, over a twentieth of the
            evaluations, is at least that. ``"first"``: when a single evaluation first was, which
            a noisy run reaches early by chance.
        """
        if crossing not in CROSSINGS:
            raise UnknownName("crossing", crossing, CROSSINGS)
        evaluated = np.flatnonzero(np.isfinite(self.accuracy))
        at = CROSSINGS[crossing](self.accuracy[evaluated], accuracy)
        return None if at is None else int(evaluated[at]) + 1

    def remembered(self) -> tuple[list[Record], dict[int, dict[str, float]]]:
        """Records to go on with, and metrics by round; the costs so far stand in the first.

        What else happened in these rounds is put back by `after`.
        """
        names = ("purpose", "messages", "bytes_down", "bytes_up", "discloses", "epsilon")
        paid = tuple(
            Entry(round=-1, clients=0, **{name: row.get(name) for name in names})  # type: ignore[arg-type]
            for row in self.ledger
        )
        records = [
            Record(t, Cohort.empty(), _NOBODY, 0, entries=() if t else paid)
            for t in range(self.rounds)
        ]
        metrics: dict[int, dict[str, float]] = {}
        for name, values in self.metrics.items():
            for t in np.flatnonzero(np.isfinite(values)).tolist():
                metrics.setdefault(t, {})[name] = float(values[t])
        return records, metrics

    def after(self, before: Trace) -> Trace:
        """The whole run, where this one went on from another with `remembered` records."""
        done, there = before.rounds, len(before.cohort_clients)
        own = (*_SHAPES["T",], *_SHAPES["T", 3])
        spliced: dict[str, Any] = {
            name: np.concatenate([getattr(before, name), getattr(self, name)[done:]])
            for name in own
            if name not in CURVES  # these hold evaluations of the end of the shorter run
        }
        spliced["cohort_ends"][done:] += there
        for name in ("cohort_clients", "cohort_weights", "cohort_draws"):
            spliced[name] = np.concatenate([getattr(before, name), getattr(self, name)])
        faults = {
            name: np.concatenate(
                [each.faults.get(name, np.zeros(each.rounds, np.int64))[part]
                 for each, part in ((before, slice(None)), (self, slice(done, None)))]
            )
            for name in dict.fromkeys([*before.faults, *self.faults])
        }  # fmt: skip
        return replace(self, faults=faults, **spliced)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write to one file."""
        arrays: dict[str, Array] = {
            each.name: getattr(self, each.name)
            for each in fields(self)
            if isinstance(getattr(self, each.name), np.ndarray)
        }
        for name, prefix in BY_NAME.items():
            arrays |= {prefix + key: array for key, array in getattr(self, name).items()}
        header = {
            "kind": KIND,
            "settings": dict(self.settings),
            "ledger": list(self.ledger),
            "disclosures": [list(told) for told in self.disclosures],
            "ids": list(self.ids),
        }
        store.save(path, header, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Trace:
        """Read from one file; what an older version did not write gets its default."""
        header, arrays = store.load(path, KIND)
        with store.whole(path, KIND):
            store.refuse_former(path, KIND, header["settings"])
            return cls._restored(header, arrays)

    @classmethod
    def _restored(cls, header: Mapping[str, Any], arrays: dict[str, Array]) -> Trace:
        named: dict[str, Any] = {
            field: {
                name.removeprefix(prefix): arrays.pop(name)
                for name in list(arrays)
                if name.startswith(prefix)
            }
            for field, prefix in BY_NAME.items()
        }
        trace = cls(
            settings=header["settings"],
            ledger=tuple(dict(row) for row in header["ledger"]),
            disclosures=_told(header.get("disclosures", ())),
            ids=tuple(header.get("ids", ())),
            **{**named, **arrays},
        )
        trace.check()
        return trace

    def check(self) -> None:
        """Refuse what no run has written: settings, arrays of other shapes, types or ranges."""
        lengths = {"T": self.rounds, "n": len(self.importance), "k": len(self.cohort_clients)}
        hints = get_type_hints(type(self))
        for shape, ranges in _SHAPES.items():
            for name, given in ranges.items():
                array = getattr(self, name)
                store.check(name, array, hints[name], lengths)
                Shaped(*shape, **given).check(name, array, lengths)
        for prefix, hint, side, given in (
            ("metrics", Floats, "T", _ANY),
            ("faults", Ints, "T", _COUNT),
            ("latencies", Floats, "n", _SECONDS),
        ):
            for name, array in getattr(self, prefix).items():
                store.check(name, array, hint, lengths)
                Shaped(side, **given).check(name, array, lengths)
        ends = np.concatenate([[0], self.cohort_ends, [lengths["k"]]])
        if np.any(np.diff(ends) < 0) or (self.rounds and ends[-2] != ends[-1]):
            raise BadInput("'cohort_ends' are not ascending")
        if len(self.ids) not in (0, lengths["n"]):
            raise BadInput(f"there are {len(self.ids)} ids for {lengths['n']} clients")
        store.check("ids", list(self.ids), list[str | int], {})
        _queries.check({"scheme": None, "seed": None, **self.settings}, _queries.RUN)
        for row in self.ledger:
            costs = [row[name] for name in Cost._fields]
            names = [row["purpose"], row["discloses"]]
            store.check("ledger", costs, list[int], {})
            store.check("ledger", names, list[str], {})
            store.check("ledger", row.get("epsilon"), float | None, {})
            if min(costs) < 0 or max(costs) >= _MOST:
                raise BadInput("'ledger' has numbers outside their range")
        for each in self.disclosures:
            store.check("disclosures", list(each[:3]), list[str], {})
            store.check("disclosures", each.epsilon, float | None, {})


_NOBODY: Ints = np.zeros(0, dtype=np.int64)
_ACCURACY = ("accuracy", "acc", "eval_accuracy", "eval_acc", "test_accuracy", "test_acc")
_TEST_LOSS = ("eval_loss", "test_loss", "val_loss")
_TOLD_AS = (
    ("train/train_loss", "train/loss", "train_loss"),
    tuple(f"{source}/{name}" for source in ("server", "evaluate") for name in (*_TEST_LOSS, "loss"))
    + _TEST_LOSS,
    tuple(f"{source}/{name}" for source in ("server", "evaluate") for name in _ACCURACY)
    + _ACCURACY,
)
"""For each of `CURVES` the metrics that are it, best first; see `fedcohort.server._history`."""


def curve_names(metrics: Iterable[str]) -> tuple[str | None, ...]:
    """For each of `CURVES` which metric is taken for it; None where there is none.

    >>> curve_names(["train/loss", "evaluate/accuracy", "f1"])
    ('train/loss', None, 'evaluate/accuracy')
    """
    known = set(metrics)
    return tuple(next((name for name in names if name in known), None) for names in _TOLD_AS)


def _named_curves(metrics: Mapping[str, Floats], length: int) -> list[Floats]:
    nothing = np.full(length, np.nan)
    return [nothing if name is None else metrics[name] for name in curve_names(metrics)]


def _by_name(rows: Sequence[Mapping[str, Any]], missing: float, dtype: Any) -> dict[str, Array]:
    """One array per name, over the rounds."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: np.array([row.get(name, missing) for row in rows], dtype) for name in names}


def _joined(parts: Sequence[Array], dtype: Any) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts]).astype(dtype, copy=False)


def _floats(values: Any) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _classes(histograms: Ints, cohort: Cohort) -> int:
    """How many classes the clients of a cohort hold; -1 where there are no labels."""
    if histograms.shape[1] == 0:
        return -1
    return int(np.count_nonzero(histograms[cohort.clients].sum(axis=0)))


def _cost(record: Record) -> tuple[int, int, int]:
    cost = Ledger(entries=list(record.entries)).total()
    return cost.messages, cost.bytes_down, cost.bytes_up


def _told(disclosures: Iterable[Sequence[Any]]) -> tuple[Disclosure, ...]:
    return tuple(Disclosure(*told) for told in disclosures)


def _ids(ids: Sequence[str | int]) -> tuple[str | int, ...]:
    """Names of clients, unless they are their positions."""
    return () if list(ids) == list(range(len(ids))) else tuple(ids)
