"""What the HCSFed family asks, hears and remembers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput
from fedcohort._internal.random import stream
from fedcohort.schemes.hcsfed import (
    COMPRESSED_GRADIENT,
    Cluster,
    ClusterNeyman,
    HCSFed,
    Importance,
    Seen,
)
from fedcohort.selection import Claim, Replies, RoundContext
from fedcohort.selection._client_rows import LatestRows
from fedcohort.training import Quadratic

FAMILY = ["importance", "cluster", "cluster-neyman", "hcsfed"]
F = Fraction
SIZES = [1, 2, 3, 1, 3]  # the golden population "horvitz_thompson": omega = sizes / 10
NORMS = [1.0, 2.0, 3.0, 1.0, 1.0]
FEATURES = np.array([[1.0], [2.0], [3.0], [-1.0], [-1.0]])  # two kinds, of these lengths
KINDS = [[2.0], [-1.0]]
TINY = 1e-9


def unseen(n: int) -> Seen:
    none = LatestRows.nothing(n)
    state = np.zeros((0, 0)), np.zeros(n, dtype=bool), none.kept, none.recent, none.owners
    return Seen(0, 0, *state)


def law(chooser: HCSFed, features, sizes=SIZES, centres=None):
    features = np.asarray(features, dtype=float)
    state = unseen(len(features))
    if centres is not None:  # where k-means starts
        state = replace(state, centres=np.array(centres))
    return chooser.given(features, Federation.from_sizes(sizes), state)


# -- what it asks, hears and remembers ---------------------------------------------------------


def test_declarations_follow_the_parameters():
    assert Claim.UNBIASED in HCSFed.claims
    assert HCSFed().asks == HCSFed.asks == {COMPRESSED_GRADIENT}
    (signal,) = HCSFed(rate=0.025).asks
    assert signal.discloses == "a summary of the model update, of 2.5 % of its length"
    assert signal.secrecy == "update"
    assert HCSFed(features="stale").asks == frozenset()
    assert HCSFed(weights="paper").claims == frozenset()
    assert Cluster().claims == {Claim.UNBIASED, Claim.EXACTLY_M}
    assert Importance().strata == 1


def task(n=20):
    """Four kinds of clients."""
    rng = np.random.default_rng(0)
    kinds = np.kron(np.eye(4), np.ones((n // 4, 10)))
    centres = 5 * kinds + 0.1 * rng.standard_normal(kinds.shape)
    return Quadratic(centres)


WORK = LocalWork(steps=1, lr=0.5, batch=None)


def test_asking_is_priced_by_the_ledger_and_stale_features_cost_nothing():
    traces = {
        how: simulate(
            task(), scheme("hcsfed", m=4, strata=4, rate=0.5, features=how), rounds=5, work=WORK
        )
        for how in ("ask", "stale")
    }
    asked = [row for row in traces["ask"].ledger if row["purpose"] == "compressed_gradient"]
    assert asked[0]["messages"] == 2 * 20 * 5
    assert asked[0]["bytes_up"] == 20 * 5 * 20 * 4  # twenty features of four bytes
    assert asked[0]["bytes_down"] == 20 * 5 * (16 + 4 * 40)  # the question and the model
    assert [row["purpose"] for row in traces["stale"].ledger] == ["training"]


@pytest.mark.parametrize("compression", ["groups", "projection"])
def test_strata_are_the_kinds_of_clients(compression):
    chooser = scheme("cluster", m=4, strata=4, rate=0.5, compression=compression)
    trace = simulate(task(), chooser, rounds=10, work=WORK)
    kinds = [sorted((trace.cohort(t).clients // 5).tolist()) for t in range(10)]
    assert kinds == [[0, 1, 2, 3]] * 10
    assert trace.pictures["strata_sizes"].sum() == 20
    assert trace.pictures["allocation"].sum() == 4
    assert trace.pictures["labels"].shape == (20,)


def test_stale_features_end_in_the_same_strata():
    trace = simulate(
        task(), scheme("cluster", m=4, strata=4, rate=1.0, features="stale"), rounds=60, work=WORK
    )
    kinds = [sorted((trace.cohort(t).clients // 5).tolist()) for t in range(50, 60)]
    assert kinds == [[0, 1, 2, 3]] * 10


def test_before_anybody_was_seen_stale_is_uniform_and_the_unseen_are_explored():
    federation = Federation.from_sizes([1] * 40)
    chooser = ClusterNeyman(m=8, strata=8, features="stale")
    state = chooser.start(federation, stream(0, "start"))
    design = chooser.design(state, federation, RoundContext())
    np.testing.assert_allclose(design.inclusion(), 8 / 40)
    selector, rng = Selector(chooser, federation, seed=0), np.random.default_rng(0)
    updates = rng.standard_normal((40, 12))
    seen = set()
    for _ in range(12):
        chosen = selector.select().clients
        seen |= set(chosen.tolist())
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        np.testing.assert_allclose(selector.design().mean(), 1 / 40)
    assert len(seen) >= 36  # 94 % of them by uniform sampling


def test_the_next_round_starts_from_the_last_cohort():
    chooser = Cluster(m=4, strata=4, rate=1.0)
    federation = Federation.from_sizes([1] * 8)
    selector = Selector(chooser, federation, seed=0)
    updates = np.eye(8)
    chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
    selector.observe(Replies(chosen, {"update": updates[chosen]}))
    state = selector.start()
    assert sorted(map(tuple, state.centres)) == sorted(map(tuple, updates[chosen]))
    few = Replies(chosen[:2], {"update": updates[chosen[:2]]})
    again = chooser.observe(state, federation, None, few)  # two dropped out: old centres stay
    assert again.centres is state.centres


def test_with_fewer_draws_than_strata_it_starts_from_the_last_cohort_too():
    chooser = Cluster(m=2, strata=3, rate=1.0)
    federation = Federation.from_sizes([1] * 6)
    features = np.array([[0.0], [0.1], [10.0], [10.1], [50.0], [50.1]])
    selector = Selector(chooser, federation, seed=0)
    for _ in range(3):
        chosen = selector.select(ask=lambda ask: features[ask.clients]).clients
        strata = [s.tolist() for s in selector.law.strata]
        assert sorted(strata) == [[0, 1, 2, 3], [4, 5]]
        selector.observe(Replies(chosen, {"update": features[chosen]}))
        assert selector.start().centres.shape == (2, 1)


def test_who_asks_keeps_no_features():
    chooser = HCSFed(m=4, strata=4, rate=1.0)
    selector = Selector(chooser, Federation.from_sizes([1] * 50), seed=0)
    updates = np.random.default_rng(0).standard_normal((50, 30))
    for _ in range(3):
        chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
    state = selector.start()
    assert not state.seen.any()
    assert state.kept.size == state.recent.size == state.owners.size == 0
    assert state.centres.shape == (4, 30)


@pytest.mark.parametrize("how", ["ask", "stale"])
def test_the_picture_is_what_the_last_cohort_was_drawn_from(how):
    federation = Federation.from_sizes([1] * 10 + [0] + [1] * 10 + [1] * 10)
    rng, kinds = np.random.default_rng(0), np.repeat(5 * np.eye(3), [11, 10, 10], axis=0)
    selector = Selector(Cluster(m=6, strata=3, rate=1.0, features=how), federation, seed=0)
    assert selector.picture() == {}
    for _ in range(4):
        updates = kinds + 0.1 * rng.standard_normal((31, 3))
        chosen = selector.select(ask=lambda ask, rows=updates: rows[ask.clients]).clients
        law, before = selector.law, selector.picture()
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        assert selector.law is None
        shown = selector.picture()
        assert all(np.array_equal(shown[key], before[key]) for key in before)
        assert shown["strata_sizes"].tolist() == [len(s) for s in law.strata]
        assert shown["allocation"].sum() == 6
        assert shown["labels"][10] == -1  # it has no data
        for h, members in enumerate(law.strata):
            assert np.flatnonzero(shown["labels"] == h).tolist() == members.tolist()
    selector.update(Federation.from_sizes([1] * 5))
    assert selector.picture() == {}


def test_clients_that_come_and_go_are_known_by_their_names():
    chooser = Cluster(m=2, strata=2, rate=1.0, features="stale")
    selector = Selector(chooser, Federation.from_sizes([1] * 3), seed=0)
    chosen = selector.select().clients
    selector.observe(Replies(chosen, {"update": np.eye(3)[chosen]}))
    before = selector.start()
    selector.update(Federation(sizes=[1] * 4, ids=[0, 2, 5, 7]))
    state = selector.start()
    assert state.seen.tolist() == [before.seen[0], before.seen[2], False, False]
    np.testing.assert_array_equal(
        state.latest.rows(np.array([1])), before.latest.rows(np.array([2]))
    )
    np.testing.assert_allclose(selector.design().mean(), 0.25)


@pytest.mark.parametrize("how", ["ask", "stale"])
def test_there_are_fewer_strata_when_few_clients_are_left(how):
    selector = Selector(Cluster(m=3, strata=5, features=how), Federation.from_sizes([1] * 9), 0)
    updates = np.random.default_rng(0).standard_normal((9, 20))
    for n in (9, 9, 4, 4):
        if n < len(selector.federation):
            selector.update(Federation.from_sizes([1] * n))
        chosen = selector.select(ask=lambda ask: updates[ask.clients]).clients
        assert len(selector.law.strata) <= 3
        selector.observe(Replies(chosen, {"update": updates[chosen]}))


@pytest.mark.parametrize("how", ["ask", "stale"])
@pytest.mark.parametrize("length", [19, 21, 40])  # 21 is two features, as 20 is
def test_an_update_of_another_length_is_refused(length, how):
    selector = Selector(Cluster(m=1, strata=1, features=how), Federation.from_sizes([1] * 2), 0)
    for d in (20, length):
        chosen = selector.select(ask=lambda ask: np.ones((2, 2))).clients
        rows = Replies(chosen, {"update": np.ones((1, d))})
        if d == 20:
            selector.observe(rows)
        else:
            with pytest.raises(BadInput, match=f"must have 20 numbers .* got {length}"):
                selector.observe(rows)


@pytest.mark.parametrize("odd", [np.ones(3), np.ones((3, 2, 2)), np.ones((3, 0))])
@pytest.mark.parametrize("how", ["ask", "stale"])
def test_what_is_no_update_is_refused(odd, how):
    selector = Selector(Cluster(m=3, strata=1, features=how), Federation.from_sizes([1] * 3), 0)
    chosen = selector.select(ask=lambda ask: np.ones((3, 2))).clients
    with pytest.raises(BadInput, match="cluster needs updates as one row of real numbers"):
        selector.observe(Replies(chosen, {"update": odd}))


@pytest.mark.parametrize("huge", [1e19, 1e39, 1e300])
@pytest.mark.parametrize("compression", ["groups", "centres", "projection"])
@pytest.mark.parametrize("how", ["ask", "stale"])
@pytest.mark.filterwarnings(
    "ignore:.*not finite or huge:fedcohort._internal.errors.FedcohortWarning"
)
def test_a_huge_update_is_left_out(huge, compression, how):
    chooser = HCSFed(m=3, strata=2, features=how, compression=compression)
    selector = Selector(chooser, Federation.from_sizes([1] * 6), seed=0)
    updates = np.random.default_rng(0).standard_normal((6, 40))
    updates[0] = huge
    for _ in range(12):
        chosen = selector.select(ask=lambda ask: updates[ask.clients, :4]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
        assert np.isfinite(selector.start().centres).all()
    if how == "stale":
        assert selector.start().seen.tolist() == [False] + [True] * 5


def test_updates_of_other_kinds_of_numbers():
    selector = Selector(HCSFed(m=3, strata=2), Federation.from_sizes([1] * 6), seed=0)
    for kind in (np.int64, np.float16, np.float32, np.uint8):
        updates = np.arange(240).reshape(6, 40).astype(kind)
        chosen = selector.select(ask=lambda ask, u=updates: u[ask.clients]).clients
        selector.observe(Replies(chosen, {"update": updates[chosen]}))
