from __future__ import annotations

import math
import random
import secrets
import subprocess
import sys
from collections import Counter
from decimal import ROUND_DOWN, Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import BadParameter, NoEntropy
from fedcohort.privacy import SizeReport, best_levels
from fedcohort.privacy._mechanisms import (
    UNIT,
    alpha_of_epsilon,
    draw,
    epsilon_of_alpha,
    exact_epsilon,
    exponential_of_alpha,
    exponential_weight,
    worst_variance,
)

EPSILONS = (0.01, 0.1, 0.5, 1.0, 1.5, 2.0, 3.0, 4.605170185988092, 5.0, 8.0, 20.0)


def exponential_from_below(x: Fraction) -> Fraction:
    """A partial sum of the series: below e^x, by less than 1e-40 for 0 < x <= 20."""
    term = total = Fraction(1)
    for n in range(1, 150):
        term *= x / n
        total += term
    return total


def prove(report: SizeReport) -> None:
    """Complete enumeration in integers: the ratio is at most e^eps, and the bias is zero."""
    step, sizes = report.threshold - 2, range(1, report.threshold)
    whole = step * report.tickets
    values = [report.value(answer) for answer in report.answers]
    common = math.lcm(*(value.denominator for value in values))
    numerators = [int(value * common) for value in values]
    least = [whole] * report.levels
    most = [0] * report.levels
    for size in sizes:
        weights = report.weights(size)
        assert sum(weights) == whole
        mean = sum(w * v for w, v in zip(weights, numerators, strict=True))
        assert mean == size * whole * common  # E[value | size] = size
        least = list(map(min, least, weights))
        most = list(map(max, most, weights))
    ratio = max(Fraction(high, low) for low, high in zip(least, most, strict=True))
    # Above neither reading of the float: its binary value and the decimal that was typed.
    limit = min(Fraction(report.epsilon), Fraction(repr(report.epsilon)))
    assert ratio <= exponential_from_below(limit)


def grid(thresholds: tuple[int, ...], epsilons: tuple[float, ...]) -> list[SizeReport]:
    reports = []
    for threshold in thresholds:
        for epsilon in epsilons:
            few = {0, 2, min(5, threshold - 1)}
            reports += [SizeReport(threshold, epsilon, levels) for levels in sorted(few)]
            reports.append(SizeReport(threshold, epsilon, mechanism="paper"))
    return reports


SMALL = grid((3, 4, 10, 11, 101), EPSILONS)  # 220 points


def test_the_grid_is_large_enough() -> None:
    assert len(SMALL) >= 200


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_and_unbiasedness_are_proved_by_enumeration(epsilon: float) -> None:
    for report in SMALL:
        if report.epsilon == epsilon:
            prove(report)


@pytest.mark.parametrize("levels", [0, 2, 7])
def test_the_proof_holds_at_the_papers_threshold(levels: int) -> None:
    prove(SizeReport(300, 3.0, levels))
    prove(SizeReport(1000, 3.0, levels))


def test_the_proof_holds_for_the_papers_mechanism() -> None:
    prove(SizeReport(300, 3.0, mechanism="paper"))


@pytest.mark.slow
def test_the_proof_holds_on_the_large_grid() -> None:
    for report in grid((300, 700, 1000), (0.1, 1.0, 3.0, 5.0, 8.0)):
        prove(report)


def test_the_proof_catches_planted_defects() -> None:
    rounded_up = SizeReport(10, 3.0)
    rounded_up.__dict__["truth_weight"] = rounded_up.truth_weight + 1
    with pytest.raises(AssertionError):
        prove(rounded_up)
    float_alpha = SizeReport(10, 3.0)
    float_alpha.__dict__["alpha"] = Fraction(float(float_alpha.alpha))
    with pytest.raises(AssertionError):
        prove(float_alpha)
    papers_alpha_for_a_domain_from_zero = SizeReport(10, 3.0, mechanism="paper")
    papers_alpha_for_a_domain_from_zero.__dict__["alpha"] = Fraction(alpha_of_epsilon(3.0, 11))
    with pytest.raises(AssertionError):
        prove(papers_alpha_for_a_domain_from_zero)


