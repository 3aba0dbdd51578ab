"""When a claim counts as seen: criteria that are data, judged with their spread.

Every judge ends in one of four words. *Reproduced* and *not reproduced* are said only where the
interval lies on one side of the bound; otherwise a claim is *undecided*, with the number of
seeds or partitions that would decide if mean and spread stay as they are. *Partly*: a part of
several holds and another does not, or the effect is there and smaller than the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from typing import Any

import numpy as np

from fedcohort.core.errors import BadInput
from fedcohort.reproduction.estimate import (
    ALIKE,
    FEWEST,
    SIDE,
    Estimate,
    needed,
    number,
    ratio_interval,
)
from fedcohort.reproduction.measures import Measure, word
from fedcohort.reproduction.results import COMPUTED, Of, Results, Values

REPRODUCED, PARTLY, NOT, UNDECIDED = "reproduced", "partly", "not reproduced", "undecided"
VERDICTS = (REPRODUCED, PARTLY, NOT, UNDECIDED)


@dataclass(frozen=True)
class Finding:
    """What was found of a claim."""

    verdict: str
    found: str
    estimate: float | None = None
    low: float | None = None
    high: float | None = None
    units: int = 0
    unit: str = ""
    needed: int | None = None
    """So many units would decide; None where it is decided, or no number would."""
    too_short: str = ""
    """Which arms never reached what the measure waits for, where that leaves it open."""

    @property
    def remedy(self) -> str:
        """What would decide an undecided claim."""
        if self.verdict != UNDECIDED or not self.unit:
            return ""
        if self.too_short:
            return f"more rounds would decide: {self.too_short}"
        if self.units < FEWEST:
            return f"too few {self.unit}s to know their spread: run at least {FEWEST}"
        if self.needed is None:
            return f"no number of {self.unit}s is known to decide: the bound is too near"
        return f"about {self.needed} {self.unit}s would decide, if this holds on"


class Judge(ABC):
    """A criterion; ``str`` of it is the criterion in words."""

    @abstractmethod
    def judge(self, results: Results) -> Finding:
        """Look at what was found."""

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Of runs, those that it looks at: columns of the table."""
        which = getattr(self, "measure", COMPUTED)
        return () if which == COMPUTED else (which,)

    @abstractmethod
    def __str__(self) -> str: ...


# -- the two ways to judge an estimate -----------------------------------------------------------


def judged_above(
    estimate: Estimate, above: float, partly: float | None, found: str | None = None
) -> Finding:
    """Whether a quantity is above a bound; ``partly`` is a lower one that counts for something."""
    low, high = estimate.interval()
    verdict, gap = UNDECIDED, abs(estimate.mean - above)
    if low > above:
        verdict = REPRODUCED
    elif high <= above:
        verdict = NOT
        if partly is not None and high > partly:
            verdict, gap = PARTLY if low > partly else UNDECIDED, abs(estimate.mean - partly)
    return _finding(verdict, estimate, found, needed(estimate.sd, gap))


def judged_within(
    estimate: Estimate, within: float, of: float = 0.0, found: str | None = None
) -> Finding:
    """Whether a quantity is within a margin of a number: two one-sided tests.

    It is not enough that a difference cannot be seen: its 90 % interval must lie inside.
    """
    off = estimate.mean - of
    (low, high), (least, most) = estimate.interval(ALIKE), estimate.interval(SIDE)
    if of - within < low and high < of + within:
        verdict, need = REPRODUCED, None
    elif least > of + within or most < of - within:
        verdict, need = NOT, None
    elif abs(off) < within:
        verdict, need = UNDECIDED, needed(estimate.sd, within - abs(off), ALIKE)
    else:
        verdict, need = UNDECIDED, needed(estimate.sd, abs(off) - within, SIDE)
    return _finding(verdict, estimate, found, need)


def _finding(verdict: str, estimate: Estimate, found: str | None, need: int | None) -> Finding:
    low, high = estimate.interval()
    mean = estimate.mean if isfinite(estimate.mean) else None
    more = need if verdict == UNDECIDED and need is not None and need > estimate.units else None
    return Finding(
        verdict,
        found or str(estimate),
        mean,
        *_limits(low, high),
        estimate.units,
        estimate.unit,
        more,
    )


