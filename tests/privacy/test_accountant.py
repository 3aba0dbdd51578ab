from __future__ import annotations

import math
from pathlib import Path

import pytest

from fedcohort._internal.errors import BadCheckpoint, BadParameter, BudgetExceeded
from fedcohort.privacy._client_records import Accountant, Journal


def opened(path: Path, ceiling: float = 1.0) -> Accountant:
    accountant = Accountant(path / "spent.jsonl", ceiling)
    accountant.load()
    return accountant


def test_ten_tenths_are_allowed_and_not_one_more(tmp_path: Path) -> None:
    accountant = opened(tmp_path)
    for n in range(10):  # in floats, ten times 0.1 is 0.9999999999999999 and 3 * 0.1 > 0.3
        accountant.book(f"q{n}", 0.1)
        accountant.close(f"q{n}")
    assert accountant.spent == 1.0
    with pytest.raises(BudgetExceeded) as refused:
        accountant.book("q10", 1e-6)
    assert (refused.value.spent, refused.value.asked, refused.value.allowed) == (1.0, 1e-6, 1.0)
    for number in ("1.0 is spent", "1e-06 more", "1.0 is allowed"):
        assert number in str(refused.value)


def test_a_refusal_changes_nothing(tmp_path: Path) -> None:
    accountant = opened(tmp_path)
    accountant.book("q", 0.9)
    before = (tmp_path / "spent.jsonl").read_bytes()
    with pytest.raises(BudgetExceeded):
        accountant.book("r", 0.2)
    assert (tmp_path / "spent.jsonl").read_bytes() == before
    assert not accountant.is_booked("r")


def test_a_restart_does_not_reset_the_spending(tmp_path: Path) -> None:
    opened(tmp_path).book("q", 0.7)
    again = opened(tmp_path)
    assert again.spent == 0.7
    with pytest.raises(BudgetExceeded):
        again.book("r", 0.7)


def test_an_open_booking_is_used_once(tmp_path: Path) -> None:
    opened(tmp_path).book("q", 1.0)
    again = opened(tmp_path)
    again.book("q", 1.0)  # paid for, never sent: no second payment
    assert again.spent == 1.0
    again.close("q")
    assert again.is_closed("q")
    assert again.closed == {"q"}
    with pytest.raises(BudgetExceeded):
        again.book("q", 1.0)  # sent: another draw is another payment


def test_a_lower_ceiling_counts_at_once(tmp_path: Path) -> None:
    opened(tmp_path, ceiling=2.0).book("q", 1.5)
    with pytest.raises(BudgetExceeded):
        opened(tmp_path, ceiling=1.0).book("r", 0.1)


@pytest.mark.parametrize("ceiling", [0, -1, math.nan, math.inf, "3", None, True])
def test_the_ceiling_is_a_finite_number(tmp_path: Path, ceiling: object) -> None:
    with pytest.raises(BadParameter, match="'ceiling'"):
        Accountant(tmp_path / "spent.jsonl", ceiling)


@pytest.mark.parametrize("record", [{"x": 1}, {"what": "book", "key": "q", "epsilon": "many"}])
def test_records_of_another_kind_are_refused(tmp_path: Path, record: dict[str, object]) -> None:
    journal = Journal(tmp_path / "spent.jsonl")
    journal.read()
    journal.append(record)
    with pytest.raises(BadCheckpoint, match=r"spent\.jsonl' is not a list"):
        opened(tmp_path)
