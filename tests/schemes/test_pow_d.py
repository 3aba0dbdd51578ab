"""Power-of-Choice: its exact law, its numbers, who is asked, and bad input."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from fedcohort import Ask, Federation, Replies, Selector, scheme
from fedcohort._internal.errors import BadParameter, FedcohortWarning
from fedcohort.selection._scripted import Trial
from fedcohort.server import Ledger
from fedcohort.server._ledger import REQUEST_BYTES
from fedcohort.simulation import Quadratic, simulate

NAMES = ("pow-d", "cpow-d", "rpow-d")
SIZES = [5, 4, 3, 2, 1]


def answering(losses: Any) -> Any:
    return lambda ask: np.asarray(losses)[ask.clients]


def selector(losses: Any, sizes: Any, seed: int = 0, **parameters: Any) -> Selector:
    federation = Federation.from_sizes(sizes)
    return Selector(scheme("pow-d", **parameters), federation, seed, ask=answering(losses))


def exact_law(
    sizes: list[int], losses: list[float], m: int, d: int, uniform: bool = False
) -> dict[tuple[int, ...], Fraction]:
    """Every order in which candidates can be drawn, by the definition; losses differ."""
    law: dict[tuple[int, ...], Fraction] = {}
    weights = [1] * len(sizes) if uniform else sizes
    for order in permutations(range(len(sizes)), d):
        chance, left = Fraction(1), sum(weights)
        for i in order:
            chance *= Fraction(weights[i], left)
            left -= weights[i]
        best = tuple(sorted(sorted(order, key=lambda i: -losses[i])[:m]))
        law[best] = law.get(best, Fraction(0)) + chance
    return law


@pytest.mark.parametrize("uniform", [False, True])
@pytest.mark.parametrize(("m", "d"), [(1, 1), (1, 2), (2, 3), (2, 5), (3, 3)])
def test_the_law_is_that_of_the_paper(m: int, d: int, uniform: bool) -> None:
    losses = [0.3, 0.1, 0.5, 0.2, 0.4]
    candidates = "uniform" if uniform else "importance"
    pow_d = scheme("pow-d", m=m, d=d, candidates=candidates)
    trial = Trial.of(pow_d, Federation.from_sizes(SIZES), answering(losses))
    found: dict[tuple[int, ...], Fraction] = {}
    for chance, cohort in trial.law(trial.start()) or []:
        who = tuple(cohort.clients.tolist())
        found[who] = found.get(who, Fraction(0)) + chance
    assert found == exact_law(SIZES, losses, m, d, uniform)


def test_golden_powd() -> None:
    losses = [5, 4, 1, 6, 2, 3, 9, 8, 7, 1]
    sizes = [0, 1, 0, 1, 0, 0, 1, 0, 1, 0]  # so that the candidates are 1, 3, 6, 8
    with pytest.warns(FedcohortWarning, match="6 of 10 clients have no data"):
        chosen = selector(losses, sizes, m=2, d=4).select()
    assert chosen.clients.tolist() == [6, 8]
    assert chosen.weights.tolist() == [0.5, 0.5]


def test_losses_can_be_summed_over_samples() -> None:
    losses, sizes = [1.0, 3.0, 2.0], [10, 1, 3]
    assert selector(losses, sizes, m=1, d=3).select().clients.tolist() == [1]
    assert selector(losses, sizes, m=1, d=3, loss="sum").select().clients.tolist() == [0]


def seen_over(rounds: int, chooser: Selector) -> tuple[set[int], bool]:
    """Who was ever a candidate, and whether only candidates were ever chosen."""
    candidates: set[int] = set()
    sound = True
    for _ in range(rounds):
        asked: list[int] = []

        def answer(ask: Ask, asked: list[int] = asked) -> Any:
            asked += ask.clients.tolist()
            return 1.0 + ask.clients  # always in the same order: the worst case for the others

        cohort = chooser.select(ask=answer)
        chooser.observe(Replies(cohort.clients, {"loss": 1.0 + cohort.clients}))
        sound = sound and set(cohort.clients.tolist()) <= set(asked)
        candidates |= set(asked)
    return candidates, sound


@pytest.mark.parametrize("name", ["pow-d", "cpow-d"])
@pytest.mark.parametrize("candidates", ["importance", "uniform"])
def test_only_who_was_asked_is_chosen_and_everyone_is_asked_at_some_time(
    name: str, candidates: str
) -> None:
    # The rarest client is a candidate with probability 0.04 or more: never in 500 rounds 1e-9.
    federation = Federation.from_sizes([0, *range(1, 21)])
    chooser = Selector(scheme(name, m=3, d=8, candidates=candidates), federation, seed=5)
    assert seen_over(500, chooser) == (set(range(1, 21)), True)


def test_the_check_above_sees_the_two_published_mistakes() -> None:
    class Frozen(Selector):  # the candidates of the first round, for ever
        def select(self, *arguments: Any, **options: Any) -> Any:
            self.round = 0
            return super().select(*arguments, **options)

    class Misread(Selector):  # positions among the candidates, taken for clients
        def select(self, *arguments: Any, **options: Any) -> Any:
            cohort = super().select(*arguments, **options)
            from fedcohort import Cohort

            misread = Cohort.equal(np.arange(len(cohort)))
            self.amend(misread)
            return misread

    federation = Federation.from_sizes(range(1, 21))
    pow_d = scheme("pow-d", m=3, d=8)
    assert seen_over(500, Frozen(pow_d, federation, seed=5))[0] != set(range(20))
    assert not seen_over(500, Misread(pow_d, federation, seed=5))[1]


def test_ties_are_broken_uniformly() -> None:
    trial = Trial.of(
        scheme("pow-d", m=1, d=3), Federation.from_sizes([1, 1, 1]), answering([2.0, 2.0, 2.0])
    )
    chances = {c.clients.tolist()[0]: p for p, c in trial.law(trial.start()) or []}
    assert chances == {0: Fraction(1, 3), 1: Fraction(1, 3), 2: Fraction(1, 3)}


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -5.0])
def test_a_bad_loss_never_wins(bad: float) -> None:
    with pytest.warns(FedcohortWarning, match="1 of 4 losses"):
        chosen = selector([0.1, bad, 0.2, 0.3], [1] * 4, m=2, d=4, negative=False).select()
    assert chosen.clients.tolist() == [2, 3]


@pytest.mark.parametrize("name", ["pow-d", "cpow-d"])
def test_m_clients_train_however_few_losses_can_be_used(name: str) -> None:
    federation, losses = Federation.from_sizes([1] * 4), [np.nan, np.inf, 0.2, np.nan]
    trial = Trial.of(scheme(name, m=2, d=4), federation, answering(losses))
    with pytest.warns(FedcohortWarning, match="3 of 4 losses"):
        law = trial.law(trial.start()) or []
    chances: dict[tuple[int, ...], Fraction] = {}
    for chance, cohort in law:
        assert cohort.weights.tolist() == [0.5, 0.5]
        who = tuple(cohort.clients.tolist())
        chances[who] = chances.get(who, Fraction(0)) + chance
    assert chances == dict.fromkeys([(0, 2), (1, 2), (2, 3)], Fraction(1, 3))


def test_a_missing_loss_counts_as_the_median() -> None:
    losses = np.array([0.1, None, 0.3, 0.4, 0.2], dtype=object)  # the median of four: 0.2
    with pytest.warns(FedcohortWarning, match="1 of 5 clients did not tell their loss; the median"):
        chosen = [selector(losses, [1] * 5, m=m, d=5).select().clients.tolist() for m in (3, 4)]
    assert chosen == [[2, 3, 4], [1, 2, 3, 4]]  # after 0.2, before 0.1


def test_without_any_usable_loss_the_choice_is_uniform() -> None:
    trial = Trial.of(
        scheme("pow-d", m=1, d=2), Federation.from_sizes([1, 1]), answering([np.nan, np.inf])
    )
    with pytest.warns(FedcohortWarning, match="taken at random"):
        law = trial.law(trial.start())
    assert [chance for chance, _ in law or []] == [Fraction(1, 2), Fraction(1, 2)]


def test_negative_losses_are_losses() -> None:
    chosen = selector([-3.0, -1.0, -2.0], [1] * 3, m=2, d=3).select()
    assert chosen.clients.tolist() == [1, 2]


@pytest.mark.parametrize("name", NAMES)
def test_d_below_m_above_n_or_above_those_with_data(name: str) -> None:
    with pytest.raises(BadParameter, match=f"'d' parameter of {name} must be at least m"):
        scheme(name, m=3, d=2)
    few = Federation.from_sizes([1, 1, 1])
    with pytest.raises(BadParameter, match=r"at most the number of clients \(3\). Got 4 instead"):
        Selector(scheme(name, m=1, d=4), few, ask=answering([1.0] * 3)).select()
    empty = Federation.from_sizes([1, 1, 0])
    with pytest.warns(FedcohortWarning, match="only 2 clients have data, so there are 2"):
        cohort = Selector(scheme(name, m=1, d=3), empty, ask=answering([1.0] * 3)).select()
    assert len(cohort) == 1


def test_everyone_where_m_is_d_is_n() -> None:
    chosen = selector([1.0, np.e, 0.5], [1, 2, 3], m=3, d=3).select()
    assert chosen.clients.tolist() == [0, 1, 2]
    assert np.allclose(chosen.weights, 1 / 3)


def test_fewer_available_than_m() -> None:
    chosen = selector([1.0] * 5, SIZES, m=3, d=4).select(available=[1, 4])
    assert chosen.clients.tolist() == [1, 4]


# -- cpow-d and rpow-d ---------------------------------------------------------------------------


def test_cpow_d_asks_for_one_batch() -> None:
    heard: list[Ask] = []

    def answer(ask: Ask) -> Any:
        heard.append(ask)
        return np.ones(len(ask.clients))

    federation = Federation.from_sizes([9] * 6)
    Selector(scheme("cpow-d", m=2, d=4, batch=32), federation, seed=0, ask=answer).select()
    assert [(ask.signal.name, ask.settings, len(ask.clients)) for ask in heard] == [
        ("batch_loss", {"batch": 32}, 4)
    ]


def test_rpow_d_remembers_and_asks_nobody() -> None:
    federation = Federation.from_sizes([1, 1, 1])
    chooser = Selector(scheme("rpow-d", m=1, d=3), federation, seed=0)
    losses = np.array([0.5, 0.9, 0.1])
    order = []
    for _ in range(6):
        cohort = chooser.select()
        order += cohort.clients.tolist()
        chooser.observe(Replies(cohort.clients, {"loss": losses[cohort.clients]}))
    assert sorted(order[:3]) == [0, 1, 2]  # everyone has a turn while there is an unknown one
    assert order[3:] == [1, 1, 1]  # then the highest of the losses last heard
    assert chooser.ledger.by_purpose().keys() == {"training"}


def test_a_stale_loss_is_forgotten() -> None:
    federation = Federation.from_sizes([1, 1])
    losses = np.array([0.9, 0.1])

    def orders(stale: int | None) -> list[int]:
        chooser = Selector(scheme("rpow-d", m=1, d=2, stale=stale), federation, seed=0)
        out = []
        for _ in range(8):
            cohort = chooser.select()
            out += cohort.clients.tolist()
            chooser.observe(Replies(cohort.clients, {"loss": losses[cohort.clients]}))
        return out

    assert orders(None)[2:] == [0] * 6
    assert 1 in orders(2)[2:]


def test_rpow_d_takes_no_bad_loss_for_a_loss() -> None:
    rpow_d = scheme("rpow-d", m=1, d=2, negative=False)
    chooser = Selector(rpow_d, Federation.from_sizes([1, 1]), seed=0)
    cohort = chooser.select()
    with pytest.warns(FedcohortWarning, match="do not count"):
        chooser.observe(Replies(cohort.clients, {"loss": np.array([-1.0])}))
    assert np.isinf(chooser.start().losses).all()


def test_rpow_d_keeps_what_it_knows_when_clients_come_and_go() -> None:
    federation = Federation(sizes=[1, 1, 1], ids=["a", "b", "c"])
    chooser = Selector(scheme("rpow-d", m=3, d=3), federation, seed=0)
    cohort = chooser.select()
    chooser.observe(Replies(cohort.clients, {"loss": np.array([0.1, 0.2, 0.3])}))
    chooser.update(Federation(sizes=[1, 1, 1], ids=["c", "d", "b"]))
    assert chooser.start().losses.tolist() == [0.2, 0.3, np.inf]


# -- cost ----------------------------------------------------------------------------------------


def test_what_a_round_costs() -> None:
    m, d, n, model = 3, 6, 20, 1000
    ledger = Ledger(model_bytes=model)
    chooser = Selector(
        scheme("pow-d", m=m, d=d),
        Federation.from_sizes([5] * n),
        seed=0,
        ask=answering(np.arange(n, dtype=np.float64)),
        ledger=ledger,
    )
    chooser.select()
    chooser.observe()
    cost = ledger.of_round(0)
    assert cost.messages == 2 * (d + m)
    assert cost.bytes_down == d * (REQUEST_BYTES + model)  # those who train have the model already
    assert cost.bytes_up == 8 * d + m * model


def test_a_run_on_quadratics_prefers_the_worst() -> None:
    task = Quadratic([[0.0], [0.0], [0.0], [9.0]])
    biased = simulate(task, scheme("pow-d", m=1, d=4), rounds=20)
    fair = simulate(task, scheme("md", m=1), rounds=20)
    assert biased.participation[3] > fair.participation[3]


@pytest.mark.parametrize(("m", "n", "asked"), [(3, 40, 6), (15, 40, 30), (30, 40, 40)])
def test_without_d_twice_as_many_as_train_are_asked(m, n, asked):
    heard = []

    def answer(ask):
        heard.append(len(ask.clients))
        return np.ones(len(ask.clients))

    cohort = Selector(scheme("pow-d", m=m), Federation.from_sizes([1] * n), 0, ask=answer).select()
    assert (heard, len(cohort)) == ([asked], m)
