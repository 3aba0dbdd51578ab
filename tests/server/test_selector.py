from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Cohort, Federation, Replies, Selector, scheme
from fedcohort._internal.errors import BadInput, CannotAsk, FedcohortWarning, UnknownName
from fedcohort._internal.random import stream

SIZES = [50, 40, 30, 20, 10, 5, 5, 5]

# Written down once. A new version of numpy, of Python or of this package that changes one of
# these changes the cohorts behind everybody's seeds: that must not happen silently.
STABLE: dict[str, list[tuple[list[int], list[float]]]] = {
    "md": [
        ([1, 2], [0.333333333, 0.666666667]),
        ([0, 1], [0.333333333, 0.666666667]),
        ([0, 3, 4], [0.333333333, 0.333333333, 0.333333333]),
    ],
    "uniform": [
        ([1, 2, 7], [0.646464646, 0.484848485, 0.0808080808]),
        ([1, 5, 6], [0.646464646, 0.0808080808, 0.0808080808]),
        ([3, 5, 7], [0.323232323, 0.0808080808, 0.0808080808]),
    ],
    "fedavg": [
        ([1, 2, 7], [0.242424242, 0.181818182, 0.0303030303]),
        ([1, 5, 6], [0.242424242, 0.0303030303, 0.0303030303]),
        ([3, 5, 7], [0.121212121, 0.0303030303, 0.0303030303]),
    ],
    "binomial": [
        ([0, 1, 2, 3, 5], [0.808080808, 0.646464646, 0.484848485, 0.323232323, 0.0808080808]),
        ([0, 2, 4, 5, 6], [0.808080808, 0.484848485, 0.161616162, 0.0808080808, 0.0808080808]),
        ([5], [0.0808080808]),
    ],
    "poisson": [
        ([0, 1, 4], [0.333333333, 0.333333333, 0.333333333]),
        ([0, 1, 2, 3, 4], [0.333333333, 0.333333333, 0.333333333, 0.333333333, 0.333333333]),
        ([0, 1], [0.333333333, 0.333333333]),
    ],
    "optimal": [
        ([0, 1, 2, 3, 5], [0.919191919, 0.45959596, 0.306397306, 0.22979798, 0.153198653]),
        ([0, 2, 4, 6], [0.919191919, 0.306397306, 0.183838384, 0.131313131]),
        ([3, 5], [0.22979798, 0.153198653]),
    ],
    "clustered-size": [
        ([0, 1, 4], [0.333333333, 0.333333333, 0.333333333]),
        ([0, 1, 3], [0.333333333, 0.333333333, 0.333333333]),
        ([0, 1, 6], [0.333333333, 0.333333333, 0.333333333]),
    ],
    "target": [
        ([0, 1, 2], [0.333333333, 0.333333333, 0.333333333]),
        ([0, 2, 6], [0.333333333, 0.333333333, 0.333333333]),
        ([0, 2, 3], [0.333333333, 0.333333333, 0.333333333]),
    ],
}


def rounds(selector: Selector, count: int) -> list[Cohort]:
    out = []
    for _ in range(count):
        out.append(selector.select())
        selector.observe(Replies(out[-1].clients, {}))
    return out


def norms(ask: Any) -> np.ndarray:
    return 1.0 + ask.clients


def make(name: str, seed: int = 7, **parameters: Any) -> Selector:
    federation = Federation.from_sizes(SIZES)
    return Selector(scheme(name, m=3, **parameters), federation, seed, ask=norms)


@pytest.mark.parametrize("name", STABLE)
def test_cohorts_behind_a_seed_are_fixed(name: str) -> None:
    parameters = {"cap": True} if name == "poisson" else {}
    if name == "target":
        parameters = {"groups": [0, 1, 2, 0, 1, 2, 0, 1]}  # type: ignore[dict-item]
    found = rounds(make(name, **parameters), 3)
    assert [cohort.clients.tolist() for cohort in found] == [clients for clients, _ in STABLE[name]]
    for cohort, (_, weights) in zip(found, STABLE[name], strict=True):
        np.testing.assert_allclose(cohort.weights, weights, rtol=1e-6)


@given(st.integers(0, 2**64), st.integers(0, 5), st.booleans())
@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size", "optimal"])
def test_saved_and_loaded_is_uninterrupted(
    tmp_path_factory: Any, name: str, seed: int, before: int, in_the_middle: bool
) -> None:
    selector = make(name, seed)
    rounds(selector, before)
    if in_the_middle:
        selector.select()
    path = tmp_path_factory.mktemp("run") / "selector"
    selector.save(path)
    loaded = Selector.load(path, ask=norms)
    for one in (selector, loaded):
        if in_the_middle:
            one.observe()
    assert rounds(loaded, 3) == rounds(selector, 3)
    assert (loaded.seed, loaded.round) == (selector.seed, selector.round)


