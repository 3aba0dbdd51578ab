"""Advice: the numbers are those of the designs, the words follow from the numbers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, scheme
from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.random import stream
from fedcohort.advice import SchemeFacts, advise
from fedcohort.advice._assessment import _never, by_pilot, declared
from fedcohort.advice._question_cost import QUESTION_BYTES, bytes_of, rehearse
from fedcohort.advice._recommendation import _if_more_or_less_alike, chosen
from fedcohort.designs import Rows
from fedcohort.maths import distinct
from fedcohort.schemes import schemes
from fedcohort.selection import (
    LABEL_HISTOGRAM,
    LOSS,
    UPDATE,
    UPDATE_NORM,
    Ask,
    Citation,
    NoState,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.selection._scripted import Trial
from fedcohort.server import Selector
from fedcohort.server import _ledger as ledger
from fedcohort.theory import drawn_weights, moments
from fedcohort.theory._pilot import Known, NotKnownError
from helpers.examples import few

EQUAL = [50] * 60
SKEWED = [int(2000 / (i + 1)) + 1 for i in range(60)]


def law_of(name, federation, m):
    s = scheme(name, m=m)
    return Selector(s, federation, seed=0).design()


def test_every_discovered_scheme_has_a_row():
    advice = advise(SKEWED, m=6)
    assert {row.name for row in advice.rows} == set(schemes())
    assert {row.status for row in advice.rows} <= {"exact", "unknown", "not applicable"}
    for row in advice.rows:
        assert (row.sigma is not None) == (row.status == "exact")
        assert row.note or row.status == "exact"


@pytest.mark.parametrize("sizes", [EQUAL, SKEWED], ids=["equal", "skewed"])
@pytest.mark.parametrize("name", ["md", "uniform", "binomial", "clustered-size"])
def test_numbers_are_those_of_the_design(sizes, name):
    federation = Federation.from_sizes(sizes)
    row = advise(federation, m=6, rounds=20).row(name)
    design = law_of(name, federation, 6)
    exact = moments(design)
    assert row.sigma == pytest.approx(exact.sigma)
    assert row.gamma == (None if exact.gamma is None else pytest.approx(exact.gamma))
    assert row.weight_sum_variance == pytest.approx(exact.weight_sum_variance, abs=1e-15)
    assert row.expected_distinct == pytest.approx(exact.expected_distinct)
    assert row.never_mean == pytest.approx(np.mean((1 - exact.inclusion) ** 20))
    assert row.never_worst == pytest.approx(np.max((1 - exact.inclusion) ** 20))
    assert row.unbiased
    assert row.score == pytest.approx(exact.sigma + exact.weight_sum_variance)


def test_never_seen_against_simulation():
    """50,000 runs of 5 rounds; level 1e-6 over 60 clients by five and a half deviations."""
    design, rng = (
        law_of("clustered-size", Federation.from_sizes(SKEWED), 6),
        np.random.default_rng(1),
    )
    seen = drawn_weights(design, 50_000, rng).reshape(10_000, 5, 60).any(axis=1)
    expected = _never(design.inclusion(), 5)
    error = np.sqrt(expected * (1 - expected) / 10_000) + 1e-9
    assert np.all(np.abs((1 - seen.mean(axis=0)) - expected) <= 5.5 * error)
    # the planted defect: chances of the expected counts instead of the inclusion
    wrong = np.clip(1 - design.expected_counts(), 0, 1) ** 4
    assert not np.all(np.abs((1 - seen.mean(axis=0)) - wrong) <= 5.5 * error)


def test_random_updates_have_the_stated_variance():
    """The criterion is exact for a common part plus independent deviations: 1e-6 by CLT."""
    federation, rng = Federation.from_sizes(SKEWED), np.random.default_rng(3)
    h = 0.4
    for name in ("uniform", "clustered-size", "poisson"):
        row = advise(federation, m=3, heterogeneity=h).row(name)
        design = law_of(name, federation, 3)
        got = [
            design.aggregate_variance(np.ones((60, 1)) + np.sqrt(h) * rng.normal(size=(60, 1)))
            for _ in range(1500)
        ]
        assert abs(np.mean(got) - row.score) < 5 * np.std(got) / np.sqrt(len(got))


def test_equal_sizes_prefer_uniform_and_say_why():
    advice = advise(EQUAL, m=6)
    assert advice.recommended == "uniform"
    assert advice.row("uniform").score < advice.row("md").score
    assert "Uniform beats MD sampling" in str(advice)
    assert "nearly equal" in str(advice)


def test_skewed_sizes_do_not_prefer_uniform_and_say_why():
    advice = advise(SKEWED, m=6)
    assert advice.recommended != "uniform"
    assert advice.row("uniform").score > advice.row("md").score
    assert "Uniform does not beat MD sampling" in str(advice)
    assert "too unequal" in str(advice)
    assert "caution" in str(advice)


@given(st.lists(st.integers(1, 500), min_size=2, max_size=12), st.integers(1, 4))
@few(15)
def test_nothing_eligible_is_better_than_what_is_recommended(sizes, m):
    advice = advise(sizes, m=m)
    best = advice.row(advice.recommended)
    assert best.unbiased
    for row in advice.rows:
        if row.unbiased and row.expected_distinct <= m * (1 + 1e-9):
            assert best.score <= row.score * (1 + 1e-8) + 1e-15
    assert best.sigma <= advice.row("md").sigma + 1e-12  # clustered sampling is always there


def test_full_participation_only_within_the_budget():
    whole = advise(SKEWED, m=60)
    assert whole.recommended == "full"
    assert whole.row("full").score < whole.row("md").score
    for m in (6, 59):
        smaller = advise(SKEWED, m=m)
        assert smaller.recommended != "full"
        assert smaller.row("full").score == 0  # it would win, if it did not exceed the budget


def test_label_histograms_rank_by_what_a_cohort_represents():
    histograms = np.eye(6, dtype=int)[np.arange(60) % 6] * 50
    advice = advise(EQUAL, m=6, label_histograms=histograms, sweep=())
    assert advice.recommended == "balanced"  # as good as the oracle, and by the same labels
    for name, status in (("target", "exact"), ("balanced", "approximate")):
        assert advice.row(name).score == pytest.approx(0, abs=1e-12)
        assert advice.row(name).status == status
    assert "Monte Carlo, 64 cohorts" in advice.row("balanced").note
    design = law_of("md", Federation.from_sizes(EQUAL), 6)
    shares = histograms / 50
    assert advice.row("md").score == pytest.approx(design.aggregate_variance(shares))
    assert "label shares" in advice.criterion
    hidden = advise(EQUAL, m=6, only=["target", "md"], sweep=())
    assert hidden.row("target").status == "unknown"
    assert "label histograms" in hidden.row("target").note


def test_an_oracle_is_recommended_only_where_there_is_nothing_else():
    histograms = np.eye(6, dtype=int)[np.arange(60) % 6] * 50
    both = advise(EQUAL, m=6, label_histograms=histograms, only=["target", "md"])
    assert both.row("target").score < both.row("md").score
    assert both.recommended == "md"
    assert "none of" not in both.plain[0]
    assert "target (oracle)" in both._repr_html_()
    alone = advise(EQUAL, m=6, label_histograms=histograms, only=["target"])
    assert alone.recommended == "target"


def test_pilot_updates_rank_by_the_exact_variance():
    updates = np.random.default_rng(0).normal(size=(60, 4))
    names = ["md", "uniform", "clustered-size"]
    advice = advise(SKEWED, m=6, updates=updates, only=names, sweep=())
    for name in names:
        design = law_of(name, Federation.from_sizes(SKEWED), 6)
        assert advice.row(name).score == pytest.approx(design.aggregate_variance(updates))
    assert any("pilot" in line for line in advice.cannot_know)


def test_a_pilot_round_alone_ranks_what_balances_updates():
    rng = stream(0, "pilot")
    kind = rng.integers(0, 4, 40)  # four kinds of clients, in no order
    updates = np.eye(4)[kind] * 5 + 0.1 * rng.standard_normal((40, 4))
    known = Known(Federation.from_sizes([50] * 40), None, updates)
    words = [word for word in by_pilot(known) if word.startswith("balanced")]
    assert words == ["balanced:by=updates"]
    assert by_pilot(Known(known.federation)) == []  # nothing to go by
    only = ["md", "balanced", *words]
    advice = advise([50] * 40, m=8, updates=updates, only=only, sweep=())
    assert advice.row("balanced").status == "unknown"  # it asks for labels
    found = advice.row("balanced:by=updates")
    assert found.status == "approximate"
    assert "Monte Carlo, 64 cohorts" in found.note
    assert found.score < 0.2 * advice.row("md").score
    assert advice.recommended == "balanced:by=updates"
    hidden = {"only": only, "sweep": (), "secure_aggregation": True}
    assert advise([50] * 40, m=8, updates=updates, **hidden).recommended == "md"


def test_what_stays_visible_under_secure_aggregation_is_said_with_what_it_is_worth():
    rng = stream(0, "labels")
    labels = np.array([rng.multinomial(50, rng.dirichlet(np.full(4, 0.3))) for _ in range(24)])
    told = {"label_histograms": labels, "only": ["md", "uniform", "balanced"], "sweep": ()}
    advice = advise([50] * 24, m=4, secure_aggregation=True, **told)
    assert advice.row(advice.recommended).secure_aggregation.startswith("partly")
    said = next(line for line in advice.reasons if "not hidden by secure aggregation" in line)
    assert "of the schemes that ask nothing" in said
    assert "(uniform, which asks nothing, leaves " in advice.plain[2]
    unasked = advise([50] * 24, m=4, **told)
    assert not any("not hidden by" in line for line in unasked.reasons)
    assert "asks nothing" not in unasked.plain[2]


def test_only_schemes_that_may_be_recommended_are_said_to_be_no_better():
    updates = np.repeat(np.eye(4), 10, axis=0)
    asked = {"updates": updates, "only": ["md", "uniform", "clustered-similarity"], "sweep": ()}
    advice = advise([50] * 40, m=8, secure_aggregation=True, **asked)
    assert "the one other scheme that does so leaves no less" in advice.plain[0]


def test_schemes_that_ask_are_ranked_by_a_pilot_round():
    rng = np.random.default_rng(0)
    updates = rng.normal(size=(60, 8)) * rng.lognormal(0, 1, 60)[:, None]
    federation = Federation.from_sizes(SKEWED)
    advice = advise(federation, m=6, updates=updates, sweep=())
    norms = np.linalg.norm(updates, axis=1)
    optimal = scheme("optimal", m=6).given(norms, federation)
    row = advice.row("optimal")
    assert row.status == "exact"
    assert row.score == pytest.approx(optimal.aggregate_variance(updates))
    assert (row.expected_distinct, row.computing) == (pytest.approx(6), 60)
    assert {advice.row(name).status for name in ("hcsfed", "cluster", "importance")} == {"exact"}
    # It is the best, but all clients would have to train in every round.
    assert row.score < advice.row(advice.recommended).score
    assert advice.row(advice.recommended).computing <= 6
    assert any("Where 60 clients can compute in every round, optimal" in s for s in advice.reasons)


@dataclass(frozen=True)
class AsksSome(Scheme):
    """Its law, given the candidates, is not its law."""

    m: Annotated[int, Whole(1)] = 2
    name: ClassVar[str] = "asks-some"
    asks: ClassVar[frozenset[Signal]] = frozenset({UPDATE_NORM})

    def select(self, state, federation, context, rng):
        candidates = distinct(rng, len(federation), 3)
        yield Ask(UPDATE_NORM, candidates)
        return Rows.alike(federation.among(candidates).shares, self.m)


def test_a_law_that_hangs_on_chance_is_not_taken_for_the_law():
    federation = Federation.from_sizes([1, 2, 3, 4])
    known = Known(federation, None, np.eye(4))
    assert known.law(AsksSome(), federation) is None
    assert Trial(AsksSome(), federation, known.answer).design(NoState()) is None


def test_sweep_holds_the_scores_at_other_m():
    advice = advise(SKEWED, m=6, sweep=[2, 12])
    assert advice.sweep.m == (2, 6, 12)
    for k, m in enumerate(advice.sweep.m):
        other = advise(SKEWED, m=m)
        for name, scores in advice.sweep.scores.items():
            if scores[k] is not None:
                assert scores[k] == pytest.approx(other.row(name).score)
        assert advice.sweep.best[k] == other.recommended


def test_warnings_of_schemes_become_notes():
    """Counts that do not add up to the sizes: some schemes warn; the table says so, once each."""
    advice = advise(EQUAL, m=6, label_histograms=np.eye(6, dtype=int)[np.arange(60) % 6])
    for row in advice.rows:
        assert row.note.count("do not add up") <= 1


def test_heterogeneity_turns_the_choice():
    """Of the others: a fixed size with chances by importance is best whatever it is."""
    advice = advise(SKEWED, m=3)
    assert advice.recommended == "pivotal"
    assert any("does not depend on how much" in line for line in advice.reasons)
    for at in (1e-3, 1e3):
        assert advise(SKEWED, m=3, heterogeneity=at).recommended == "pivotal"

    def best(heterogeneity: float) -> tuple[list[SchemeFacts], SchemeFacts]:
        fixed = {"pivotal", "systematic"}
        rows = advise(SKEWED, m=3, heterogeneity=heterogeneity).rows
        others = [row for row in rows if row.name not in fixed]
        return others, chosen(others, 3)

    rows, first = best(1.0)
    lines = _if_more_or_less_alike(rows, first, 3, 1.0)
    line = next(line for line in lines if "heterogeneity above" in line)
    at, other = float(line.split("above ")[1].split(")")[0]), line.split("use ")[1].rstrip(".")
    assert best(at * 1.02)[1].name == other
    assert best(at * 0.98)[1].name == first.name


def test_not_applicable_has_the_sentence_and_settings_help():
    big = [1000] + [1] * 20
    advice = advise(big, m=5)
    assert advice.row("poisson").status == "not applicable"
    assert "cap=True" in advice.row("poisson").note
    capped = advise(big, m=5, settings={"poisson": {"cap": True}})
    assert capped.row("poisson").status == "exact"
    assert "cap=True" in capped.row("poisson").scheme


def test_bytes_are_what_the_ledger_books():
    """Twenty rounds of uniform and of optimal with a real ledger."""
    assert QUESTION_BYTES == ledger.REQUEST_BYTES
    federation = Federation.from_sizes([10] * 20)
    for name, answer in (("uniform", None), ("optimal", lambda ask: np.ones(len(ask.clients)))):
        book = ledger.Ledger(model_bytes=4000)
        selector = Selector(scheme(name, m=20), federation, seed=1, ask=answer, ledger=book)
        selector.select()
        selector.observe()
        row = advise(federation, m=20, model_bytes=4000).row(name)
        assert row.bytes_per_round == pytest.approx(book.of_round(0).bytes)
    assert advise(federation, m=5).row("uniform").bytes_per_round is None


def test_what_a_rehearsal_finds():
    federation = Federation.from_sizes([3] * 500)
    assert rehearse(scheme("md", m=5), federation, 5)[:2] == ((), ())
    assert rehearse(scheme("uniform", m=5), federation, 5).trained == 5
    assert rehearse(scheme("fedsampling"), federation, 5).trained == 500
    found = rehearse(scheme("optimal", m=5), federation, 5)
    assert [(q.signal, q.clients) for q in found.round] == [(UPDATE_NORM, 500)]
    target = rehearse(scheme("target", m=5), federation, 5)
    assert [(q.signal, q.clients) for q in target.start] == [(LABEL_HISTOGRAM, 500)]
    large = Federation.from_sizes([1] * 9000)
    assert rehearse(scheme("optimal", m=4000), large, 4000) is None


@pytest.mark.parametrize("m", [10, 12, 20, 50])
def test_as_many_as_there_are_on_the_stage_is_not_everybody(m):
    federation = Federation.from_sizes([3] * 1000)
    [question] = rehearse(scheme("pow-d", m=m), federation, m).round
    assert question.clients == 2 * m
    [question] = rehearse(scheme("pow-d", m=10, d=24), federation, 10).round
    assert question.clients == 24


def test_price_of_a_signal_that_cannot_be_measured_is_not_known():
    odd = Signal("odd", "something odd", lambda client: client.no_such_thing)
    from fedcohort.advice._question_cost import Question

    assert bytes_of((Question(odd, 3),), 2.0, 100, 10) is None


CITATION = Citation("A", "T", "V", 2020)


@dataclass(frozen=True)
class Asking(Scheme):
    m: Annotated[int, Whole(1)] = 2
    paper: ClassVar[Citation] = CITATION


def test_secure_aggregation_follows_from_the_signals():
    def says(*asks):
        cls = type("Some", (Asking,), {"asks": frozenset(asks), "name": "some"})
        return declared(cls(), 10)["secure_aggregation"]

    summed = Signal("sum", "only a sum", lambda client: 1, secrecy="summed")
    assert says() == "yes"
    assert says(summed) == "yes"
    assert says(LOSS).startswith("partly")
    assert says(LABEL_HISTOGRAM).startswith("partly")
    assert says(LOSS, UPDATE).startswith("no")


def test_only_what_works_with_secure_aggregation():
    histograms = np.eye(6, dtype=int)[np.arange(60) % 6]
    told = {"label_histograms": histograms, "secure_aggregation": True, "sweep": ()}
    advice = advise(EQUAL, m=6, **told)
    assert not advice.row(advice.recommended).secure_aggregation.startswith("no")
    assert "drawn twice" in advice.row("md").secure_aggregation
    assert "drawn twice" not in advice.row("uniform").secure_aggregation


def test_no_word_of_what_secure_aggregation_rules_out():
    rng = np.random.default_rng(1)
    updates = rng.normal(size=(5, 8))[np.arange(100) % 5] * rng.lognormal(0, 1, 100)[:, None]
    told = ["md", "balanced", "balanced:by=updates", "clustered-similarity", "hcsfed", "uniform"]
    free = advise([50] * 100, m=10, updates=updates, only=told, sweep=())
    assert free.recommended == "balanced:by=updates"
    assert free.row("clustered-similarity").score < free.row("md").score
    bound = advise([50] * 100, m=10, updates=updates, secure_aggregation=True)
    ruled_out = {row.name for row in bound.rows if row.secure_aggregation.startswith("no")}
    assert {"clustered-similarity", "hcsfed", "balanced:by=updates"} <= ruled_out
    assert not ruled_out & {bound.recommended, *bound.sweep.best, *bound.sweep.scores}
    assert not any(f"{name} " in sentence for name in ruled_out for sentence in bound.reasons)


def test_known_answers_or_says_what_is_missing():
    known = Known(Federation.from_sizes([1, 2, 3]), updates=np.arange(6.0).reshape(3, 2))
    norms = known.answer(Ask(UPDATE_NORM, np.array([0, 2])))
    assert norms == pytest.approx([1, np.hypot(4, 5)])
    for signal, words in ((LOSS, "losses"), (LABEL_HISTOGRAM, "label histograms")):
        with pytest.raises(NotKnownError, match=words):
            known.answer(Ask(signal, np.array([0])))
    odd = Signal("speed", "speed", lambda client: client.upload_speed)
    with pytest.raises(NotKnownError, match="upload speed"):
        known.answer(Ask(odd, np.array([0])))
    private = Known(Federation(importance=[0.5, 0.5]))
    with pytest.raises(NotKnownError, match="sizes"):
        private.answer(Ask(Signal("s", "s", lambda c: c.size), np.array([0])))


def test_as_json():
    text = json.dumps(advise(SKEWED, m=3, model_bytes=100).as_dict(), allow_nan=False)
    again = json.loads(text)
    assert again["recommended"] == "pivotal"
    assert again["rows"][0]["name"]


def test_empty_clients_are_left_out():
    advice = advise([0, 5, 5, 5, 5], m=2)
    assert advice.n == 4
    assert advice.row("uniform").never_worst < 1


def test_large_federation_skips_what_would_not_fit():
    advice = advise(np.full(4000, 7), m=10)
    assert advice.row("optimal").status == "unknown"
    assert "more than" in advice.row("optimal").note


@pytest.mark.slow
def test_ten_million_sizes():
    sizes = np.maximum(1, np.random.default_rng(0).lognormal(4, 1.2, 10_000_000)).astype(np.int64)
    advice = advise(sizes, m=100, model_bytes=10**6)
    least = advice.row("pivotal").score
    assert advice.row("clustered-size").score == pytest.approx(least, rel=1e-7)  # a tie, here
    assert advice.recommended in {"pivotal", "clustered-size"}
    assert isinstance(law_of("md", Federation.from_sizes([1, 2]), 1), Rows)
    assert set(advice.sweep.scores) >= {"md", "uniform"}
    assert advice.sweep.note


@pytest.mark.parametrize(
    "change",
    [
        {"m": 0},
        {"m": 2.5},
        {"rounds": 0},
        {"heterogeneity": -1.0},
        {"heterogeneity": float("nan")},
        {"model_bytes": 0},
        {"sweep": [0]},
        {"label_histograms": [[1, 2]]},
        {"label_histograms": [[1], [2], [-1]]},
        {"updates": [[1.0], [2.0], [float("nan")]]},
        {"updates": [1.0, 2.0, 3.0]},
        {"federation": []},
        {"federation": [1, -1]},
    ],
)
def test_bad_input(change):
    good = {"federation": [1, 2, 3], "m": 2}
    with pytest.raises((BadParameter, BadInput)):
        advise(**(good | change))


def test_with_one_client_there_is_nothing_to_choose():
    assert advise([7], m=1).recommended == "full"


def test_settings_of_unknown_schemes_are_refused():
    with pytest.raises(UnknownName, match="poisson"):
        advise([5, 5, 5], m=2, settings={"poison": {"cap": True}})
    with pytest.raises(UnknownName, match="foo"):
        advise([5, 5, 5], m=2, settings={"md": {"foo": 3}})
    with pytest.raises(BadParameter, match="same m"):
        advise([5, 5, 5], m=2, settings={"md": {"m": 3}})


def test_a_scheme_that_asks_nothing_waits_for_no_answers():
    told = advise([5, 5, 5], m=2).cannot_know
    (waiting,) = [line for line in told if "answers that do not exist yet" in line]
    assert "fedsampling-naive" not in waiting
    assert "The law of fedcs, fedsampling-naive: it has no closed form here." in told


def test_of_schemes_that_are_equal_if_nobody_differs_the_one_that_varies_least_is_used():
    """Without differences all whose weights sum to 1 have the score 0; rounding must not decide."""
    common = {"status": "exact", "bias": 0.0, "score": 0.0, "computing": 3.0}
    md = SchemeFacts("md", "md", sigma=0.2, gamma=0.3, **common)
    pivotal = SchemeFacts("pivotal", "pivotal", sigma=0.1, **common)
    assert chosen([md, pivotal], 3) is pivotal


# -- with noise ------------------------------------------------------------------------------------


def test_with_an_epsilon_the_ranking_counts_the_noise_that_it_takes():
    """Without noise 'uniform' varies less; at equal epsilon it needs far more noise."""
    pytest.importorskip("dp_accounting")
    words = {"m": 8, "rounds": 20, "only": ["binomial", "uniform", "optimal"]}
    plain, private = (advise([10] * 40, **words, **more) for more in ({}, {"epsilon": 2.0}))
    assert plain.recommended == "uniform"
    assert private.recommended == "binomial"
    assert private.sweep.best[private.sweep.m.index(16)] == "binomial"
    for name in ("binomial", "uniform"):
        row = private.row(name)
        # 1,000 parameters, updates of squared length 1 + 1
        added = 1_000 * row.deviation**2 * 2.0
        assert row.noise_variance == pytest.approx(added)
        assert row.score == pytest.approx(plain.row(name).score + added)
    assert private.row("optimal").score is None  # no noise covers what it asks
    assert "noise for epsilon 2 on 1,000 parameters" in private.criterion


def test_the_noise_is_on_as_many_parameters_as_the_model_has():
    pytest.importorskip("dp_accounting")
    updates = np.random.default_rng(0).normal(size=(20, 6)) * 3
    words = {"m": 4, "rounds": 5, "only": ["binomial"], "sweep": (), "epsilon": 2.0}
    squared = np.mean(np.sum(updates**2, axis=1))
    for more, parameters in (({}, 6), ({"model_bytes": 4 * 50}, 50)):
        row = advise([1] * 20, updates=updates, **words, **more).row("binomial")
        assert row.noise_variance == pytest.approx(parameters * row.deviation**2 * squared)
