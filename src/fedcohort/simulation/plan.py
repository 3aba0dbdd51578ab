"""The plan of a comparison: what its seeds can decide, and how long it takes."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort._internal.html import duration, plural

LEVEL = 0.05
"""A difference counts as more than chance if its p is not above this level."""
FEW_SCHEMES, SEEDS, SEEDS_OF_MANY = 7, 8, 11
"""Up to 7 schemes 8 seeds can decide, and 11 seeds can decide up to 52 schemes."""
DEFAULT_REFERENCE = "md"


class Candidate(NamedTuple):
    """A scheme of a comparison, as a possible reference."""

    label: str
    scheme: str
    plain: bool
    """Whether it has no local algorithm, optimizer, aggregator or training of its own."""
    usable: bool
    """Whether it selects clients, and is no oracle."""


def default_reference(candidates: Iterable[Candidate]) -> str:
    """Return the label of `md` if it is present, otherwise of the first usable scheme.

    >>> default_reference([Candidate("full", "full", True, True), Candidate("a", "md", True, True)])
    'a'
    """
    every = list(candidates)
    usable = [each for each in every if each.usable] or every
    plain = [each for each in usable if each.scheme == DEFAULT_REFERENCE and each.plain]
    return (plain or usable)[0].label


def check_reference(name: str, labels: Collection[str], oracles: Collection[str]) -> None:
    """Raise unless the reference is a scheme of the comparison and no oracle."""
    if name in oracles:
        usable = ", ".join(label for label in labels if label not in oracles)
        raise BadInput(
            f"The reference must be a scheme that a server can use. Got '{name}' instead, which "
            f"is an oracle. Take one of: {usable or 'none is left, so add a scheme'}."
        )
    if name not in labels:
        raise UnknownName("scheme of this comparison", name, labels)


def smallest_p(pairs: int) -> float:
    """Return the smallest p of the sign-flip test with this number of pairs.

    >>> [smallest_p(s) for s in (1, 5, 6)]
    [1.0, 0.0625, 0.03125]
    """
    return min(1.0, 2.0 / 2.0**pairs)


def seeds_needed(tests: int) -> int:
    """Return the fewest seeds with which p can reach `LEVEL` after Holm's correction.

    >>> [seeds_needed(tests) for tests in (1, 6, 7, 51)]
    [6, 8, 9, 11]
    """
    pairs = 1
    while tests * smallest_p(pairs) > LEVEL:
        pairs += 1
    return pairs


def default_seeds(schemes: int) -> int:
    """Return the default number of seeds for a comparison of this number of schemes.

    >>> [default_seeds(schemes) for schemes in (1, 7, 8, 52, 53)]
    [8, 8, 11, 11, 12]
    """
    if schemes <= FEW_SCHEMES:
        return SEEDS
    return max(SEEDS_OF_MANY, seeds_needed(schemes - 1))


@dataclass(frozen=True)
class Plan:
    """What a comparison is going to run; ``str(plan)`` is what a user reads before it starts."""

    schemes: int
    reference: str
    seeds: int
    partitions: int
    rounds: int
    missing: int
    """Runs that are not in the run folder yet."""
    seconds: float | None
    """Estimated wall-clock time, None if it was not measured."""

    @property
    def tests(self) -> int:
        """The number of schemes that are tested against the reference."""
        return self.schemes - 1

    @property
    def smallest_p(self) -> float:
        """The smallest p after Holm's correction."""
        return min(1.0, self.tests * smallest_p(self._units[0]))

    @property
    def _units(self) -> tuple[int, str]:
        """The units whose signs the test flips: divisions if there are several, else seeds."""
        return (self.partitions, "division") if self.partitions > 1 else (self.seeds, "seed")

    def __str__(self) -> str:
        return "\n".join(filter(None, (self._work(), self._decision())))

    def _work(self) -> str:
        runs = self.schemes * self.seeds * self.partitions
        parts = [_counted(self.schemes, "scheme"), _counted(self.seeds, "seed")]
        if self.partitions > 1:
            parts.append(_counted(self.partitions, "division"))
        there = f", {runs - self.missing} of them finished before" * (runs > self.missing)
        took = "" if self.seconds is None else f"; about {duration(max(1.0, self.seconds))}"
        rounds = _counted(self.rounds, "round")
        return f"{_counted(runs, 'run')} of {rounds} ({' x '.join(parts)}){there}{took}."

    def _decision(self) -> str:
        if not self.tests:
            return ""
        count, unit = self._units
        units, tests = _counted(count, unit), _counted(self.tests, "test")
        floor = f"{self.smallest_p:.2g} after Holm's correction for {tests}"
        if self.smallest_p <= LEVEL:
            said = f"{units} can decide at 5 % (the smallest p is {floor})"
        else:
            needed = seeds_needed(self.tests)
            said = f"{units} cannot decide at 5 % (the smallest p is {floor}); {needed} can"
        return f"Every scheme is tested against {self.reference}: {said}."


def _counted(count: int, thing: str) -> str:
    return f"{count:,} {plural(count, thing)}"
