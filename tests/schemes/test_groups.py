"""Groups from summaries: bad reports, order, noise, newcomers, limits, picture."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from fedcohort import Ask, Federation, Selector, scheme
from fedcohort._internal.errors import BadInput, FedcohortWarning, TooLarge
from fedcohort.maths._clusters import dbscan
from fedcohort.maths._distances import hellinger
from fedcohort.maths._noise import noisy_counts
from fedcohort.schemes import _data_groups as module
from fedcohort.schemes._data_groups import SUMMARIES, Grouping, Groups, _clusters, distances
from fedcohort.selection import converse
from fedcohort.simulation import Softmax
from fedcohort.simulation._clients import SimulatedClients
from fedcohort.training import LocalWork

METHODS = ("optics", "dbscan", "kmedoids")


def grouping(method: str = "optics", **changes: Any) -> Grouping:
    settings: dict[str, Any] = {"summary": "labels", "epsilon": None, "bins": 4, "owner": "haccs"}
    return Grouping(**{**settings, **changes}, method=method)


def histograms(n: int = 24, classes: int = 4, seed: int = 0) -> Any:
    """Clients of one main label each."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, (n, classes))
    counts[np.arange(n), np.arange(n) % classes] += 60
    return counts


def formed(how: Grouping, rows: Any, sizes: Any = None) -> Groups:
    federation = Federation.from_sizes(np.sum(rows, axis=1) if sizes is None else sizes)
    answer = lambda ask: np.asarray(rows)[ask.clients]  # noqa: E731
    return converse(how.formed(federation), answer, frozenset(SUMMARIES.values()))


def pure(labels: Any, kinds: Any) -> bool:
    """Whether no group mixes clients of different kinds."""
    return all(len(set(kinds[labels == label])) == 1 for label in labels)


@pytest.mark.parametrize("method", METHODS)
def test_clients_of_one_label_are_a_group(method: str) -> None:
    found = formed(grouping(method), histograms())
    assert pure(found.labels, np.arange(24) % 4)
    assert found.clustered_share >= 0.7
    assert found.method == method
    assert found.silhouette is not None
    assert found.silhouette > 0.7
    assert json.loads(found.settings)
    assert found.caveat == ""


@pytest.mark.parametrize("method", METHODS)
def test_groups_do_not_depend_on_who_stands_where(method: str) -> None:
    rng = np.random.default_rng(3)
    rows = rng.integers(0, 9, (40, 3)) + 1  # no clear clusters: many ties to be broken
    labels = formed(grouping(method), rows).labels
    for _ in range(5):
        order = rng.permutation(40)
        moved = formed(grouping(method), rows[order]).labels
        together = labels[order][:, None] == labels[order]
        assert np.array_equal(moved[:, None] == moved, together)


@pytest.mark.parametrize("bad", [[-1, 5], [0, 0], [np.nan, 3], [np.inf, 1]])
def test_a_report_that_is_no_histogram_is_left_out(bad: Any) -> None:
    rows = np.array([[9, 1], [8, 1], [1, 9], [1, 8], bad], dtype=float)
    with pytest.warns(FedcohortWarning, match="1 of 5 summaries are negative, not finite or all"):
        found = formed(grouping("dbscan"), rows, [10, 9, 10, 9, 4])
    assert np.bincount(found.labels)[found.labels[4]] == 1
    assert found.summaries[4].tolist() == [0, 0]


def test_histograms_that_do_not_add_up_are_told() -> None:
    with pytest.warns(FedcohortWarning, match="2 of 4 clients do not add up to their sizes"):
        formed(grouping(), [[9, 1], [8, 2], [1, 9], [2, 8]], [10, 10, 11, 12])


@pytest.mark.parametrize("rows", [np.ones(4), np.ones((4, 2, 2)), np.array([["a"]] * 4)])
def test_the_wrong_shape_or_kind_is_an_error(rows: Any) -> None:
    with pytest.raises(BadInput, match="An answer to 'label_histogram' must"):
        formed(grouping(), rows, [1] * 4)


