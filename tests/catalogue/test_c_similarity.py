"""Bad updates and histograms: cases C52 to C68 of the catalogue in docs/reliability.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Replies, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortWarning, TooLarge
from fedcohort.maths._clusters import dbscan
from fedcohort.maths._distances import distances
from helpers.catalogue import case, refuses

SIZES = [5, 4, 3, 2, 1, 1]
SHARES = np.array(SIZES) / sum(SIZES)
SIMILAR = ["clustered-similarity", "hcsfed:features=stale,strata=2"]


def federation(n: int = 6) -> Federation:
    return Federation.from_sizes(SIZES[:n])


def similarity(m: int = 2, seed: int = 0, **settings: Any) -> Selector:
    return Selector(scheme("clustered-similarity", m=m, **settings), federation(), seed=seed)


def observed(chooser: Selector, row: Any) -> Selector:
    """After a round in which everybody sends what ``row`` says of it."""
    clients = chooser.select().clients
    rows = np.array([row(i) for i in clients.tolist()])
    chooser.observe(Replies(clients, {"update": rows}))
    return chooser


def asked(word: str, answer: Any, sizes: Any = SIZES) -> Selector:
    ask = lambda ask: np.asarray(answer)[ask.clients]  # noqa: E731
    return Selector(scheme(word), Federation.from_sizes(sizes), seed=0, ask=ask)


def test_C52_no_gradients_yet() -> None:
    for chooser in (similarity(), Selector(scheme("clustered-size", m=2), federation(), seed=0)):
        design: Any = chooser.design()
        np.testing.assert_allclose(design.mean(), SHARES)  # Algorithm 1: m rows of equal mass
        assert len(set(design.entries.row.tolist())) == 2


def test_C53_some_without_a_gradient() -> None:
    chooser = observed(similarity(), lambda i: [1.0 + i, -1.0])
    np.testing.assert_allclose(chooser.design().mean(), SHARES)  # type: ignore[union-attr]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("word", SIMILAR)
def test_C54_a_gradient_that_is_not_finite(word: str, bad: float) -> None:
    chooser = Selector(scheme(f"{word}" + ("," if ":" in word else ":") + "m=2"), federation(), 0)
    with pytest.warns(FedcohortWarning, match="not finite or huge, and are left out"):
        observed(chooser, lambda i: [bad, 1.0])
    np.testing.assert_allclose(chooser.design().mean(), SHARES)  # type: ignore[union-attr]


def test_C55_zero_gradient() -> None:
    angles = distances([[1.0, 0.0], [0.0, 0.0], [-2.0, 0.0]], zero="apart")
    np.testing.assert_allclose(angles[1, [0, 2]], np.pi / 2)
    chooser = observed(similarity(), lambda i: [0.0, 0.0])
    np.testing.assert_allclose(chooser.design().mean(), SHARES)  # type: ignore[union-attr]


def test_C56_identical_gradients() -> None:
    found = [observed(similarity(seed=3), lambda i: [1.0, 2.0]).start().groups for _ in range(2)]
    assert found[0].tolist() == found[1].tolist()


test_C57_different_lengths_or_types = refuses(
    case(
        "ragged",
        lambda: similarity().observe(Replies(np.arange(2), {"update": [[1.0], [1.0, 2.0]]})),  # type: ignore[dict-item]
        BadInput,
        "one row of 'update' per client, all of one length",
    ),
    case(
        "longer",
        lambda: observed(observed(similarity(), lambda i: [1.0]), lambda i: [1.0, 2.0]),
        BadInput,
        "1 numbers like those before it; got 2",
    ),
    case("text", lambda: observed(similarity(), lambda i: ["a"]), BadInput, "real numbers"),
)


def test_C58_an_argument_of_arccos_above_one() -> None:
    row = np.array([0.1, 0.7, 0.3])
    cosine = float(row @ row / np.linalg.norm(row) ** 2)
    angles = distances(np.stack([row, 3 * row, -7 * row, row * (1 + 2e-16)]))
    assert abs(cosine - 1) < 1e-15
    assert np.isfinite(angles).all()
    assert angles[0].tolist() == [0, 0, np.pi, 0]


@pytest.mark.parametrize("name", ["static-uniform", "best-loss", "haccs"])
def test_C59_fewer_clusters_than_m(name: str) -> None:
    told = {"label_histogram": np.full((6, 2), 5), "loss": np.ones(6)}
    sizes = [10] * 6
    ask = lambda ask: told[ask.signal.name][ask.clients]  # noqa: E731
    chooser = Selector(scheme(name, m=4), Federation.from_sizes(sizes), seed=0, ask=ask)
    assert len(chooser.select()) == 4
    assert len(set(chooser.start().labels.tolist())) < 4


def test_C60_an_empty_cluster() -> None:
    told = np.array([[10, 0], [10, 0], [0, 10], [0, 10]])
    chooser = asked("haccs:m=2,clusters=dbscan", told, [10] * 4)
    assert set(chooser.select(available=[0, 1]).clients.tolist()) == {0, 1}


test_C61_no_such_number_of_strata = refuses(
    case("0", lambda: scheme("hcsfed", strata=0), BadParameter, "'strata' .* Got 0"),
    case(
        "above n",
        lambda: asked("hcsfed:strata=7,m=2", np.ones((6, 3))).select(),
        BadParameter,
        r"at most the number of clients that can be chosen \(6\). Got 7",
    ),
)


def test_C62_singleton_clusters_only() -> None:
    features = 10.0 * np.eye(6)
    chooser = asked("cluster:m=6,strata=6", features, [1] * 6)
    cohort = chooser.select()
    assert cohort.clients.tolist() == list(range(6))
    np.testing.assert_allclose(cohort.weights, 1 / 6)


@pytest.mark.parametrize(("rule", "groups"), [("singletons", 3), ("one", 1)])
def test_C63_all_noise(rule: Any, groups: int) -> None:
    apart = 1.0 - np.eye(3)
    found = dbscan(apart, eps=[0.5], min_samples=[2], all_noise=rule)
    assert found.caveat == "all noise"
    assert len(set(found.labels.tolist())) == groups
    many = 10 * np.eye(12, dtype=int)
    with pytest.warns(FedcohortWarning, match="doubtful"):
        assert len(asked("haccs:m=3,clusters=dbscan", many, [10] * 12).select()) == 3


@pytest.mark.parametrize("bad", [[-1, 5], [np.nan, 5], [0, 0], [np.inf, 1]])
def test_C64_a_histogram_that_is_none(bad: list[float]) -> None:
    told = np.array([bad, *[[5, 0]] * 3, *[[0, 5]] * 3], dtype=float)
    with pytest.warns(FedcohortWarning, match="1 of 7 summaries are negative"):
        assert len(asked("haccs:m=2", told, [5] * 7).select()) == 2


def test_C64_another_number_of_classes() -> None:
    rows = [[1, 2], [1, 2, 3], [1, 2]]
    ask = lambda ask: rows  # noqa: E731
    chooser = Selector(scheme("haccs", m=1), Federation.from_sizes([3, 6, 3]), seed=0, ask=ask)
    with pytest.raises(BadInput, match="'label_histogram' must have one row per client"):
        chooser.select()


def test_C65_a_histogram_that_does_not_add_up() -> None:
    told = np.array([[5, 0], [5, 0], [0, 5], [0, 5]])
    with pytest.warns(FedcohortWarning, match="1 of 4 clients do not add up to their sizes"):
        asked("haccs:m=2", told, [5, 5, 5, 99]).select()


@pytest.mark.parametrize("name", ["hcsfed", "importance"])
def test_C66_norms_that_are_all_zero(name: str) -> None:
    word = "hcsfed:strata=2,m=2" if name == "hcsfed" else "importance:m=2"
    cohort = asked(word, np.zeros((6, 4))).select()
    assert np.isfinite(cohort.weights).all()
    assert len(cohort) > 0


@pytest.mark.parametrize("huge", [1e15, 1e30])
def test_C67_one_huge_norm(huge: float) -> None:
    told = np.ones((6, 1))
    told[0] = huge
    drawn = 0
    for seed in range(200):
        ask = lambda ask: told[ask.clients]  # noqa: E731
        federation = Federation.from_sizes([1] * 6)
        chooser = Selector(scheme("importance", m=1), federation, seed=seed, ask=ask)
        drawn += 0 in chooser.select().clients
    # The cap: a chance of 0.1 / 6 + 0.9 * 10 / 15 = 0.62 at most, so 200 times has chance 1e-42.
    assert drawn < 180


test_C68_a_matrix_that_is_too_big = refuses(
    case(
        "similarity",
        lambda: Selector(
            scheme("clustered-similarity", m=2), Federation.from_sizes([1] * 30_000), seed=0
        ).select(),
        TooLarge,
        "30000 of them would take 21.6 GB. Use clustered-size or hcsfed",
    ),
    case(
        "groups",
        lambda: asked("haccs:m=2", np.ones((5_001, 2), dtype=int), [2] * 5_001).select(),
        TooLarge,
        "Use at most 5000 clients, or a scheme without groups",
    ),
)
