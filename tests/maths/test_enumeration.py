from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort._internal.errors import TooLarge
from fedcohort.maths import below, every_path
from fedcohort.maths._draws import coins
from fedcohort.maths._enumeration import NotEnumerable, Path


def test_paths_of_different_length() -> None:
    def until_one(rng: Any) -> int:
        for tries in range(3):
            if rng.choose([1, 2]) == 0:
                return tries
        return 3

    found = {tries: chance for chance, tries in every_path(until_one)}
    assert found == {
        0: Fraction(1, 3),
        1: Fraction(2, 9),
        2: Fraction(4, 27),
        3: Fraction(8, 27),
    }


def test_what_cannot_be_is_not_visited() -> None:
    outcomes = [index for _, index in every_path(lambda rng: rng.choose([0, 3, 0, 1, 0]))]
    assert outcomes == [1, 3]


def test_without_a_choice_there_is_one_path() -> None:
    assert list(every_path(lambda rng: "x")) == [(Fraction(1), "x")]


def test_probabilities_add_up() -> None:
    def function(rng: Any) -> tuple[Any, ...]:
        first = int(below(rng, 3, 1)[0])
        return first, *coins(rng, np.arange(1, 2 + first), 5).tolist()

    paths = list(every_path(function))
    assert sum(chance for chance, _ in paths) == 1
    assert len({outcome for _, outcome in paths}) == len(paths) == 2 + 4 + 8


def test_too_many_paths_are_refused() -> None:
    with pytest.raises(TooLarge, match="more than 10 paths"):
        list(every_path(lambda rng: below(rng, 4, 2), limit=10))
    with pytest.raises(TooLarge, match="too many outcomes"):
        Path([]).below(2**62)


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="nothing to choose from"):
        Path([]).choose([0, 0])


def test_a_draw_of_numpy_itself_is_named() -> None:
    with pytest.raises(NotEnumerable, match=r"`rng.choice` cannot be enumerated"):
        list(every_path(lambda rng: rng.choice(3)))
