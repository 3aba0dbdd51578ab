from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, TooImprecise
from fedcohort.privacy import (
    Clipping,
    Rate,
    SizeReport,
    TotalEstimate,
    clipping,
    clipping_from_rate,
    data_rate,
    estimate_total,
    first_answers,
    standard_error,
    variance_of_total,
)
from fedcohort.privacy._size_estimate import unbiased_total
from fedcohort.simulation._clients import report_sizes


def generator(key: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(key))


def lognormal_sizes(clients: int, threshold: int, key: int = 1) -> np.ndarray:
    """Sizes with sigma = 1 and mean M/4, as in the measurements the formulas were checked with."""
    mean = threshold / 4
    sizes = generator(key).lognormal(math.log(mean) - 0.5, 1.0, clients)
    return np.clip(np.round(sizes), 1, threshold - 1).astype(np.int64)


def repeated(sizes: np.ndarray, report: SizeReport, times: int, key: int) -> np.ndarray:
    """Answers of the same clients, asked many times.  # (times, n)"""
    return report_sizes(generator(key), np.tile(sizes, times), report).reshape(times, -1)


# -- golden numbers ----------------------------------------------------------------------------


def paper(threshold: int) -> SizeReport:
    return SizeReport(threshold, 3.0, mechanism="paper")


@pytest.mark.parametrize(
    ("responses", "alpha", "threshold", "total"),
    [
        ([3, 7, 10, 2], Fraction(1, 4), 11, 22),
        ([1, 1, 1, 1], Fraction(1, 4), 11, -50),
        ([5, 5], Fraction(1, 2), 10, 10),
        ([299, 299, 299], Fraction(3, 50), 300, 7900),
    ],
)
def test_the_papers_estimator(
    responses: list[int], alpha: Fraction, threshold: int, total: int
) -> None:
    clients = len(responses)
    found = unbiased_total(sum(responses) - clients, clients, paper(threshold), alpha)
    assert found == total
    assert found == (sum(responses) - (1 - alpha) * threshold * clients / 2) / alpha  # (2)


@pytest.mark.parametrize(
    ("sizes", "alpha", "threshold", "variance"),
    [
        ([2, 2, 2, 2], Fraction(1, 2), 10, Fraction(268, 3)),
        ([1, 2, 3, 50, 99], Fraction(1, 6), 100, Fraction(169075)),
        ([5], Fraction(1), 10, Fraction(0)),
    ],
)
def test_the_papers_variance(
    sizes: list[int], alpha: Fraction, threshold: int, variance: Fraction
) -> None:
    assert variance_of_total(sizes, paper(threshold), alpha) == variance


def test_the_exact_distribution_of_a_small_case() -> None:
    """Sizes 1, 2, 7 at M = 6, alpha = 1/3: every outcome, in fractions."""
    sizes, threshold, alpha = [1, 2, 7], 6, Fraction(1, 3)
    report = paper(threshold)
    outcomes: Counter[Fraction] = Counter()
    for answers in itertools.product(range(1, threshold), repeat=3):
        chance = Fraction(1)
        for size, answer in zip(sizes, answers, strict=True):
            chance *= alpha * (answer == report.clip(size)) + (1 - alpha) / (threshold - 1)
        outcomes[unbiased_total(sum(answers) - 3, 3, report, alpha)] += chance
    mean = sum(value * chance for value, chance in outcomes.items())
    variance = sum((value - mean) ** 2 * chance for value, chance in outcomes.items())
    assert (mean, variance) == (8, 54)
    assert variance == variance_of_total(sizes, report, alpha)
    assert sum(chance for value, chance in outcomes.items() if value <= 0) == Fraction(14, 75)
    assert len(outcomes) == 13
    loss = clipping(sizes, report)
    assert (loss.bias, loss.total, loss.clipped) == (-2, 10, 1)


@pytest.mark.parametrize(
    ("samples", "total", "floor", "rate"),
    [(2048, 130000.0, 53520, 0.015753846153846153), (2048, -500.0, 53520, 0.038266068759342305)],
)
def test_the_rate(samples: int, total: float, floor: int, rate: float) -> None:
    found = data_rate(samples, total, floor)
    assert found.value == rate
    assert (found.floored, found.capped) == (total < floor, False)


