"""Bad input and faults of all schemes: cases A1 to A33 of the catalogue in docs/reliability.md.

What only a deployment can meet stands in test_a_flower.py.
"""

from __future__ import annotations

import uuid
from concurrent.futures import ProcessPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort import Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, UnknownName
from fedcohort.schemes.classical import MD
from fedcohort.selection import UPDATE, Cohort, Replies, Signal
from helpers.catalogue import case, federation, refuses, selector

WITHOUT_REPLACEMENT = ["uniform", "fedavg", "binomial", "optimal"]


class Listening(MD):
    """MD that keeps what it hears."""

    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    heard: ClassVar[list[Replies]] = []

    def observe(self, state: Any, federation: Federation, cohort: Cohort, replies: Replies) -> Any:
        self.heard.append(replies)
        return state


test_A1_no_clients = refuses(
    case("plain", lambda: Federation.from_sizes([]), BadInput, "at least one client; got none"),
    case("neither", lambda: Federation(), BadInput, "'sizes' or 'importance'"),
)

test_A3_no_draws = refuses(
    case("plain", lambda: scheme("md", m=0), BadParameter, "'m' parameter of md .* Got 0"),
)

test_A4_no_number_of_draws = refuses(
    case("negative", lambda: scheme("md", m=-1), BadParameter, "int of at least 1. Got -1"),
    case("half", lambda: scheme("uniform", m=2.5), BadParameter, "Got 2.5"),
    case("bool", lambda: scheme("poisson", m=True), BadParameter, "Got True"),
    case("text", lambda: scheme("optimal", m="3"), BadParameter, "'all'. Got '3'"),
    case("nan", lambda: scheme("binomial", m=float("nan")), BadParameter, "Got nan"),
)

test_A9_mixed_ids = refuses(
    case(
        "plain", lambda: Federation(sizes=[1, 2], ids=[1, "1"]), BadInput, "one type; got int, str"
    ),
)

test_A10_an_id_twice = refuses(
    case("plain", lambda: Federation(sizes=[1, 2], ids=[7, 7]), BadInput, "distinct; 7 stands"),
)

test_A11_an_id_that_is_none = refuses(
    case("plain", lambda: Federation(sizes=[1, 2], ids=[float("nan"), 1.0]), BadInput, "got NaN"),
    case(
        "unhashable",
        lambda: Federation(sizes=[1], ids=[[1]]),
        BadInput,
        "hashable; list is not",
    ),
    case("missing", lambda: Federation(sizes=[1, 2], ids=[1]), BadInput, "2 clients, 1 ids"),
)

test_A27_no_seed = refuses(
    case("negative", lambda: selector("md", 1, seed=-1), BadParameter, "'seed'.*Got -1"),
    case("float", lambda: selector("md", 1, seed=0.5), BadParameter, "'seed'.*Got 0.5"),  # type: ignore[arg-type]
    case("bool", lambda: selector("md", 1, seed=True), BadParameter, "'seed'.*Got True"),
    case("long", lambda: selector("md", 1, seed=2**128), BadParameter, "'seed'"),
)


@pytest.mark.parametrize("name", ["full", "fedavg", "uniform", "md", "binomial", "poisson"])
def test_A2_one_client_alone(name: str) -> None:
    cohort = selector(name, 7, **({} if name == "full" else {"m": 1})).select()
    assert cohort == Cohort.of([0], 1.0)


@pytest.mark.parametrize("name", WITHOUT_REPLACEMENT)
def test_A5_more_distinct_clients_than_there_are(name: str) -> None:
    with pytest.raises(BadParameter, match=r"at most the number of clients .* \(3\).* Got 4"):
        selector(name, 5, 3, 2, m=4).select()
    assert len(selector(name, 5, 3, 2, m="all").select()) == 3


@pytest.mark.parametrize("name", WITHOUT_REPLACEMENT)
def test_A6_everyone(name: str) -> None:
    cohort = selector(name, 5, 3, 2, m=3).select()
    assert cohort.clients.tolist() == [0, 1, 2]
    np.testing.assert_allclose(cohort.weights, [0.5, 0.3, 0.2])


