"""What becomes of the metrics that clients report: filtered, then averaged; all of it for show."""

from __future__ import annotations

import itertools
import logging
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from flwr.app import Message, MetricRecord, RecordDict

from fedcohort.core.errors import brief
from fedcohort.core.latest import LARGEST
from fedcohort.server.gate import SHOWN_NAMES

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

    def __call__(self, told: Sequence[Told]) -> dict[str, Any]:
        """One value of every metric.

        The user's function reads what clients sent. If it fails, that ends no round: the mean
        takes its place, and a warning says where it failed.
        """
        if self.function is not None and told:
            try:
                contents = [each.message.content for each in told]
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

    def mean(self, told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
        """The weighted mean of every metric over those who report it, without what they weigh."""
        key = self.weighted_by
        if key is not None:
            told = ((max(0.0, good.get(key, 0.0)), good) for _, good in told)
        means = mean_metrics(told)
        means.pop(key or SAMPLES, None)
        return means


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
        if isinstance(value, list) or not (name.isprintable() and len(name) <= LONGEST):
            continue
        if abs(value) <= LARGEST:  # NaN is not
            good[name] = value
        elif len(bad) < SHOWN_NAMES:
            bad.append(name)
    return good, bad


def mean_metrics(told: Iterable[tuple[float, Mapping[str, float]]]) -> dict[str, float]:
    """The weighted mean of every metric, over those who report it."""
    sums: dict[str, tuple[float, float]] = {}
    for weight, metrics in told:
        for name, value in metrics.items():
            total, mass = sums.get(name, (0.0, 0.0))
            sums[name] = (total + weight * value, mass + weight)
    return {name: total / mass for name, (total, mass) in sums.items() if mass > 0}