def test_the_rate_is_capped_with_a_warning() -> None:
    with pytest.warns(FedcohortWarning, match="every sample takes part"):
        rate = data_rate(10, 4.0, 1)
    assert (rate.value, rate.floored, rate.capped) == (1.0, False, True)
    assert data_rate(10, 10.0, 1) == Rate(1.0, floored=False, capped=False)  # no warning


# -- exact -------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
@pytest.mark.parametrize("threshold", [3, 4, 7, 12])
def test_mean_and_variance_are_those_of_the_law(threshold: int, mechanism: str) -> None:
    report = SizeReport(threshold, 2.0, mechanism=mechanism)
    for size in range(threshold + 2):
        law = list(zip(report.law(size), report.answers, strict=True))
        values = {a: unbiased_total(a - report.lowest, 1, report) for _, a in law}
        mean = sum(p * values[a] for p, a in law)
        assert mean == report.clip(size)
        assert all(values[a] == report.value(a) for _, a in law)
        variance = sum(p * (values[a] - mean) ** 2 for p, a in law)
        assert variance == variance_of_total([size], report)


def test_variances_add_up() -> None:
    report = SizeReport(300, 3.0)
    sizes = [0, 1, 1, 7, 150, 299, 4000]
    assert variance_of_total(sizes, report) == sum(variance_of_total([s], report) for s in sizes)


@pytest.mark.parametrize(
    ("threshold", "epsilon", "krr", "glevel"),
    [(100, 3.0, 77.7, 12.2), (300, 3.0, 209, 12.4), (300, 5.0, 37.5, 5.48), (10, 1.0, 68.6, 33.0)],
)
def test_relative_errors_are_those_measured_before(
    threshold: int, epsilon: float, krr: float, glevel: float
) -> None:
    """Per cent of N for 100 clients, from an independent implementation (one draw of sizes)."""
    sizes = lognormal_sizes(20_000, threshold)
    scale = 100 * math.sqrt(len(sizes) / 100) / sizes.sum()
    by_paper = SizeReport(threshold, epsilon, mechanism="paper")
    assert standard_error(sizes, by_paper) * scale == pytest.approx(krr, rel=0.03)
    assert standard_error(sizes, SizeReport(threshold, epsilon)) * scale == pytest.approx(
        glevel, rel=0.03
    )


# -- simulation --------------------------------------------------------------------------------


def estimates(sizes: np.ndarray, report: SizeReport, times: int, key: int) -> list[TotalEstimate]:
    answers = repeated(sizes, report, times, key)
    return [estimate_total(row, report, when_imprecise="accept") for row in answers]


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
def test_the_standard_error_is_that_of_the_formula(mechanism: str) -> None:
    """Within 5 %: with 6,000 repetitions that is 5.5 standard deviations, below 1e-6."""
    report = SizeReport(300, 3.0, mechanism=mechanism)
    sizes, times = lognormal_sizes(100, 300), 6000
    answers = repeated(sizes, report, times, key=2)
    sums = (answers - report.lowest).sum(axis=1)
    totals = np.array([float(unbiased_total(int(s), 100, report)) for s in sums])
    formula = standard_error(sizes, report)
    assert totals.std() == pytest.approx(formula, rel=0.05)
    assert abs(totals.mean() - sizes.sum()) < 4.9 * formula / math.sqrt(times)
    # A planted defect: every answer one off, as when the lowest answer is taken for the other's.
    shifted = float(unbiased_total(100, 100, report) - unbiased_total(0, 100, report))
    assert abs(totals.mean() + shifted - sizes.sum()) > 4.9 * formula / math.sqrt(times)


@pytest.mark.parametrize(
    ("epsilon", "mechanism"), [(3.0, "levels"), (8.0, "levels"), (3.0, "paper")]
)
def test_the_server_estimates_its_own_error(epsilon: float, mechanism: str) -> None:
    """Sizes spread evenly: the mean of the estimated variances is the variance, within 2 %."""
    report = SizeReport(300, epsilon, mechanism=mechanism)
    sizes = np.arange(1, 300)
    found = np.mean([e.standard_error**2 for e in estimates(sizes, report, 500, key=12)])
    assert found == pytest.approx(float(variance_of_total(sizes, report)), rel=0.02)