def _limits(low: float, high: float) -> tuple[float | None, float | None]:
    return (low, high) if isfinite(low) and isfinite(high) else (None, None)


# -- comparisons of arms -------------------------------------------------------------------------


@dataclass(frozen=True)
class Contrast(Judge):
    """A sum of arms with signs is above a bound: ``{"a": 1, "b": -1}`` is a - b.

    A gain that grows from one cell to another is
    ``{("hard", "a"): 1, ("hard", "b"): -1, ("easy", "a"): -1, ("easy", "b"): 1}``.

    Parameters
    ----------
    measure
        By its word, or ``"computed"`` for samples of a computed recipe.
    weights
        By arm, or by (cell, arm).
    above
        The bound.
    partly
        A lower one: between the two the claim is partly reproduced.
    """

    measure: Measure
    weights: Mapping[Any, float]
    above: float = 0.0
    partly: float | None = None

    def judge(self, results: Results) -> Finding:
        values = {of: results.values(self.measure, of) for of in self.weights}
        estimate = combined(list(values.values()), list(self.weights.values()))
        found = judged_above(estimate, self.above, self.partly)
        return reached(found, {_name(of): each for of, each in values.items()},
                       list(self.weights.values()))  # fmt: skip

    def __str__(self) -> str:
        terms = " ".join(
            f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{abs(weight):g} '}"
            f"{_name(of)}"
            for of, weight in self.weights.items()
        ).removeprefix("+ ")
        some = "" if self.partly is None else f"; partly: above {number(self.partly)}"
        return f"{word(self.measure)}: {terms} is above {number(self.above)}, 95 % interval{some}"


def difference(
    measure: Measure, more: Of, less: Of, above: float = 0.0, partly: float | None = None
) -> Contrast:
    """One arm has more of a measure than another, by more than ``above``.

    >>> str(difference("accuracy", "target", "md"))
    'accuracy: target − md is above 0, 95 % interval'
    """
    _two(more, less)
    return Contrast(measure, {more: 1.0, less: -1.0}, above, partly)


@dataclass(frozen=True)
class Alike(Judge):
    """Two arms are as good as one another: their difference is within a margin, either way."""

    measure: Measure
    one: Of
    other: Of
    within: float

    def __post_init__(self) -> None:
        _two(self.one, self.other)

    def judge(self, results: Results) -> Finding:
        values = {of: results.values(self.measure, of) for of in (self.one, self.other)}
        found = judged_within(combined(list(values.values()), [1.0, -1.0]), self.within)
        return reached(found, {_name(of): each for of, each in values.items()}, [0.0, 0.0])

    def __str__(self) -> str:
        return (
            f"{word(self.measure)}: {_name(self.one)} − {_name(self.other)} is within "
            f"±{number(self.within)}, two one-sided tests at 5 %"
        )


@dataclass(frozen=True)
class Ratio(Judge):
    """The mean of one arm is at least so many times that of another (above 0)."""

    measure: Measure
    more: Of
    less: Of
    at_least: float
    partly: float | None = None

    def __post_init__(self) -> None:
        _two(self.more, self.less)

    def judge(self, results: Results) -> Finding:
        more, less = (results.values(self.measure, of) for of in (self.more, self.less))
        x, y = more.paired(less)
        if len(y) == 0 or y.mean() <= 0:
            return Finding(UNDECIDED, "no ratio: the denominator is not above 0", unit=more.unit)
        low, high = ratio_interval(x.tolist(), y.tolist())
        shown = f", {number(low)} to {number(high)}" if isfinite(low) else ""
        found = (
            f"{number(x.mean() / y.mean())} times ({number(x.mean())} against "
            f"{number(y.mean())}{shown}; {Estimate.of(x, more.unit).counted})"
        )
        # more / less >= c exactly where more - c less >= 0: Fieller's test, exact at the bound.
        over = judged_above(Estimate.of(x - self.at_least * y, more.unit), 0.0, None, found)
        verdict = over.verdict
        if verdict == NOT and self.partly is not None:
            some = judged_above(Estimate.of(x - self.partly * y, more.unit), 0.0, None)
            verdict = {REPRODUCED: PARTLY, NOT: NOT, UNDECIDED: UNDECIDED}[some.verdict]
        ratio = float(x.mean() / y.mean())
        out = Finding(verdict, found, ratio, *_limits(low, high), len(x), more.unit, over.needed)
        return reached(out, {_name(self.more): more, _name(self.less): less}, [1.0, -1.0])

    def __str__(self) -> str:
        some = "" if self.partly is None else f"; partly: {number(self.partly)} times"
        return (
            f"{word(self.measure)}: {_name(self.more)} is at least {number(self.at_least)} times "
            f"{_name(self.less)}, 95 % interval{some}"
        )


