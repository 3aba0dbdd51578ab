"""What a client offers, and what a signal declares about its answers."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter, NotOffered
from fedcohort.selection import LABEL_HISTOGRAM, LOSS, SIZE, UPDATE, UPDATE_NORM, Client, Signal
from fedcohort.selection._queries import missing


class Phone(Client):
    who = "Phone 7"

    def offer_size(self) -> int:
        return 5

    def offer_update(self) -> np.ndarray:
        return np.array([3.0, 4.0])

    def fact(self, name: str) -> float:
        if name == "battery":
            return 0.5
        raise self.lacks(name)


def test_quantities_are_found_by_name() -> None:
    phone = Phone()
    assert (phone.size, phone.battery, phone.quantity("battery")) == (5, 0.5, 0.5)
    assert UPDATE_NORM.of(phone) == 5.0
    assert dict(phone.state) == {}


def test_what_is_not_offered_is_one_sentence() -> None:
    with pytest.raises(NotOffered) as caught:
        LABEL_HISTOGRAM.of(Phone())
    assert str(caught.value) == (
        "Phone 7 has no 'label_counts', which the signal 'label_histogram' needs: give it to "
        "client_app(label_counts=...), or to the object that describes the client."
    )
    assert isinstance(caught.value, BadInput)
    assert getattr(Phone(), "wheels", None) is None  # as of any object
    assert repr(caught.value).startswith('NotOffered("Phone 7 has no')
    assert str(copy.deepcopy(caught.value)) == str(caught.value)


def test_a_misfit_is_told_from_names_alone() -> None:
    assert missing([SIZE, UPDATE_NORM], {"size", "update"}) is None
    assert missing([Signal("odd", "odd", lambda client: client.odd)], set()) is None  # says nothing
    sentence = missing([UPDATE, SIZE], {"size"}, "Client 'a'")
    assert sentence is not None
    assert sentence.startswith("Client 'a' has no 'update', which the signal 'update' needs: ")
    own = missing([Signal("b", "b", lambda client: client.battery, needs="battery")], {"size"})
    assert own is not None
    assert "client_app(battery=...)" in own
    assert "client_app(signals=[...])" in own


def test_shapes_are_read_off_lengths() -> None:
    lengths = {"parameters": 7, "classes": 3}
    assert LOSS.row_shape(lengths) == ()
    assert UPDATE.row_shape(lengths) == (7,)
    assert LABEL_HISTOGRAM.row_shape({"parameters": 7}) is None  # a server may not know it
    half = Signal("half", "h", lambda client: 0, shape=lambda sizes: (sizes["parameters"] // 2,))
    assert half.row_shape(lengths) == (3,)
    assert Signal("any", "a", lambda client: 0).row_shape(lengths) is None


@pytest.mark.parametrize(
    ("signal", "row", "fits"),
    [
        (SIZE, 3, True),
        (SIZE, -1, False),
        (SIZE, 2.5, False),
        (LOSS, -2.5, True),
        (LOSS, [1.0], False),
        (LABEL_HISTOGRAM, [1, 0, 2], True),
        (LABEL_HISTOGRAM, [1, 0], False),
        (LABEL_HISTOGRAM, [1, -1, 0], False),
        (UPDATE, np.ones(4), True),
        (UPDATE_NORM, -0.1, False),
        (UPDATE_NORM, math.nan, False),
    ],
)
def test_answers_are_as_declared_or_not(signal: Signal, row: object, fits: bool) -> None:
    assert signal.fits(np.asarray(row), {"parameters": 4, "classes": 3}) is fits


def test_answers_can_be_made_up_from_shape_and_range() -> None:
    rng, lengths = np.random.default_rng(0), {"parameters": 4, "classes": 3}
    ranges = [(-math.inf, math.inf), (0, math.inf), (-math.inf, -5), (2, 9), (0.5, 0.5)]
    for low, high in ranges:
        for whole in (False, True) if low != high else (False,):
            signal = Signal(
                "s", "s", abs, shape=("classes", 2), lowest=low, highest=high, whole=whole
            )
            for _ in range(20):
                row = signal.made_up(rng, lengths)
                assert row is not None
                assert signal.fits(row, lengths), (low, high, whole, row)
    assert Signal("s", "s", abs).made_up(rng, lengths) is None
    given = Signal("s", "s", abs, example=lambda rng, lengths: [lengths["classes"]])
    assert given.made_up(rng, lengths).tolist() == [3]


def test_a_range_must_not_be_empty() -> None:
    with pytest.raises(BadParameter, match="'highest' parameter of the signal 's'"):
        Signal("s", "s", abs, lowest=1, highest=0)
