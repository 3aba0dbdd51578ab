"""When a claim counts as seen: criteria that are data, judged with their spread.

Every judge ends in one of four words, see `fedcohort_papers.reproduction.findings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import isfinite
from typing import Any

from fedcohort._internal.errors import BadInput
from fedcohort_papers.reproduction.estimate import FEWEST, Estimate, number, ratio_interval
from fedcohort_papers.reproduction.findings import (
    NOT,
    PARTLY,
    REASONS,
    REPRODUCED,
    UNDECIDED,
    Finding,
    Judge,
    combined,
    diverged,
    judged_above,
    judged_within,
    late,
    left_open,
    limits,
    reached,
)
from fedcohort_papers.reproduction.measures import Measure, word
from fedcohort_papers.reproduction.results import Of, Results, Values, Watched

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

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return tuple(self.weights) if self.measures else None

    def judge(self, results: Results) -> Finding:
        values = {of: results.values(self.measure, of) for of in self.weights}
        estimate = combined(list(values.values()), list(self.weights.values()))
        found = judged_above(estimate, self.above, self.partly)
        return reached(found, {_name(of): each for of, each in values.items()},
                       list(self.weights.values()))  # fmt: skip

    def __str__(self) -> str:
        terms = " ".join(
            f"{'−' if weight < 0 else '+'} {'' if abs(weight) == 1 else f'{number(abs(weight))} '}"
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

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return (self.one, self.other) if self.measures else None

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

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return (self.more, self.less) if self.measures else None

    def judge(self, results: Results) -> Finding:
        more, less = (results.values(self.measure, of) for of in (self.more, self.less))
        x, y = more.paired(less)
        if len(y) == 0 or y.mean() <= 0:
            none = "no ratio: the denominator is not above 0"
            return Finding(UNDECIDED, none, units=len(y), unit=more.unit)
        low, high = ratio_interval(x.tolist(), y.tolist())
        shown = f", {number(low)} to {number(high)}" if isfinite(low) else ""
        found = (
            f"{number(x.mean() / y.mean())} times ({number(x.mean())} against "
            f"{number(y.mean())}{shown}; {Estimate.of(x, more.unit).counted})"
        )
        # more / less >= c exactly where more - c less >= 0: Fieller's test, exact at the bound.
        over = judged_above(Estimate.of(x - self.at_least * y, more.unit), 0.0, None, found)
        verdict, questions, missed = over.verdict, over.questions, over.verdict == NOT
        if self.partly is not None and x.mean() < self.at_least * y.mean():
            some = judged_above(Estimate.of(x - self.partly * y, more.unit), 0.0, None)
            questions += some.questions  # below the one bound, a new sample is held to the other
            if missed:
                verdict = {REPRODUCED: PARTLY, NOT: NOT, UNDECIDED: UNDECIDED}[some.verdict]
        out = Finding(
            verdict,
            found,
            float(x.mean() / y.mean()),
            *limits(low, high),
            len(x),
            more.unit,
            missed=missed and verdict == UNDECIDED,
            questions=questions,
        )
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

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return (self.of,) if self.measures else None

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


# -- several, and one's own ----------------------------------------------------------------------


@dataclass(frozen=True)
class Every(Judge):
    """All of several; partly where one holds and another does not.

    One part that is not seen refutes the whole, whatever of the others is open; together with a
    part that holds it leaves *partly*.
    """

    parts: tuple[Judge, ...]

    def __init__(self, *parts: Judge) -> None:
        if not parts:
            raise BadInput("Every() needs at least one criterion.")
        object.__setattr__(self, "parts", parts)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return tuple(which for part in self.parts for which in part.measures)

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return _all(part.compared for part in self.parts)

    def judge(self, results: Results) -> Finding:
        found = [part.judge(results) for part in self.parts]
        verdicts = {each.verdict for each in found}
        missed = any(each.missed for each in found)
        if verdicts == {REPRODUCED}:
            verdict = REPRODUCED
        elif verdicts & {NOT, PARTLY} or (missed and REPRODUCED in verdicts):
            verdict = PARTLY if verdicts & {REPRODUCED, PARTLY} else NOT
        else:
            verdict = UNDECIDED
        open_ = [each for each in found if each.verdict == UNDECIDED]
        known = all(each.questions for each in open_)  # a new sample must answer all of them
        fewest = min(found, key=lambda each: (not each.unit, each.units))  # exact ones have none
        shown = [text for each in found if (text := each.found)]
        whole = Finding(
            verdict,
            "; ".join(shown),
            units=fewest.units,
            unit=fewest.unit,
            questions=tuple(q for each in found for q in each.questions) if known else (),
        )
        if verdict != UNDECIDED:
            return whole
        reasons = {
            name: ", ".join(dict.fromkeys(filter(None, (getattr(each, name) for each in open_))))
            for name in REASONS
        }
        return replace(
            left_open(whole, **reasons) if any(reasons.values()) else whole, missed=missed
        )

    def __str__(self) -> str:
        return "; and ".join(map(str, self.parts))


@dataclass(frozen=True)
class Learned(Judge):
    """A criterion that counts only where arms have learned something: it is open otherwise.

    To be ahead of an arm that still guesses says little.

    Parameters
    ----------
    part
        The criterion.
    arms
        Those that must have learned, mostly the one that a claim is ahead of.
    above
        What the whole 95 % interval of ``measure`` of each must be above; None for one over the
        number of classes.
    measure
        By its word.

    >>> str(Learned(difference("loss", "md", "target"), "md", above=0.1))
    'loss: md − target is above 0, 95 % interval; open unless accuracy of md is above 0.1'
    """

    part: Judge
    arms: tuple[Of, ...]
    above: float | None = None
    measure: Measure = "accuracy"

    def __init__(
        self, part: Judge, *arms: Of, above: float | None = None, measure: Measure = "accuracy"
    ) -> None:
        if not arms:
            raise BadInput("Learned() needs the arms that must have learned.")
        for name, value in {"part": part, "arms": arms, "above": above, "measure": measure}.items():
            object.__setattr__(self, name, value)

    @property
    def measures(self) -> tuple[Measure, ...]:
        return (*self.part.measures, self.measure)

    @property
    def compared(self) -> tuple[Of, ...] | None:
        return _all((self.part.compared, self.arms))

    def judge(self, results: Results) -> Finding:
        found = self.part.judge(results)
        guessing = []
        for of in self.arms:
            values = results.values(self.measure, of)
            reached_level = Estimate.of(values.numbers, values.unit)
            level = results.chance(of) if self.above is None else self.above
            few = reached_level.units < FEWEST and found.verdict == UNDECIDED  # which says so
            if not reached_level.interval()[0] > level and not few:  # nor where it is not measured
                guessing.append(
                    f"{word(self.measure)} of {_name(of)}, {reached_level}, is not clearly above "
                    f"{number(level)}"
                )
        return left_open(found, too_short=", ".join(guessing)) if guessing else found

    def __str__(self) -> str:
        level = "1/classes" if self.above is None else number(self.above)
        arms = " and ".join(map(_name, self.arms))
        return f"{self.part}; open unless {word(self.measure)} of {arms} is above {level}"


def order(measure: Measure, arms: Sequence[Of], above: float = 0.0) -> Every:
    """Several arms in descending order, each ahead of the next by more than ``above``."""
    if len(arms) < 2:
        raise BadInput("An order needs at least two arms.")
    return Every(*(difference(measure, more, less, above) for more, less in pairwise(arms)))


@dataclass(frozen=True)
class Own(Judge):
    """A quantity of one's own: a function of the results that returns samples or an `Estimate`.

    Give ``above``, or ``within`` (of the number ``printed``). It is open where an arm whose values
    the function takes diverged, or never got to what they wait for.
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
        watched = Watched.of(results)
        found = self.function(watched)
        if isinstance(found, Values):
            found = Estimate.of(found.numbers, found.unit)
        elif not isinstance(found, Estimate):
            found = Estimate.of(found, "repetition")
        if self.above is not None:
            finding = judged_above(found, self.above, self.partly)
        else:
            finding = judged_within(found, self.within or 0.0, self.printed)
        seen = {_name(of): values for of, values in watched.seen.items()}
        why = {"diverged": diverged(seen), "too_short": late(seen)}
        return left_open(finding, **why) if any(why.values()) else finding

    def __str__(self) -> str:
        if self.above is not None:
            some = "" if self.partly is None else f"; partly: above {number(self.partly)}"
            return f"{self.quantity} is above {number(self.above)}, 95 % interval{some}"
        return (
            f"{self.quantity} is within ±{number(self.within or 0.0)} of {number(self.printed)}, "
            "two one-sided tests at 5 %"
        )


def _all(parts: Iterable[tuple[Of, ...] | None]) -> tuple[Of, ...] | None:
    """Together; None if it is not known of one part."""
    known = list(parts)
    if None in known:
        return None
    return tuple(dict.fromkeys(of for part in known for of in part or ()))


def _two(one: Of, other: Of) -> None:
    if one == other:
        raise BadInput(f"A claim compares two arms; got '{_name(one)}' twice.")


def _name(of: Of) -> str:
    return of if isinstance(of, str) else f"{of[1]} ({of[0]})"
