"""FedSampling: golden numbers, sums that travel, one question, floors and caps, disclosure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy.stats import binomtest

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort._internal.errors import (
    BadInput,
    BadParameter,
    CannotAsk,
    CheckFailed,
    FedcohortWarning,
    PolicyRefused,
    TooImprecise,
)
from fedcohort._internal.random import stream
from fedcohort.cli.schemes import describe
from fedcohort.privacy import ClientPolicy, SizeReport, estimate_total, standard_error
from fedcohort.schemes import schemes
from fedcohort.schemes.fedsampling import NO_ANSWER, PRIVATE_SIZE, FedSampling, FedSamplingNaive
from fedcohort.selection import Ask, Claim, Cohort
from fedcohort.server import Ledger, Memory
from fedcohort.simulation import Cyclic, Quadratic, Softmax
from fedcohort.simulation._clients import SimulatedClients, report_size
from fedcohort.testing._claims import check_even_over_samples
from helpers.twins import gradient_sum, samples_of

LEVEL = 1e-6
ONE_STEP = LocalWork(steps=1, batch=None, lr=0.5)


def answering(*answers: object) -> Any:
    """A transport that gives these answers, and remembers who was asked."""

    def ask(question: Ask) -> Any:
        ask.heard.append(question)  # type: ignore[attr-defined]
        return np.array([answers[i] for i in question.clients], dtype=object)

    ask.heard = []  # type: ignore[attr-defined]
    return ask


def small_task(sizes: tuple[int, ...] = (6, 1, 9, 2), dtype: str = "float64") -> Softmax:
    rng = np.random.default_rng(0)
    x, y = rng.random((sum(sizes), 3)), rng.integers(0, 2, sum(sizes))
    clients = np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])
    return Softmax(x, y, x, y, clients=clients, classes=2, dtype=dtype)


# -- numbers -----------------------------------------------------------------------------------

GRADIENTS = [Fraction(g) for g in (1, -2, 3, 5)]
GOLDEN = [
    (4, Fraction(1, 2), Fraction(7, 4), Fraction(39, 16)),
    (5, Fraction(2, 5), Fraction(7, 5), Fraction(117, 50)),
    (8, Fraction(1, 4), Fraction(7, 8), Fraction(117, 64)),
]
"""N~, p, mean and variance of the update for N = 4 samples, K = 2."""


@pytest.mark.parametrize(("total", "rate", "mean", "variance"), GOLDEN)
@pytest.mark.parametrize("sizes", [(4,), (1, 3), (2, 2), (1, 1, 1, 1)])
@pytest.mark.parametrize("version", ["corrected", "printed"])
def test_golden_update_by_enumeration(
    total: int,
    rate: Fraction,
    mean: Fraction,
    variance: Fraction,
    sizes: tuple[int, ...],
    version: str,
) -> None:
    cohort = FedSampling(K=2, version=version).given(float(total), 1.0, np.arange(len(sizes)))
    assert cohort.per_sample
    assert cohort.data_rate == float(rate)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    first = second = Fraction(0)
    for taking_part in product((0, 1), repeat=4):  # every set of samples, wherever they lie
        chance = Fraction(1)
        for part in taking_part:
            chance *= rate if part else 1 - rate
        sums = [
            sum(g * z for g, z, c in zip(GRADIENTS, taking_part, owner, strict=True) if c == i)
            for i in range(len(sizes))
        ]
        update = sum(Fraction(w) * s for w, s in zip(cohort.weights, sums, strict=True))
        first += chance * update
        second += chance * update**2
    assert first == mean
    assert second - first**2 == variance


@pytest.mark.parametrize(
    ("samples", "total", "floor", "rate"),
    [(2048, 130_000.0, 53_520, 0.015753846153846153), (2048, -500.0, 53_520, 0.038266068759342305)],
)
def test_golden_rates(samples: int, total: float, floor: float, rate: float) -> None:
    cohort = FedSampling(K=samples).given(total, floor, np.arange(3))
    assert cohort.data_rate == pytest.approx(rate, rel=1e-15)
    assert cohort.weights == pytest.approx(1 / samples)


def test_more_than_there_is_means_everything_and_the_mean_of_everything() -> None:
    with pytest.warns(FedcohortWarning, match="K = 10 samples are wanted of about 4"):
        cohort = FedSampling(K=10).given(4.0, 1.0, np.arange(2))
    assert cohort.data_rate == 1.0
    assert cohort.weights.tolist() == [0.25, 0.25]  # not 1/K: that would shorten the step


def test_golden_total_from_the_papers_answers() -> None:
    # e^eps = 13/3 makes alpha = 1/4 at M = 11; the answers 3, 7, 10, 2 then give N~ = 22.
    built = scheme("fedsampling", K=11, M=11, epsilon=1.466337068793427, mechanism="paper",
                   when_imprecise="accept")  # fmt: skip
    federation = Federation(importance=[0.25] * 4)
    cohort = Selector(built, federation, ask=answering(3, 7, 10, 2)).select()
    assert cohort.data_rate == pytest.approx(0.5, rel=1e-12)


@pytest.mark.parametrize("available", [None, [0, 2], [1]])
def test_given_the_total_every_client_counts_for_its_share(available: list[int] | None) -> None:
    sizes = np.array([60, 30, 9, 1])
    federation = Federation.from_sizes(sizes)
    built = scheme("fedsampling", K=1, mechanism="exact")
    cohort = Selector(built, federation).select(available)
    expected = cohort.weights * cohort.data_rate * sizes[cohort.clients]
    wanted = federation.among(available).importance[cohort.clients]
    np.testing.assert_allclose(expected, wanted, rtol=1e-15)


# -- sums that travel --------------------------------------------------------------------------


def test_a_client_sends_the_sum_of_the_gradients_of_its_samples() -> None:
    task = small_task()
    theta = np.random.default_rng(1).standard_normal(task.dimension)
    simulated = SimulatedClients(task, ONE_STEP, seed=5, round=2, theta=theta)
    cohort = Cohort.of(np.arange(4), 0.1, data_rate=0.3, per_sample=True)
    sums, counted = simulated.sent(cohort)
    numbers = []
    for i in range(4):
        x, y = samples_of(task, i)
        rng = stream(5, "train", 2, i)
        gradient, number = gradient_sum(task.model, theta, x, y, rng, 0.3)
        np.testing.assert_allclose(sums[i], -0.5 * gradient, atol=1e-12)
        numbers.append(number)
    assert 0 in numbers  # whoever drew nothing sends zero, and is in the cohort all the same
    assert counted.weights == pytest.approx(0.1 * np.array(numbers))
    assert not counted.per_sample


def test_more_steps_count_once_per_sample_too() -> None:
    task = small_task()
    theta, work = np.zeros(task.dimension), LocalWork(steps=3, batch=2, lr=0.5)
    simulated = SimulatedClients(task, work, seed=5, round=0, theta=theta)
    cohort = Cohort.of(np.arange(4), 0.1, data_rate=0.5, per_sample=True)
    sums, counted = simulated.sent(cohort)
    means = simulated.updates(np.arange(4), 0.5)
    np.testing.assert_allclose(0.1 * sums, counted.weights[:, None] * means, atol=1e-14)


def test_with_all_samples_it_is_gradient_descent_on_all_data() -> None:
    task = small_task()
    total = int(task.sizes.sum())
    built = scheme("fedsampling", K=total, mechanism="exact")
    trace = simulate(task, built, rounds=4, work=ONE_STEP)
    whole = simulate(task, "full", rounds=4, work=ONE_STEP)
    np.testing.assert_allclose(trace.model, whole.model, atol=1e-12)
    np.testing.assert_allclose(trace.cohort_weights, whole.cohort_weights, atol=1e-15)


def test_the_number_of_samples_is_binomial() -> None:
    task = Quadratic([[1.0]] * 3, sizes=[50, 30, 20])
    rounds, built = 400, scheme("fedsampling", K=20, mechanism="exact")
    trace = simulate(task, built, rounds=rounds, work=ONE_STEP)
    drawn = round(20 * float(trace.weight_sum.sum()))
    assert binomtest(drawn, 100 * rounds, 0.2).pvalue > LEVEL
    assert binomtest(round(1.05 * drawn), 100 * rounds, 0.2).pvalue < LEVEL  # 5 % off is seen


def test_who_takes_part_tells_nothing() -> None:
    task = Quadratic([[1.0]] * 3, sizes=[1, 2, 500])
    built = scheme("fedsampling", K=5, mechanism="exact")
    trace = simulate(task, built, rounds=30, work=ONE_STEP)
    assert trace.participation.tolist() == [30, 30, 30]
    assert (trace.cohort_weights[trace.cohort_clients == 0] == 0).any()  # nothing drawn, and sent


def test_the_memory_estimator_refuses_sums() -> None:
    task = Quadratic([[1.0]] * 3, sizes=[5, 5, 5])
    built = scheme("fedsampling", K=5, mechanism="exact")
    with pytest.raises(BadInput, match="plain estimator"):
        simulate(task, built, rounds=1, work=ONE_STEP, aggregator=Memory())


def test_a_round_under_way_is_saved_whole(tmp_path: Path) -> None:
    built = scheme("fedsampling", K=7, M=50, when_imprecise="accept")
    selector = Selector(built, Federation.from_sizes([9] * 8), seed=3, ask=answering(*[1] * 8))
    cohort = selector.select()
    selector.save(tmp_path / "selector.npz")
    loaded = Selector.load(tmp_path / "selector.npz")
    assert loaded.pending == cohort
    assert loaded.pending is not None
    assert loaded.pending.per_sample


# -- the question ------------------------------------------------------------------------------


def test_clients_are_asked_once_and_again_only_if_new() -> None:
    ask = answering(*[1] * 10)
    built = scheme("fedsampling", K=5, M=20, when_imprecise="accept")
    selector = Selector(built, Federation(importance=[0.125] * 8), seed=0, ask=ask)
    for _ in range(3):
        selector.select()
        selector.observe()
    assert [len(question.clients) for question in ask.heard] == [8]
    selector.update(Federation(importance=[0.1] * 10))
    selector.select()
    assert [question.clients.tolist() for question in ask.heard[1:]] == [[8, 9]]


def test_the_question_travels_as_plain_words() -> None:
    ask = answering(*[1] * 8)
    built = scheme("fedsampling", K=5, M=20, epsilon=2.0, when_imprecise="accept")
    Selector(built, Federation(importance=[0.125] * 8), ask=ask).select()
    assert dict(ask.heard[0].settings) == {
        "threshold": 20,
        "epsilon": 2.0,
        "levels": SizeReport(20, 2.0).levels,
        "mechanism": "levels",
        "round": 0,
    }


def test_every_round_asks_every_round_and_the_ledger_adds_up() -> None:
    task = Quadratic([[1.0]] * 30, sizes=[20] * 30)
    for fresh, spent, asked in (("never", 3.0, 1), ("every-round", 36.0, 12)):
        built = scheme("fedsampling", K=50, M=50, fresh=fresh, when_imprecise="accept")
        trace = simulate(task, built, rounds=12, work=ONE_STEP)
        rows = {row["purpose"]: row for row in trace.ledger}
        assert rows["private_size"]["epsilon"] == spent
        assert rows["private_size"]["messages"] == 2 * 30 * asked
        assert rows["training"]["epsilon"] is None
        told = {each.what: each for each in built.disclosures(12)}
        assert told["private_size"].epsilon == spent  # said before, found after


def test_simulated_answers_come_from_the_seeded_twin() -> None:
    sizes = [3, 40, 7, 22]
    task = Quadratic([[1.0]] * 4, sizes=sizes)
    built = scheme("fedsampling", K=5, M=50, when_imprecise="accept")
    selector = Selector(built, Federation.from_sizes(sizes), seed=9)
    simulated = SimulatedClients(task, ONE_STEP, 9, 0, np.zeros(1))
    state = selector.start(simulated.answer)
    wanted = [
        report_size(stream(9, "private-size", 0, i), size, built.report)
        for i, size in enumerate(sizes)
    ]
    assert state.private.tolist() == wanted


def test_only_the_available_are_added_up() -> None:
    task = Quadratic([[1.0]] * 40, sizes=[20] * 40)
    built = scheme("fedsampling", K=50, M=40, when_imprecise="accept")
    selector = Selector(built, Federation.from_sizes(task.sizes), seed=1)
    simulated = SimulatedClients(task, ONE_STEP, 1, 0, np.zeros(1))
    answers = selector.start(simulated.answer).private
    for here in (range(0, 40, 2), range(10)):
        cohort = selector.select(list(here), simulated.answer)
        report = SizeReport(40, 3.0)
        estimate = estimate_total(answers[list(here)], report, when_imprecise="accept")
        assert cohort.data_rate == pytest.approx(min(1.0, 50 / estimate.usable))
        selector.observe()


def test_clients_that_come_and_go() -> None:
    task = Quadratic([[1.0]] * 40, sizes=[20] * 40)
    built = scheme("fedsampling", K=50, M=40, when_imprecise="accept")
    trace = simulate(task, built, rounds=6, work=ONE_STEP, availability=Cyclic(groups=2))
    assert trace.distinct.tolist() == [20] * 6
    assert sum(row["messages"] for row in trace.ledger if row["purpose"] == "private_size") == 80


# -- the catalogue of bad input ----------------------------------------------------------------


def test_85_nobody_answers() -> None:
    federation = Federation(importance=[0.25] * 4)
    for answers in ([float("nan")] * 4, [None] * 4, [-5, 99, "many", 1.5]):
        built = scheme("fedsampling", when_imprecise="accept")
        with pytest.raises(BadInput, match="No client gave an answer"):
            Selector(built, federation, ask=answering(*answers)).select()


def test_86_an_impossible_total_is_floored_and_told() -> None:
    # All answer the lowest level: N~ is far below one sample per client.
    federation = Federation(importance=[0.1] * 10)
    built = scheme("fedsampling", K=2, M=300, epsilon=1.0, when_imprecise="warn")
    with pytest.warns(FedcohortWarning) as told:
        cohort = Selector(built, federation, ask=answering(*[0] * 10)).select()
    assert cohort.data_rate == 2 / 10
    says = " ".join(str(each.message) for each in told)
    assert "below its floor 10" in says
    assert "+-" in says  # with its standard error


def test_87_more_wanted_than_there_is() -> None:
    built = scheme("fedsampling", K=1000, mechanism="exact")
    with pytest.warns(FedcohortWarning, match="all take part"):
        cohort = Selector(built, Federation.from_sizes([3, 4])).select()
    assert cohort.data_rate == 1.0
    assert (cohort.weights * [3, 4]).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("samples", [0, -3, 2.5, float("nan"), True])
def test_88_no_samples_wanted(samples: object) -> None:
    with pytest.raises(BadParameter, match="'K' parameter of fedsampling"):
        scheme("fedsampling", K=samples)


@pytest.mark.parametrize(
    ("name", "value"),
    [("epsilon", 0.0), ("epsilon", 21.0), ("epsilon", float("nan")), ("M", 2), ("M", 3.5)],
)
def test_80_81_epsilon_and_threshold(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{name}' parameter of fedsampling"):
        scheme("fedsampling", **{name: value})


def test_89_nobody_draws_a_sample() -> None:
    task = Quadratic([[1.0]] * 3, sizes=[1, 1, 1])
    simulated = SimulatedClients(task, ONE_STEP, seed=0, round=0, theta=np.zeros(1))
    sums, counted = simulated.sent(Cohort.of(np.arange(3), 1.0, data_rate=1e-9, per_sample=True))
    np.testing.assert_array_equal(sums, np.zeros((3, 1)))
    np.testing.assert_array_equal(counted.weights, np.zeros(3))


def test_94_some_do_not_answer() -> None:
    report = SizeReport(100, 5.0)
    rng = np.random.default_rng(0)
    answers = [report_size(rng, 40, report) for _ in range(1000)]
    some = [a if i % 5 < 3 else None for i, a in enumerate(answers)]  # 60 %
    federation = Federation(importance=[1e-3] * 1000)
    built = scheme("fedsampling", K=400, M=100, epsilon=5.0)
    all_of_them, most = (
        Selector(built, federation, ask=answering(*given)).select() for given in (answers, some)
    )
    assert all_of_them.data_rate == pytest.approx(400 / 40_000, rel=0.1)
    assert most.data_rate == pytest.approx(400 / 40_000, rel=0.1)  # scaled up, not 60 % of N
    full, part = (estimate_total(given, report, asked=1000) for given in (answers, some))
    assert part.standard_error > full.standard_error


def test_84_answers_outside_the_set_are_no_answers() -> None:
    federation = Federation(importance=[0.25] * 4)
    built = scheme("fedsampling", K=2, M=20, when_imprecise="accept")
    selector = Selector(built, federation, ask=answering(1, 999, float("inf"), 2))
    assert selector.start().private.tolist() == [1, NO_ANSWER, NO_ANSWER, 2]


def test_too_few_clients_are_refused_before_the_first_round() -> None:
    task = Quadratic([[1.0]] * 20, sizes=[20] * 20)
    assert standard_error([20] * 20, SizeReport(300, 3.0)) > 0.25 * 400
    with pytest.raises(TooImprecise, match="too uncertain"):
        simulate(task, "fedsampling", rounds=1, work=ONE_STEP)
    with pytest.warns(FedcohortWarning, match="too uncertain"):
        simulate(task, scheme("fedsampling", when_imprecise="warn"), rounds=1, work=ONE_STEP)
    simulate(task, scheme("fedsampling", when_imprecise="accept"), rounds=1, work=ONE_STEP)


def test_private_sizes_cannot_be_exact_and_somebody_must_answer() -> None:
    federation = Federation(importance=[0.5, 0.5])
    with pytest.raises(BadParameter, match="where sizes are private"):
        Selector(scheme("fedsampling", mechanism="exact"), federation).select()
    with pytest.raises(CannotAsk, match="private_size"):
        Selector(scheme("fedsampling"), federation).select()


# -- as printed --------------------------------------------------------------------------------


def test_as_printed_the_total_is_that_of_equation_2() -> None:
    built = scheme("fedsampling", K=11, M=11, epsilon=1.466337068793427, version="printed")
    assert (built.mechanism, built.fresh, built.when_imprecise) == (
        "paper", "every-round", "accept"
    )  # fmt: skip
    federation = Federation(importance=[0.25] * 4)
    ask = answering(3, 7, 10, 2)
    selector = Selector(built, federation, ask=ask)
    for _ in range(2):  # asked in every round
        cohort = selector.select()  # alpha = 1/4 and M = 11: N~ = 22
        selector.observe()
        assert cohort.data_rate == pytest.approx(0.5, rel=1e-12)
        assert cohort.weights == pytest.approx(1 / 11)
    assert len(ask.heard) == 2


def test_as_printed_the_sum_is_divided_by_k_whatever_is_estimated() -> None:
    for version, weight in (("corrected", 0.25), ("printed", 0.1)):
        built = FedSampling(K=10, version=version, when_imprecise="accept")
        cohort = built.given(4.0, 1.0, np.arange(2))
        assert cohort.data_rate == 1.0
        assert cohort.weights.tolist() == [weight, weight]


def test_as_printed_an_empty_client_gives_itself_away() -> None:
    """min(|D_c|, M - 1) has no lower bound: only an empty client can answer 0."""
    printed, paper = (SizeReport(6, 1.0, mechanism=name) for name in ("printed", "paper"))
    alpha = printed.alpha
    assert printed.law(0) == (alpha, *[(1 - alpha) / 5] * 5)
    for size in range(1, 9):
        assert printed.law(size) == (0, *paper.law(size))
    assert [printed.value(answer) for answer in range(1, 6)] == list(map(paper.value, range(1, 6)))
    mean = sum(p * printed.value(a) for a, p in zip(printed.answers, printed.law(0), strict=True))
    assert mean == 0  # unbiased for an empty client, too
    built = scheme("fedsampling", M=6, epsilon=1.0, version="printed")
    assert built.report == printed
    with pytest.raises(PolicyRefused, match="asked for 'printed'"):
        ClientPolicy().check(printed)


def test_as_printed_and_corrected_are_one_where_k_is_below_the_floor() -> None:
    """Nothing else differs without empty clients and with K at most the number of clients."""
    task = Quadratic([[1.0]] * 30, sizes=[20, 3, 1] * 10)
    printed, corrected = (
        simulate(task, scheme("fedsampling", K=30, M=25, **how), rounds=8, work=ONE_STEP)
        for how in (
            {"version": "printed"},
            {"mechanism": "paper", "fresh": "every-round", "when_imprecise": "accept"},
        )
    )
    np.testing.assert_array_equal(printed.model, corrected.model)
    np.testing.assert_array_equal(printed.cohort_weights, corrected.cohort_weights)


@pytest.mark.parametrize(
    ("name", "value"),
    [("mechanism", "sum"), ("mechanism", "exact"), ("levels", 4), ("step", "counted")],
)
def test_as_printed_has_no_other_settings(name: str, value: object) -> None:
    with pytest.raises(BadParameter, match=f"'{name}' parameter of fedsampling.*version='printed'"):
        scheme("fedsampling", version="printed", **{name: value})


def test_the_list_of_schemes_names_the_version_and_what_differs() -> None:
    text = describe(FedSampling)["text"]
    assert "version=printed" in text
    for what in ("epsilon does not hold", "asks in every round", "divides the\nsum by K"):
        assert what in text, what


# -- the naive way, claims, disclosure ---------------------------------------------------------


def test_the_naive_way_counts_clients_not_samples() -> None:
    federation = Federation.from_sizes([90, 10])
    cohort = Selector(scheme("fedsampling-naive", rate=0.5, answering=0.8), federation).select()
    assert not cohort.per_sample
    assert cohort.data_rate == 0.5
    assert cohort.weights == pytest.approx(1 / 1.6)


def test_the_naive_way_by_counts_is_the_mean_over_all_samples_drawn() -> None:
    task, theta = small_task(), np.zeros(8)
    built = scheme("fedsampling-naive", rate=0.5, weighting="counts")
    federation = Federation.from_sizes(task.sizes)
    cohort = Selector(built, federation).select()
    assert cohort.per_sample
    check_even_over_samples(built, federation)
    trace = simulate(task, built, rounds=1, work=ONE_STEP, seed=3)
    rows = [gradient_sum(task.model, theta[: task.dimension], *samples_of(task, i),
                         stream(3, "train", 0, i), 0.5) for i in range(4)]  # fmt: skip
    gradient = sum(row for row, _ in rows) / sum(number for _, number in rows)
    np.testing.assert_allclose(trace.model, -0.5 * gradient, atol=1e-12)
    told = {each.what for each in built.disclosures(1)}
    assert told == {"participation", "update", "size"}
    with pytest.raises(BadParameter, match="'answering' parameter of fedsampling-naive"):
        scheme("fedsampling-naive", weighting="counts", answering=0.5)


@dataclass(frozen=True)
class Pretender(FedSamplingNaive):
    """Claims what it does not do."""

    claims: ClassVar[frozenset[Claim]] = frozenset({Claim.EVEN_OVER_SAMPLES})


def test_an_uneven_scheme_is_caught() -> None:
    federation = Federation.from_sizes([5, 4, 3, 2, 1])
    check_even_over_samples(scheme("fedsampling", K=3, mechanism="exact"), federation)
    with pytest.raises(CheckFailed, match="count for more"):
        check_even_over_samples(Pretender(rate=0.5), federation)
    check_even_over_samples(Pretender(rate=0.5), Federation.from_sizes([4, 4, 4]))


def test_a_wrong_weight_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = FedSampling.given

    def weighted(self: FedSampling, total: float, floor: float, clients: Any) -> Cohort:
        cohort = honest(self, total, floor, clients)
        return replace(cohort, weights=cohort.weights * (1 + 0.01 * np.arange(len(cohort))))

    monkeypatch.setattr(FedSampling, "given", weighted)
    with pytest.raises(CheckFailed, match="count for more"):
        check_even_over_samples(
            scheme("fedsampling", K=3, mechanism="exact"), Federation.from_sizes([3, 2, 1])
        )


def test_every_scheme_tells_what_it_discloses() -> None:
    for name, cls in schemes().items():
        told = {each.what for each in cls.build().disclosures(10)}
        assert {"participation", "update"} <= told, name
        assert {signal.name for signal in cls.listens} <= told | {"update"}, name
    private, known = (
        {each.what for each in scheme("fedsampling", mechanism=m).disclosures(10)}
        for m in ("levels", "exact")
    )
    assert private == {"private_size", "participation", "update", "size"}
    assert known == {"size", "participation", "update"}
    naive = scheme("fedsampling-naive").disclosures(1)
    assert {each.what for each in naive} == {"participation", "update", "size"}


def test_a_disclosure_is_one_line() -> None:
    first = scheme("fedsampling", fresh="every-round").disclosures(100)[0]
    assert str(first) == (
        "private_size (every round): a randomised answer about the number of samples; "
        "epsilon = 300 over the run, by basic composition"
    )


def test_the_ledger_adds_up_per_purpose() -> None:
    ledger, signal = Ledger(), PRIVATE_SIZE
    for round, epsilon in enumerate((3.0, 0.5)):
        ask = Ask(signal, np.arange(4), {"epsilon": epsilon})
        ledger.asked(round, ask, np.zeros(4))
    ledger.trained(0, np.arange(4))
    assert ledger.epsilons() == {"private_size": 3.5}


def test_with_known_sizes_nobody_is_asked_and_no_client_must_be_able_to_tell():
    usual, summed = scheme("fedsampling"), scheme("fedsampling", mechanism="sum")
    assert [len(usual.asks), len(summed.asks)] == [1, 1]
    assert usual.asks | summed.asks == FedSampling.asks
    assert scheme("fedsampling", mechanism="exact").asks == frozenset()
