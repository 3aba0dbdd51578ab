"""What was found of a claim, and the two ways to judge an estimate.

*Reproduced* and *not reproduced* are said only where the interval lies on one side of the bound;
otherwise a claim is *undecided*, with the number of new seeds or partitions that would decide with
80 % power if mean and spread hold. *Partly*: a part of several holds and another does not, or the
effect is there and smaller than the bound.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import isfinite
from typing import Any

from fedcohort._internal.errors import BadInput
from fedcohort_papers.reproduction.estimate import (
    ALIKE,
    FEWEST,
    POWER,
    SIDE,
    Estimate,
    Question,
    needed,
)
from fedcohort_papers.reproduction.measures import Measure
from fedcohort_papers.reproduction.results import COMPUTED, Of, Results, Values

REPRODUCED, PARTLY, NOT, UNDECIDED = "reproduced", "partly", "not reproduced", "undecided"
VERDICTS = (REPRODUCED, PARTLY, NOT, UNDECIDED)
NOT_RUN = "not run at this scale"
"""No verdict: a claim is about cells that a scale leaves out."""
REASONS = ("same", "diverged", "too_short")
"""Why a claim may be open whatever the number of units; each is a field of its finding."""


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
    too_short: str = ""
    """Which arms never reached what is waited for, or learned, where that leaves it open."""
    diverged: str = ""
    """Which arms have runs that left the finite numbers: those that are left prove nothing."""
    same: str = ""
    """Which arms are the same runs, bit for bit: they cannot be compared."""
    missed: bool = False
    """Open is only whether it is partly seen: the bound itself is clearly not reached."""
    questions: tuple[Question, ...] = field(default=(), repr=False)
    """What a new sample would have to answer."""

    @property
    def needed(self) -> int | None:
        """So many new units would decide; None where it is decided, or no number is known to."""
        return needed(*self.questions) if self.verdict == UNDECIDED else None

    @property
    def unfit(self) -> str:
        """Why no number of units would decide an undecided claim, with what would."""
        if self.same:
            return f"not judged: {self.same}"
        if self.diverged:
            return f"smaller steps would decide: {self.diverged}"
        if self.too_short:
            return f"more rounds would decide: {self.too_short}"
        return ""

    @property
    def remedy(self) -> str:
        """What would decide an undecided claim."""
        if self.verdict != UNDECIDED or not self.unit:
            return ""
        at_most = "partly at most; " if self.missed else ""
        return f"{at_most}{self.unfit or self._repeated}"

    @property
    def _repeated(self) -> str:
        if self.units < FEWEST:
            return f"too few {self.unit}s to know their spread: run at least {FEWEST}"
        many = self.needed
        if many is None:
            return f"no number of {self.unit}s is known to decide: the bound is too near"
        return (
            f"{many} new {self.unit}s would decide with {POWER:.0%} power, if mean and spread hold"
        ).replace("%", " %")


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

    @property
    def compared(self) -> tuple[Of, ...] | None:
        """Return the arms whose runs decide; None where they are not known."""
        return None

    @abstractmethod
    def __str__(self) -> str: ...


# -- the two ways to judge an estimate -----------------------------------------------------------


def judged_above(
    estimate: Estimate, above: float, partly: float | None, found: str | None = None
) -> Finding:
    """Whether a quantity is above a bound; ``partly`` is a lower one that counts for something."""
    low, high = estimate.interval()
    verdict = UNDECIDED
    if low > above:
        verdict = REPRODUCED
    elif high <= above:
        verdict = NOT
        if partly is not None and high > partly:
            verdict = PARTLY if low > partly else UNDECIDED
    bounds = (above,) if partly is None else (above, partly)
    finding = _finding(verdict, estimate, found, Question.of(estimate, *bounds))
    return replace(finding, missed=verdict == UNDECIDED and high <= above)


def judged_within(
    estimate: Estimate, within: float, of: float = 0.0, found: str | None = None
) -> Finding:
    """Whether a quantity is within a margin of a number: two one-sided tests.

    It is not enough that a difference cannot be seen: its 90 % interval must lie inside.
    """
    off = estimate.mean - of
    (low, high), (least, most) = estimate.interval(ALIKE), estimate.interval(SIDE)
    side = ALIKE if abs(off) < within else SIDE
    if of - within < low and high < of + within:
        verdict = REPRODUCED
    elif least > of + within or most < of - within:
        verdict = NOT
    else:
        verdict = UNDECIDED
    question = Question.of(estimate, of - within, of + within, side=side)
    return _finding(verdict, estimate, found, question)


def _finding(verdict: str, estimate: Estimate, found: str | None, question: Question) -> Finding:
    low, high = estimate.interval()
    mean = estimate.mean if isfinite(estimate.mean) else None
    return Finding(
        verdict,
        found or str(estimate),
        mean,
        *limits(low, high),
        estimate.units,
        estimate.unit,
        questions=(question,),
    )


def limits(low: float, high: float) -> tuple[float | None, float | None]:
    """Of an interval, if it has any."""
    return (low, high) if isfinite(low) and isfinite(high) else (None, None)


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
    """The finding, left open where its runs cannot carry it.

    A run that never got there counts for fewer rounds than it would have taken. In an arm with a
    positive weight that hides an effect, in one with a negative weight it makes one up; weight 0:
    it may do both. Arms on either side that are the same runs are not two.
    """
    lost = diverged(arms)
    signed = list(zip(arms.items(), weights, strict=True))
    same = [
        f"{one} and {other} are the same runs, bit for bit"
        for ((one, left), weight), ((other, right), against) in combinations(signed, 2)
        if weight * against <= 0 and left.digest and left.digest == right.digest
    ]
    if all(values.never and values.never == values.runs for values in arms.values()):
        nothing = f"never reached by {' and '.join(arms)}"
        found = replace(found, found=nothing, estimate=None, low=None, high=None)
    if same or lost:
        return left_open(found, same=", ".join(same), diverged=lost)
    told, unsafe = [], {}
    for (name, values), weight in signed:
        hides, makes_up = found.verdict != REPRODUCED, found.verdict in (REPRODUCED, PARTLY)
        if values.never:
            told.append(f"never reached by {name} in {values.never} of {values.runs} runs")
            if weight == 0 or (hides if weight > 0 else makes_up):
                unsafe[name] = values
    if unsafe:
        return left_open(found, too_short=late(unsafe))
    return replace(found, found="; ".join([found.found, *told]))


def diverged(arms: Mapping[str, Values]) -> str:
    """Which arms have runs that left the finite numbers, and how many; empty where none has."""
    return ", ".join(
        f"{name} diverged in {each.lost} run{'s' * (each.lost > 1)}"
        for name, each in arms.items()
        if each.lost
    )


def late(arms: Mapping[str, Values]) -> str:
    """Which arms did not get to what is waited for, and how often; empty where all did."""
    return ", ".join(
        f"{name} did not get there in {each.never} runs"
        for name, each in arms.items()
        if each.never
    )


def left_open(found: Finding, **why: str) -> Finding:
    """The finding without a verdict, for a reason that no number of units would remove."""
    reasons: dict[str, Any] = {**why}
    return replace(found, verdict=UNDECIDED, questions=(), missed=False, **reasons)
