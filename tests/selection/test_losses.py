"""Losses as clients may send them: entries 69 to 79 of the catalogue of bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, FedcohortWarning
from fedcohort.selection._queries import comparable, sound


def test_good_losses_pass_without_a_word() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert comparable([0, 1.5, 2], "pow-d").tolist() == [0, 1.5, 2]
        assert comparable(np.array([], dtype=float), "pow-d").tolist() == []


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0])
def test_a_report_that_is_no_loss_is_rejected(bad: float) -> None:
    with pytest.warns(FedcohortWarning, match="1 of 3 losses are not finite numbers of at least 0"):
        losses = comparable([1.0, bad, 2.0], "pow-d")
    assert np.isnan(losses[1])
    assert losses[[0, 2]].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("bad", ["9", 1j, True, [1], b"1"])
def test_a_report_that_is_no_number_is_rejected(bad: object) -> None:
    reports = np.empty(3, dtype=object)
    reports[:] = [1.0, bad, 2.0]
    with pytest.warns(FedcohortWarning, match="do not count"):
        assert np.isnan(comparable(reports, "pow-d")[1])


def test_an_overflow_in_16_bits_is_rejected_with_a_hint() -> None:
    with np.errstate(over="ignore"), pytest.warns(FedcohortWarning, match="overflowed"):
        losses = comparable(np.array([1.0, 1e6], dtype=np.float16), "pow-d")
    assert np.isnan(losses[1])


def test_negative_losses_where_they_are_allowed() -> None:
    assert comparable([-2.0, 1.0], "pow-d", negative=True).tolist() == [-2.0, 1.0]
    assert comparable([-0.0, 1.0], "pow-d").tolist() == [0.0, 1.0]


def test_a_silent_client_is_taken_for_a_typical_one() -> None:
    with pytest.warns(FedcohortWarning, match="1 of 4 clients did not tell"):
        told, missing, *_ = comparable([3.0, None, 5.0, 1.0], "pow-d")
    assert missing == np.nextafter(told, 0)  # the median, but not before the client that told it
    with pytest.warns(FedcohortWarning, match="1 of 2 losses are not finite"):
        assert np.isnan(sound([1.0, None], "rpow-d")[1])


def test_the_median_of_huge_or_zero_losses() -> None:
    with pytest.warns(FedcohortWarning, match="did not tell"):
        assert comparable([0.0, None, 0.0], "average-loss").tolist() == [0, 0, 0]
    with pytest.warns(FedcohortWarning, match="did not tell"):
        assert np.isfinite(comparable([1e100, None, 1e100], "pow-d")).all()


def test_what_is_larger_than_any_loss_is_rejected() -> None:
    # Its square, or the sum of two, would be infinite: OverflowError in a mean of a group.
    with pytest.warns(FedcohortWarning, match="2 of 3 losses"):
        assert np.isnan(comparable([1.7e308, 1.7e308, 1.0], "best-loss")[:2]).all()


def test_if_nothing_can_be_used_all_are_equal() -> None:
    with pytest.warns(FedcohortWarning) as told:
        assert comparable([np.nan, np.inf, None], "pow-d").tolist() == [0, 0, 0]
    assert ["taken at random" in str(one.message) for one in told] == [True]


def test_one_number_per_client() -> None:
    with pytest.raises(BadInput, match="one number per client; pow-d got an array of shape"):
        comparable([[1.0, 2.0]], "pow-d")