def test_levels_beat_the_paper_tenfold() -> None:
    sizes = lognormal_sizes(100, 300)
    found = {}
    for mechanism in ("levels", "paper"):
        report = SizeReport(300, 3.0, mechanism=mechanism)
        sums = (repeated(sizes, report, 2000, key=3) - report.lowest).sum(axis=1)
        found[mechanism] = np.std([float(unbiased_total(int(s), 100, report)) for s in sums])
    assert found["levels"] <= found["paper"] / 10


@pytest.mark.parametrize(
    ("threshold", "epsilon", "mechanism", "shape"),
    [
        (300, 3.0, "levels", "lognormal"),
        pytest.param(300, 3.0, "paper", "lognormal", marks=pytest.mark.slow),
        pytest.param(100, 1.0, "levels", "lognormal", marks=pytest.mark.slow),
        pytest.param(300, 5.0, "levels", "lognormal", marks=pytest.mark.slow),
        pytest.param(300, 3.0, "levels", "uniform", marks=pytest.mark.slow),
        pytest.param(300, 3.0, "levels", "tiny", marks=pytest.mark.slow),
    ],
)
def test_intervals_cover(threshold: int, epsilon: float, mechanism: str, shape: str) -> None:
    """94 to 96 % of 10,000; the count has a standard deviation of 0.22 %."""
    sizes = {
        "lognormal": lognormal_sizes(300, threshold),
        "uniform": generator(4).integers(1, threshold, 300),
        "tiny": generator(5).geometric(0.5, 300),
    }[shape]
    report = SizeReport(threshold, epsilon, mechanism=mechanism)
    found = estimates(sizes, report, 10_000, key=6)
    true = sizes.sum()
    assert 0.94 <= np.mean([e.low <= true <= e.high for e in found]) <= 0.96


def test_cautious_intervals_cover_the_worst_sizes() -> None:
    """All clients half-way between two levels: the usual rule is short, the cautious is not."""
    report = SizeReport(302, 3.0)
    sizes = np.full(300, 151)
    answers = repeated(sizes, report, 2500, key=7)
    cover = {}
    for cautious in (False, True):
        rows = [
            estimate_total(r, report, cautious=cautious, when_imprecise="accept") for r in answers
        ]
        cover[cautious] = np.mean([e.low <= sizes.sum() <= e.high for e in rows])
    assert 0.91 <= cover[False] < cover[True]
    assert 0.93 <= cover[True] <= 0.97


def test_partial_answers_are_scaled_and_widened() -> None:
    """60 % answer at random: unbiased, intervals cover; without widening they would not."""
    report, times, clients, heard = SizeReport(300, 8.0), 2000, 500, 300
    sizes = lognormal_sizes(clients, 300)
    rng = generator(8)
    covered, covered_unwidened, totals = 0, 0, []
    for _ in range(times):
        who = rng.permutation(clients)[:heard]
        answers = report_sizes(rng, sizes[who], report)
        whole = estimate_total(answers, report, asked=clients)
        part = estimate_total(answers, report)
        totals.append(whole.total)
        covered += whole.low <= sizes.sum() <= whole.high
        reach = (part.high - part.total) * clients / heard
        covered_unwidened += abs(whole.total - sizes.sum()) <= reach
        assert whole.total == pytest.approx(part.total * clients / heard)
    assert 0.925 <= covered / times <= 0.975
    assert covered_unwidened / times < 0.9
    error = np.std(totals) / math.sqrt(times)
    assert abs(np.mean(totals) - sizes.sum()) < 4.9 * error


def test_one_answer_of_many_is_widened_by_the_whole_range() -> None:
    report = SizeReport(100, 8.0)
    assert report.levels > 2
    alone, of_two = (
        estimate_total([2], report, asked=asked, when_imprecise="accept").standard_error
        for asked in (1, 2)
    )
    # A mean of one out of two, where sizes are at most (98 / 2) ** 2 about their mean.
    assert (of_two / 2) ** 2 - alone**2 == pytest.approx((1 - 1 / 2) * (98 / 2) ** 2)


