"""What a run is reduced to, by name: one number of a trace, as in ``accuracy:last=30``.

A claim, a bar and a column of a table name a measure by its word. A function of your own that
takes a `Trace` and returns a number does as well.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.parameters import split, value
from fedcohort._internal.types import Floats
from fedcohort.maths._statistics import rolling
from fedcohort.server import Trace

Measure: TypeAlias = str | Callable[[Trace], float]
"""A word such as ``"accuracy:last=30"``, or a function of a run."""


def curve(trace: Trace, name: str) -> tuple[Floats, Floats]:
    """The evaluated rounds (E,), counted from 1, and the values there.

    ``name`` is a field of the trace (``accuracy``, ``test_loss``, ``train_loss``, ``classes``,
    ``distinct``) or one of its metrics (``f1``, ``client_accuracy``, ``perplexity``).
    """
    name = name.replace("-", "_")
    found = trace.metrics.get(name)
    if found is None:
        found = getattr(trace, name, None)
    if found is None or np.shape(found) != (trace.rounds,):
        return np.zeros(0), np.zeros(0)  # it was not measured
    there = np.flatnonzero(np.isfinite(found))
    return (there + 1).astype(np.float64), np.asarray(found, dtype=np.float64)[there]


def falls(name: str) -> bool:
    """Whether less of a curve is better.

    >>> falls("test-loss"), falls("perplexity"), falls("accuracy")
    (True, True, False)
    """
    return "loss" in name or name == "perplexity"


def _level(trace: Trace, name: str, last: float = 0.1) -> float:
    """The mean of the last evaluations: so many, or that share of them."""
    seen = _tail(curve(trace, name)[1], last)
    return float(seen.mean()) if len(seen) else np.nan


def _tail(seen: Floats, last: float) -> Floats:
    many = max(1, round(last * len(seen))) if last < 1 else int(last)
    return seen[-many:]


def spread(trace: Trace, last: float = 0.1, of: str = "accuracy") -> float:
    """How much the last evaluations vary in one run: their standard deviation."""
    seen = _tail(curve(trace, of)[1], last)
    return float(seen.std()) if len(seen) else np.nan


def jumps(trace: Trace, of: str = "accuracy") -> float:
    """How much the curve moves from one evaluation to the next, in the second half."""
    seen = curve(trace, of)[1]
    moves = np.abs(np.diff(seen[len(seen) // 2 :]))
    return float(moves.mean()) if len(moves) else np.nan


def area(trace: Trace, of: str = "accuracy") -> float:
    """The mean of the curve over all evaluations: the area below it."""
    seen = curve(trace, of)[1]
    return float(seen.mean()) if len(seen) else np.nan


def best(trace: Trace, of: str = "accuracy", round: int | None = None) -> float:
    """The best value so far, at a round or at the end; the lowest of a loss."""
    rounds, seen = curve(trace, of)
    seen = seen if round is None else seen[rounds <= round]
    return float(seen.min() if falls(of) else seen.max()) if len(seen) else np.nan


def at(trace: Trace, round: int, of: str = "accuracy") -> float:
    """The value at the last evaluation up to a round."""
    rounds, seen = curve(trace, of)
    seen = seen[rounds <= round]
    return float(seen[-1]) if len(seen) else np.nan


def rounds_to(trace: Trace, target: float, window: int = 1, of: str = "accuracy") -> float:
    """After how many rounds the rolling mean reaches a target and stays there.

    A run that never does counts as one round more than it has, so that a mean is a lower bound.
    """
    rounds, seen = curve(trace, of)
    if len(seen) == 0:
        return np.nan
    smooth = rolling(seen, window)
    below = np.flatnonzero(smooth > target if falls(of) else smooth < target)
    if len(below) == 0:
        return float(rounds[0])
    return float(rounds[below[-1] + 1]) if below[-1] + 1 < len(rounds) else trace.rounds + 1.0


def first_to(trace: Trace, target: float, of: str = "accuracy") -> float:
    """After how many rounds a target is reached for the first time, which rewards noisy curves."""
    rounds, seen = curve(trace, of)
    if len(seen) == 0:
        return np.nan
    reached = rounds[seen <= target] if falls(of) else rounds[seen >= target]
    return float(reached[0]) if len(reached) else trace.rounds + 1.0


def time_to(trace: Trace, target: float, of: str = "accuracy") -> float:
    """Simulated seconds until a target is reached for the first time.

    A run that never does counts as if its next round had: a lower bound.
    """
    rounds, spent = first_to(trace, target, of), np.cumsum(trace.time)
    if not np.isfinite(rounds):
        return np.nan
    more = float(spent[-1]) / trace.rounds
    return float(spent[int(rounds) - 1]) if rounds <= trace.rounds else float(spent[-1]) + more


def classes(trace: Trace) -> float:
    """Classes among the clients of a round, the mean over rounds."""
    return float(trace.classes.mean()) if (trace.classes >= 0).all() else np.nan


def clients(trace: Trace) -> float:
    """Distinct clients of a round, the mean over rounds."""
    return float(trace.distinct.mean())


def megabytes(trace: Trace) -> float:
    """Sent in both directions in a round, the mean over rounds."""
    return float((trace.bytes_up + trace.bytes_down).mean()) / 1e6


def messages(trace: Trace) -> float:
    """Between server and clients in a round, the mean over rounds."""
    return float(trace.messages.mean())


def all_seen(trace: Trace) -> float:
    """After how many rounds every client had taken part; one more than there were, if never."""
    waiting = set(np.flatnonzero(trace.importance > 0).tolist())
    for number in range(trace.rounds):
        waiting -= set(trace.cohort(number).clients.tolist())
        if not waiting:
            return number + 1.0
    return trace.rounds + 1.0


def class_f1(trace: Trace) -> float:
    """Macro F1 of the last model, the mean over classes."""
    return float(trace.f1.mean()) if len(trace.f1) else np.nan


def lost_classes(trace: Trace, below: float = 0.05) -> float:
    """How many classes the last model does not recognise: F1 below a bound."""
    return float((trace.f1 < below).sum()) if len(trace.f1) else np.nan


def worst_clients(trace: Trace, share: float = 0.1) -> float:
    """Accuracy of the worst share of clients under the last model."""
    seen = np.sort(trace.client_accuracy[np.isfinite(trace.client_accuracy)])
    return float(seen[: max(1, round(share * len(seen)))].mean()) if len(seen) else np.nan


MEASURES: Mapping[str, Callable[..., float]] = {
    "accuracy": partial(_level, name="accuracy"),
    "loss": partial(_level, name="train_loss"),
    "test-loss": partial(_level, name="test_loss"),
    "f1": partial(_level, name="f1"),
    "client-accuracy": partial(_level, name="client_accuracy"),
    "perplexity": partial(_level, name="perplexity"),
    "spread": spread,
    "jumps": jumps,
    "area": area,
    "best": best,
    "at": at,
    "rounds-to": rounds_to,
    "first-to": first_to,
    "time-to": time_to,
    "classes": classes,
    "clients": clients,
    "megabytes": megabytes,
    "messages": messages,
    "all-seen": all_seen,
    "class-f1": class_f1,
    "lost-classes": lost_classes,
    "worst-clients": worst_clients,
}
"""Those that are the mean over the last tenth of evaluations take ``last``: a share or a number."""

WAITING = {"rounds-to", "first-to", "time-to", "all-seen"}
"""A run that never gets there counts as one round more than it has."""


def measure(which: Measure) -> Callable[[Trace], float]:
    """The function that a word names, with its settings.

    >>> measure("at")
    Traceback (most recent call last):
    ...
    fedcohort._internal.errors.BadInput: The measure 'at' needs a value for 'round': ...
    """
    if not isinstance(which, str):
        return which
    name, texts = split(which)
    if name not in MEASURES:
        raise UnknownName("measure", name, MEASURES)
    function, settings = MEASURES[name], {key: value(text) for key, text in texts.items()}
    takes = [key for key in inspect.signature(function).parameters if key not in ("trace", "name")]
    for key in settings:
        if key not in takes:
            raise UnknownName(f"setting of the measure '{name}'", key, takes)
    try:
        inspect.signature(function).bind(None, **settings)
    except TypeError:
        raise BadInput(
            f"The measure '{name}' needs a value for '{takes[0]}': write {name}:{takes[0]}=..."
        ) from None

    def measured(trace: Trace) -> float:
        return function(trace, **settings)

    return measured


def never(which: Measure, trace: Trace, found: float) -> bool:
    """Whether a run did not reach what a measure waits for: what was found is a lower bound."""
    name = split(which)[0] if isinstance(which, str) else ""
    most = float(np.cumsum(trace.time)[-1]) if name == "time-to" else trace.rounds
    return name in WAITING and found > most


def word(which: Measure) -> str:
    """What a measure is called in sentences and columns."""
    return which if isinstance(which, str) else _words(which)


def _words(function: Any) -> str:
    return str(getattr(function, "__name__", "a measure")).replace("_", " ").strip()