def test_rounds_differ_and_can_be_replayed() -> None:
    first, again, other = (rounds(make("md", seed), 20) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    assert len({tuple(cohort.clients) for cohort in first}) > 5


def test_a_round_does_not_depend_on_those_before() -> None:
    long, short = make("uniform"), make("uniform")
    wanted = rounds(long, 5)[-1]
    short.round = 4
    assert short.select() == wanted


def test_select_twice_is_select_once() -> None:
    selector = make("md")
    first = selector.select()
    with pytest.warns(FedcohortWarning, match="again in round 0"):
        assert selector.select() == first


def test_a_transport_for_one_call() -> None:
    selector = Selector(scheme("optimal", m=2), Federation.from_sizes(SIZES), seed=0)
    with pytest.raises(CannotAsk, match="optimal asks clients for 'update_norm'"):
        selector.select()
    assert selector.select(ask=norms) == make_optimal().select()
    assert selector.design() is None


def make_optimal() -> Selector:
    return Selector(scheme("optimal", m=2), Federation.from_sizes(SIZES), seed=0, ask=norms)


def test_the_start_is_asked_once() -> None:
    asked = []

    def histograms(ask: Any) -> np.ndarray:
        asked.append(ask.signal.name)
        return np.eye(3, dtype=np.int64)[ask.clients % 3]

    selector = Selector(scheme("target", m=2), Federation.from_sizes(SIZES), 0, ask=histograms)
    rounds(selector, 3)
    assert asked == ["label_histogram"]
    assert selector.ledger.of_round(-1).messages == 2 * len(SIZES)


def test_names_are_those_of_the_federation() -> None:
    federation = Federation(sizes=[1, 1, 1], ids=["c", "a", "b"])
    selector = Selector(scheme("full"), federation, seed=0)
    assert selector.names(selector.select()) == ["a", "b", "c"]


def test_the_design_is_the_law_of_the_coming_round() -> None:
    selector = make("clustered-size")
    design = selector.design()
    assert design is not None
    counts = np.zeros(len(SIZES))
    total = 3_000
    for k in range(total):
        selector.round = k
        selector._selection = None
        counts[selector.select().clients] += 1
    spread = np.sqrt(design.inclusion() * (1 - design.inclusion()) / total)
    assert np.all(np.abs(counts / total - design.inclusion()) <= 5.2 * spread + 1e-12)  # 1e-6


def test_the_law_of_the_pending_cohort_is_known_for_schemes_that_ask() -> None:
    federation = Federation.from_sizes([3, 2, 1])
    selector = Selector(scheme("optimal", m=1), federation, seed=0, ask=lambda ask: [1.0, 0.0, 0.0])
    assert selector.design() is None
    assert selector.law is None
    cohort = selector.select()
    law = selector.law
    assert law is not None
    np.testing.assert_array_equal(law.inclusion(), [1.0, 0.0, 0.0])
    assert cohort == law.draw(stream(0, "select", 0))
    selector.observe()
    assert selector.law is None


@pytest.mark.parametrize("available", [None, [0, 1, 3, 4, 6], [2]])
@pytest.mark.parametrize("name", ["clustered-size", "uniform", "binomial"])
def test_the_law_of_a_pending_cohort_survives_a_restart(
    name: str, available: list[int] | None, tmp_path: Path
) -> None:
    selector = make(name)
    rounds(selector, 2)
    selector.select(available)
    selector.save(tmp_path / "x")
    loaded = Selector.load(tmp_path / "x")
    assert loaded.pending == selector.pending
    assert loaded.law is not None
    np.testing.assert_array_equal(loaded.law.inclusion(), selector.law.inclusion())
    np.testing.assert_array_equal(loaded.law.value, selector.law.value)
    here = None if loaded.available is None else loaded.available.tolist()
    assert here == available
    for one in (selector, loaded):
        one.observe()
        assert one.law is None
        assert one.available is None


def test_after_a_restart_nobody_is_asked_again_for_a_law(tmp_path: Path) -> None:
    selector = make("optimal")
    selector.select()
    assert selector.law is not None
    selector.save(tmp_path / "x")
    loaded = Selector.load(tmp_path / "x", ask=lambda ask: pytest.fail("nobody is asked"))
    assert loaded.pending == selector.pending
    np.testing.assert_array_equal(loaded.law.inclusion(), selector.law.inclusion())
    selector = make("md")
    selector.select([])  # nobody was there
    selector.save(tmp_path / "x")
    loaded = Selector.load(tmp_path / "x")
    assert loaded.law is None
    assert loaded.available.tolist() == []


def test_a_second_choice_in_a_round_replaces_law_and_availability() -> None:
    selector = make("md")
    selector.select([0, 1])
    with pytest.warns(FedcohortWarning, match="again in round 0"):
        cohort = selector.select([4, 5, 6])
    assert selector.available.tolist() == [4, 5, 6]
    assert set(cohort.clients) <= set(np.flatnonzero(selector.law.inclusion())) == {4, 5, 6}
    with pytest.warns(FedcohortWarning), pytest.raises(BadInput):
        selector.select([77])
    assert selector.pending == cohort  # a choice that failed changes nothing
    assert selector.available.tolist() == [4, 5, 6]
    selector.amend(Cohort.of([4], 0.5))
    assert set(np.flatnonzero(selector.law.inclusion())) == {4, 5, 6}  # the law of the draw


@pytest.mark.parametrize("name", ["md", "optimal", "clustered-size"])
def test_the_law_of_an_amended_cohort_survives_a_restart(name, tmp_path) -> None:
    selector = make(name)
    cohort = selector.select()
    selector.amend(Cohort.of(cohort.clients[:1], 0.5))
    selector.amend(Cohort.of(cohort.clients[:1], 0.25))
    selector.save(tmp_path / "kept.npz")
    loaded = Selector.load(tmp_path / "kept.npz", ask=selector.ask)
    assert loaded.pending == selector.pending
    assert loaded.law is not None
    np.testing.assert_array_equal(loaded.law.inclusion(), selector.law.inclusion())


def test_a_round_ends_in_a_cohort_or_in_a_law() -> None:
    class Odd(type(scheme("md"))):  # type: ignore[misc]
        def select(self, *_: Any) -> Any:
            return [0, 1]

    selector = Selector(Odd(m=1), Federation.from_sizes([1, 1]), 0)
    with pytest.raises(BadInput, match="must end in a Cohort or a Design; got list"):
        selector.select()
    assert selector.pending is None


def test_a_scheme_may_be_given_by_name() -> None:
    federation = Federation.from_sizes([1, 2, 3])
    named, built = Selector("md:m=2", federation, 0), Selector(scheme("md", m=2), federation, 0)
    assert named.scheme == built.scheme
    assert named.select() == built.select()
    with pytest.raises(UnknownName, match="Did you mean 'md'"):
        Selector("mdd", federation, 0)


def test_what_is_no_scheme_and_no_federation_is_refused_at_once() -> None:
    federation = Federation.from_sizes([1, 2, 3])
    with pytest.raises(BadInput, match=r"must be a Scheme or its name; got <class .*MD'>"):
        Selector(type(scheme("md")), federation)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match=r"got \[5, 3, 2\]. Write Federation.from_sizes"):
        Selector(scheme("md"), [5, 3, 2])  # type: ignore[arg-type]