@dataclass(frozen=True)
class Close(Judge):
    """The mean of an arm is the printed number, within a margin."""

    measure: Measure
    of: Of
    printed: float
    within: float

    def judge(self, results: Results) -> Finding:
        values = results.values(self.measure, self.of)
        estimate = Estimate.of(values.numbers, values.unit)
        found = judged_within(estimate, self.within, self.printed)
        return reached(found, {_name(self.of): values}, [0.0])

    def __str__(self) -> str:
        return (
            f"{word(self.measure)} of {_name(self.of)} is within ±{number(self.within)} of "
            f"{number(self.printed)}, two one-sided tests at 5 %"
        )


# -- computed numbers ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Exact(Judge):
    """A computed number without chance is the printed one, up to its rounding."""

    of: str
    printed: float
    within: float

    def judge(self, results: Results) -> Finding:
        found = results.values(COMPUTED, self.of).numbers
        far = np.abs(found - self.printed)
        fits = far <= self.within  # False for NaN
        verdict = REPRODUCED if fits.all() else PARTLY if fits.any() else NOT
        shown = (
            number(float(found[0]))
            if np.ptp(found) == 0
            else " to ".join(number(float(v)) for v in (found.min(), found.max()))
        )
        mean = float(found.mean())
        return Finding(verdict, shown, mean if isfinite(mean) else None, units=len(found))

    def __str__(self) -> str:
        return f"{self.of} is within ±{number(self.within)} of {number(self.printed)}, exactly"


@dataclass(frozen=True)
class Holds(Judge):
    """A computed statement is true: 1 where it is, 0 where not; partly where it is some times.

    ``shown`` names a sample that is printed beside, to say by how much.
    """

    of: str
    criterion: str = ""
    shown: str = ""

    def judge(self, results: Results) -> Finding:
        found = results.values(COMPUTED, self.of).numbers > 0.5
        verdict = REPRODUCED if found.all() else PARTLY if found.any() else NOT
        text = (
            "yes"
            if found.all()
            else "no"
            if not found.any()
            else (f"in {int(found.sum())} of {len(found)} repetitions")
        )
        if self.shown:
            values = results.values(COMPUTED, self.shown).numbers
            text += f" ({self.shown} {number(float(values.mean()))})"
        return Finding(verdict, text, float(found.mean()), units=len(found))

    def __str__(self) -> str:
        return self.criterion or f"{self.of}, in every repetition"


# -- several, and one's own ----------------------------------------------------------------------


