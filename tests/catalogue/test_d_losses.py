"""Bad losses: cases D69 to D79 of the catalogue in docs/reliability.md."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Replies, Selector, scheme
from fedcohort._internal.errors import BadParameter, FedcohortWarning
from fedcohort.selection._queries import comparable
from fedcohort.selection._scripted import Trial
from helpers.catalogue import case, refuses


def pow_d(losses: Any, m: int = 2, seed: int = 0, **settings: Any) -> Selector:
    told = np.asarray(losses)
    federation = Federation.from_sizes([1] * len(told))
    built = scheme("pow-d", m=m, d=len(told), **settings)
    return Selector(built, federation, seed, ask=lambda ask: told[ask.clients])


def chances(losses: Any, m: int) -> dict[tuple[int, ...], Fraction]:
    told = np.asarray(losses)
    federation = Federation.from_sizes([1] * len(told))
    built = scheme("pow-d", m=m, d=len(told))
    trial = Trial.of(built, federation, lambda ask: told[ask.clients])
    out: dict[tuple[int, ...], Fraction] = {}
    for chance, cohort in trial.law(trial.start()) or []:
        who = tuple(cohort.clients.tolist())
        out[who] = out.get(who, Fraction(0)) + chance
    return out


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_D69_a_loss_that_is_not_finite_is_never_first(bad: float) -> None:
    with pytest.warns(FedcohortWarning, match="1 of 4 losses are not finite numbers"):
        assert pow_d([0.1, bad, 0.2, 0.3], m=3).select().clients.tolist() == [0, 2, 3]
    with pytest.warns(FedcohortWarning, match="3 of 4 losses"):
        assert len(pow_d([bad, bad, 0.2, bad], m=2).select()) == 2  # m all the same


def test_D70_a_negative_loss() -> None:
    assert pow_d([-3.0, -1.0, -2.0]).select().clients.tolist() == [1, 2]
    with pytest.warns(FedcohortWarning, match="1 of 3 losses are not finite numbers of at least 0"):
        assert pow_d([5.0, -1.0, 2.0], negative=False).select().clients.tolist() == [0, 2]


def test_D71_all_equal() -> None:
    assert set(chances([2.0, 2.0, 2.0], 1).values()) == {Fraction(1, 3)}


def test_D72_all_nan() -> None:
    with pytest.warns(FedcohortWarning, match="none of 3 losses can be used"):
        assert set(chances([np.nan] * 3, 1).values()) == {Fraction(1, 3)}


def test_D73_ties_at_the_cut() -> None:
    assert chances([9.0, 2.0, 2.0, 1.0], 2) == {(0, 1): Fraction(1, 2), (0, 2): Fraction(1, 2)}
    losses = [9.0, 2.0, 2.0, 1.0]
    for seed in range(5):
        assert pow_d(losses, seed=seed).select() == pow_d(losses, seed=seed).select()


test_D74_d_below_m_or_above_n = refuses(
    case("below m", lambda: scheme("pow-d", m=3, d=2), BadParameter, "'d' .* at least m .* Got 2"),
    case(
        "above n",
        lambda: Selector(
            scheme("pow-d", m=1, d=4),
            Federation.from_sizes([1] * 3),
            seed=0,
            ask=lambda ask: np.ones(3),
        ).select(),
        BadParameter,
        r"at most the number of clients \(3\). Got 4",
    ),
)


def test_D75_everybody() -> None:
    cohort = pow_d([3.0, 1.0, 2.0], m=3).select()
    assert cohort.clients.tolist() == [0, 1, 2]


def test_D76_a_missing_loss_counts_as_the_median() -> None:
    losses = np.array([0.1, None, 0.3, 0.4, 0.2], dtype=object)
    with pytest.warns(FedcohortWarning, match="1 of 5 clients did not tell their loss; the median"):
        found = [pow_d(losses, m=m).select().clients.tolist() for m in (3, 4)]
    assert found == [[2, 3, 4], [1, 2, 3, 4]]  # after the median itself, 0.2, and before 0.1


@pytest.mark.parametrize(("away", "there"), [({1, 4, 6}, 5), ({0, 1, 4, 6, 7}, 3)])
def test_D76_over_a_network_who_is_silent_comes_last(away: set[int], there: int) -> None:
    """Who does not answer a question will hardly train, and the round would wait for it."""
    pytest.importorskip("flwr")
    from helpers import lies
    from helpers.flower_play import play

    with pytest.warns(FedcohortWarning, match=f"{len(away)} of 8 losses"):
        strategy, _ = play(lies.Lying(lies.silent, ["loss"], away), "pow-d:m=5,d=8")
    chosen = [set(cohort.clients.tolist()) for cohort in strategy.cohorts]
    assert all(len(who) == 5 and len(who - away) == there for who in chosen)


def test_D77_a_stale_loss_is_dropped() -> None:
    federation = Federation.from_sizes([1, 1])

    def who(stale: int | None) -> list[int]:
        chooser = Selector(scheme("rpow-d", m=1, d=2, stale=stale), federation, seed=0)
        out = []
        for _ in range(8):
            out += (cohort := chooser.select()).clients.tolist()
            told = np.array([0.9, 0.1])[cohort.clients]
            chooser.observe(Replies(cohort.clients, {"loss": told}))
        return out

    assert who(None)[2:] == [0] * 6
    assert 1 in who(2)[2:]


def test_D78_fewer_with_data_than_d() -> None:
    federation = Federation.from_sizes([1, 1, 0])
    ask = lambda ask: np.ones(len(ask.clients))  # noqa: E731
    with pytest.warns(FedcohortWarning, match="only 2 clients have data, so there are 2"):
        assert len(Selector(scheme("pow-d", m=1, d=3), federation, 0, ask=ask).select()) == 1


def test_D79_an_overflow_in_16_bits() -> None:
    with np.errstate(over="ignore"), pytest.warns(FedcohortWarning, match="compute it in 32 bits"):
        assert np.isnan(comparable(np.array([1.0, 1e6], dtype=np.float16), "pow-d")[1])