def test_a_cohort_without_a_law() -> None:
    selector = Selector(
        scheme("pow-d", m=1, d=2), Federation.from_sizes([1, 1]), 0, ask=lambda ask: [1, 2]
    )
    selector.select()
    assert selector.law is None


def test_absent_clients_are_never_chosen() -> None:
    selector = make("md")
    for k in range(50):
        here = np.flatnonzero(np.arange(len(SIZES)) % 3 == k % 3)
        cohort = selector.select(available=here)
        assert set(cohort.clients) <= set(here)
        np.testing.assert_allclose(selector.design(available=here).mean()[here].sum(), 1.0)  # type: ignore[union-attr]
        selector.observe()


def test_big_federations_and_private_sizes_are_saved(tmp_path: Path) -> None:
    for federation in (
        Federation.from_sizes([2**70, 5, 2**69]),
        Federation(importance=[0.3, 0.7]),
        Federation(sizes=[1, 2], ids=[2**64 - 1, 5]),
    ):
        selector = Selector(scheme("md", m=3), federation, seed=1)
        selector.save(tmp_path / "x")
        loaded = Selector.load(tmp_path / "x")
        assert loaded.federation.ids == federation.ids
        assert loaded.federation.shares.parts.tolist() == federation.shares.parts.tolist()
        assert (loaded.federation.sizes is None) == (federation.sizes is None)
        assert loaded.select() == selector.select()


@pytest.mark.parametrize("name", ["clustered-similarity", "clustered-similarity:similarity=l2"])
@pytest.mark.parametrize("huge", [1e39, 1e300])
def test_an_update_too_large_to_compare_is_left_out_with_a_warning(name: str, huge: float) -> None:
    selector = Selector(scheme(name, m=4), Federation.from_sizes([1] * 4), seed=0)
    chosen = selector.select().clients
    updates = np.eye(4)[chosen]
    updates[0] *= huge
    with pytest.warns(FedcohortWarning, match="not finite or huge"):
        selector.observe(Replies(chosen, {"update": updates}))
    latest = selector.latest()
    assert latest is not None
    np.testing.assert_array_equal(latest.rows(chosen)[1:], updates[1:])
    assert not latest.rows(chosen)[0].any()


def test_replies_must_be_real_numbers() -> None:
    selector = Selector(scheme("rpow-d", m=1, d=2), Federation.from_sizes([1, 1]), seed=0)
    chosen = selector.select().clients
    with pytest.raises(BadInput, match="'loss' is of type complex"):
        selector.observe(Replies(chosen, {"loss": np.array([1j])}))