@dataclass(frozen=True)
class Every(Judge):
    """All of several; partly where one holds and another does not."""

    parts: tuple[Judge, ...]

    def __init__(self, *parts: Judge) -> None:
        if not parts:
            raise BadInput("Every() needs at least one criterion.")
        object.__setattr__(self, "parts", parts)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(which for part in self.parts for which in part.measures)

    def judge(self, results: Results) -> Finding:
        found = [part.judge(results) for part in self.parts]
        verdicts = {each.verdict for each in found}
        if verdicts == {REPRODUCED}:
            verdict = REPRODUCED
        elif verdicts & {NOT, PARTLY}:
            verdict = PARTLY if verdicts & {REPRODUCED, PARTLY} else NOT
        else:
            verdict = UNDECIDED
        open_ = [each for each in found if each.verdict == UNDECIDED]
        need = None
        if verdict == UNDECIDED and all(each.needed is not None for each in open_):
            need = max(each.needed or 0 for each in open_)
        fewest = min(found, key=lambda each: each.units)
        shown = [text for each in found if (text := each.found)]
        return Finding(verdict, "; ".join(shown), units=fewest.units, unit=fewest.unit, needed=need)

    def __str__(self) -> str:
        return "; and ".join(map(str, self.parts))


def order(measure: Measure, arms: Sequence[Of], above: float = 0.0) -> Every:
    """Several arms in descending order, each ahead of the next by more than ``above``."""
    if len(arms) < 2:
        raise BadInput("An order needs at least two arms.")
    return Every(*(difference(measure, more, less, above) for more, less in pairwise(arms)))


@dataclass(frozen=True)
class Own(Judge):
    """A quantity of one's own: a function of the results that returns samples or an `Estimate`.

    Give ``above``, or ``within`` (of the number ``printed``).
    """

    quantity: str
    function: Callable[[Results], Any] = field(repr=False)
    above: float | None = None
    within: float | None = None
    printed: float = 0.0
    partly: float | None = None

    def __post_init__(self) -> None:
        if (self.above is None) == (self.within is None):
            raise BadInput(f"'{self.quantity}' needs a bound: give 'above' or 'within'.")

    def judge(self, results: Results) -> Finding:
        found = self.function(results)
        if isinstance(found, Values):
            found = Estimate.of(found.numbers, found.unit)
        elif not isinstance(found, Estimate):
            found = Estimate.of(found, "repetition")
        if self.above is not None:
            return judged_above(found, self.above, self.partly)
        return judged_within(found, self.within or 0.0, self.printed)

    def __str__(self) -> str:
        if self.above is not None:
            some = "" if self.partly is None else f"; partly: above {number(self.partly)}"
            return f"{self.quantity} is above {number(self.above)}, 95 % interval{some}"
        return (
            f"{self.quantity} is within ±{number(self.within or 0.0)} of {number(self.printed)}, "
            "two one-sided tests at 5 %"
        )


# -- what they share -----------------------------------------------------------------------------


def combined(values: Sequence[Values], weights: Sequence[float]) -> Estimate:
    """The estimate of a weighted sum, unit by unit."""
    units = {each.unit for each in values}
    if len(units) > 1:
        raise BadInput(
            f"A claim must not mix {' with '.join(sorted(f'{u}s' for u in units))}; give its "
            "cells as many partitions."
        )
    shared = [key for key in values[0].by_unit if all(key in each.by_unit for each in values)]
    sums = [
        sum(w * each.by_unit[key] for w, each in zip(weights, values, strict=True))
        for key in shared
    ]
    return Estimate.of(sums, values[0].unit)


def reached(found: Finding, arms: Mapping[str, Values], weights: Sequence[float]) -> Finding:
    """The finding, left open where runs that never got there could turn it.

    Such a run counts for fewer rounds than it would have taken. In an arm with a positive weight
    that hides an effect, in one with a negative weight it makes one up; weight 0: it may do both.
    """
    unsafe = []
    for (name, values), weight in zip(arms.items(), weights, strict=True):
        hides, makes_up = found.verdict != REPRODUCED, found.verdict in (REPRODUCED, PARTLY)
        if values.never and (weight == 0 or (hides if weight > 0 else makes_up)):
            unsafe.append(f"{name} did not get there in {values.never} runs")
    if not unsafe:
        return found
    return replace(found, verdict=UNDECIDED, needed=None, too_short=", ".join(unsafe))


def _two(one: Of, other: Of) -> None:
    if one == other:
        raise BadInput(f"A claim compares two arms; got '{_name(one)}' twice.")


def _name(of: Of) -> str:
    return of if isinstance(of, str) else f"{of[1]} ({of[0]})"