def test_where_every_size_has_a_level_the_estimated_variance_is_right_on_average() -> None:
    report = paper(6)
    assert report.levels == 5  # nothing is rounded
    for size in range(1, 6):
        mean = 0.0
        for answer in range(1, 6):
            chance = report.alpha * (answer == size) + (1 - report.alpha) / 5
            found = estimate_total([answer], report, when_imprecise="accept")
            mean += float(chance) * found.standard_error**2
        assert mean == pytest.approx(float(variance_of_total([size], report)))


def test_caution_is_the_worst_rounding_and_not_the_usual_one() -> None:
    usual, cautious = (
        estimate_total([0, 1, 2, 3] * 50, REPORT, cautious=cautious).standard_error
        for cautious in (False, True)
    )
    spacing = 298 / (REPORT.levels - 1)  # f (1 - f) is 1/6 on average and at most 1/4
    assert cautious**2 - usual**2 == pytest.approx(200 * (1 / 4 - 1 / 6) * spacing**2)


# -- defined results ---------------------------------------------------------------------------

REPORT = SizeReport(300, 3.0)


def test_answers_outside_the_set_are_rejected_and_counted() -> None:
    good = [0, 1, 2, 3] * 500
    bad = [-1, 4, 2.5, math.nan, math.inf, "2", True, 3j, 10**30, [1]]
    clean = estimate_total(good, REPORT)
    mixed = estimate_total([*good, *bad], REPORT)
    assert (mixed.answered, mixed.rejected, mixed.asked) == (2000, 10, 2010)
    assert mixed.total == pytest.approx(clean.total * 2010 / 2000)
    assert estimate_total([*good, *bad], REPORT, asked=2000).total == clean.total


def test_arrays_and_lists_are_the_same() -> None:
    answers = np.array([0, 1, 2, 3, 9, -4] * 100)
    assert estimate_total(answers, REPORT) == estimate_total(answers.tolist(), REPORT)
    assert estimate_total(answers.astype(float), REPORT) == estimate_total(answers, REPORT)
    assert estimate_total(answers.astype(np.int8), REPORT) == estimate_total(answers, REPORT)


def test_no_answer_is_not_a_rejected_one() -> None:
    estimate = estimate_total([0, 1, None, 3, None] * 100, REPORT)
    assert (estimate.answered, estimate.rejected, estimate.asked) == (300, 0, 500)


@pytest.mark.parametrize("answers", [[], [None, None], [17, "x"], np.array([], dtype=int)])
def test_no_answers_are_an_error(answers: list[object]) -> None:
    with pytest.raises(BadInput, match="No client gave an answer"):
        estimate_total(answers, REPORT)


def test_a_client_that_answers_twice_counts_once() -> None:
    kept = first_answers([("a", 3), ("b", 1), ("a", 0), ("b", 1)])
    assert list(kept.values()) == [3, 1]


def test_a_total_below_zero_gets_a_floor() -> None:
    report = SizeReport(300, 3.0, mechanism="paper")
    with pytest.raises(TooImprecise, match="beyond measure"):
        estimate_total([1] * 100, report)
    with pytest.warns(FedcohortWarning, match="too uncertain"):
        estimate = estimate_total([1] * 100, report, when_imprecise="warn")
    assert estimate.total < 0 < estimate.standard_error
    assert (estimate.floored, estimate.usable, estimate.floor) == (True, 100, 100)
    assert estimate.relative_error == math.inf
    rate = estimate.rate(20)
    assert (rate.value, rate.floored, rate.capped) == (0.2, True, False)
    with pytest.warns(FedcohortWarning):
        assert estimate.rate(2000).value == 1.0
    assert "below its floor 100" in str(estimate)


def test_a_floor_may_be_known() -> None:
    estimate = estimate_total([0] * 1000, REPORT, floor=5000, when_imprecise="accept")
    assert estimate.usable == 5000


def test_a_noisy_total_is_refused_with_the_number_of_clients_it_needs() -> None:
    sizes = lognormal_sizes(20, 300)
    answers = report_sizes(generator(9), sizes, REPORT)
    estimate = estimate_total(answers, REPORT, when_imprecise="accept")
    assert estimate.relative_error > 0.15
    with pytest.raises(TooImprecise, match=r"Ask about \d+ clients"):
        estimate_total(answers, REPORT, tolerance=0.15)
    assert estimate_total(answers, REPORT, tolerance=0.9) == estimate


