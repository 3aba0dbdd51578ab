"""FedCS: its schedule by hand and against all subsets."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from fedcohort import Federation, RoundContext, Selector, scheme, simulate
from fedcohort._internal.errors import BadParameter
from fedcohort.maths import every_path
from fedcohort.training import LocalWork, Quadratic


def ends(order: tuple[int, ...], takes: np.ndarray, upload: float) -> float:
    """When clients that upload in this order are all done: each computes from the start."""
    done = 0.0
    for client in order:
        done = max(done, (1 - upload) * takes[client]) + upload * takes[client]
    return done


def test_the_schedule_by_hand() -> None:
    """Half of the time is upload: 1 is done after 4; 2 adds 3, then 0 would add 4 and be late."""
    takes = np.array([8.0, 4.0, 6.0])
    assert scheme("fedcs", m=3, deadline=10, upload=0.5).scheduled(takes, 3).tolist() == [1, 2]
    assert scheme("fedcs", m=3, deadline=11, upload=0.5).scheduled(takes, 3).tolist() == [1, 2, 0]


def test_with_lines_of_their_own_all_who_are_in_time() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        takes = rng.exponential(size=8)
        found = scheme("fedcs", m=8, deadline=1.0).scheduled(takes, 8)
        expected = np.flatnonzero(takes <= 1.0)
        assert sorted(found.tolist()) == (expected.tolist() or [int(takes.argmin())])


@pytest.mark.parametrize("upload", [0.1, 0.5, 1.0])
def test_a_schedule_keeps_its_deadline_and_is_nearly_the_longest(upload: float) -> None:
    rng, short = np.random.default_rng(1), 0
    for _ in range(40):
        takes = rng.exponential(size=5) + 0.1
        found = tuple(scheme("fedcs", m=5, deadline=2.0, upload=upload).scheduled(takes, 5))
        most = max(
            (k for k in range(6) for order in permutations(range(5), k)
             if ends(order, takes, upload) <= 2.0 + 1e-12), default=0,
        )  # fmt: skip
        if most == 0:
            assert found == (int(takes.argmin()),)
            continue
        assert ends(found, takes, upload) <= 2.0 + 1e-9
        assert most - 1 <= len(found) <= most  # it is greedy
        short += len(found) < most
    assert short <= 8


def test_candidates_are_drawn_uniformly_and_weigh_by_importance() -> None:
    federation = Federation.from_sizes([1, 2, 3])
    context = RoundContext(0, None, np.array([1.0, 2.0, 99.0]))
    fedcs, found = scheme("fedcs", m=1, d=2, deadline=10), {}
    for chance, cohort in every_path(lambda rng: fedcs.select(None, federation, context, rng)):
        who = tuple(cohort.clients.tolist())
        found[who] = found.get(who, Fraction(0)) + chance
    assert found == {(0,): Fraction(2, 3), (1,): Fraction(1, 3)}  # the fastest of two
    two = Selector(scheme("fedcs", m=2, d=3, deadline=10), federation, seed=0)
    np.testing.assert_allclose(two.select(latency=[1, 2, 99]).weights, [1 / 3, 2 / 3])


def test_nobody_is_known_to_be_late_at_first() -> None:
    selector = Selector(scheme("fedcs", m=3, deadline=1e-9), Federation.from_sizes([1] * 8), seed=0)
    assert len(selector.select()) == 3


def test_fewer_candidates_than_clients_that_train() -> None:
    with pytest.raises(BadParameter, match="at least m"):
        scheme("fedcs", m=5, d=4)


def test_rounds_end_by_the_deadline() -> None:
    task = Quadratic(np.random.default_rng(0).standard_normal((40, 2)), sizes=[10] * 40)
    words = {"work": LocalWork(steps=2, batch=5), "devices": "lognormal:sigma=1,profiled=true"}
    limit = float(np.median(simulate(task, "full", rounds=1, **words).latencies["training"]))
    trace = simulate(task, f"fedcs:m=6,d=12,deadline={limit}", rounds=60, **words)
    assert (trace.time <= limit).all()
    assert set(trace.distinct) <= set(range(1, 7))
    assert (trace.participation[trace.latencies["training"] > limit] == 0).all()  # the price
