"""What becomes of the metrics that clients report: filtered, then averaged; all of it for show."""

from __future__ import annotations

import itertools
import logging
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from flwr.app import Message, MetricRecord, RecordDict

from fedcohort._internal.errors import brief
from fedcohort.selection._client_rows import LARGEST
from fedcohort.server._reply_validation import SHOWN_NAMES

log = logging.getLogger("flwr.fedcohort")
MOST, LONGEST = 100, 100
"""How many metrics of a report are looked at, and the letters of a name."""
SAMPLES = "num-examples"
"""What stock apps weigh by. Flower's strategies leave it out of the means, and so do we."""

Aggregate = Callable[[list[RecordDict], str], MetricRecord]


class Told(NamedTuple):
    """What one client reports, and how much that counts unless its own numbers decide."""

    weight: float
    message: Message


@dataclass(frozen=True)
class Averaging:
    """How the metrics of several clients become one record.

    Parameters
    ----------
    name
        What the function is called where the user gives it.
    function
        A function of the user's, as Flower's strategies take it.
    weighted_by
        The metric to weigh the others by; None for weights that the server knows.
    """

    name: str
    function: Aggregate | None = None
    weighted_by: str | None = None
    _warned: set[str] = field(default_factory=set, repr=False, compare=False)  # of which keys

    def __call__(self, told: Sequence[Told]) -> dict[str, Any]:
        """One value of every metric.

        The user's function gets copies of what clients sent, as far as that is usable. If it
        fails, that ends no round: the mean takes its place, and a warning says where it failed.
        """
        contents = [] if self.function is None else self._usable(told)
        if self.function is not None and contents:
            try:
                return dict(
                    MetricRecord(dict(self.function(contents, self.weighted_by or SAMPLES)))
                )
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = f"{type(error).__name__}: {error}"
                place = f"{where.filename}, line {where.lineno}"
                log.warning(
                    "\t├──> %s failed (%s; %s): the mean is taken", self.name, brief(what), place
                )
        return self.mean((each.weight, metrics_of(each.message)[0]) for each in told)

    def _usable(self, told: Sequence[Told]) -> list[RecordDict]:
        """The reports that a function can rely on: finite numbers, of the names that most have.

        Flower itself ends a run where names differ; here no client can keep the others out.
        """
        good = [content for each in told if (content := readable(each.message)) is not None]
        names = Counter(map(_names, good))
        most = max(names, key=lambda some: (names[some], len(some), sorted(some)), default=None)
        usable = [content for content in good if _names(content) == most]
        if len(usable) < len(told):
            log.warning(
                "\t├──> %d of %d reports are kept from %s: their metrics are no finite numbers, or "
                "have other names than those of most",
                len(told) - len(usable),
                len(told),
                self.name,
            )
        return usable

    def mean(self, told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
        """The weighted mean of every metric over those who report it, without what they weigh."""
        usual, key = list(told), self.weighted_by
        means = mean_metrics(usual if key is None else self._weighed(usual, key))
        means.pop(key or SAMPLES, None)
        return means

    def _weighed(
        self, told: list[tuple[float, Mapping[str, float]]], key: str
    ) -> list[tuple[float, Mapping[str, float]]]:
        """The metrics by a weight among them; by the usual weights where nobody reports it."""
        weighed = [(max(0.0, good.get(key, 0.0)), good) for _, good in told]
        if any(weight > 0 for weight, _ in weighed):
            return weighed
        if key not in self._warned and any(good for _, good in told):
            self._warned.add(key)
            log.warning(
                "\t├──> no client reports %r, by which weighted_by_key= weighs metrics: they count "
                "by the weights of the server. Report it, or leave weighted_by_key out",
                key,
            )
        return told


def numbers(metrics: Mapping[str, Any]) -> dict[str, float]:
    """Those metrics that can be kept: single numbers to reckon with."""
    single = {k: v for k, v in metrics.items() if isinstance(v, int | float)}
    return {k: v for k, v in single.items() if abs(v) <= LARGEST}


def metrics_of(reply: Message) -> tuple[dict[str, float], list[str]]:
    """The metrics of a reply that are numbers to reckon with, and some names of the others.

    Lists are left out, as they have no mean.
    """
    good: dict[str, float] = {}
    bad: list[str] = []
    named = (pair for record in reply.content.metric_records.values() for pair in record.items())
    for name, value in itertools.islice(named, MOST):
        if isinstance(value, list) or not _is_name(name):
            continue
        if abs(value) <= LARGEST:  # NaN is not
            good[name] = value
        elif len(bad) < SHOWN_NAMES:
            bad.append(name)
    return good, bad


def readable(reply: Message) -> RecordDict | None:
    """A copy of what came, without metrics whose names are none.

    None where a metric, be it one of a list, is no number to reckon with.
    """
    content = RecordDict(dict(reply.content))
    for record_name, record in reply.content.metric_records.items():
        kept = {name: value for name, value in record.items() if _is_name(name)}
        values = (
            v for value in kept.values() for v in (value if isinstance(value, list) else [value])
        )
        if not all(abs(value) <= LARGEST for value in values):
            return None
        content[record_name] = MetricRecord(kept)
    return content


def _names(content: RecordDict) -> frozenset[tuple[str, str]]:
    """The names of all metrics, with those of their records."""
    records = content.metric_records.items()
    return frozenset((name, metric) for name, record in records for metric in record)


def _is_name(name: str) -> bool:
    return name.isprintable() and len(name) <= LONGEST


def mean_metrics(told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The weighted mean of every metric, over those who report it."""
    sums: dict[str, tuple[float, float]] = {}
    for weight, metrics in told:
        for name, value in metrics.items():
            total, mass = sums.get(name, (0.0, 0.0))
            sums[name] = (total + weight * value, mass + weight)
    return {name: total / mass for name, (total, mass) in sums.items() if mass > 0}
