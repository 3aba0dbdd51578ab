"""The thesis' strategies: golden choices, decisions it leaves open, cost, Table 4.2."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Ask, Federation, RoundContext, Selector, scheme
from fedcohort._internal.errors import BadParameter, FedcohortWarning
from fedcohort._internal.random import stream
from fedcohort.cli.schemes import describe
from fedcohort.maths import every_path
from fedcohort.schemes._data_groups import Groups
from fedcohort.selection import Claim, converse
from fedcohort.server import Ledger
from fedcohort.server._ledger import REQUEST_BYTES
from fedcohort.testing import check_scheme

STATIC = ("static-uniform", "static-data", "static-client")
LOSSES = ("data-loss", "average-loss", "best-loss")
WITH_X = ("average-loss-x", "best-loss-x")
ALL = (*STATIC, *LOSSES, *WITH_X)
GOLDEN_CLUSTERS = [[0, 1, 2], [3, 4], [5], [6], [7, 8, 9]]
GOLDEN_LOSSES = [5, 4, 1, 6, 2, 3, 9, 8, 7, 1]


def groups(clusters: list[list[int]]) -> Groups:
    labels = np.empty(sum(map(len, clusters)), dtype=np.int64)
    for number, members in enumerate(clusters):
        labels[members] = number
    none = np.empty(0)
    return Groups(
        labels,
        np.ones((len(labels), 2), dtype=np.int64),
        "given",
        "{}",
        None,
        1.0,
        "",
        none.astype(int),
        none,
    )


def choose(
    name: str,
    clusters: list[list[int]],
    losses: Any,
    *,
    sizes: Any = None,
    round: int = 0,
    rng: Any = None,
    available: Any = None,
    heard: list[Ask] | None = None,
    **parameters: Any,
) -> list[int]:
    """Who is chosen, as often as in the lists."""
    state = groups(clusters)
    federation = Federation.from_sizes([10] * len(state.labels) if sizes is None else sizes)
    chosen = scheme(name, **parameters)
    talk = chosen.select(
        state,
        federation.among(available),
        RoundContext(round, available),
        stream(0, "select", round) if rng is None else rng,
    )
    listener = None if heard is None else lambda ask, rows: heard.append(ask)
    cohort = converse(talk, lambda ask: np.asarray(losses)[ask.clients], chosen.asks, listener)
    assert np.allclose(cohort.weights, cohort.draws / cohort.draws.sum())
    return np.repeat(cohort.clients, cohort.draws).tolist()


# -- golden --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("w", "d", "selected"), [(2, 2, [6, 7]), (2, 4, [6, 7]), (3, 6, [3, 6, 7]), (3, 9, [3, 6, 7])]
)
def test_golden_best_loss(w: int, d: int, selected: list[int]) -> None:
    assert choose("best-loss", GOLDEN_CLUSTERS, GOLDEN_LOSSES, m=w, d=d) == selected


def test_golden_fill_rule() -> None:
    # Both groups taken are single clients; without a rule the same filler would win twice.
    clusters, losses = [[0], [1], [2, 3, 4], [5, 6]], [50, 45, 90, 1, 1, 80, 2]
    assert choose("best-loss", clusters, losses, m=2, d=4) == [2, 5]


def test_as_printed_the_same_filler_wins_twice() -> None:
    clusters, losses = [[0], [1], [2, 3, 4], [5, 6]], [50, 45, 90, 1, 1, 80, 2]
    assert choose("best-loss", clusters, losses, m=2, d=4, version="printed") == [2, 2]
    lone = [[0], [1], [2]]  # whoever is outside fills both lists of the groups taken
    drawn = law("average-loss", lone, [1.0, 1.0, 1.0], m=2, d=3, version="printed")
    assert {len(set(chosen)) for chosen in drawn} == {1, 2}
    mended = law("average-loss", lone, [1.0, 1.0, 1.0], m=2, d=3)
    assert {len(set(chosen)) for chosen in mended} == {2}


@pytest.mark.parametrize(("w", "d", "selected"), [(2, 4, [6, 7]), (3, 9, [3, 6, 7])])
def test_golden_best_loss_as_printed(w: int, d: int, selected: list[int]) -> None:
    chosen = choose("best-loss", GOLDEN_CLUSTERS, GOLDEN_LOSSES, m=w, d=d, version="printed")
    assert chosen == selected


def test_algorithm_10_as_printed_is_data_loss_in_every_round() -> None:
    for round in range(4):
        options: dict[str, Any] = {"m": 2, "d": 4, "round": round, "version": "printed"}
        expected = choose("data-loss", GOLDEN_CLUSTERS, GOLDEN_LOSSES, **options)
        assert choose("best-loss-x", GOLDEN_CLUSTERS, GOLDEN_LOSSES, x=4, **options) == expected
    printed, mended = ({"x": 4, "m": 2, "d": 4, "version": v} for v in ("printed", "corrected"))
    asked = []
    for options in (printed, mended):
        heard: list[Ask] = []
        choose("best-loss-x", GOLDEN_CLUSTERS, GOLDEN_LOSSES, heard=heard, **options)
        asked.append(sum(len(ask.clients) for ask in heard))
    assert asked == [4, 10]


def test_as_printed_candidates_of_data_loss_are_uniform_and_fillers_by_size() -> None:
    sizes, losses = [1, 2, 3, 1, 3], [1.0, 2.0, 3.0, 4.0, 5.0]
    options: dict[str, Any] = {"m": 1, "d": 1, "sizes": sizes}
    one = law("data-loss", [[0, 1, 2, 3, 4]], losses, **options)
    assert one == {(i,): Fraction(size, 10) for i, size in enumerate(sizes)}
    one = law("data-loss", [[0, 1, 2, 3, 4]], losses, version="printed", **options)
    assert one == {(i,): Fraction(1, 5) for i in range(5)}
    # A single client is taken where nobody else can be: the filler is 3 or 4, by size.
    options = {"m": 1, "d": 2, "sizes": [30, 1, 3], "version": "printed"}
    filled = law("data-loss", [[0], [1, 2]], [1.0, 4.0, 5.0], **options)
    group = Fraction(30, 32)  # by mean size: 30 against 2
    assert filled == {(1,): group / 4, (2,): group * Fraction(3, 4) + 1 - group}


def test_losses_can_be_summed_over_samples() -> None:
    sizes, losses = [10, 10, 1, 1], [1.0, 2.0, 6.0, 5.0]
    options: dict[str, Any] = {"m": 1, "d": 1, "sizes": sizes}
    assert choose("best-loss", [[0, 1], [2, 3]], losses, **options) == [2]
    assert choose("best-loss", [[0, 1], [2, 3]], losses, loss="sum", **options) == [1]
    by_sum = law("average-loss", [[0], [1]], [1.0, 2.0], m=1, d=1, sizes=[3, 1], loss="sum")
    assert by_sum == {(0,): Fraction(3, 5), (1,): Fraction(2, 5)}


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
def test_only_the_corrected_version_promises_m_distinct_clients(name: str) -> None:
    assert Claim.EXACTLY_M in scheme(name, m=3).claims
    assert Claim.EXACTLY_M not in scheme(name, m=3, version="printed").claims


def test_as_printed_it_keeps_what_it_promises() -> None:
    """Over the other federations `test_schemes` checks it as a variant."""
    printed = scheme("average-loss", m=2, d=4, version="printed")
    where = {"skewed": Federation.from_sizes([5, 4, 3, 2, 1])}
    found = check_scheme(printed, federations=where)
    assert [check for check in found if not check.passed] == []


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
def test_the_command_names_the_switch_and_what_differs(name: str) -> None:
    told = describe(type(scheme(name)))
    assert told["parameters"]["version"]["default"] == "corrected"
    assert re.search(r"``\"printed\"``\s+is\s+Algorithm\s+\d+\s+to\s+the\s+letter", told["text"])


@pytest.mark.parametrize(("d", "w", "z"), [(6, 3, 2), (7, 3, 3), (10, 4, 3)])
def test_golden_z(d: int, w: int, z: int) -> None:
    heard: list[Ask] = []
    clusters = [list(range(5 * c, 5 * c + 5)) for c in range(6)]
    choose("data-loss", clusters, np.ones(30), m=w, d=d, heard=heard)
    asked = np.concatenate([ask.clients for ask in heard])
    assert np.bincount(asked // 5)[np.unique(asked // 5)].tolist() == [z] * w


# -- the laws ------------------------------------------------------------------------------------


def law(name: str, clusters: list[list[int]], losses: Any, **parameters: Any) -> dict[Any, Any]:
    found: dict[tuple[int, ...], Fraction] = {}
    outcomes = every_path(lambda rng: choose(name, clusters, losses, rng=rng, **parameters))
    for chance, chosen in outcomes:
        found[tuple(chosen)] = found.get(tuple(chosen), Fraction(0)) + chance
    assert sum(found.values()) == 1
    return found


def test_which_group_is_taken() -> None:
    # One group, one candidate for each member: who trains is the one of the group taken.
    clusters, sizes = [[0, 1], [2]], [2, 4, 5]
    losses = [1.0, 2.0, 4.5]
    options = {"m": 1, "d": 1, "sizes": sizes}

    def of_the_second(name: str) -> Fraction:
        return law(name, clusters, losses, **options)[2,]

    assert of_the_second("static-uniform") == Fraction(1, 2)
    assert of_the_second("static-data") == Fraction(5, 3 + 5)  # mean sizes 3 and 5
    assert of_the_second("static-client") == Fraction(1, 3)
    assert of_the_second("data-loss") == Fraction(5, 8)
    assert of_the_second("average-loss") == Fraction(3, 4)  # mean losses 1.5 and 4.5
    assert law("best-loss", clusters, losses, **options) == {(2,): 1}


def test_who_is_a_candidate_in_a_group() -> None:
    clusters = [[0, 1, 2]]
    by_size = law("static-uniform", clusters, np.ones(3), m=1, d=1, sizes=[1, 2, 3])
    assert by_size == {(0,): Fraction(1, 6), (1,): Fraction(2, 6), (2,): Fraction(3, 6)}
    by_loss = law("average-loss", clusters, [1.0, 2.0, 5.0], m=1, d=1)
    assert by_loss == {(0,): Fraction(1, 8), (1,): Fraction(2, 8), (2,): Fraction(5, 8)}


def test_static_takes_the_largest_over_all_candidates() -> None:
    # Both groups are taken and all are candidates: the two largest stand in the same group.
    chosen = choose("static-uniform", [[0, 1], [2, 3]], None, sizes=[1, 2, 8, 9], m=2, d=4)
    assert chosen == [2, 3]


def test_static_compares_sizes_exactly() -> None:
    sizes = [2**60 + 1, 2**60, 2**60 + 2]  # equal as floats
    assert choose("static-data", [[0, 1, 2]], None, sizes=sizes, m=1, d=3) == [2]


@pytest.mark.parametrize(("name", "first"), [("average-loss-x", 6), ("best-loss-x", 6)])
def test_x_rounds_and_then_data_loss(name: str, first: int) -> None:
    clusters = [[0, 1], [2, 3], [4, 5]]

    def asked(round: int) -> int:
        heard: list[Ask] = []
        choose(name, clusters, np.arange(1.0, 7.0), m=1, d=2, x=3, round=round, heard=heard)
        return sum(len(ask.clients) for ask in heard)

    assert [asked(round) for round in range(5)] == [first, first, first, 2, 2]


def test_best_loss_x_begins_with_best_loss_as_the_prose_has_it() -> None:
    for round in range(4):
        options: dict[str, Any] = {"m": 2, "d": 4, "round": round}
        expected = choose("best-loss", GOLDEN_CLUSTERS, GOLDEN_LOSSES, **options)
        assert choose("best-loss-x", GOLDEN_CLUSTERS, GOLDEN_LOSSES, x=4, **options) == expected


# -- what the thesis leaves open -----------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_more_places_than_groups(name: str) -> None:
    # Two groups, four places: one from each, then the next best candidates.
    losses = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    chosen = choose(name, [[0, 1, 2], [3, 4, 5]], losses, sizes=[1, 2, 3, 4, 5, 6], m=4, d=6)
    assert chosen == [2, 3, 4, 5]


@pytest.mark.parametrize("name", ALL)
def test_nobody_left_outside(name: str) -> None:
    # Two single clients are all there is outside; every list wants three candidates.
    chosen = choose(name, [[0], [1], [2]], np.array([1.0, 2.0, 3.0]), m=2, d=3)
    assert len(chosen) == 2


@pytest.mark.parametrize("name", ALL)
def test_fewer_candidates_than_places(name: str) -> None:
    # One group of nine and one single client: ceil(4 / 2) + 1 candidates for four places.
    clusters = [[0], list(range(1, 10))]
    assert len(choose(name, clusters, np.arange(1.0, 11.0), m=4, d=4)) == 4


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
def test_zero_losses(name: str) -> None:
    seen = set()
    for round in range(40):
        seen |= set(choose(name, GOLDEN_CLUSTERS, np.zeros(10), m=2, d=4, round=round))
    assert seen == set(range(10))


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1.0])  # -1 is the lowest loss of all
def test_a_bad_loss_never_wins(name: str, bad: float) -> None:
    losses = np.arange(1.0, 11.0)
    losses[[3, 7]] = bad
    for round in range(20):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FedcohortWarning)  # told if the two were asked
            chosen = choose(name, GOLDEN_CLUSTERS, losses, m=3, d=6, round=round)
        assert not {3, 7} & set(chosen)
        assert len(chosen) == 3


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
def test_m_clients_train_however_few_losses_can_be_used(name: str) -> None:
    losses = np.array([np.nan, np.inf, *[np.nan] * 6, 2.0, 1.7e308])
    for round in range(10):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FedcohortWarning)  # as many as were asked
            assert len(choose(name, GOLDEN_CLUSTERS, losses, m=3, d=6, round=round)) == 3


@pytest.mark.parametrize("name", ["data-loss", "best-loss"])
def test_negative_losses_are_losses(name: str) -> None:
    chosen = choose(name, GOLDEN_CLUSTERS, -np.arange(1.0, 11.0), m=10, d=10)
    assert len(chosen) == 10
    shifted = choose(name, GOLDEN_CLUSTERS, np.arange(10.0, 0.0, -1.0), m=3, d=6)
    assert choose(name, GOLDEN_CLUSTERS, -np.arange(1.0, 11.0), m=3, d=6) == shifted


@pytest.mark.parametrize("name", LOSSES)
def test_no_usable_loss_at_all(name: str) -> None:
    with pytest.warns(FedcohortWarning, match="taken at random"):
        assert len(choose(name, GOLDEN_CLUSTERS, np.full(10, np.nan), m=3, d=6)) == 3


@given(
    labels=st.lists(st.integers(0, 4), min_size=1, max_size=14),
    data=st.data(),
    name=st.sampled_from(ALL),
)
def test_nobody_twice_only_who_is_there_and_as_many_as_can_be(
    labels: list[int], data: st.DataObject, name: str
) -> None:
    n = len(labels)
    clusters = [[i for i in range(n) if labels[i] == c] for c in sorted(set(labels))]
    m = data.draw(st.integers(1, n))
    d = data.draw(st.integers(m, n))
    losses = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 3.0]), min_size=n, max_size=n))
    there = data.draw(st.lists(st.integers(0, n - 1), min_size=1, unique=True))
    heard: list[Ask] = []
    chosen = choose(
        name, clusters, losses, m=m, d=d, available=np.array(sorted(there)), heard=heard
    )
    assert len(set(chosen)) == len(chosen) == min(m, len(there))
    assert set(chosen) <= set(there)
    for ask in heard:  # and only who was asked
        assert set(chosen) <= set(ask.clients.tolist()) <= set(there)


@pytest.mark.parametrize("name", ALL)
def test_d_below_m_or_above_n(name: str) -> None:
    with pytest.raises(BadParameter, match=rf"'d' parameter of {name} must be at least m \(3\)"):
        scheme(name, m=3, d=2)
    with pytest.raises(BadParameter, match=r"at most the number of clients \(10\)"):
        choose(name, GOLDEN_CLUSTERS, GOLDEN_LOSSES, m=2, d=11)


# -- over many rounds, and what it costs ---------------------------------------------------------


def federation_of_labels(n: int, classes: int = 4) -> tuple[Federation, Any]:
    """Clients of one main label each, and how they answer."""
    rng = np.random.default_rng(1)
    histograms = rng.integers(0, 3, (n, classes))
    histograms[np.arange(n), np.arange(n) % classes] += 60
    losses = rng.uniform(1, 2, n)
    told = {"label_histogram": histograms, "loss": losses}
    return Federation.from_sizes(histograms.sum(axis=1)), lambda ask: told[ask.signal.name][
        ask.clients
    ]


@pytest.mark.parametrize("name", [*LOSSES, *WITH_X])
def test_every_client_is_a_candidate_at_some_time(name: str) -> None:
    federation, answer = federation_of_labels(20)
    chooser = Selector(scheme(name, m=3, d=6), federation, seed=0)
    candidates: set[int] = set()
    for _ in range(500):
        asked: set[int] = set()

        def told(ask: Ask, asked: set[int] = asked) -> Any:
            if ask.signal.name == "loss":
                asked |= set(ask.clients.tolist())
            return answer(ask)

        cohort = chooser.select(ask=told)
        chooser.observe()
        assert set(cohort.clients.tolist()) <= asked
        candidates |= asked
    assert candidates == set(range(20))


@pytest.mark.parametrize(
    ("name", "asked"),
    [*((name, 0) for name in STATIC), ("data-loss", 6), ("average-loss", 20), ("best-loss", 20)],
)
def test_messages_and_bytes_of_a_round(name: str, asked: int) -> None:
    n, m, model = 20, 3, 1000
    federation, answer = federation_of_labels(n)
    ledger = Ledger(model_bytes=model)
    chooser = Selector(scheme(name, m=m, d=6), federation, seed=0, ask=answer, ledger=ledger)
    cohort = chooser.select()
    chooser.observe()
    start, cost = ledger.of_round(-1), ledger.of_round(0)
    assert (start.messages, start.bytes_down, start.bytes_up) == (2 * n, n * REQUEST_BYTES, n * 32)
    assert cost.messages == 2 * (asked + m)
    models = asked if asked else len(cohort)  # whoever was asked has the model already
    assert cost.bytes_down == asked * REQUEST_BYTES + models * model
    assert cost.bytes_up == 8 * asked + m * model


def list_bytes(length: int) -> int:
    """sys.getsizeof of a list grown by append, CPython 3.10."""
    allocated = 0
    for size in range(1, length + 1):
        if size > allocated:
            allocated = (size + (size >> 3) + 6) & ~3
    return 56 + 8 * allocated


def dict_bytes(entries: int) -> int:
    """sys.getsizeof of a dict of so many entries, CPython 3.10."""
    slots = 8
    while slots * 2 // 3 < entries:
        slots *= 2
    index = 1 if slots <= 0xFF else 2
    return 64 + 40 + slots * index + 24 * (slots * 2 // 3)


def pow_bytes(d: int, m: int = 3) -> int:
    return 88 * d + list_bytes(d) + 64 * m + list_bytes(m)


def clustered_bytes(reporting: int, w: int = 3) -> int:
    return 88 * reporting + dict_bytes(reporting) + 64 * w + 56 + 8 * w


def test_thesis_table_4_2_to_the_digit() -> None:
    """The table is not traffic but the size of Python containers; model weights are absent."""
    found = {f"Pow-{d}": 150 * pow_bytes(d) for d in (6, 8, 10, 16, 50, 100)}
    found["BestLoss Pow-6"] = 150 * clustered_bytes(100)
    found["BestLoss25 Pow-6"] = 25 * clustered_bytes(100) + 125 * clustered_bytes(6)
    found["Data Pow-6"] = 150 * clustered_bytes(6)
    assert found == {
        "Pow-6": 139200,
        "Pow-8": 165600,
        "Pow-10": 201600,
        "Pow-16": 280800,
        "Pow-50": 772800,
        "Pow-100": 1500000,
        "BestLoss Pow-6": 2065200,
        "BestLoss25 Pow-6": 489200,
        "Data Pow-6": 174000,
    }
    printed = (135.94, 161.72, 196.88, 274.22, 754.69, 1464.84, 2016.80, 477.73, 169.92)
    assert tuple(round(size / 1024, 2) for size in found.values()) == printed
    # Table 4.2 confirms the prose: with data-loss in both branches BestLoss25 would be Data.
    assert found["BestLoss25 Pow-6"] != found["Data Pow-6"]
