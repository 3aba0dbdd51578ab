"""A client's budget with a delta: many small answers cost less than their sum."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest

from fedcohort._internal.errors import BadParameter, BudgetExceeded
from fedcohort.privacy import ClientPolicy, PrivateCounts
from fedcohort.privacy._accounting import answers_epsilon
from fedcohort.privacy._client_records import Accountant


def exact(epsilons, delta):
    """The least epsilon of yes-or-no answers, over all their outcomes."""
    pairs = []
    for signs in product((1, -1), repeat=len(epsilons)):
        chances = [1.0, 1.0]
        for sign, each in zip(signs, epsilons, strict=True):
            true = math.exp(each) / (1 + math.exp(each))
            chances = [chances[0] * (true if sign > 0 else 1 - true),
                       chances[1] * (1 - true if sign > 0 else true)]  # fmt: skip
        pairs.append(chances)
    p, q = np.array(pairs).T
    low, high = 0.0, sum(epsilons)
    for _ in range(60):
        middle = (low + high) / 2
        told = np.maximum(0.0, p - math.exp(middle) * q).sum()
        low, high = (middle, high) if told > delta else (low, middle)
    return high


@pytest.mark.parametrize("epsilons", [[0.5] * 6, [1.0, 0.2, 0.2, 0.7], [0.1] * 10])
@pytest.mark.parametrize("delta", [1e-2, 1e-4])
def test_the_composition_is_that_of_all_outcomes(epsilons, delta):
    found, wanted = answers_epsilon(epsilons, delta), exact(epsilons, delta)
    assert found == pytest.approx(wanted, rel=1e-9)
    assert found <= sum(epsilons)


def test_too_many_different_epsilons_add_up():
    epsilons = [0.1 + 0.001 * i for i in range(30)]
    assert answers_epsilon(epsilons, 1e-3) == math.fsum(epsilons)


def test_without_a_delta_epsilons_add_up():
    assert answers_epsilon([0.1] * 30, 0.0) == pytest.approx(3.0)


def test_a_ceiling_is_reached_later_with_a_delta(tmp_path):
    def answered(delta, name):
        accountant = Accountant(tmp_path / name, ceiling=3.0, delta=delta)
        accountant.load()
        for number in range(500):
            try:
                accountant.book(f"question {number}", 0.1)
            except BudgetExceeded:
                return number
            accountant.close(f"question {number}")
        return 500

    assert answered(0.0, "plain") == 30
    more = answered(1e-6, "tight")
    assert 35 < more < 60
    assert answers_epsilon([0.1] * more, 1e-6) <= 3.0 < answers_epsilon([0.1] * (more + 1), 1e-6)
    again = Accountant(tmp_path / "tight", ceiling=3.0, delta=1e-6)
    again.load()
    assert again.spent == pytest.approx(answers_epsilon([0.1] * more, 1e-6))


def test_a_ceiling_holds_with_a_delta_whatever_is_asked(tmp_path):
    accountant = Accountant(tmp_path / "tight", ceiling=3.0, delta=1e-6)
    accountant.load()
    with pytest.raises(BudgetExceeded):
        accountant.require("large", 3.1)
    accountant.book("first", 2.9)
    accountant.close("first")
    with pytest.raises(BudgetExceeded):
        accountant.require("second", 2.9)
    assert accountant.spent == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("ceiling", "delta", "choices"), [(1.0, 0.05, (0.2, 0.4)), (1.0, 0.1, (0.2, 0.3, 0.5))]
)
def test_a_server_that_picks_epsilons_by_earlier_answers_gets_no_larger_delta(
    tmp_path, ceiling, delta, choices
):
    """The best of all servers, by recursion over every answer and every choice."""
    accountant = Accountant(tmp_path / "spent", ceiling=ceiling, delta=delta)

    @cache
    def admitted(booked, epsilon):
        (tmp_path / "spent").unlink(missing_ok=True)
        accountant.load()
        for number, each in enumerate(booked):
            accountant.book(str(number), each)
            accountant.close(str(number))
        try:
            accountant.require("next", epsilon)
        except BudgetExceeded:
            return False
        return True

    @cache
    def excess(booked, loss):
        """The largest P - e^ceiling Q from here on, where P = 1 and Q = e^-loss."""
        best = max(0.0, 1.0 - math.exp(ceiling - loss))
        for each in choices:
            if admitted(booked, each):
                true, more = 1 / (1 + math.exp(-each)), tuple(sorted((*booked, each)))
                told = [excess(more, round(loss + sign * each, 9)) for sign in (1, -1)]
                best = max(best, true * told[0] + (1 - true) * told[1])
        return best

    assert 0.5 * delta < excess((), 0.0) <= delta


def test_a_policy_has_it(tmp_path):
    policy = ClientPolicy(largest_epsilon=0.1, ceiling=1.0, delta=1e-6)
    client = PrivateCounts(tmp_path, policy)
    for number in range(10):
        client.answer(np.array([3, 4]), f"question {number}", 0.1, 2)
    assert client.spent <= 1.0
    with pytest.raises(BadParameter, match="delta"):
        ClientPolicy(delta=1.0)