def test_nobody_tells_anything() -> None:
    with (
        pytest.warns(FedcohortWarning, match="4 of 4 summaries"),
        pytest.raises(BadInput, match="no client told anything"),
    ):
        formed(grouping(), np.zeros((4, 2)), [1] * 4)


@pytest.mark.parametrize("method", METHODS[:2])
def test_groups_that_mean_nothing_are_told(method: str) -> None:
    rows = np.eye(12, dtype=np.int64) * 5  # no two clients have a class in common
    with pytest.warns(FedcohortWarning, match=rf"groups of {method} are doubtful \(no score\)"):
        formed(grouping(method), rows)


def test_all_noise_is_told_and_everyone_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    hopeless = {"dbscan": lambda matrix: dbscan(matrix, [0.1], [3])}
    monkeypatch.setattr(module, "METHODS", hopeless)
    _clusters.cache_clear()
    with pytest.warns(FedcohortWarning, match=r"doubtful \(all noise\)"):
        found = formed(grouping("dbscan"), np.eye(12, dtype=np.int64) * 5)
    _clusters.cache_clear()
    assert sorted(found.labels.tolist()) == list(range(12))


def test_too_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CLIENTS", 20)
    with pytest.raises(TooLarge, match=r"the distances of 24 would take .* GB. Use at most 20"):
        formed(grouping(), histograms())


def test_a_client_without_data_is_alone_and_not_asked() -> None:
    rows = histograms(12)
    rows[5] = 0
    asked: list[Ask] = []
    federation = Federation.from_sizes(rows.sum(axis=1))

    def answer(ask: Ask) -> Any:
        asked.append(ask)
        return rows[ask.clients]

    found = converse(grouping().formed(federation), answer, frozenset(SUMMARIES.values()))
    assert 5 not in asked[0].clients
    assert np.bincount(found.labels)[found.labels[5]] == 1


# -- newcomers -----------------------------------------------------------------------------------


def test_only_newcomers_and_those_whose_size_changed_are_asked() -> None:
    rows = dict(zip("abcdefghijkl", histograms(12), strict=True))
    rows["z"] = np.array([1, 2, 3, 60])
    asked: list[str] = []

    def federation(names: str) -> Federation:
        return Federation(sizes=[rows[name].sum() for name in names], ids=list(names))

    def answer(ask: Ask) -> Any:
        names = [chooser.federation.ids[i] for i in ask.clients] if not asked else ask_names(ask)
        asked.extend(names)
        return np.stack([rows[name] for name in names])

    def ask_names(ask: Ask) -> list[str]:
        return [str(coming.ids[i]) for i in ask.clients]

    coming = federation("abcdefghijkl")
    chooser = Selector(scheme("static-uniform", m=2, d=4), coming, seed=0, ask=answer)
    chooser.select()
    chooser.observe()
    assert "".join(asked) == "abcdefghijkl"
    rows["c"] = rows["c"] + 1
    coming = federation("bcdefghijklz")
    chooser.update(coming)
    assert "".join(asked[12:]) == "cz"
    assert len(chooser.start().labels) == 12
    assert np.array_equal(chooser.start().summaries[-1], rows["z"])


def test_newcomers_must_describe_themselves_alike() -> None:
    groups = formed(grouping(), histograms(8))
    federation = Federation.from_sizes([*groups.summaries.sum(axis=1).tolist(), 7])
    came_from = np.array([*range(8), -1])
    talk = grouping().renewed(groups.summaries, federation, came_from)
    with pytest.raises(BadInput, match=r"got \(2,\) numbers for 'label_histogram' where there"):
        converse(talk, lambda ask: np.array([[3, 4]]), frozenset(SUMMARIES.values()))


# -- noise ---------------------------------------------------------------------------------------


