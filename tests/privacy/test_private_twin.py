from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.privacy import SizeReport
from fedcohort.privacy._mechanisms import UNIT
from fedcohort.simulation._clients import _tickets, report_size, report_sizes


def generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key))


def distance_from_the_law(answers: np.ndarray, size: int, report: SizeReport) -> float:
    """A chi-square tail: below 1e-6 the answers do not have the law of this size."""
    counts = np.bincount(answers - report.answers.start, minlength=len(report.answers))
    expected = np.array([float(p) for p in report.law(size)]) * answers.size
    possible = expected > 0
    if counts[~possible].any():
        return 0.0
    off = (counts - expected)[possible] ** 2 / expected[possible]
    return float(chi2.sf(off.sum(), possible.sum() - 1))


@pytest.mark.parametrize("mechanism", ["levels", "paper", "printed"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("size", [0, 1, 4, 9, 10, 500])
def test_the_fast_twin_has_the_law(mechanism: str, epsilon: float, size: int) -> None:
    """Level 1e-6 each."""
    report = SizeReport(11, epsilon, mechanism=mechanism)
    answers = report_sizes(generator(size), np.full(100_000, size), report)
    assert distance_from_the_law(answers, size, report) > 1e-6


def test_the_test_of_the_law_catches_defects() -> None:
    """An unclipped, a shifted and a float-rounded mechanism are all seen."""
    report = SizeReport(11, 1.0, levels=5)
    answers = report_sizes(generator(1), np.full(100_000, 4), report)
    assert distance_from_the_law(answers, 5, report) < 1e-6
    assert distance_from_the_law((answers + 1) % 5, 4, report) < 1e-6
    always_down = report_sizes(generator(1), np.full(100_000, 3), report)
    assert distance_from_the_law(always_down, 4, report) < 1e-6


def test_the_slow_twin_has_the_law() -> None:
    """Level 1e-6."""
    report, rng = SizeReport(11, 1.0), generator(2)
    answers = np.array([report_size(rng, 4, report) for _ in range(20_000)])
    assert distance_from_the_law(answers, 4, report) > 1e-6


@pytest.mark.parametrize("mechanism", ["levels", "paper", "printed"])
def test_fast_and_slow_agree_ticket_for_ticket(
    monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    """At every border of the tickets, where a borrow or an off-by-one would show."""
    report = SizeReport(12, 2.5, mechanism=mechanism)
    borders = [0, *(report.truth_weight + k * UNIT for k in range(report.levels - 1))]
    tickets = [b + d for b in borders for d in (-1, 0, 1) if 0 <= b + d < report.tickets]
    tickets += [report.tickets - 1, UNIT - 1, UNIT, UNIT + 1]
    words = [divmod(ticket, UNIT) for ticket in tickets]
    high = np.array([w[0] for w in words], dtype=np.int64)
    low = np.array([w[1] for w in words], dtype=np.uint64)
    module = "fedcohort.simulation._clients"
    monkeypatch.setattr(f"{module}._tickets", lambda *_: (high, low))
    for size in range(12):
        for offset in range(10):
            monkeypatch.setattr(f"{module}.below", lambda _, __, n, u=offset: np.full(n, u))
            fast = report_sizes(generator(1), np.full(len(tickets), size), report)
            level = report.level(size, offset)
            assert fast.tolist() == [report.answer(level, ticket) for ticket in tickets]


def test_tickets_stay_below_their_bound() -> None:
    """Also where the bound is just above a power of two and half of all draws are rejected."""
    for bound in (UNIT + 1, 3 * UNIT + 5, 4 * UNIT, 2**70 + 1):
        high, low = _tickets(generator(3), bound, 2000)
        values = [int(h) * UNIT + int(w) for h, w in zip(high, low, strict=True)]
        assert min(values) >= 0
        assert bound * 0.99 < max(values) < bound


def test_the_same_seed_gives_the_same_answers() -> None:
    report, sizes = SizeReport(300, 3.0), np.arange(500)
    first = report_sizes(generator(4), sizes, report)
    assert np.array_equal(first, report_sizes(generator(4), sizes, report))
    assert not np.array_equal(first, report_sizes(generator(5), sizes, report))


def test_all_sizes_answer_inside_the_set() -> None:
    """A million answers, none of which identifies anybody."""
    sizes = np.tile([0, 1, 299, 300, 10**9], 100_000)
    for mechanism in ("levels", "paper"):
        report = SizeReport(300, 3.0, mechanism=mechanism)
        answers = report_sizes(generator(6), sizes, report)
        assert answers.min() >= report.answers.start
        assert answers.max() < report.answers.stop


def test_no_clients_no_answers() -> None:
    assert report_sizes(generator(7), np.array([], dtype=np.int64), SizeReport(10, 1.0)).size == 0


def test_the_largest_threshold_does_not_overflow() -> None:
    report = SizeReport(2**31, 20.0, mechanism="paper")
    answers = report_sizes(generator(8), [2**31 - 1] * 1000, report)
    assert answers.min() >= 1
    assert (answers == 2**31 - 1).mean() > 0.1  # alpha = 0.18


@pytest.mark.parametrize("sizes", [[-1], [1.5], ["3"], [[1]], [None], [True]])
def test_bad_sizes_are_refused(sizes: list[object]) -> None:
    with pytest.raises(BadInput, match="sizes of simulated clients"):
        report_sizes(generator(9), sizes, SizeReport(10, 1.0))


def test_a_bad_size_is_refused() -> None:
    with pytest.raises(BadParameter, match="size"):
        report_size(generator(9), -1, SizeReport(10, 1.0))