@pytest.mark.parametrize("report", grid((3, 10, 50), (0.5, 3.0)), ids=str)
def test_tickets_and_offsets_follow_the_law(report: SizeReport) -> None:
    """The drawn answer is a step function of the ticket: w tickets for the truth, then blocks."""
    starts = [0] + [report.truth_weight + k * UNIT for k in range(report.levels - 1)]
    ends = [*starts[1:], report.tickets]
    by_level = []
    for level in range(report.levels):
        shares = Counter()
        for start, end in zip(starts, ends, strict=True):
            answer = report.answer(level, start)
            assert (
                answer == report.answer(level, end - 1) == report.answer(level, (start + end) // 2)
            )
            shares[answer] += end - start
        by_level.append(shares)
    for size in range(report.threshold + 2):
        weights = Counter()
        for offset in range(report.threshold - 2):
            weights += by_level[report.level(size, offset)]
        assert tuple(weights[answer] for answer in report.answers) == report.weights(size)


def test_the_paper_is_the_case_of_one_level_per_size() -> None:
    paper, levels = SizeReport(50, 2.0, mechanism="paper"), SizeReport(50, 2.0, levels=49)
    for size in range(1, 50):
        assert paper.law(size) == levels.law(size)
        assert paper.law(size)[size - 1] == max(paper.law(size))


@given(
    st.integers(3, 400),
    st.floats(1e-3, 20),
    st.integers(0, 10**9),
    st.sampled_from(["levels", "paper"]),
)
def test_the_mean_of_the_law_is_the_clipped_size(
    threshold: int, epsilon: float, size: int, mechanism: str
) -> None:
    report = SizeReport(threshold, epsilon, mechanism=mechanism)
    law = report.law(size)
    mean = sum(p * report.value(a) for p, a in zip(law, report.answers, strict=True))
    assert mean == min(max(size, 1), threshold - 1)
    assert sum(law) == 1


# -- weights and constants ---------------------------------------------------------------------


def test_the_smallest_and_the_largest_epsilon() -> None:
    for epsilon, beyond in ((1e-6, 0.99e-6), (20.0, 20.1)):
        assert SizeReport(10, epsilon).epsilon == epsilon
        with pytest.raises(BadParameter, match="'epsilon' parameter of SizeReport"):
            SizeReport(10, beyond)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 0.3, 1.0, math.pi, 3.0, 7.7, 19.99, 20.0])
def test_the_weight_is_the_floor_and_never_above(epsilon: float) -> None:
    exact = UNIT * exponential_from_below(min(Fraction(epsilon), exact_epsilon(epsilon)))
    weight = exponential_weight(epsilon)
    assert weight <= exact < weight + 1
    assert weight > UNIT  # even the smallest eps tells something: alpha > 0


def test_ten_tenths_make_one() -> None:
    assert sum(exact_epsilon(0.1) for _ in range(10)) == 1


@pytest.mark.parametrize(
    ("epsilon", "threshold", "alpha", "alpha_from_zero"),
    [
        (3.0, 300, "0.06000127232379165169", "0.05981323098258151861"),
        (3.0, 100, "0.16162467835161249455", "0.16026746334022229236"),
        (3.0, 10, "0.67955036698730440214", "0.65618650855890623096"),
        (1.0, 100, "0.01706027741205495851", "0.01689255655494467076"),
        (0.5, 300, "0.00216493922600149800", "0.00215773833315601599"),
        (5.0, 300, "0.33021687666851253777", "0.32947881863434371027"),
        (3.0, 2, "0.95021293163213605702", "0.90514825364486643824"),
    ],
)
def test_alpha_is_that_of_the_paper(
    epsilon: float, threshold: int, alpha: str, alpha_from_zero: str
) -> None:
    places = Decimal(1).scaleb(-20)
    assert alpha_of_epsilon(epsilon, threshold).quantize(places, ROUND_DOWN) == Decimal(alpha)
    # The domain 0..M-1 has one value more: the formula of M + 1.
    assert alpha_of_epsilon(epsilon, threshold + 1).quantize(places, ROUND_DOWN) == Decimal(
        alpha_from_zero
    )
    if threshold >= 3:
        drawn = SizeReport(threshold, epsilon, mechanism="paper").alpha
        assert 0 <= Fraction(alpha) + Fraction(1, 10**19) - drawn < Fraction(1, 10**18)