IDS: list[Any] = [
    [1000, 7, 8, 400],
    ["rome", "oslo", "bonn", "a"],
    [uuid.UUID(int=i) for i in (4, 2, 9, 1)],
    [2**63 + 5, 2**64 - 1, 3, 2**63],
    np.array([2**63 + 5, 2**64 - 1, 3, 2**63], dtype=np.uint64),
    [(1, "b"), (1, "a"), (0, "z"), (5, "")],
]


@pytest.mark.parametrize("ids", IDS, ids=["A7", "A8-str", "A8-uuid", "A8-u64", "A8-numpy", "tuple"])
def test_A7_A8_A12_any_ids_in_any_order(ids: Any) -> None:
    sizes = [40, 30, 20, 10]
    found = []
    for order in ([0, 1, 2, 3], [3, 1, 0, 2], [2, 3, 1, 0]):
        named = Federation(sizes=[sizes[i] for i in order], ids=[ids[i] for i in order])
        for name in ("md", "uniform", "clustered-size"):
            chooser = Selector(scheme(name, m=2), named, seed=5)
            cohort = chooser.select()
            found.append((name, chooser.names(cohort), cohort.weights.tolist()))
    assert found[:3] == found[3:6] == found[6:]
    assert named.position(named.ids[2]) == 2
    with pytest.raises(UnknownName, match="no client named 'nobody'"):
        named.position("nobody")


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size"])
def test_A13_A14_B48_clients_come_leave_and_change(name: str) -> None:
    sizes = {"a": 5, "b": 4, "c": 3, "d": 2}
    chooser = Selector(scheme(name, m=2), Federation.from_sizes(sizes), seed=0)
    chooser.select()
    with pytest.raises(BadInput, match="Round 0 is under way"):
        chooser.update(Federation.from_sizes({"a": 1}))
    chooser.observe()
    chooser.update(Federation.from_sizes({"b": 40, "c": 3, "d": 2, "e": 9, "f": 1}))
    design = chooser.design()
    assert design is not None
    np.testing.assert_allclose(design.mean(), np.array([40, 3, 2, 9, 1]) / 55)
    chosen = set()
    for _ in range(40):
        chosen |= set(chooser.names(chooser.select()))
        chooser.observe()
    assert chosen <= set("bcdef")
    assert "e" in chosen


def test_A15_A16_fewer_answer_or_none() -> None:
    chooser = Selector(Listening(m=2), federation(5, 4, 3, 2), seed=0)
    cohort = chooser.select()
    chooser.observe(Replies(cohort.clients[:1], {"update": np.ones((1, 3))}))
    cohort = chooser.select()
    chooser.observe(Replies(cohort.clients[:0], {"update": np.empty((0, 3))}))
    assert chooser.round == 2


def test_A16_nobody_is_available() -> None:  # the round is void
    chooser = selector("md", 5, 4, 3, m=2)
    for nobody in ([], np.zeros(3, dtype=bool)):
        cohort = chooser.select(available=nobody)
        assert len(cohort) == 0
        chooser.observe()
    assert chooser.round == 2
    assert len(chooser.select()) > 0
    assert chooser.design(available=[]).inclusion().tolist() == [0, 0, 0]  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "available", [[0, 9], [-1], [0.5], [[0, 1]], np.ones(2, dtype=bool), ["a"]], ids=str
)
def test_those_available_must_exist(available: Any) -> None:
    with pytest.raises(BadInput, match="'available' must be positions"):
        selector("md", 5, 4, 3, m=2).select(available=available)


def test_A20_of_two_answers_the_first_counts() -> None:
    chooser = Selector(Listening(m=50), federation(5, 4, 3), seed=0)
    assert chooser.select().clients.tolist() == [0, 1, 2]
    rows = np.array([[2.0], [1.0], [9.0]])
    chooser.observe(Replies(np.array([2, 0, 2]), {"update": rows, "other": rows}))
    heard = Listening.heard.pop()
    assert heard.clients.tolist() == [0, 2]
    assert {name: r.tolist() for name, r in heard.signals.items()} == {"update": [[1.0], [2.0]]}


