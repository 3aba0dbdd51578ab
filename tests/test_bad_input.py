"""Bad input and faults, one test per entry of the catalogue (the numbers stand in the test ids).

A: all schemes. B: sizes and weights. F: files and settings. Whatever is refused is refused in
one sentence, before any state changes. What only a deployment can meet is tested there.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort import Federation, Selector, scheme
from fedcohort.core import UPDATE, Cohort, Replies, Signal
from fedcohort.core.errors import (
    BadInput,
    BadParameter,
    FedcohortError,
    FedcohortWarning,
    TooLarge,
    UnknownName,
)
from fedcohort.schemes.md import MD
from fedcohort.theory import enumerated_moments

WITHOUT_REPLACEMENT = ["uniform", "fedavg", "binomial", "optimal"]


def federation(*sizes: int) -> Federation:
    return Federation.from_sizes(list(sizes))


def answer(ask: Any) -> np.ndarray:
    return np.ones(len(ask.clients))


def selector(name: str, *sizes: int, seed: int = 0, **parameters: Any) -> Selector:
    return Selector(scheme(name, **parameters), federation(*sizes), seed=seed, ask=answer)


class Listening(MD):
    """MD that keeps what it hears."""

    listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})
    heard: ClassVar[list[Replies]] = []

    def observe(self, state: Any, federation: Federation, cohort: Cohort, replies: Replies) -> Any:
        self.heard.append(replies)
        return state


def refused(name: str, call: Callable[[], Any], error: type[Exception], words: str) -> Any:
    return pytest.param(call, error, words, id=name)


REFUSED = [
    refused("A1", lambda: Federation.from_sizes([]), BadInput, "at least one client; got none"),
    refused("A1-neither", lambda: Federation(), BadInput, "'sizes' or 'importance'"),
    refused("A3", lambda: scheme("md", m=0), BadParameter, "'m' parameter of md .* Got 0"),
    refused("A4-negative", lambda: scheme("md", m=-1), BadParameter, "int of at least 1. Got -1"),
    refused("A4-half", lambda: scheme("uniform", m=2.5), BadParameter, "Got 2.5"),
    refused("A4-bool", lambda: scheme("poisson", m=True), BadParameter, "Got True"),
    refused("A4-text", lambda: scheme("optimal", m="3"), BadParameter, "'all'. Got '3'"),
    refused("A4-nan", lambda: scheme("binomial", m=float("nan")), BadParameter, "Got nan"),
    refused(
        "A9", lambda: Federation(sizes=[1, 2], ids=[1, "1"]), BadInput, "one type; got int, str"
    ),
    refused("A10", lambda: Federation(sizes=[1, 2], ids=[7, 7]), BadInput, "distinct; 7 stands"),
    refused("A11", lambda: Federation(sizes=[1, 2], ids=[float("nan"), 1.0]), BadInput, "got NaN"),
    refused(
        "A11-unhashable",
        lambda: Federation(sizes=[1], ids=[[1]]),
        BadInput,
        "hashable; list is not",
    ),
    refused("A11-missing", lambda: Federation(sizes=[1, 2], ids=[1]), BadInput, "2 clients, 1 ids"),
    refused("A27-negative", lambda: selector("md", 1, seed=-1), BadParameter, "'seed'.*Got -1"),
    refused("A27-float", lambda: selector("md", 1, seed=0.5), BadParameter, "'seed'.*Got 0.5"),  # type: ignore[arg-type]
    refused("A27-bool", lambda: selector("md", 1, seed=True), BadParameter, "'seed'.*Got True"),
    refused("A27-long", lambda: selector("md", 1, seed=2**128), BadParameter, "'seed'"),
    refused("B35", lambda: federation(0, 0), BadInput, "must not all be 0"),
    refused("B36", lambda: federation(3, -1), BadInput, "client 1 has -1"),
    refused("B37-nan", lambda: Federation(sizes=[1, float("nan")]), BadInput, "client 1 has nan"),
    refused("B37-inf", lambda: Federation(sizes=[float("inf")]), BadInput, "client 0 has inf"),
    refused(
        "B37-array", lambda: Federation(sizes=np.array([1.0, np.nan])), BadInput, "client 1 has"
    ),
    refused(
        "B37-object",
        lambda: Federation(sizes=np.array([np.nan, 1], dtype=object)),
        BadInput,
        "client 0 has nan",
    ),
    refused("B38", lambda: Federation(sizes=[3.7]), BadInput, "client 0 has 3.7"),
    refused("B39-bool", lambda: Federation(sizes=[True, 2]), BadInput, "client 0 has True"),
    refused("B39-text", lambda: Federation(sizes=["3"]), BadInput, "client 0 has '3'"),
    refused("B39-none", lambda: Federation(sizes=[1, None]), BadInput, "client 1 has None"),
    refused("B39-bools", lambda: Federation(sizes=np.array([True])), BadInput, "client 0 has"),
    refused("B39-table", lambda: Federation(sizes=[[1, 2]]), BadInput, r"client 0 has \[1, 2\]"),
    refused("B39-number", lambda: Federation(sizes=5), BadInput, "got 5"),
    refused("B39-mapping", lambda: Federation(sizes={"a": 1}), BadInput, "from_sizes"),  # type: ignore[arg-type]
    refused("B44", lambda: selector("uniform", 9, 0, m=2).select(), BadParameter, r"chosen \(1\)"),
    refused(
        "B49", lambda: selector("poisson", 8, 1, 1, m=2).select(), BadParameter, "at most 1.*cap=Tr"
    ),
    refused("B51", lambda: Federation(importance=[0.5, 0.6]), BadInput, "sums to 1.1"),
    refused("B51-nan", lambda: Federation(importance=[np.nan, 1]), BadInput, "client 0 has nan"),
    refused("B51-negative", lambda: Federation(importance=[-1, 2]), BadInput, "client 0 has -1"),
    refused("B51-two", lambda: Federation([0.5, 0.5], sizes=[1]), BadInput, "got 2 and 1"),
    refused("F100", lambda: scheme("clustered-size", tie="index"), UnknownName, "mean 'ties'"),
    refused("F100-name", lambda: scheme("clusterd-size"), UnknownName, "mean 'clustered-size'"),
    refused("F101", lambda: selector("md", 1, 2, m=10**12).select(), TooLarge, "lower m"),
]


@pytest.mark.parametrize(("call", "error", "words"), REFUSED)
def test_refused(call: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        call()
    assert isinstance(caught.value, FedcohortError)
    assert "\n" not in str(caught.value)


# A: all schemes


@pytest.mark.parametrize("name", ["full", "fedavg", "uniform", "md", "binomial", "poisson"])
def test_one_client_alone(name: str) -> None:  # A2
    cohort = selector(name, 7, **({} if name == "full" else {"m": 1})).select()
    assert cohort == Cohort.of([0], 1.0)


@pytest.mark.parametrize("name", WITHOUT_REPLACEMENT)
def test_more_distinct_clients_than_there_are(name: str) -> None:  # A5
    with pytest.raises(BadParameter, match=r"at most the number of clients .* \(3\).* Got 4"):
        selector(name, 5, 3, 2, m=4).select()
    assert len(selector(name, 5, 3, 2, m="all").select()) == 3


@pytest.mark.parametrize("name", WITHOUT_REPLACEMENT)
def test_everyone(name: str) -> None:  # A6
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
def test_any_ids_in_any_order(ids: Any) -> None:  # A7, A8, A12
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
def test_clients_come_leave_and_change(name: str) -> None:  # A13, A14, B48
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


def test_fewer_answer_or_none() -> None:  # A15, A16
    chooser = Selector(Listening(m=2), federation(5, 4, 3, 2), seed=0)
    cohort = chooser.select()
    chooser.observe(Replies(cohort.clients[:1], {"update": np.ones((1, 3))}))
    cohort = chooser.select()
    chooser.observe(Replies(cohort.clients[:0], {"update": np.empty((0, 3))}))
    assert chooser.round == 2


def test_nobody_is_available() -> None:  # A16: the round is void
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


def test_of_two_answers_the_first_counts() -> None:  # A20
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


def test_an_answer_of_a_client_not_chosen() -> None:  # A21
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


def test_no_seed_is_a_seed_that_is_written_down() -> None:  # A26
    one = Selector(scheme("md", m=5), federation(*range(1, 50)))
    again = Selector(scheme("md", m=5), federation(*range(1, 50)), seed=one.seed)
    assert one.select() == again.select()
    assert Selector(scheme("md"), federation(1)).seed != one.seed


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size", "binomial"])
def test_a_million_clients(name: str) -> None:  # A30
    sizes = np.arange(1, 1_000_001) % 97 + 1
    cohort = Selector(scheme(name, m=100), Federation.from_sizes(sizes), seed=0).select()
    assert 50 < len(cohort) < 200


def test_a_question_that_fails_changes_nothing() -> None:  # A31
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
    assert len(chooser.select()) >= 0  # and it can go on


def test_an_exhausted_iterator_in_a_transport_does_not_end_the_talk() -> None:  # A31
    with pytest.raises(StopIteration):
        selector("optimal", 5, 4, 3, m=2).select(ask=lambda ask: next(iter([])))


@pytest.mark.parametrize("rows", [1.0, [1.0], np.ones((2, 3)), np.ones(4)], ids=str)
def test_an_answer_of_the_wrong_shape(rows: Any) -> None:
    with pytest.raises(BadInput, match="one row per client asked: 3 clients, got shape"):
        selector("optimal", 5, 4, 3, m=2).select(ask=lambda ask: rows)


def test_an_interruption_changes_nothing() -> None:  # A32
    def interrupted(ask: Any) -> Any:
        raise KeyboardInterrupt

    chooser = selector("optimal", 5, 4, 3, m=2)
    with pytest.raises(KeyboardInterrupt):
        chooser.select(ask=interrupted)
    assert chooser.round == 0
    assert chooser.select() == selector("optimal", 5, 4, 3, m=2).select()


def test_a_selector_sent_to_a_worker_draws_the_same() -> None:  # A33
    chooser = selector("clustered-size", 5, 4, 3, 2, m=2)
    chooser.design()  # fill the memory of the federation; it is not sent
    with ProcessPoolExecutor(1) as pool:
        there = pool.submit(chooser.select).result()
    assert there == chooser.select()


# B: sizes


@pytest.mark.parametrize("name", ["md", "uniform", "fedavg", "binomial", "poisson"])
def test_a_client_without_data_is_never_chosen(name: str) -> None:  # B34
    design = selector(name, 3, 0, 2, m=1).design()
    assert design is not None
    assert design.inclusion()[1] == design.mean()[1] == 0


def test_mostly_without_data() -> None:  # B34
    with pytest.warns(FedcohortWarning, match="3 of 5 clients have no data"):
        federation(1, 0, 0, 0, 2)


@pytest.mark.parametrize("name", ["md", "poisson", "clustered-size", "uniform"])
@pytest.mark.parametrize(
    "sizes",
    [[2**62, 2**62 - 1, 5, 1], [2**62] * 4, [2**53 + 1, 2**53, 1, 3], [2**80, 2**79, 2**79, 9]],
    ids=["B40", "B41", "B42", "B41-beyond"],
)
def test_huge_sizes_are_exact(name: str, sizes: list[int]) -> None:
    parameters = {"m": 4, "cap": True} if name == "poisson" else {"m": 4}
    chooser = Selector(scheme(name, **parameters), Federation.from_sizes(sizes), seed=0)
    design = chooser.design()
    assert design is not None
    mean = enumerated_moments(design.enumerate(), 4).mean
    assert [part * sum(sizes) for part in mean] == sizes
    assert len(chooser.select()) > 0


def test_whole_floats_are_whole() -> None:  # B38
    assert Federation(sizes=[3.0, 2]).sizes.tolist() == [3, 2]  # type: ignore[union-attr]
    assert Federation(sizes=[2**63 + 1, 3.0]).sizes.tolist() == [2**63 + 1, 3]  # type: ignore[union-attr]
    assert Federation(sizes=np.array([3, 4], dtype=np.uint8)).sizes.tolist() == [3, 4]  # type: ignore[union-attr]
    large = np.array([2**63, 1], dtype=np.uint64)
    assert Federation(sizes=large).sizes.tolist() == [2**63, 1]  # type: ignore[union-attr]


def test_all_equal() -> None:  # B43
    md, clustered = (selector(name, *[5] * 6, m=3).design() for name in ("md", "clustered-size"))
    assert md is not None
    assert clustered is not None
    np.testing.assert_allclose(md.mean(), 1 / 6)
    np.testing.assert_allclose(clustered.inclusion(), 1 / 2)  # two clients to a row


def test_one_client_owns_everything() -> None:  # B44
    for name in ("md", "clustered-size"):
        cohort = selector(name, 9, 0, m=4).select()
        assert cohort == Cohort.of([0], 1.0, [4])


def test_a_client_larger_than_a_row() -> None:  # B45
    for dedicate in (False, True):
        design = selector("clustered-size", 10, 3, 2, 1, m=3, dedicate_large=dedicate).design()
        assert design is not None
        np.testing.assert_allclose(design.mean(), np.array([10, 3, 2, 1]) / 16)
        assert design.inclusion()[0] == 1


def test_one_draw_is_md() -> None:  # B47
    md, clustered = (selector(name, 5, 4, 3, m=1).design() for name in ("md", "clustered-size"))
    np.testing.assert_allclose(md.covariance(), clustered.covariance())  # type: ignore[union-attr]


def test_poisson_with_a_cap() -> None:  # B49
    design = selector("poisson", 8, 1, 1, m=2, cap=True).design()
    assert design is not None
    np.testing.assert_allclose(design.mean(), [0.8, 0.1, 0.1])


def test_an_empty_poisson_draw_is_a_void_round() -> None:  # B50
    chooser = selector("poisson", *[1] * 50, m=1, seed=1)
    lengths = []
    for _ in range(30):
        lengths.append(len(chooser.select()))
        chooser.observe()
    assert 0 in lengths
    assert max(lengths) > 1


def test_importance_is_mended_by_a_rounding_error_only() -> None:  # B51
    mended = Federation(importance=[0.5, 0.5 + 1e-9])
    assert mended.importance.sum() == pytest.approx(1.0, abs=1e-15)
    with pytest.raises(BadInput, match="Divide by the sum"):
        Federation(importance=[0.5, 0.5 + 1e-5])


def test_a_federation_cannot_be_changed() -> None:
    mine = np.array([3, 2, 1])
    fixed = Federation(sizes=mine)
    mine[0] = 100
    assert fixed.sizes.tolist() == [3, 2, 1]  # type: ignore[union-attr]
    for array in (fixed.sizes, fixed.importance, fixed.shares.parts):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9  # type: ignore[index]


# F: files
