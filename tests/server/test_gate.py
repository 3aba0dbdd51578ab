"""Whatever a client sends, the gate says what is wrong with it and never raises."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes

from fedcohort.server import Fault, Form, Gate
from fedcohort.server._reply_validation import Report, Ticket

FORM = Form({"w": (2,), "b": ()}, limit=100)
GOOD = {"w": np.array([1.0, 2.0]), "b": np.array(0.5)}


def opened() -> Gate:
    gate = Gate()
    gate.open("7", {"a": Ticket(3, "node-3"), "b": Ticket(5, "node-5")}, FORM)
    return gate


def report(ticket: str = "a", sender: object = "node-3", round: str = "7", nbytes: int = 24):
    return Report(ticket, sender, round, nbytes)


def test_a_good_report_passes() -> None:
    gate = opened()
    assert gate.check(report()) is None
    assert gate.content("a", GOOD) is None
    assert gate.client("a") == 3
    assert gate.close().tolist() == [5]
    assert gate.summary() == {"missing": 1}


@pytest.mark.parametrize(
    ("bad", "fault"),
    [
        (report(ticket="x"), Fault.NOT_ASKED),
        (report(sender="node-5"), Fault.NOT_ASKED),
        (report(round="6"), Fault.OTHER_ROUND),
        (report(nbytes=10_000_000), Fault.TOO_LARGE),
    ],
)
def test_reports_that_are_not_even_unpacked(bad: Report, fault: Fault) -> None:
    gate = opened()
    assert gate.check(bad) is fault
    assert gate.counts[fault] == 1


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"w": np.array([np.nan, 1.0])}, Fault.NOT_FINITE),
        ({"w": np.array([np.inf, 1.0])}, Fault.NOT_FINITE),
        ({"w": np.array([1.0, 2.0, 3.0])}, Fault.WRONG_SHAPE),
        ({"w": np.array([[1.0, 2.0]])}, Fault.WRONG_SHAPE),
        ({"w": np.array(["a", "b"])}, Fault.WRONG_TYPE),
        ({"w": np.array([1j, 2j])}, Fault.WRONG_TYPE),
        ({"w": np.array([True, False])}, Fault.WRONG_TYPE),
        ({"extra": np.array(1.0)}, Fault.WRONG_KEYS),
    ],
)
def test_contents_that_are_rejected(change: dict[str, np.ndarray], fault: Fault) -> None:
    gate = opened()
    assert gate.check(report()) is None
    assert gate.content("a", {**GOOD, **change}) is fault
    assert gate.by_client[3, fault] == 1
    assert gate.close().tolist() == [5]  # it did answer, only badly


def test_a_number_outside_the_range_is_rejected() -> None:
    gate = Gate()
    gate.open("1", {"a": Ticket(0)}, Form({"size": ()}, lowest=0))
    assert gate.content("a", {"size": np.array(-1)}) is Fault.OUT_OF_RANGE


@pytest.mark.parametrize("row", [[0, 2], [0, 0], [2, 2]])
def test_the_ends_of_a_range_belong_to_it(row: list[int]) -> None:
    form = Form({"size": (2,)}, lowest=0, highest=2)
    assert form.fault({"size": np.array(row)}) is None
    for beyond in ([-1, 1], [1, 3]):
        assert form.fault({"size": np.array(beyond)}) is Fault.OUT_OF_RANGE


def test_of_two_answers_the_first_good_one_counts() -> None:
    gate = opened()
    assert gate.check(report()) is None
    assert gate.content("a", {**GOOD, "w": np.array([np.nan, 0])}) is Fault.NOT_FINITE
    assert gate.check(report()) is None  # a second try is welcome
    assert gate.content("a", GOOD) is None
    assert gate.check(report()) is Fault.TWICE


def test_an_answer_to_an_earlier_exchange_is_late() -> None:
    gate = opened()
    gate.close()
    gate.open("8", {"c": Ticket(3, "node-3")}, FORM)
    assert gate.check(report(ticket="a")) is Fault.LATE


def test_answers_of_an_odd_shape_are_rejected() -> None:
    gate = Gate()
    rows = {0: np.zeros(3), 1: np.zeros(3), 2: np.zeros(4)}
    assert sorted(gate.alike(rows)) == [0, 1]
    assert gate.by_client[2, Fault.WRONG_SHAPE] == 1


@given(
    arrays(scalar_dtypes(), array_shapes(min_dims=0, max_dims=3, max_side=3)),
    st.sampled_from(["w", "b", "other"]),
)
def test_no_content_raises(array: np.ndarray, name: str) -> None:
    gate = opened()
    fault = gate.content("a", {**GOOD, name: array})
    if fault is None:
        assert np.isfinite(np.asarray(array, dtype=float)).all()


def test_what_a_client_that_failed_said_is_one_short_line() -> None:
    gate = Gate()
    assert gate.quote() == ""
    gate.open("1", {"a": Ticket(4), "b": Ticket(5)}, Form({}))
    gate.failed("a", 10_000 * "line " + "no\n\x1b[31m disk")
    gate.failed("stranger", "believe me")
    assert list(gate.errors) == [4]
    assert gate.errors[4].startswith("... ")
    assert gate.errors[4].endswith("no [31m disk")
    assert len(gate.errors[4]) < 310
    assert gate.quote().startswith(" The last client that failed said '... ")
    gate.open("1", {}, Form({}))  # an exchange with nobody says nothing new
    assert gate.errors
    gate.open("2", {"c": Ticket(4)}, Form({}))
    assert not gate.errors


def test_what_was_wrong_is_kept_until_it_was_told_and_there_is_something_newer() -> None:
    gate = opened()
    gate.failed("b", "no disk")
    gate.content("a", {})
    gate.open("7", {"c": Ticket(4)}, FORM)  # a scheme may ask twice in a round
    gate.content("c", {"w": GOOD["w"]})
    assert list(gate.notes) == [3, 4]
    assert gate.news() == {"failed": 1, "wrong_keys": 2}
    assert gate.news() == {}
    assert "'no disk'" in gate.quote()  # until there is something newer
    assert "of 4: wrong_keys" in gate.quote()
    gate.open("8", {"d": Ticket(3), "e": Ticket(4)}, FORM)
    gate.content("e", {**GOOD, "b": np.array(np.nan)})
    gate.content("d", {**GOOD, "b": np.zeros(2)})
    assert list(gate.notes) == [4, 3]  # the last is the last that came
    assert gate.quote().startswith(" The last report that was rejected, of 3: wrong_shape")
    assert gate.news() == {"wrong_shape": 1, "not_finite": 1}


def test_wrong_keys_name_those_that_were_expected() -> None:
    gate = opened()
    gate.check(report())
    gate.content("a", {"w": GOOD["w"], "weights": GOOD["b"], 1000 * "x": GOOD["b"]})
    assert gate.notes[3].startswith("wrong_keys: must have exactly ['b', 'w'], not ['w', 'weights'")
    assert len(gate.quote()) < 400
    assert gate.quote().startswith(" The last report that was rejected, of 3: wrong_keys: ")


@pytest.mark.parametrize(
    ("row", "fault"),
    [([1.0, 2.0], None), ([1, 2], None), ([0.5, 1.0], Fault.OUT_OF_RANGE)],
)
def test_what_must_be_whole_is(row: list[float], fault: Fault | None) -> None:
    assert Form({"counts": (2,)}, whole=True).fault({"counts": np.array(row)}) is fault


def test_faults_are_filed_under_the_name_of_a_client() -> None:
    gate = Gate()
    gate.open("1", {"a": Ticket(4, name="oslo")}, Form({"x": ()}))
    gate.content("a", {"x": np.zeros(3)})
    gate.close()
    gate.found(4, Fault.OUT_OF_RANGE, "too large")
    assert set(gate.by_client) == {("oslo", Fault.WRONG_SHAPE), ("oslo", Fault.OUT_OF_RANGE)}
