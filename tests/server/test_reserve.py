"""Stand-ins of schemes that choose by rank: who comes next trains, with the weight of the lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort import Cohort, Federation, Selector
from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort.selection import Reserve
from fedcohort.server import Attendance, Hajek, Redraw, Survivors
from fedcohort.server._dropouts import Completed
from fedcohort.simulation import DropOuts, Random
from fedcohort.training import LocalWork, Quadratic
from helpers.settling import complete, survived

WITHOUT_LAW = (
    "pow-d",
    "cpow-d",
    "rpow-d",
    "haccs",
    "static-uniform",
    "static-data",
    "static-client",
    "data-loss",
    "average-loss",
    "average-loss-x",
    "best-loss",
    "best-loss-x",
)


def settled(
    cohort: Cohort, up: list[int], rule: Any = None, seen: Attendance | None = None, seed: int = 0
) -> tuple[Completed, list[list[int]]]:
    asked: list[list[int]] = []

    def train(clients: np.ndarray) -> np.ndarray:
        asked.append(clients.tolist())
        return np.intersect1d(clients, np.array(up, dtype=np.int64))

    seen = Attendance.of(8) if seen is None else seen
    rng = stream(seed, "test")
    return complete(rule or Redraw(), cohort, None, seen, train, rng), asked


def ranked() -> Cohort:
    """Clients 0 and 1 train, then 5, 4, 3 and 2 would come."""
    values = np.array([0.9, 0.8, 0.1, 0.2, 0.3, 0.4])
    return Cohort.of([0, 1], [0.3, 0.7]).backed_by(np.arange(6), values)


def test_who_comes_next_takes_place_and_weight() -> None:
    ended, asked = settled(ranked(), [1, 4])
    assert asked == [[0, 1], [5], [4]]
    assert ended.cohort.clients.tolist() == [1, 4]
    assert ended.cohort.weights.tolist() == [0.7, 0.3]  # not even a rounding error
    assert ended.filled == 1.0
    assert ended.attendance.asked.tolist() == [1, 1, 0, 0, 1, 1, 0, 0]
    assert ended.attendance.answered.tolist() == [0, 1, 0, 0, 1, 0, 0, 0]
    assert ended.cohort.reserve is None  # it is spent


def test_several_are_lost_and_draws_go_with_the_weight() -> None:
    cohort = Cohort.of([0, 1], [0.25, 0.5], [1, 2])
    ended, asked = settled(cohort.backed_by(np.arange(2, 6), np.arange(4)), [4, 5])
    assert asked == [[0, 1], [4, 5]]
    assert ended.cohort.clients.tolist() == [4, 5]
    assert ended.cohort.weights.tolist() == [0.5, 0.25]
    assert ended.cohort.draws.tolist() == [2, 1]


def test_attempts_are_kept_to_and_the_rest_is_scaled_to_the_drawn_sum() -> None:
    ended, asked = settled(ranked(), [1, 2], Redraw(attempts=3))
    assert asked == [[0, 1], [5], [4], [3]]  # 2 would have answered
    assert ended.cohort.clients.tolist() == [1]
    assert ended.cohort.weights.tolist() == [1.0]
    assert ended.filled == 0.5
    nobody, _ = settled(ranked(), [])
    assert len(nobody.cohort) == 0


@pytest.mark.parametrize("rule", [Hajek(), Survivors(), Redraw(attempts=0)])
def test_other_rules_ask_nobody_else(rule: Any) -> None:
    ended, asked = settled(ranked(), [1, 5], rule)
    assert asked == [[0, 1]]
    assert ended.cohort.clients.tolist() == [1]


def test_availability_does_not_weigh_where_somebody_comes_next() -> None:
    seen = Attendance(np.full(8, 9), np.array([9, 0, 4, 4, 4, 4, 4, 4]))
    ended, _ = settled(ranked(), [1, 5], seen=seen)
    assert ended.cohort.weights.tolist() == [0.7, 0.3]
    everybody, _ = settled(ranked(), [0, 1], seen=seen)
    assert everybody.cohort.weights.tolist() == [0.3, 0.7]


def test_the_own_group_comes_first_and_none_lends_whom_it_needs() -> None:
    groups = np.array([0, 1, 1, 0, 1, 2])  # 5 alone; 0 and 1 train
    cohort = Cohort.equal([0, 1, 5]).backed_by(np.arange(6), np.arange(6.0), groups)
    _, asked = settled(cohort, [1, 5, 3])
    assert asked == [[0, 1, 5], [3]]  # of the group of 0, though 4 has a higher rank
    _, asked = settled(cohort, [0, 1, 4])
    assert asked == [[0, 1, 5], [4]]  # nobody is left in the group of 5: the next of all
    _, asked = settled(cohort, [])
    assert asked == [[0, 1, 5], [2, 3, 4]]
    ended, _ = settled(cohort, [3, 4, 2])
    assert ended.filled == 1.0


def test_equals_come_in_random_order() -> None:
    cohort = Cohort.equal([0]).backed_by(np.arange(4), np.zeros(4))
    firsts = [settled(cohort, [1, 2, 3], seed=seed)[1][1][0] for seed in range(300)]
    assert min(np.bincount(firsts)[1:]) > 70  # 100 each; below 70 has a chance of 1e-4


def test_a_reserve_has_neither_members_nor_clients_without_a_value() -> None:
    values = np.array([np.nan, 3.0, -np.inf, np.inf, 2.0])
    reserve = Cohort.equal([1]).backed_by(np.arange(5), values).reserve
    assert reserve is not None
    assert reserve.clients.tolist() == [3, 4]
    assert reserve.ranks.tolist() == [0, 1]
    with pytest.raises(BadInput, match="backed_by"):
        Cohort(*(np.zeros(1, dtype=np.int64),) * 3, reserve=Reserve(*(np.arange(2),) * 4))


def test_cohorts_are_equal_whoever_is_in_reserve() -> None:
    assert ranked() == Cohort.of([0, 1], [0.3, 0.7])


# -- schemes ---------------------------------------------------------------------------------

N, M = 60, 10
SIZES = np.arange(1, N + 1) * 10


def of_size(name: str, m: int = M, d: int = 25) -> fedcohort.Scheme:
    given = {"m": m} if name == "haccs" else {"m": m, "d": d}
    return fedcohort.scheme(name, **given)


def task(n: int = N) -> Quadratic:
    x = np.linspace(-1.0, 2.0, n)
    return Quadratic(np.stack([x, x**2], axis=1), sizes=np.arange(1, n + 1) * 10)


def labels(ask: Any) -> np.ndarray:
    """Losses by position, and five kinds of data."""
    if ask.signal.name == "label_histogram":
        return np.eye(5, dtype=np.int64)[ask.clients % 5] * (ask.clients + 1)[:, None] * 10
    return np.asarray(ask.clients + 1.0)


def rounds(name: str, number: int, rule: Any) -> list[Cohort]:
    federation = Federation.from_sizes(SIZES)
    selector = Selector(of_size(name), federation, seed=1, ask=labels)
    who, attendance, out = DropOuts(Random(0.6), rule), Attendance.of(N), []
    for _ in range(number):
        cohort, attendance, _ = survived(who, selector, selector.select(), attendance)
        selector.observe(fedcohort.Replies(cohort.clients, {"loss": cohort.clients + 1.0}))
        out.append(cohort)
    return out


@pytest.mark.parametrize("name", WITHOUT_LAW)
def test_with_forty_percent_gone_nearly_m_answer_with_the_weights_that_were_drawn(
    name: str,
) -> None:
    cohorts = rounds(name, 30, Redraw())
    answers = np.array([len(cohort) for cohort in cohorts])
    assert answers.mean() > 9.0  # 6 of 10 without stand-ins; 9.4 if there is always a next one
    for cohort in cohorts:
        np.testing.assert_allclose(cohort.weights, 1 / len(cohort), rtol=1e-12)
        if len(cohort) == M:
            assert cohort.weights.tolist() == [1 / M] * M
    without = rounds(name, 30, Hajek())
    assert np.mean([len(cohort) for cohort in without]) < 7.0


def test_power_of_choice_trains_those_it_would_have_chosen_had_it_known() -> None:
    """All candidates are clients: the m highest losses among those who answer."""
    federation = Federation.from_sizes([1] * N)
    for seed in range(5):
        scheme = fedcohort.scheme("pow-d", m=M, d=N)
        selector = Selector(scheme, federation, seed=seed, ask=labels)
        up = np.flatnonzero(stream(seed, "up").random(N) < 0.6)
        ended, _ = settled(
            selector.select(), up.tolist(), Redraw(attempts=20), Attendance.of(N), seed
        )
        assert ended.cohort == Cohort.equal(up[-M:])


def test_haccs_calls_the_next_device_of_the_cluster() -> None:
    federation = Federation.from_sizes(SIZES)
    for seed in range(5):
        selector = Selector(of_size("haccs"), federation, seed=seed, ask=labels)
        chosen = selector.select(latency=np.arange(N) % 7 + 1.0)
        up = np.setdiff1d(np.arange(N), chosen.clients[::2])
        ended, _ = settled(chosen, up.tolist(), Redraw(), Attendance.of(N), seed)
        assert np.bincount(ended.cohort.clients % 5).tolist() == (
            np.bincount(chosen.clients % 5).tolist()
        )


@pytest.mark.parametrize("name", ["pow-d", "best-loss", "haccs"])
def test_a_selector_that_was_saved_knows_who_comes_next(name: str, tmp_path: Path) -> None:
    selector = Selector(of_size(name), Federation.from_sizes(SIZES), seed=1, ask=labels)
    cohort = selector.select()
    selector.save(tmp_path / "selector")
    again = Selector.load(tmp_path / "selector", ask=labels).pending
    up = np.arange(0, N, 2).tolist()
    seen = Attendance.of(N)
    assert again is not None
    then, now = (settled(c, up, seen=seen) for c in (cohort, again))
    assert then[1] == now[1]
    assert then[0].cohort == now[0].cohort


# -- simulator and Flower --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pow-d", "rpow-d"])
def test_flower_calls_up_the_same_clients_as_the_simulator(name: str) -> None:
    pytest.importorskip("flwr")
    from fedcohort import flower

    away, n = (1, 4, 6, 7), 10

    class Silent(flower.InProcessGrid):
        def deliver(self, message: Any) -> Any:
            mute = self.partition[message.metadata.dst_node_id] in away
            if mute and message.metadata.message_type == "train":
                return None
            return super().deliver(message)

    scheme, work = of_size(name, 3, 8), LocalWork(steps=1, lr=0.5, batch=None)
    up = tuple(0.0 if i in away else 1.0 for i in range(n))
    failing = DropOuts(Random(up), Redraw(attempts=4))
    trace = fedcohort.simulate(task(n), scheme, rounds=6, seed=3, work=work, dropouts=failing)
    limits = flower.Limits(population=0.2, poll=0.01)
    strategy = flower.CohortStrategy(
        scheme, clients=n, seed=3, limits=limits, dropouts=Redraw(attempts=4)
    )
    grid = Silent(flower.client_app(flower.task_client(task(n), work), simulated=True), n)
    result = strategy.start(grid, flower.first_model(task(n), 3), num_rounds=6)
    assert [len(cohort) for cohort in strategy.cohorts] == [3] * 6
    assert strategy.cohorts == [trace.cohort(round) for round in range(6)]
    np.testing.assert_allclose(result.arrays["theta"].numpy(), trace.model, rtol=1e-12)
