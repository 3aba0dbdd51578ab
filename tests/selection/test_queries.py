from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, CannotAsk, UndeclaredSignal
from fedcohort.selection import LOSS, SIZE, Ask, converse
from fedcohort.selection._queries import usable

BOTH = frozenset({LOSS, SIZE})


def talk() -> Any:
    losses = yield Ask(LOSS, np.array([0, 2]))
    sizes = yield Ask(SIZE, np.array([1]))
    return losses.tolist(), sizes.tolist()


def test_a_talk_is_driven_to_its_end() -> None:
    heard = []
    result = converse(
        talk(),
        lambda ask: ask.clients * 1.5,
        BOTH,
        lambda ask, rows: heard.append((ask.signal.name, rows.tolist())),
    )
    assert result == ([0.0, 3.0], [1.5])
    assert heard == [("loss", [0.0, 3.0]), ("size", [1.5])]


def test_a_plain_value_is_a_talk_without_questions() -> None:
    assert converse(7, None) == 7


def test_only_what_is_declared_is_asked() -> None:
    with pytest.raises(UndeclaredSignal, match="md asks for 'size' without declaring it"):
        converse(talk(), lambda ask: ask.clients, frozenset({LOSS}), speaker="md")


def test_a_question_needs_somebody_to_answer() -> None:
    with pytest.raises(CannotAsk, match=r"md asks clients for 'loss' \(the loss of the model"):
        converse(talk(), None, BOTH, speaker="md")


@pytest.mark.parametrize("rows", [3.0, [1.0], [[1.0]]])
def test_one_row_per_client(rows: Any) -> None:
    with pytest.raises(BadInput, match="one row per client asked: 2 clients"):
        converse(talk(), lambda ask: rows, BOTH)


def test_a_talk_is_closed_whatever_happens() -> None:
    closed = []

    def careful() -> Any:
        try:
            yield Ask(LOSS, np.array([0]))
        finally:
            closed.append(True)

    with pytest.raises(ZeroDivisionError) as caught:
        converse(careful(), lambda ask: 1 / 0, BOTH, speaker="md")  # type: ignore[arg-type,return-value]
    assert closed == [True]
    assert caught.value.__notes__ == ["md was asking 1 clients for 'loss'."]


def test_an_error_of_the_scheme_is_its_own() -> None:
    def broken() -> Any:
        yield Ask(LOSS, np.array([0]))
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        converse(broken(), lambda ask: np.ones(1), BOTH)
    assert not hasattr(caught.value, "__notes__")


def test_what_is_no_finite_number_is_marked() -> None:
    assert np.isnan(usable(np.array([1.0, np.inf, np.nan]))).tolist() == [False, True, True]
