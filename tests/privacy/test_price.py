"""Prices against dp-accounting's own numbers, and what is said where none is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, BadParameter, TooImprecise
from fedcohort.designs import Bernoulli, Simple
from fedcohort.privacy import noise_for, price
from fedcohort.privacy._accounting import Part, Rounds, epsilon, gaussian_epsilon
from fedcohort.privacy._price import _Bill, law
from fedcohort.schemes import SCHEMES, scheme
from fedcohort.selection import Citation, Claim, Cohort, Federation, NoState, Scheme, Whole
from fedcohort.selection._scripted import Trial

dp = pytest.importorskip("dp_accounting")
pld = pytest.importorskip("dp_accounting.pld")
rdp = pytest.importorskip("dp_accounting.rdp")

THOUSAND = [1] * 1000
SETTING = {"rounds": 500, "noise": 1.0, "delta": 1e-5}


@pytest.mark.parametrize(
    ("word", "settings", "wanted"),
    [
        ("full", {"accountant": "rdp"}, 354.9),
        ("pow-d:m=10", {"accountant": "rdp"}, 354.9),
        ("full", {}, 344.5),
        ("uniform:m=10", {"adjacency": "replace-one", "accountant": "rdp"}, 2.54),
        ("uniform:m=10", {"adjacency": "replace-one"}, 1.54),
        ("binomial:m=10", {}, 1.33),
        ("binomial:m=10", {"accountant": "rdp"}, 1.65),
        ("poisson:m=100", {}, 16.6),
    ],
)
def test_numbers_to_three_digits(word, settings, wanted):
    found = price(word, THOUSAND, **SETTING, **settings).epsilon
    assert float(f"{found:.3g}" if found < 100 else f"{found:.4g}") == wanted


@pytest.mark.parametrize("relation", ["ADD_OR_REMOVE_ONE", "REPLACE_ONE"])
@pytest.mark.parametrize(("q", "noise", "rounds"), [(0.02, 0.8, 200), (0.3, 2.0, 50)])
def test_independent_clients_as_the_library_has_them(q, noise, rounds, relation):
    library = pld.PLDAccountant(getattr(dp.NeighboringRelation, relation))
    library.compose(dp.PoissonSampledDpEvent(q, dp.GaussianDpEvent(noise)), rounds)
    adjacency = "replace-one" if relation == "REPLACE_ONE" else "add-remove"
    mine = epsilon([Rounds(Part((q,), 1 / noise, 0.0), rounds)], 1e-6, adjacency)
    assert mine == pytest.approx(library.get_epsilon(1e-6), rel=2e-3)


def test_a_size_proportional_client_pays_by_its_own_chance():
    """One client of a hundredth of all data has q = 0.1 where m = 10, as in the table."""
    sizes = [10] + [1] * 990
    found = price("poisson:m=10", sizes, **SETTING)
    assert found.epsilon == pytest.approx(16.56, abs=0.01)
    assert found.median == pytest.approx(1.33, abs=0.01)
    assert [cost for _, cost in found.curve] == sorted(cost for _, cost in found.curve)
    assert found.seen > found.epsilon


def test_lighter_clients_pay_less_where_the_noise_is_for_the_heaviest():
    found = price("binomial:m=2", [8, 4, 2, 1, 1], 20, 1.0, 1e-5)
    heavy = epsilon([Rounds(Part((0.4,), 1.0, 0.0), 20)], 1e-5)
    light = epsilon([Rounds(Part((0.4,), 1 / 8, 0.0), 20)], 1e-5)
    assert found.epsilon == pytest.approx(heavy, rel=1e-6)
    assert found.curve[0][1] == pytest.approx(light, rel=0.02)
    assert found.largest_weight == pytest.approx(8 / 16 / 0.4)
    assert found.deviation == pytest.approx(8 / 16 / 0.4)


def test_replace_one_has_twice_the_sensitivity():
    found = price("uniform:m=2", [1] * 20, 10, 1.0, 1e-5, adjacency="replace-one")
    assert found.deviation == pytest.approx(2 * 0.5)
    assert found.unamplified == pytest.approx(gaussian_epsilon(np.sqrt(10), 1e-5))


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_every_scheme_has_a_price_or_a_reason(name, adjacency):
    built = SCHEMES.build(name, otherwise={"m": 3})
    found = price(built, [3, 2, 1, 1, 1] * 3, 30, 4.0, 1e-5, adjacency=adjacency)
    assert 0 < found.median <= found.epsilon <= found.seen * (1 + 1e-6)
    assert found.covered == (not (built.asks or built.listens))
    if not found.covered:
        assert "looks at" in found.how
        assert "not covered" in found.guarantee()
        once = built.draws_once or Claim.EXACTLY_M in built.claims
        assert (found.epsilon == found.unamplified) == once
    if found.amplified:
        assert found.epsilon < found.unamplified


@pytest.mark.parametrize("name", ["md:m=6", "clustered-size:m=6", "poisson:m=6,cap=true"])
def test_the_worst_off_is_the_worst_off_of_all(name):
    sizes = np.array([25, 15, 12, 9, 4, 3, 3, 2, 1, 1])
    clients = Federation.from_sizes(sizes)
    bill = _Bill(law(scheme(name), clients, 20), 20, 2.0, 1e-5, "add-remove", "pld", 2_000)
    everyone = [bill._of(bill._of_client(client)) for client in range(len(sizes))]
    assert max(everyone) <= bill.worst() * (1 + 1e-9)
    assert bill.worst() <= max(everyone) * 1.1


@dataclass(frozen=True)
class Secretive(Scheme[NoState]):
    """A scheme of somebody else, whose design says nothing."""

    m: Annotated[int, Whole(1)] = 2
    name: ClassVar[str] = "secretive"
    draws_once: ClassVar[bool] = True
    paper: ClassVar[Citation] = Citation("Nobody", "Nothing", "Nowhere", 2000)

    def law(self, federation):
        class Mine(Simple):
            def participation(self):
                return None

        return Mine(federation.shares, self.m)


def test_a_design_that_says_nothing_is_not_amplified():
    found = price(Secretive(), [1] * 10, 30, 1.0, 1e-5)
    assert not found.amplified
    assert found.covered
    assert found.epsilon == found.unamplified
    assert "Mine" in found.how


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_line_schemes_by_sizes_pay_for_their_chance_alone(adjacency):
    """By swaps as uniform; where members hang together as if it were known who took part."""
    setting = {"rounds": 30, "noise": 1.0, "delta": 1e-5, "adjacency": adjacency}
    uniform = price("uniform:m=5", [1] * 50, **setting)
    pivotal = price("pivotal:m=5,by=sizes", [1] * 50, **setting)
    systematic = price("systematic:m=5,by=sizes", [1] * 50, **setting)
    assert pivotal.epsilon == pytest.approx(uniform.epsilon)
    assert systematic.epsilon == pytest.approx(uniform.seen)
    assert "known who took part" in systematic.how


@dataclass(frozen=True)
class Rests(Scheme[NoState]):
    """Who came rests: it hears nothing, and remembers."""

    m: Annotated[int, Whole(1)] = 2
    name: ClassVar[str] = "rests"
    draws_once: ClassVar[bool] = True
    paper: ClassVar[Citation] = Citation("Nobody", "Nothing", "Nowhere", 2000)

    def law(self, federation):
        return Simple(federation.shares, self.m)

    def observe(self, state, federation, cohort, replies):
        return NoState() if len(cohort) else state


def test_a_scheme_that_remembers_who_came_is_not_amplified():
    found = price(Rests(), [1] * 10, 30, 1.0, 1e-5)
    assert found.epsilon == found.unamplified
    assert "rounds before" in found.how


@dataclass(frozen=True)
class Turns(Scheme[NoState]):
    """Odd rounds and even rounds have laws of their own."""

    name: ClassVar[str] = "turns"
    paper: ClassVar[Citation] = Citation("Nobody", "Nothing", "Nowhere", 2000)

    def design(self, state, federation, context):
        parts = np.full(len(federation), 1 if context.round < 5 else 4)
        return federation.remember(
            ("turns", int(parts[0])), lambda f: Bernoulli(f.shares, parts, 8)
        )


def test_rounds_with_different_laws_are_added_up():
    sizes, delta = [1] * 8, 1e-5
    found = price(Turns(), Federation.from_sizes(sizes), 12, 1.0, delta).epsilon
    heavy = 1 / 8 / (1 / 8)  # the noise is for the larger of the two weights, 1 and 1/4
    wanted = epsilon(
        [Rounds(Part((1 / 8,), heavy, 0.0), 5), Rounds(Part((0.5,), 0.25, 0.0), 7)], delta
    )
    assert found == pytest.approx(wanted, rel=1e-6)
    assert found > price(Turns(), sizes, 5, 1.0, delta).epsilon


@pytest.mark.parametrize("word", ["binomial:m=5", "uniform:m=5", "md:m=5", "full", "pow-d:m=5"])
def test_the_noise_for_an_epsilon_keeps_it(word):
    noise = noise_for(word, [1] * 50, 20, 2.0, 1e-5)
    assert price(word, [1] * 50, 20, noise, 1e-5).epsilon <= 2.0
    assert price(word, [1] * 50, 20, noise * 0.99, 1e-5).epsilon > 2.0


@pytest.mark.parametrize(
    ("word", "rounds", "wanted"), [("binomial:m=10", 20_000, 0.5), ("uniform:m=10", 2_000, 1.0)]
)
def test_the_noise_for_an_epsilon_is_the_least_to_a_thousandth(word, rounds, wanted):
    """The price on a coarse grid, by which it is looked for first, is above that of `price`."""
    noise = noise_for(word, THOUSAND, rounds, wanted, 1e-5)
    assert price(word, THOUSAND, rounds, noise, 1e-5).epsilon <= wanted
    assert price(word, THOUSAND, rounds, noise * 0.999, 1e-5).epsilon > wanted


def test_rdp_is_above_pld_and_refuses_what_it_does_not_know():
    loose = price("binomial:m=10", THOUSAND, **SETTING, accountant="rdp").epsilon
    assert loose > price("binomial:m=10", THOUSAND, **SETTING).epsilon
    with pytest.raises(BadInput, match="use 'pld'"):
        price("md:m=10", THOUSAND, **SETTING, accountant="rdp")
    twice = price("full", [1] * 5, 7, 1.0, 1e-5, adjacency="replace-one", accountant="rdp")
    assert twice.epsilon >= gaussian_epsilon(np.sqrt(7), 1e-5)


@pytest.mark.parametrize(
    "wrong",
    [
        {"rounds": 0},
        {"rounds": 2.5},
        {"noise": 0.0},
        {"noise": float("nan")},
        {"delta": 0.0},
        {"delta": 1.0},
        {"adjacency": "substitute"},
        {"accountant": "moments"},
    ],
)
def test_bad_settings_get_one_sentence(wrong):
    with pytest.raises(BadParameter, match="price"):
        price("md:m=2", [1] * 5, **{**SETTING, **wrong})


def test_a_noise_out_of_reach_is_refused():
    with pytest.raises(BadParameter, match="epsilon"):
        noise_for("md:m=2", [1] * 5, 10, 0.0, 1e-5)


def test_next_to_no_noise_is_as_if_everybody_were_in_every_round():
    found = price("binomial:m=2", [1] * 20, 10, 0.01, 1e-5)
    assert found.epsilon == pytest.approx(gaussian_epsilon(np.sqrt(10) / 0.01, 1e-5))


def test_next_to_no_noise_has_no_finite_price_where_clients_are_drawn_twice():
    """The largest client is drawn in every round, and may move the sum out of all reach."""
    sizes = [200] + [7] * 20
    assert price("clustered-size:m=10", sizes, 100, 0.001, 1e-5).epsilon == np.inf
    noise = noise_for("clustered-size:m=10", sizes, 100, 3.0, 1e-5)
    assert price("clustered-size:m=10", sizes, 100, noise, 1e-5).epsilon <= 3.0


# -- schemes without a law -----------------------------------------------------------------------


def test_a_scheme_without_a_law_pays_for_as_many_draws_as_it_can_make_of_a_client():
    """The draws of one run, if they are known, never cost more than the price of the run."""
    sizes, rounds, noise, played = Federation.from_sizes([200] + [7] * 10), 20, 2.0, {}
    for name in SCHEMES:
        chosen = SCHEMES.build(name, otherwise={"m": 6, "strata": 3})
        try:
            trial = Trial.of(chosen, sizes, None)
            if law(chosen, sizes, 1).rounds:
                continue
            cohorts = [cohort for cohort, _ in trial.rounds(trial.start(), 0, rounds)]
        except (BadParameter, TooImprecise):
            continue  # it does not apply to these sizes
        draws = np.zeros((rounds, len(sizes)))
        for row, cohort in zip(draws, cohorts, strict=True):
            row[cohort.clients] = cohort.draws
        exact = gaussian_epsilon(np.sqrt((draws**2).sum(axis=0).max()) / noise, 1e-5)
        found = price(chosen, sizes, rounds, noise, 1e-5)
        assert exact <= found.epsilon * (1 + 1e-9), name
        if chosen.draws_once:
            assert draws.max() == 1, name
            assert found.epsilon == found.unamplified
        played[name] = draws.max()
    assert {name for name, most in played.items() if most > 1} >= {
        "clustered-similarity", "importance", "target"
    }  # fmt: skip
    assert {"optimal", "fedcs", "fedsampling-naive", "pow-d", "cluster"} <= set(played)


def test_no_bound_is_invented_for_a_scheme_that_does_not_say_how_often_it_draws():
    @dataclass(frozen=True)
    class Silent(Scheme[NoState]):
        name: ClassVar[str] = "silent"

        def select(self, state, federation, context, rng):
            return Cohort.of([0], 1.0, draws=[9])

    found = price(Silent(), [1] * 5, 3, 1.0, 1e-5)
    assert found.epsilon == np.inf
    assert "draws_once" in found.how
    with pytest.raises(BadInput, match="draws_once"):
        noise_for(Silent(), [1] * 5, 3, 1.0, 1e-5)