def test_what_is_listened_to_must_be_told() -> None:
    chooser = Selector(Listening(m=2), federation(5, 4, 3), seed=0)
    cohort = chooser.select()
    with pytest.raises(BadInput, match="md listens to update: pass"):
        chooser.observe()
    with pytest.raises(BadInput, match="md listens to update: it is not"):
        chooser.observe(Replies(cohort.clients, {}))
    with pytest.raises(BadInput, match="one row of 'update' per client"):
        chooser.observe(Replies(cohort.clients, {"update": np.ones((9, 2))}))
    assert chooser.round == 0


def test_answers_that_are_not_finite_are_left_out() -> None:
    chooser = Selector(Listening(m=3), federation(5, 4, 3, 2), seed=0)
    cohort = chooser.select()
    rows = np.ones((len(cohort), 2))
    rows[0, 1] = np.inf
    with pytest.warns(FedcohortWarning, match="1 of . replies contain values that are not finite"):
        chooser.observe(Replies(cohort.clients, {"update": rows}))


def test_A21_an_answer_of_a_client_not_chosen() -> None:
    chooser = selector("uniform", 5, 4, 3, m=1)
    [chosen] = chooser.select().clients.tolist()
    stranger = (chosen + 1) % 3
    with pytest.raises(BadInput, match=rf"not chosen: \[{stranger}\]"):
        chooser.observe(Replies(np.array([stranger]), {}))
    assert chooser.round == 0  # nothing has changed
    chooser.observe(Replies(np.array([chosen]), {}))


def test_observe_needs_a_round_that_began() -> None:
    with pytest.raises(BadInput, match=r"call select\(\) first"):
        selector("md", 1, 2).observe()
    chooser = selector("md", 1, 2)
    chooser.select()
    with pytest.warns(FedcohortWarning, match="called again in round 0"):
        chooser.select()


def test_A26_no_seed_is_a_seed_that_is_written_down() -> None:
    one = Selector(scheme("md", m=5), federation(*range(1, 50)))
    again = Selector(scheme("md", m=5), federation(*range(1, 50)), seed=one.seed)
    assert one.select() == again.select()
    assert Selector(scheme("md"), federation(1)).seed != one.seed


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size", "binomial"])
def test_A30_a_million_clients(name: str) -> None:
    sizes = np.arange(1, 1_000_001) % 97 + 1
    cohort = Selector(scheme(name, m=100), Federation.from_sizes(sizes), seed=0).select()
    assert 50 < len(cohort) < 200


def test_A31_a_question_that_fails_changes_nothing() -> None:
    def broken(ask: Any) -> Any:
        raise ConnectionError("the line is dead")

    chooser = selector("optimal", 5, 4, 3, m=2)
    with pytest.raises(ConnectionError, match="the line is dead") as caught:
        chooser.select(ask=broken)
    notes = " ".join(caught.value.__notes__)
    assert "optimal was asking 3 clients for 'update_norm'" in notes
    assert "round 0" in notes
    assert chooser.ledger.entries == []
    assert chooser.round == 0
    chooser.select()  # and it can go on
    assert [entry.round for entry in chooser.ledger.entries] == [0]


def test_A31_an_exhausted_iterator_in_a_transport_does_not_end_the_talk() -> None:
    with pytest.raises(StopIteration):
        selector("optimal", 5, 4, 3, m=2).select(ask=lambda ask: next(iter([])))


@pytest.mark.parametrize("rows", [1.0, [1.0], np.ones((2, 3)), np.ones(4)], ids=str)
def test_an_answer_of_the_wrong_shape(rows: Any) -> None:
    with pytest.raises(BadInput, match="one row per client asked: 3 clients, got shape"):
        selector("optimal", 5, 4, 3, m=2).select(ask=lambda ask: rows)


def test_A32_an_interruption_changes_nothing() -> None:
    def interrupted(ask: Any) -> Any:
        raise KeyboardInterrupt

    chooser = selector("optimal", 5, 4, 3, m=2)
    with pytest.raises(KeyboardInterrupt):
        chooser.select(ask=interrupted)
    assert chooser.round == 0
    assert chooser.select() == selector("optimal", 5, 4, 3, m=2).select()


def test_A33_a_selector_sent_to_a_worker_draws_the_same() -> None:
    chooser = selector("clustered-size", 5, 4, 3, 2, m=2)
    chooser.design()  # fill the memory of the federation; it is not sent
    with ProcessPoolExecutor(1) as pool:
        there = pool.submit(chooser.select).result()
    assert there == chooser.select()
