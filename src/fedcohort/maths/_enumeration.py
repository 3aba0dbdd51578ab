"""Every outcome of a random function, with its exact probability.

Whatever draws through `fedcohort.maths._draws` can be run along *all* paths instead of one:
a proof by enumeration of the code that really draws, not of a formula about it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from fedcohort._internal.errors import FedcohortError, TooLarge, shown

T = TypeVar("T")

PATH_LIMIT = 1_000_000


class NotEnumerable(FedcohortError, AttributeError):
    """The function draws with a method of numpy's generator, not by enumerable choices."""


class Path:
    """Stands in for a generator: replays given choices, then always takes the first."""

    def __init__(self, choices: Sequence[int]) -> None:
        self._given = list(choices)
        self.taken: list[tuple[int, Sequence[int]]] = []
        self.probability = Fraction(1)

    def below(self, bound: int) -> int:
        """An integer below ``bound``, all equally likely."""
        if bound > PATH_LIMIT:
            raise TooLarge(f"A draw below {shown(bound)} has too many outcomes to enumerate.")
        return self.choose([1] * bound)

    def __getattr__(self, name: str) -> Any:
        raise NotEnumerable(
            f"A draw by `rng.{name}` cannot be enumerated: draw through fedcohort.maths._draws."
        )

    def choose(self, weights: Sequence[int]) -> int:
        """An index of positive weight."""
        step = len(self.taken)
        index = self._given[step] if step < len(self._given) else _next_positive(weights, 0)
        if index is None:
            raise ValueError("there is nothing to choose from: all weights are 0")
        self.taken.append((index, weights))
        self.probability *= Fraction(weights[index], sum(weights))
        return index


def every_path(
    function: Callable[[Any], T], limit: int = PATH_LIMIT
) -> Iterator[tuple[Fraction, T]]:
    """Each path of ``function(rng)`` with its probability; they add up to 1.

    >>> from fedcohort.maths._draws import distinct
    >>> outcomes = {}
    >>> for chance, chosen in every_path(lambda rng: tuple(distinct(rng, 3, 2).tolist())):
    ...     outcomes[chosen] = outcomes.get(chosen, 0) + chance
    >>> outcomes
    {(0, 1): Fraction(1, 3), (0, 2): Fraction(1, 3), (1, 2): Fraction(1, 3)}
    """
    choices: list[int] = []
    for _ in range(limit):
        path = Path(choices)
        result = function(path)
        yield path.probability, result
        following = _following(path)
        if following is None:
            return
        choices = following
    raise TooLarge(f"There are more than {limit} paths; enumerate a smaller case.")


def without_chance(function: Callable[[Any], T]) -> T | None:
    """The result of ``function(rng)`` if it draws nothing; None if chance decides.

    >>> without_chance(lambda rng: "certain")
    'certain'
    >>> without_chance(lambda rng: rng.below(2)) is None
    True
    """
    path = Path([])
    try:
        result = function(path)
    except (TooLarge, NotEnumerable):
        return None
    return result if not path.taken else None


def _following(path: Path) -> list[int] | None:
    """The choices that lead down the next path: the last choice that can move on, does."""
    taken = path.taken
    for step in reversed(range(len(taken))):
        index, weights = taken[step]
        higher = _next_positive(weights, index + 1)
        if higher is not None:
            return [*(i for i, _ in taken[:step]), higher]
    return None


def _next_positive(weights: Sequence[int], start: int) -> int | None:
    return next((i for i in range(start, len(weights)) if weights[i] > 0), None)