def task() -> Softmax:
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 150)
    x = rng.uniform(0, 0.4, (600, 6)) + 0.15 * y[:, None]
    owner = np.argsort(y, kind="stable").reshape(24, 25)
    return Softmax(x, y, None, None, list(owner), 4)


@pytest.mark.parametrize("summary", ["labels", "features"])
def test_noise_is_asked_for_by_name_and_price(summary: str) -> None:
    how = grouping("dbscan", summary=summary, epsilon=2.0)
    simulated = SimulatedClients(task(), LocalWork(), 0, 0, np.zeros(task().dimension))
    heard: list[Ask] = []

    def answer(ask: Ask) -> Any:
        heard.append(ask)
        return simulated.answer(ask)

    federation = Federation.from_sizes(task().sizes)
    found = converse(how.formed(federation), answer, frozenset(SUMMARIES.values()))
    assert heard[0].settings["epsilon"] == 2.0
    assert heard[0].signal.name.startswith("private_")
    assert found.summaries.min() >= 0  # clipped by the server
    true = simulated.answer(
        Ask(
            SUMMARIES[summary, False],
            np.arange(24),
            {"bins": 4} if how.summary == "features" else {},
        )
    )
    assert not np.array_equal(found.summaries, true)


def test_noise_protects_a_sample_with_all_its_features() -> None:
    heard = []

    class Client:
        size = 5

        def feature_counts(self, bins: int) -> Any:
            return np.full((2, bins), 15)  # 30 * bins counts of 5 samples

        def private_counts(self, counts: Any, epsilon: float, sensitivity: int) -> Any:
            heard.append((epsilon, sensitivity))
            return counts

    Ask(SUMMARIES["features", True], np.array([0]), {"bins": 2, "epsilon": 1.0}).measured(Client())
    assert heard == [(1.0, 2 * 12)]


def test_little_noise_leaves_the_groups_as_they_are() -> None:
    rows = histograms(40)
    rng = np.random.default_rng(0)
    found = converse(
        grouping("dbscan", epsilon=1.0).formed(Federation.from_sizes(rows.sum(axis=1))),
        lambda ask: noisy_counts(rng, rows[ask.clients], 1.0),
        frozenset(SUMMARIES.values()),
    )
    assert pure(found.labels, np.arange(40) % 4)
    assert found.clustered_share >= 0.7


# -- picture -------------------------------------------------------------------------------------


def test_the_picture_has_the_agreed_keys() -> None:
    rows = histograms()
    shown = formed(grouping("optics"), rows).picture()
    assert shown.keys() == {"labels", "distances", "ordering", "reachability"}
    assert np.allclose(shown["distances"], hellinger(rows))
    assert sorted(shown["ordering"].tolist()) == list(range(24))
    assert np.isfinite(shown["reachability"]).all()
    assert formed(grouping("dbscan"), rows).picture().keys() == {"labels", "distances"}


def test_no_distances_for_many_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_PICTURED", 20)
    assert "distances" not in formed(grouping("dbscan"), histograms()).picture()


def test_golden_hellinger() -> None:
    rows = np.array([[25, 0, 0], [16, 9, 0], [0, 0, 25], [100, 100, 25]])
    expected = [
        [0.0, 0.4472135954999579, 1.0, 0.5773502691896257],
        [0.4472135954999579, 0.0, 1.0, 0.2581988897471611],
        [1.0, 1.0, 0.0, 0.816496580927726],
        [0.5773502691896257, 0.2581988897471611, 0.816496580927726, 0.0],
    ]
    assert np.allclose(distances(rows), expected, rtol=0, atol=1e-15)


def test_feature_histograms_of_a_task() -> None:
    held = task()
    counts = held.feature_histograms(np.array([0, 7]), 4)
    for row, client in zip(counts, (0, 7), strict=True):
        x, y = held.data.samples(held.data.part(client))
        for label in range(4):
            values = x[y == label]
            expected, _ = np.histogram(np.clip(values, 0, 1), bins=4, range=(0, 1))
            assert np.array_equal(row[label], expected)
