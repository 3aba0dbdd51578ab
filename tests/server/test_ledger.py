from __future__ import annotations

import numpy as np
import pytest

from fedcohort import Ask, Federation, Selector, scheme
from fedcohort.selection import LOSS, SIZE, UPDATE, UPDATE_NORM, Signal
from fedcohort.server import Ledger
from fedcohort.server._ledger import REQUEST_BYTES

MODEL = 1_000


def test_a_question_costs_a_request_and_an_answer() -> None:
    ledger = Ledger(model_bytes=MODEL)
    ledger.asked(0, Ask(SIZE, np.array([1, 2])), np.array([5, 6]))
    assert ledger.total() == (4, 2 * REQUEST_BYTES, 2 * 8)
    assert ledger.total().bytes == 2 * REQUEST_BYTES + 16


def test_a_model_is_downloaded_once_in_a_round() -> None:
    ledger = Ledger(model_bytes=MODEL, update_bytes=10)
    ledger.asked(0, Ask(LOSS, np.array([1, 2])), np.ones(2))
    ledger.asked(0, Ask(LOSS, np.array([2, 3])), np.ones(2))
    ledger.trained(0, np.array([3, 4]))
    down = [entry.bytes_down - entry.clients * REQUEST_BYTES for entry in ledger.entries[:2]]
    assert down == [2 * MODEL, MODEL]
    assert ledger.entries[2].bytes_down == MODEL
    assert ledger.entries[2].bytes_up == 20
    ledger.trained(1, np.array([4]))
    assert ledger.of_round(1) == (2, MODEL, 10)


def test_sums_by_round_and_by_purpose() -> None:
    ledger = Ledger(model_bytes=MODEL)
    ledger.asked(-1, Ask(SIZE, np.arange(3)), np.ones(3))
    ledger.trained(0, np.array([0]))
    ledger.trained(1, np.array([0, 2]))
    assert [ledger.of_round(round).messages for round in (-1, 0, 1)] == [6, 2, 4]
    assert ledger.total().messages == 12
    assert sum(cost.bytes for cost in ledger.by_purpose().values()) == ledger.total().bytes
    assert set(ledger.disclosures()) == {"size", "training"}


def test_nobody_costs_nothing() -> None:
    ledger = Ledger(model_bytes=MODEL)
    ledger.trained(0, np.array([], dtype=np.int64))
    ledger.asked(0, Ask(SIZE, np.array([], dtype=np.int64)), np.empty(0))
    assert ledger.entries == []
    assert ledger.total() == (0, 0, 0)


def test_what_is_listened_to_is_disclosed() -> None:
    ledger = Ledger()
    ledger.trained(0, np.array([0]), frozenset({LOSS, UPDATE}))
    assert "the loss of the model" in ledger.disclosures()["training"]
    assert "hence much of the data" in ledger.disclosures()["training"]


@pytest.mark.parametrize(
    ("listens", "says"),
    [
        ({UPDATE}, "the model update, hence much of the data"),
        ({LOSS}, "the model update, unless securely aggregated; the loss of the model"),
        (set(), "the model update, unless securely aggregated"),
    ],
)
def test_an_update_that_must_be_seen_is_not_called_hidden(listens: set[Signal], says: str) -> None:
    ledger = Ledger()
    ledger.trained(0, np.array([0]), frozenset(listens))
    told = ledger.disclosures()["training"]
    assert told.startswith(says)
    assert told.count("the model update") == 1


@pytest.mark.parametrize(("available", "asked"), [(None, 4), ([0, 2], 2)])
def test_a_selector_books_everything(available: list[int] | None, asked: int) -> None:
    ledger = Ledger(model_bytes=MODEL)
    federation = Federation.from_sizes([4, 3, 2, 1])
    selector = Selector(
        scheme("optimal", m=2),
        federation,
        seed=0,
        ask=lambda ask: np.ones(len(ask.clients)),
        ledger=ledger,
    )
    cohort = selector.select(available)
    selector.observe()
    question = ledger.entries[0]
    assert (question.purpose, question.clients) == (UPDATE_NORM.name, asked)
    assert question.bytes_down == asked * (REQUEST_BYTES + MODEL)
    training = ledger.by_purpose().get("training")
    if len(cohort):
        assert training is not None
        assert training.bytes_down == 0  # whoever was asked has the model already
        assert training.bytes_up == len(cohort) * MODEL