@pytest.mark.parametrize("samples", [0, -1, math.nan, math.inf, "5", None, True])
def test_a_bad_number_of_samples_is_refused(samples: object) -> None:
    with pytest.raises(BadParameter, match="'samples'"):
        data_rate(samples, 100.0, 10)


def test_a_rate_needs_numbers() -> None:
    with pytest.raises(BadParameter, match="'total'"):
        data_rate(1, math.nan, 10)
    with pytest.raises(BadParameter, match="'floor'"):
        data_rate(1, 10.0, 0)


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("asked", 3),
        ("asked", 10.5),
        ("confidence", 1.0),
        ("confidence", math.nan),
        ("tolerance", 0.0),
        ("tolerance", math.nan),
        ("floor", math.nan),
        ("floor", -1),
        ("when_imprecise", "ignore"),
    ],
)
def test_bad_options_are_refused(option: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{option}'"):
        estimate_total([0, 1, 2, 3], REPORT, **{option: value})


def test_clipping_is_reported() -> None:
    report = SizeReport(11, 3.0)
    assert clipping([0, 5, 12], report) == Clipping(3, 1, 1, -1.0, 17.0)
    assert clipping([10, 11], report).clipped == 1  # the largest size that is told as it is
    assert clipping([], report).relative == 0.0
    heavy = clipping([5] * 90 + [110] * 10, report)
    assert heavy.relative == pytest.approx(-1000 / 1550)
    with pytest.raises(BadParameter, match="size"):
        clipping([-1], report)


def test_clipping_from_a_rate() -> None:
    """The share of large clients and their mean excess give the same as the sizes."""
    report = SizeReport(11, 5.0)
    sizes = [5] * 900 + [110] * 100
    answers = report_sizes(generator(10), np.array(sizes), report)
    estimate = estimate_total(answers, report)
    guess = clipping_from_rate(estimate, 0.1, 100.0)
    assert guess == Clipping(1000, 100, 0, -10_000.0, estimate.total + 10_000)
    assert guess.bias == clipping(sizes, report).bias
    assert clipping_from_rate(estimate, 0.1, 0.0).bias == 0  # the least that can be
    assert clipping_from_rate(estimate, 0.1, 0.5).bias == pytest.approx(-50)
    for rate, excess in ((-0.1, 1.0), (1.1, 1.0), (0.1, -1.0), (math.nan, 1.0), (0.1, math.nan)):
        with pytest.raises(BadParameter):
            clipping_from_rate(estimate, rate, excess)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=50), st.integers(0, 50))
def test_the_estimate_is_sane_for_all_answers(answers: list[int], silent: int) -> None:
    asked = len(answers) + silent
    estimate = estimate_total(answers, REPORT, asked=asked, when_imprecise="accept")
    assert math.isfinite(estimate.total)
    assert estimate.standard_error > 0
    assert estimate.low < estimate.total < estimate.high
    assert estimate.usable >= len(answers)
    mirrored = [3 - answer for answer in answers]
    other = estimate_total(mirrored, REPORT, asked=asked, when_imprecise="accept")
    assert estimate.total + other.total == pytest.approx(300 * asked)
    assert other.standard_error == pytest.approx(estimate.standard_error)


def test_liars_move_the_total_less_with_few_levels() -> None:
    """1 % of clients always send the top answer: +37 % (paper) against +3.7 % (levels)."""
    for mechanism, moved in (("levels", 0.037), ("paper", 0.37)):
        report = SizeReport(300, 3.0, mechanism=mechanism)
        shift = float(report.value(report.answers[-1])) - 70
        assert 0.01 * shift / 70 == pytest.approx(moved, rel=0.35)


def test_a_million_answers_take_no_time() -> None:
    sizes = lognormal_sizes(1_000_000, 300)
    estimate = estimate_total(report_sizes(generator(11), sizes, REPORT), REPORT)
    assert estimate.relative_error < 0.002
    assert abs(estimate.total - sizes.sum()) < 4.9 * estimate.standard_error