@pytest.mark.parametrize(
    ("alpha", "threshold", "power", "epsilon"),
    [
        (Fraction(1, 2), 100, Fraction(100), 4.605170185988092),
        (Fraction(1, 2), 700, Fraction(700), 6.551080335043404),
        (Fraction(1, 4), 11, Fraction(13, 3), 1.466337068793427),
        (Fraction(0), 50, Fraction(1), 0.0),
    ],
)
def test_epsilon_of_the_authors_alpha(
    alpha: Fraction, threshold: int, power: Fraction, epsilon: float
) -> None:
    assert exponential_of_alpha(alpha, threshold) == power
    assert epsilon_of_alpha(alpha, threshold) == pytest.approx(epsilon, rel=1e-15)


def test_alpha_must_be_below_one() -> None:
    with pytest.raises(BadParameter, match="alpha"):
        exponential_of_alpha(Fraction(1), 10)


def test_opendp_agrees_on_epsilon() -> None:
    dp = pytest.importorskip("opendp.prelude")
    dp.enable_features("contrib")
    for report in grid((3, 10, 300), (0.1, 0.5, 1.0, 2.0, 3.0, 5.0, 8.0)):
        truth = float(Fraction(report.truth_weight, report.tickets))
        measurement = dp.m.make_randomized_response(list(report.answers), truth)
        assert measurement.map(1) == pytest.approx(report.epsilon, rel=0, abs=1e-12)


# -- the number of levels ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("epsilon", "levels"),
    [
        *((0.1, 2), (0.5, 2), (1.0, 2), (1.5, 3), (2.0, 3), (2.5, 3)),
        *((3.0, 4), (4.0, 5), (5.0, 7), (6.0, 9), (8.0, 17)),
    ],
)
def test_the_number_of_levels_is_the_measured_best(epsilon: float, levels: int) -> None:
    assert best_levels(epsilon, 1000) == levels
    assert SizeReport(1000, epsilon).levels == levels
    assert best_levels(epsilon, 4) == min(levels, 3)  # never more than there are sizes


@pytest.mark.parametrize(("epsilon", "share"), [(3.0, 0.311), (5.0, 0.146)])
def test_the_worst_case_is_the_measured_one(epsilon: float, share: float) -> None:
    assert math.sqrt(worst_variance(epsilon, best_levels(epsilon, 1000))) == pytest.approx(
        share, abs=5e-4
    )


@pytest.mark.parametrize("epsilon", [0.1, 0.7, 1.5, 3.0, 5.0, 8.0])
def test_the_worst_variance_is_the_largest_over_all_sizes(epsilon: float) -> None:
    threshold = 20_002
    for levels in (2, 3, 4, 7, 12, 40):
        report = SizeReport(threshold, epsilon, levels)
        alpha, last = float(report.alpha), levels - 1
        largest = 0.0
        for size in range(1, threshold, 3):
            position = (size - 1) * last / (threshold - 2)
            z, f = position - last / 2, position % 1
            noise = alpha * (1 - alpha) * z * z + alpha * f * (1 - f)
            noise += (1 - alpha) * (levels**2 - 1) / 12
            largest = max(largest, noise / (alpha * last) ** 2)
        assert worst_variance(epsilon, levels) == pytest.approx(largest, rel=1e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.2, 3.3, 6.0, 9.0, 12.0])
def test_the_search_for_levels_stops_at_the_right_place(epsilon: float) -> None:
    everything = range(2, 400)
    assert best_levels(epsilon, 400) == min(everything, key=lambda g: worst_variance(epsilon, g))


# -- the answer of a client --------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
@pytest.mark.parametrize("size", [0, 1, 298, 299, 300, 10**9])
def test_every_size_answers_inside_the_set(mechanism: str, size: int) -> None:
    report = SizeReport(300, 3.0, mechanism=mechanism)
    law = report.law(size)
    assert min(law) > 0  # every answer is possible for every size: none identifies
    assert law == report.law(min(max(size, 1), 299))
    assert all(draw(report, size) in report.answers for _ in range(200))


def test_the_smallest_threshold_works() -> None:
    report = SizeReport(3, 1.0)
    assert report.levels == 2
    assert {draw(report, 2) for _ in range(200)} == {0, 1}  # misses one with chance 2e-27


