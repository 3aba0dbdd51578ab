from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pytest

from fedcohort._internal.errors import BadParameter
from fedcohort._internal.parameters import Checked, Constraint, Numbers, constraints
from fedcohort.selection import Flag, Labels, Maybe, OneOf, Real, Whole

CONSTRAINTS: list[tuple[Constraint, list[Any], str]] = [
    (Whole(1), [1, 10**30, np.int32(4)], "an int of at least 1"),
    (Whole(0, 9), [0, 9], "an int in [0, 9]"),
    (Whole(1, words=("all",)), [1, "all"], "an int of at least 1 or 'all'"),
    (Real(0, 1), [0, 1.0, np.float32(0.5)], "a number in [0, 1]"),
    (Real(0, open_low=True), [1e-300, 1], "a number above 0"),
    (Real(0, 1, open_low=True, open_high=True), [1e-300, 0.999], "a number in (0, 1)"),
    (Real(0, 1, words=("auto",)), [0.5, "auto"], "a number in [0, 1] or 'auto'"),
    (OneOf(("a", "b")), ["a", "b"], "one of 'a', 'b'"),
    (Flag(), [True, False], "True or False"),
    (Labels(), [(), (0, 1, 2)], "a tuple of one int of at least 0 per client"),
    (Numbers(), [(), (0, 0.5)], "a tuple of one number of at least 0 per client"),
    (Maybe(Whole(1)), [None, 3], "an int of at least 1 or None"),
]


@pytest.mark.parametrize(("constraint", "good", "words"), CONSTRAINTS, ids=lambda c: str(c))
def test_ranges_tell_good_from_bad(constraint: Constraint, good: list[Any], words: str) -> None:
    assert str(constraint) == words
    assert all(constraint.accepts(value) for value in good)
    bad = constraint.bad_examples()
    assert len(bad) >= 3
    assert not any(constraint.accepts(value) for value in bad)


def test_bad_examples_of_a_range_begin_right_outside_it() -> None:
    """Or a bound that is off by one would pass for the one that was declared."""
    assert {2, 6} <= set(Whole(3, 5).bad_examples())


def test_an_integer_too_large_for_a_float_is_no_number() -> None:
    assert not Real(0).accepts(10**400)


@pytest.mark.parametrize(
    ("constraint", "text", "value"),
    [
        (Whole(1, words=("all",)), "all", "all"),
        (Whole(1), "3", 3),
        (Real(), "0.5", 0.5),
        (OneOf(("a",)), "a", "a"),
        (Flag(), "Yes", True),
        (Flag(), "0", False),
        (Labels(), "0,1,0", (0, 1, 0)),
        (Maybe(Whole(1)), "None", None),
        (Maybe(Whole(1)), "4", 4),
    ],
)
def test_text_is_read(constraint: Constraint, text: str, value: object) -> None:
    assert constraint.parse(text) == value


@dataclass(frozen=True)
class Config(Checked):
    m: Annotated[int, Whole(1)]
    rate: Annotated[float, Real(0, 1)] = 0.5
    note: str = ""


def test_a_dataclass_is_checked_on_construction() -> None:
    assert set(constraints(Config)) == {"m", "rate"}
    with pytest.raises(BadParameter) as caught:
        Config(0)
    assert str(caught.value) == (
        "The 'm' parameter of Config must be an int of at least 1. Got 0 instead."
    )


def test_numbers_of_numpy_become_plain() -> None:
    config = Config(np.int64(3), np.float64(0.25))  # type: ignore[arg-type]
    assert type(config.m) is int
    assert type(config.rate) is float
