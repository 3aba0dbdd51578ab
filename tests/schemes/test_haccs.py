"""HACCS: its weights by hand, who takes the places, latency from anywhere."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Replies, RoundContext, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput, FedcohortWarning
from fedcohort.maths import every_path
from fedcohort.schemes.haccs import GroupsAndLosses
from fedcohort.simulation import Devices, Softmax


def state(labels: list[int], losses: list[float]) -> GroupsAndLosses:
    n, none = len(labels), np.empty(0)
    return GroupsAndLosses(
        np.array(labels),
        np.ones((n, 2), dtype=np.int64),
        "given",
        "{}",
        None,
        1.0,
        "",
        none.astype(int),
        none,
        np.array(losses),
    )


def chances(
    labels: list[int], losses: list[float], latency: Any = None, **parameters: Any
) -> dict[Any, Any]:
    federation = Federation.from_sizes([1] * len(labels))
    context = RoundContext(0, None, None if latency is None else np.array(latency, dtype=float))
    found: dict[tuple[int, ...], Fraction] = {}
    haccs = scheme("haccs", **parameters)
    for chance, cohort in every_path(
        lambda rng: haccs.select(state(labels, losses), federation, context, rng)
    ):
        who = tuple(cohort.clients.tolist())
        found[who] = found.get(who, Fraction(0)) + chance
    return found


def test_theta_by_hand() -> None:
    # Latencies 1, 3 | 4: means 2 and 4. Losses 1, 3 | 2: mean squares 5 and 4.
    known = state([0, 0, 1], [1.0, 3.0, 2.0])
    theta = scheme("haccs", m=1, rho=0.25).theta(known, np.arange(3), np.array([1.0, 3.0, 4.0]))
    assert np.allclose(theta, [0.25 * (1 - 2 / 4) + 0.75 * 5 / 9, 0.75 * 4 / 9])


def test_the_fastest_of_each_cluster() -> None:
    assert chances([0, 0, 1, 1], [1.0] * 4, [4, 1, 1, 4], m=2) == {(1, 2): 1}


def test_whole_shares_first_then_at_random() -> None:
    # Equal losses, no latency: shares 1/3 each. Four places: one each, one at random.
    labels = [0, 0, 1, 1, 2, 2]
    found = chances(labels, [1.0] * 6, range(6), rho=0.0, m=4)
    assert found == {
        (0, 1, 2, 4): Fraction(1, 3),
        (0, 2, 3, 4): Fraction(1, 3),
        (0, 2, 4, 5): Fraction(1, 3),
    }


def test_by_loss_alone_and_by_latency_alone() -> None:
    by_loss = chances([0, 1], [1.0, 2.0], [1, 3], rho=0.0, m=1)
    assert by_loss == {(0,): Fraction(1, 5), (1,): Fraction(4, 5)}  # squares
    assert chances([0, 1], [1.0, 2.0], [1, 3], rho=1.0, m=1) == {(0,): 1}


def test_a_small_cluster_gives_what_it_has() -> None:
    found = chances([0, 1, 1, 1], [9.0, 0.1, 0.1, 0.1], rho=0.0, m=3)
    assert all(0 in who and len(who) == 3 for who in found)


def test_nothing_known_is_all_alike() -> None:
    nan = float("nan")
    assert chances([0, 1], [nan, nan], m=1) == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}
    zeros = chances([0, 1], [0.0, 0.0], [0, 0], m=1)
    assert zeros == {(0,): Fraction(1, 2), (1,): Fraction(1, 2)}


def test_who_has_not_trained_counts_with_the_highest_loss() -> None:
    known = state([0, 1, 2], [1.0, 3.0, float("nan")])
    theta = scheme("haccs", m=1, rho=0.0).theta(known, np.arange(3), np.zeros(3))
    assert np.allclose(theta, np.array([1, 9, 9]) / 19)


HISTOGRAMS = np.array([[9, 1], [8, 2], [1, 9], [2, 8]])


def selector(**parameters: Any) -> Selector:
    haccs = scheme("haccs", m=2, clusters="dbscan", **parameters)
    return Selector(
        haccs, Federation.from_sizes([10] * 4), seed=0, ask=lambda ask: HISTOGRAMS[ask.clients]
    )


def test_latency_given_with_the_round_or_with_the_scheme() -> None:
    assert selector().select(latency=[4, 1, 1, 4]).clients.tolist() == [1, 2]
    assert selector(latencies=(1, 4, 4, 1)).select(latency=[4, 1, 1, 4]).clients.tolist() == [0, 3]


@pytest.mark.parametrize(
    "latency", [[1, 2], [1, 2, 3, -1], [1, 2, 3, np.inf], ["a"] * 4, [[1], [2, 3]], [1e308] * 4]
)
def test_bad_latencies(latency: Any) -> None:
    with pytest.raises(BadInput, match="'latency' must be one finite number of at least 0 for"):
        selector().select(latency=latency)


def test_latencies_for_other_clients() -> None:
    with pytest.raises(BadInput, match="for each of 4 clients"):
        selector(latencies=(1.0, 2.0, 3.0, 4.0, 5.0)).select()


def test_a_newcomer_is_tried_as_if_it_were_fast() -> None:
    """Clients 2 and 3 came later: nothing is known of them, and they are as fast as the fastest."""
    known = selector(latencies=(1.0, 4.0), rho=0.0)  # equal clusters: a place each
    assert known.select().clients.tolist() in ([0, 2], [0, 3])
    measured = selector(rho=0.0)
    chosen = measured.select(latency=[4, 1, np.nan, 5]).clients
    assert chosen.tolist() == [1, 2]


def test_a_missing_device_is_replaced_by_one_with_similar_data() -> None:
    chooser = selector(latencies=(4, 1, 1, 4), rho=0.0)  # equal clusters: a place each
    assert chooser.select(available=[0, 2, 3]).clients.tolist() == [0, 2]


def test_it_listens_to_losses_and_asks_for_summaries_once() -> None:
    chooser = selector()
    for _ in range(3):
        cohort = chooser.select()
        chooser.observe(Replies(cohort.clients, {"loss": np.full(len(cohort), 0.5)}))
    purposes = chooser.ledger.by_purpose()
    assert purposes.keys() == {"label_histogram", "training"}
    assert purposes["label_histogram"].messages == 8
    cohort = chooser.select()
    before = chooser.start().losses
    with pytest.warns(FedcohortWarning, match="do not count"):
        chooser.observe(Replies(cohort.clients, {"loss": np.full(len(cohort), -1.0)}))
    assert np.array_equal(chooser.start().losses, before, equal_nan=True)


def test_fast_devices_of_an_availability_model_train_more() -> None:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(2), 60)
    x = rng.normal(size=(120, 3)) + y[:, None]
    task = Softmax(x, y, x, y, list(np.arange(120).reshape(12, 10)), 2)
    trace = simulate(
        task, scheme("haccs", m=2, clusters="dbscan"), rounds=30, availability=Devices(spread=2.0)
    )
    speed = np.exp(2.0 * _devices(12))
    trained = trace.participation > 0
    assert speed[trained].mean() < speed[~trained].mean()
    assert trace.pictures.keys() >= {"labels", "distances"}


def _devices(n: int) -> Any:
    latency = Devices(spread=1.0, jitter=0.0).latency(n, 0, np.random.default_rng(0))
    return np.log(latency)


def test_devices_keep_their_speed_and_jitter_a_little() -> None:
    model = Devices(spread=1.0, jitter=0.1)
    first, second = (model.latency(50, r, np.random.default_rng(r)) for r in (0, 1))
    assert not np.array_equal(first, second)
    assert np.corrcoef(np.log(first), np.log(second))[0, 1] > 0.95