def test_drawn_answers_have_the_law() -> None:
    """Chi-square at level 1e-6 against the exact law, from OS entropy."""
    from scipy.stats import chi2

    report, draws = SizeReport(20, 1.0, levels=5), 20_000
    statistic = dict.fromkeys((8, 9), 0.0)  # 8: the law itself; 9: a planted defect, one off
    counts = Counter(draw(report, 8) for _ in range(draws))
    for size in statistic:
        for probability, answer in zip(report.law(size), report.answers, strict=True):
            expected = draws * float(probability)
            statistic[size] += (counts[answer] - expected) ** 2 / expected
    limit = chi2.isf(1e-6, report.levels - 1)
    assert statistic[8] < limit < statistic[9]


def test_both_draws_are_always_made(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds: list[int] = []
    monkeypatch.setattr(secrets, "randbelow", lambda bound: bounds.append(bound) or 0)
    for mechanism in ("levels", "paper"):
        for size in (0, 1, 150, 299, 1000):
            bounds.clear()
            report = SizeReport(300, 3.0, mechanism=mechanism)
            draw(report, size)
            assert bounds == [298, report.tickets]


def _no_randomness(_: int) -> bytes:
    raise OSError("no entropy")


def test_without_entropy_there_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(random, "_urandom", _no_randomness)  # what `secrets` reads
    with pytest.raises(NoEntropy, match="no other source"):
        draw(SizeReport(300, 3.0), 40)


def test_without_urandom_there_is_no_answer() -> None:
    """The same in a process whose os.urandom fails from the start."""
    script = (
        "import os, sys\n"
        f"sys.path[:0] = {sys.path!r}\n"
        "from fedcohort.privacy._mechanisms import SizeReport, draw\n"
        "import random\n"
        "def fail(n): raise NotImplementedError('no urandom')\n"
        "os.urandom = random._urandom = fail\n"
        "draw(SizeReport(300, 3.0), 40)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    assert "NoEntropy" in done.stderr


# -- bad input ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "epsilon", [0, -1, 0.0, math.nan, math.inf, -math.inf, 20.1, 1e-9, "3", None, True, 3j]
)
def test_a_bad_epsilon_is_refused(epsilon: object) -> None:
    with pytest.raises(BadParameter, match="'epsilon' parameter of SizeReport"):
        SizeReport(300, epsilon)


@pytest.mark.parametrize("threshold", [2, 1, 0, -5, 300.0, "300", None, True, math.nan, 2**31 + 1])
def test_a_bad_threshold_is_refused(threshold: object) -> None:
    with pytest.raises(BadParameter, match="'threshold' parameter of SizeReport"):
        SizeReport(threshold, 3.0)


@pytest.mark.parametrize("levels", [1, -1, 300, 2.0, "4", None, True, math.nan])
def test_a_bad_number_of_levels_is_refused(levels: object) -> None:
    with pytest.raises(BadParameter, match="'levels' parameter of SizeReport"):
        SizeReport(300, 3.0, levels)


def test_the_paper_has_one_number_of_levels() -> None:
    assert SizeReport(300, 3.0, 299, "paper") == SizeReport(300, 3.0, mechanism="paper")
    with pytest.raises(BadParameter, match="M-1 = 299"):
        SizeReport(300, 3.0, 4, "paper")
    with pytest.raises(BadParameter, match="mechanism"):
        SizeReport(300, 3.0, mechanism="laplace")


@pytest.mark.parametrize("size", [-1, 2.5, math.nan, math.inf, "3", None, True, 1j])
def test_a_bad_size_is_refused(size: object) -> None:
    with pytest.raises(BadParameter, match="'size' parameter of draw"):
        draw(SizeReport(300, 3.0), size)


def test_no_seed_can_be_given() -> None:
    with pytest.raises(TypeError):
        draw(SizeReport(300, 3.0), 40, seed=1)


def test_equal_questions_are_equal_whatever_their_types() -> None:
    import numpy as np

    assert SizeReport(np.int64(300), np.float64(3)) == SizeReport(300, 3)
    assert repr(SizeReport(np.int64(300), np.float64(3))) == repr(SizeReport(300, 3.0))
    assert draw(SizeReport(300, 3), np.int64(5)) in range(4)
    assert draw(SizeReport(300, 3), 5.0) in range(4)
