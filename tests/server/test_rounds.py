"""The one round: what a carrier cannot do is refused, a law is found again, blocks are a whole."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort import Federation, Selector, scheme
from fedcohort._internal import store
from fedcohort._internal.errors import BadInput, FedcohortWarning
from fedcohort.selection._scripted import scripted
from fedcohort.server import AsDrawn, Hajek, Ledger, Memory, Redraw, guards
from fedcohort.server import _round as rounds
from fedcohort.server._checkpoint import pack_selection, pack_state, unpack_selection, unpack_state
from fedcohort.server._compatibility import check_compatible
from fedcohort.server._membership import replay_selection, round_context
from fedcohort.server._round import run_round, select_cohort
from fedcohort.server._state import Setup, State
from fedcohort.server._transport import Transport, UpdateBlock, UpdateSum, drive
from fedcohort.simulation import Always
from fedcohort.simulation import _engine as engine
from fedcohort.training import LocalWork, Quadratic, algorithm

SIZES = np.arange(1, 13) * 10
ASKING = [
    "optimal:m=3",
    "cluster:m=3",
    "cluster-neyman:m=4",
    "hcsfed:m=4",
    "pow-d:m=3",
    "haccs:m=3",
]


class Answering(Transport):
    """Clients that answer with seeded numbers."""

    name = "a test"

    def ask(self, ask: Any) -> Any:
        return scripted(Federation.from_sizes(SIZES))(ask)


def began(name: str) -> tuple[Setup, State]:
    setup = Setup(scheme(name), seed=5)
    return setup, State.first(setup, Federation.from_sizes(SIZES), np.zeros(5))


@pytest.mark.parametrize("name", ASKING)
def test_a_selection_that_was_kept_has_its_law_again(name: str, tmp_path: Any) -> None:
    setup, state = began(name)
    state, selection = drive(
        select_cohort(setup, state, round_context(state), Ledger()), Answering()
    )
    header, arrays = pack_selection(selection)
    store.save(tmp_path / "x", {"kind": "x", **header}, arrays)
    kept = unpack_selection(setup, len(state.federation), *store.load(tmp_path / "x", "x"))
    assert kept.law is None
    again = replay_selection(setup, state, kept)
    assert again.cohort == selection.cohort
    assert (again.law is None) == (selection.law is None)
    if selection.law is not None:
        np.testing.assert_array_equal(again.law.inclusion(), selection.law.inclusion())
    other = replace(kept, cohort=fedcohort.Cohort.of([0], 1.0))
    assert replay_selection(setup, state, other) is other  # what was written down counts


class HalfSilent(Answering):
    """Every second client does not answer."""

    def ask(self, ask: Any) -> Any:
        rows = np.array(super().ask(ask), dtype=np.float64)
        rows[::2] = np.nan
        return rows


def test_answers_that_did_not_come_are_kept_as_such(tmp_path: Any) -> None:
    setup, state = began("pow-d:m=3")
    with pytest.warns(FedcohortWarning, match="3 of 6 losses"):
        state, selection = drive(
            select_cohort(setup, state, round_context(state), Ledger()), HalfSilent()
        )
    header, arrays = pack_selection(selection)
    store.save(tmp_path / "x", {"kind": "x", **header}, arrays)
    kept = unpack_selection(setup, len(state.federation), *store.load(tmp_path / "x", "x"))
    assert kept.cohort == selection.cohort
    (told,), (again,) = selection.heard, kept.heard
    assert np.isnan(told.rows).sum() == 3
    np.testing.assert_array_equal(told.rows, again.rows)


def test_latencies_that_were_kept_are_finite() -> None:
    setup, state = began("md:m=3")
    context = round_context(state, None, np.arange(12.0))
    state, selection = drive(select_cohort(setup, state, context, Ledger()), Answering())
    header, arrays = pack_selection(selection)
    kept = unpack_selection(setup, 12, header, arrays)
    np.testing.assert_array_equal(kept.context.latency, np.arange(12.0))
    arrays["context.latency"] = np.full(12, np.inf)
    with pytest.raises(BadInput, match=r"context\.latency.*range"):
        unpack_selection(setup, 12, header, arrays)


def test_a_whole_state_reads_back(tmp_path: Any) -> None:
    setup = replace(began("clustered-similarity:m=3")[0], aggregator=Memory())
    task = Quadratic(np.eye(12), sizes=SIZES)
    run = engine.Simulation(task, setup, LocalWork(steps=1), Always(), None)
    for _ in range(4):
        run.play()
    header, arrays = pack_state(setup, run.state)
    store.save(tmp_path / "x", {"kind": "x", **header}, arrays)
    state = unpack_state(setup, *store.load(tmp_path / "x", "x"))
    other = replace_state(run, state)
    a, b = run.play(), other.play()
    assert a.cohort == b.cohort
    np.testing.assert_array_equal(run.state.theta, other.state.theta)
    np.testing.assert_array_equal(run.state.counted, other.state.counted)
    np.testing.assert_array_equal(run.state.aggregator.average, other.state.aggregator.average)


def replace_state(run: engine.Simulation, state: State) -> engine.Simulation:
    other = engine.Simulation(run.task, run.setup, run.work, run.availability, None)
    other.state = state
    return other


class Sums(Transport):
    """A secure sum."""

    name = "SecAgg"
    rows = again = payloads = False


@pytest.mark.parametrize(
    ("setup", "says"),
    [
        (Setup(scheme("clustered-similarity"), 0, dropouts=AsDrawn()), "listens to update"),
        (Setup(scheme("md"), 0, aggregator=Memory(), dropouts=AsDrawn()), "'memory' needs"),
        (Setup(scheme("md"), 0, dropouts=Hajek()), "made up for by 'hajek'; use 'none'"),
    ],
)
def test_what_a_carrier_cannot_do_is_refused(setup: Setup, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        check_compatible(setup, Sums())


def test_a_carrier_without_replacements_refuses_redraws_and_takes_the_rest() -> None:
    class Once(Transport):
        name, again = "FedLab", False

    with pytest.raises(BadInput, match="FedLab cannot invite replacements"):
        check_compatible(Setup(scheme("md"), 0, dropouts=Redraw()), Once())
    check_compatible(Setup(scheme("md"), 0, dropouts=Hajek()), Once())
    check_compatible(Setup(scheme("md"), 0, dropouts=AsDrawn()), Sums())


def test_whole_clients_go_with_a_carrier_that_cannot_take_a_share_of_their_samples() -> None:
    class Whole(Transport):
        name, subsampling = "mine", False

    check_compatible(Setup(scheme("md"), 0), Whole())
    with pytest.raises(BadInput, match="fedsampling-naive"):
        check_compatible(Setup(scheme("fedsampling-naive"), 0), Whole())


@pytest.mark.parametrize("how", ["plain", "memory"])
@pytest.mark.parametrize("name", ["md:m=6", "clustered-similarity:m=4", "fedsampling-naive"])
def test_small_blocks_are_the_same_round(name: str, how: str, monkeypatch: Any) -> None:
    if how == "memory" and "fedsampling" in name:
        pytest.skip("memory is refused where answers count per sample")
    task = Quadratic(np.random.default_rng(0).random((12, 5)), sizes=SIZES)
    settings = {"rounds": 6, "seed": 2, "aggregator": how, "work": LocalWork(steps=2)}
    whole = fedcohort.simulate(task, name, **settings)
    monkeypatch.setattr(engine, "BLOCK_BYTES", 2 * 8 * 5)  # two clients at a time
    parts = fedcohort.simulate(task, name, **settings)
    np.testing.assert_array_equal(parts.cohort_clients, whole.cohort_clients)
    np.testing.assert_allclose(parts.cohort_weights, whole.cohort_weights, rtol=1e-12)
    np.testing.assert_allclose(parts.model, whole.model, rtol=0, atol=1e-12)


@pytest.mark.parametrize("together", [1, 5])
def test_small_blocks_are_the_same_round_behind_guards(together: int, monkeypatch: Any) -> None:
    x = np.random.default_rng(0).random((12, 5))
    x[3] *= 1e5  # its update is cut to twice a typical one, in the first round already
    task = Quadratic(x, sizes=SIZES)
    settings = {"rounds": 4, "seed": 2, "hardened": True, "work": LocalWork(steps=2)}
    whole = fedcohort.simulate(task, "full", **settings)
    monkeypatch.setattr(engine, "BLOCK_BYTES", together * 8 * 5)
    parts = fedcohort.simulate(task, "full", **settings)
    np.testing.assert_array_equal(parts.cohort_clients, whole.cohort_clients)
    np.testing.assert_allclose(parts.cohort_weights, whole.cohort_weights, rtol=1e-12)
    np.testing.assert_allclose(parts.model, whole.model, rtol=0, atol=1e-12)
    assert np.abs(whole.model).max() < 10


def test_blocks_may_come_in_any_order() -> None:
    setup, state = began("clustered-similarity:m=4")
    rows = np.random.default_rng(1).random((12, 5))

    class Backwards(Answering):
        def train(self, train: Any) -> Any:
            return engine.Responses(train.clients)

        def answers(self, fold: Any) -> Any:
            for client in fold.cohort.clients[::-1]:
                yield UpdateBlock(np.array([client]), rows[[client]])

    after, record = run_round(setup, state, round_context(state), Backwards(), Ledger())
    np.testing.assert_allclose(after.theta, record.cohort.weights @ rows[record.cohort.clients])
    kept = setup.scheme.latest(after.scheme).rows(record.cohort.clients)
    np.testing.assert_array_equal(kept, rows[record.cohort.clients].astype(np.float32))


def test_a_record_says_what_mean_updates_counted_for_where_answers_are_sums() -> None:
    setup, state = began("fedsampling:K=60,mechanism=exact")
    numbers = np.arange(12)

    class Sums(Answering):
        def train(self, train: Any) -> Any:
            return engine.Responses(train.clients)

        def answers(self, fold: Any) -> Any:
            sums = numbers[:, None] * np.ones((12, 5))
            yield UpdateBlock(fold.cohort.clients, sums, counted=fold.cohort.weights * numbers)

    _, record = run_round(setup, state, round_context(state), Sums(), Ledger())
    np.testing.assert_allclose(record.cohort.weights, numbers / 60)
    assert not record.cohort.per_sample  # or the numbers would count twice


@pytest.mark.parametrize(("when", "said"), [(0, "round 0"), (-1, "before the first round")])
def test_an_error_says_when_it_was(when: int, said: str) -> None:
    setup, state = began("pow-d:m=3")
    rng = np.random.default_rng(0)
    asking = setup.scheme.select(state.scheme, state.federation, round_context(state), rng)
    talk = rounds.query_clients(setup, state, asking, Ledger(), [], when)
    next(talk)
    with pytest.raises(ConnectionError) as caught:
        talk.throw(ConnectionError("gone"))
    assert caught.value.__notes__ == [f"This was {said}."]


def test_a_scheme_that_forgets_to_return_its_state_is_told_so() -> None:
    class Forgetful(type(scheme("md"))):  # type: ignore[misc]
        def observe(self, *_: Any) -> Any:
            return None

    selector = Selector(Forgetful(m=1), Federation.from_sizes([1, 1]), 0)
    selector.select()
    with pytest.raises(BadInput, match=r"Forgetful\.observe\(\) must return"):
        selector.observe()
    assert selector.round == 0


class Blocks(Answering):
    """Sends one update of ones for each client of the blocks that a function makes of a cohort."""

    def __init__(self, blocks: Any, sums: bool = False) -> None:
        self.blocks, self.sums = blocks, sums

    def train(self, train: Any) -> Any:
        return engine.Responses(train.clients)

    def answers(self, fold: Any) -> Any:
        for clients in self.blocks(fold.cohort.clients):
            if self.sums:
                yield UpdateSum(clients, np.ones(5))
            else:
                payloads = {"c": np.ones((len(clients), 5))}
                yield UpdateBlock(clients, np.ones((len(clients), 5)), payloads=payloads)


WRONG = {
    "wrong clients": (lambda c: [np.setdiff1d(np.arange(12), c)[: len(c)]], "members of a cohort"),
    "one wrong client": (
        lambda c: [np.append(c[1:], np.setdiff1d(np.arange(12), c)[0])],
        "members of a cohort",
    ),
    "no client's position": (lambda c: [np.append(c, 12)], "members of a cohort"),
    "missing": (lambda c: [c[:-1]], "sent no update of clients"),
    "nothing": (lambda c: [], "sent no update of clients"),
    "twice instead of another": (lambda c: [np.append(c[:-1], c[0])], "twice"),
    "twice": (lambda c: [np.append(c, c[0])], "twice"),
    "in two blocks": (lambda c: [c, c[:1]], "twice"),
}


@pytest.mark.parametrize("parts", [{}, {"algorithm": "scaffold"}, {"hardened": "clip"}])
@pytest.mark.parametrize("case", WRONG)
def test_every_participant_is_aggregated_exactly_once(case: str, parts: Any) -> None:
    blocks, why = WRONG[case]
    setup = Setup(
        scheme("hcsfed:m=4" if parts else "md:m=4"),
        0,
        algorithm=algorithm(parts.get("algorithm")),
        guards=guards(parts.get("hardened")),
    )
    state = State.first(setup, Federation.from_sizes(SIZES), np.zeros(5))
    with pytest.raises(BadInput, match=why):
        run_round(setup, state, round_context(state), Blocks(blocks), Ledger())


@pytest.mark.parametrize("case", WRONG)
def test_every_participant_is_in_one_sum(case: str) -> None:
    blocks, why = WRONG[case]
    setup, state = began("md:m=4")
    with pytest.raises(BadInput, match=why):
        run_round(setup, state, round_context(state), Blocks(blocks, sums=True), Ledger())


@pytest.mark.parametrize("rule", [AsDrawn(), Redraw(), Hajek()])
@pytest.mark.parametrize("stranger", [-1, 12, "another client"])
def test_a_client_that_was_not_invited_cannot_respond(rule: Any, stranger: Any) -> None:
    """It would be taken for a replacement, or -1 for the last client."""
    setup = Setup(scheme("md:m=4"), 0, dropouts=rule)
    state = State.first(setup, Federation.from_sizes(SIZES), np.zeros(5))

    class Intruding(Blocks):
        def train(self, train: Any) -> Any:
            outside = np.setdiff1d(np.arange(12), train.clients)
            wrong = outside[0] if stranger == "another client" else stranger
            return engine.Responses(np.append(train.clients[1:], wrong))

    with pytest.raises(BadInput, match="Only invited clients can respond"):
        run_round(setup, state, round_context(state), Intruding(lambda c: [c]), Ledger())


def test_one_block_in_another_order_is_matched_client_by_client() -> None:
    setup, state = began("clustered-similarity:m=4")
    rows = np.arange(60.0).reshape(12, 5)

    class Backwards(Blocks):
        def answers(self, fold: Any) -> Any:
            clients = fold.cohort.clients[::-1]
            yield UpdateBlock(clients, rows[clients])

    after, record = run_round(setup, state, round_context(state), Backwards(None), Ledger())
    clients = record.cohort.clients
    assert len(clients) > 1
    np.testing.assert_allclose(after.theta, record.cohort.weights @ rows[clients])
    kept = setup.scheme.latest(after.scheme).rows(clients)
    np.testing.assert_array_equal(kept, rows[clients].astype(np.float32))
