"""The grid search: its rule against brute force, and every degenerate federation."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import DBSCAN
from sklearn.metrics import silhouette_score

from fedcohort.maths._clusters import METHODS, dbscan, kmedoids, optics
from fedcohort.maths._distances import hellinger
from helpers.examples import few

ALL = list(METHODS.values())


def federation(seed: int, n: int, alpha: float = 0.05, classes: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return hellinger(rng.multinomial(200, rng.dirichlet(np.full(classes, alpha), n)))


def three_groups(n: int = 30) -> np.ndarray:
    """Three far groups of equal size, the last two clients are like nobody."""
    counts = np.kron(np.eye(3), np.ones((n // 3, 1))) * 50
    counts = np.pad(counts, ((0, 2), (0, 2))) + np.random.default_rng(0).random((n + 2, 5))
    counts[-2:] = [[0, 0, 0, 9, 0], [0, 0, 0, 0, 9]]
    return hellinger(counts)


@pytest.mark.parametrize("method", [dbscan, optics])
def test_groups_are_found_and_strangers_are_on_their_own(method):
    # A share below this would also cut off the looser members of the groups: the silhouette
    # rewards that.
    found = method(three_groups(), least_share=30 / 32)
    expected = np.concatenate([np.repeat([0, 1, 2], 10), [3, 4]])
    assert found.labels.tolist() == expected.tolist()
    assert found.noise.tolist() == [False] * 30 + [True] * 2
    assert found.clustered_share == 30 / 32
    assert found.caveat == ""
    assert found.silhouette > 0.8


def test_kmedoids_finds_the_groups_and_has_no_noise():
    found = kmedoids(three_groups())
    assert found.parameters == {"k": 5}
    assert found.labels.tolist() == [0] * 10 + [1] * 10 + [2] * 10 + [3, 4]
    assert not found.noise.any()
    assert found.clustered_share == 1.0


def test_dbscan_search_equals_repeated_fits():
    """The best over the same grid by scikit-learn alone: same score, share and groups."""
    matrix = federation(1, 60)
    eps, min_samples = np.linspace(0.1, 0.9, 15).tolist(), [2, 3, 5]
    found = dbscan(matrix, eps, min_samples)
    best = (-1.0, 0.0)
    for samples in min_samples:
        for radius in eps:
            labels = DBSCAN(eps=radius, min_samples=samples, metric="precomputed").fit_predict(
                matrix
            )
            kept = labels >= 0
            if kept.mean() >= 0.7 and 2 <= len(set(labels[kept])) < kept.sum():
                inner = matrix[np.ix_(kept, kept)]
                score = silhouette_score(inner, labels[kept], metric="precomputed")
                best = max(best, (score, kept.mean()))
    assert (found.silhouette, found.clustered_share) == pytest.approx(best, abs=1e-12)
    assert len(found.tried) == 45


def test_the_default_grid_ends_at_the_radius_that_merges_all():
    """Clients on a line, every gap longer than the one before: each merger needs its own radius."""
    at = np.cumsum(np.arange(200.0)) / 20_000
    tried = dbscan(np.abs(at[:, None] - at), min_samples=[2]).tried
    assert len(tried) == 50
    largest = max(tried, key=lambda trial: trial.parameters["eps"])
    assert largest.parameters["eps"] == pytest.approx(199 / 20_000)
    assert (largest.clustered_share, largest.clusters) == (1.0, 1)


@few(25)
@given(st.integers(0, 1000), st.integers(3, 25), st.sampled_from(["dbscan", "optics", "kmedoids"]))
def test_the_choice_is_the_best_of_what_was_tried(seed, n, name):
    found = METHODS[name](federation(seed, n, 0.3, 4))
    assert found.labels.shape == (n,)
    assert set(found.labels.tolist()) == set(range(found.labels.max() + 1))
    assert found.clustered_share == np.mean(~found.noise)
    noisy = found.labels[found.noise]
    if found.caveat != "all noise":
        assert all((found.labels == c).sum() == 1 for c in noisy)
    enough = [
        t.silhouette for t in found.tried if t.silhouette is not None and t.clustered_share >= 0.7
    ]
    if enough:
        assert found.silhouette == max(enough)
        assert found.caveat == ""
    else:
        assert found.caveat != ""


@pytest.mark.parametrize("method", ALL)
def test_the_same_distances_give_the_same_clusters(method):
    matrix = federation(3, 50)
    first, second = method(matrix), method(matrix.copy())
    assert first.labels.tolist() == second.labels.tolist()
    assert first.tried == second.tried


@pytest.mark.parametrize("method", ALL)
def test_relabelled_clients_give_the_same_groups(method):
    matrix = federation(4, 40)
    order = np.random.default_rng(0).permutation(40)
    straight, shuffled = method(matrix), method(matrix[np.ix_(order, order)])
    assert straight.silhouette == pytest.approx(shuffled.silhouette, abs=0.05)


@pytest.mark.parametrize("method", ALL)
@pytest.mark.parametrize(
    "matrix", [np.zeros((1, 1)), np.zeros((2, 2)), 1 - np.eye(2), np.zeros((5, 5))]
)
def test_nothing_to_tell_apart_is_one_cluster_without_a_score(method, matrix):
    found = method(matrix)
    assert found.labels.tolist() == [0] * len(matrix)
    assert found.silhouette is None
    assert found.clustered_share == 1.0
    assert not found.noise.any()
    assert found.caveat == "no score"


@pytest.mark.parametrize("method", ALL)
def test_all_distances_equal_is_defined(method):
    found = method(1 - np.eye(6))
    assert found.silhouette in (None, 0.0)
    assert found.clustered_share == 1.0


@pytest.mark.parametrize(("rule", "labels"), [("singletons", [0, 1, 2, 3]), ("one", [0, 0, 0, 0])])
def test_all_noise(rule, labels):
    found = dbscan(1 - np.eye(4), eps=[0.5], all_noise=rule)
    assert found.labels.tolist() == labels
    assert found.caveat == "all noise"
    assert found.clustered_share == 0.0
    assert found.silhouette is None
    assert found.noise.all()
    limited = optics(1 - np.eye(4), max_eps=[0.5], all_noise=rule)
    assert limited.labels.tolist() == labels
    assert limited.caveat == "all noise"


@pytest.mark.parametrize("method", [dbscan, optics])
def test_more_samples_than_clients_is_all_noise(method):
    found = method(three_groups(3), min_samples=[9])
    assert found.caveat == "all noise"
    assert found.labels.tolist() == [0, 1, 2, 3, 4]


def test_too_few_clustered_takes_the_largest_share_and_says_so():
    matrix = 1 - np.eye(10)
    for i, j in ((0, 1), (2, 3)):
        matrix[i, j] = matrix[j, i] = 0.1
    found = dbscan(matrix, eps=[0.05, 0.2])
    assert found.caveat == "few clustered"
    assert found.clustered_share == 0.4
    assert found.labels.tolist() == [0, 0, 1, 1, 2, 3, 4, 5, 6, 7]
    assert dbscan(matrix, eps=[0.2], least_share=0.4).caveat == ""


def test_few_clustered_is_better_than_one_cluster_of_all():
    matrix = 1 - np.eye(10)
    for i, j in ((0, 1), (2, 3)):
        matrix[i, j] = matrix[j, i] = 0.1
    found = dbscan(matrix, eps=[0.2, 2.0], min_samples=[2])
    assert (found.caveat, found.clustered_share) == ("few clustered", 0.4)


def test_the_share_constraint_binds():
    """Without it a smaller, tighter part of the clients would win."""
    matrix = federation(1, 100)
    free, bound = dbscan(matrix, least_share=0.0), dbscan(matrix)
    assert free.silhouette > bound.silhouette
    assert free.clustered_share < 0.7 <= bound.clustered_share


def test_every_setting_of_optics_is_kept_with_its_limit():
    settings = [
        trial.parameters for trial in optics(three_groups(), [0.05], [2, 99], [None, 0.5]).tried
    ]
    assert settings == [
        {"xi": 0.05, "min_samples": 2, "max_eps": None},
        {"xi": 0.05, "min_samples": 2, "max_eps": 0.5},
        {"xi": None, "min_samples": 99},
    ]


def test_optics_keeps_the_reachability_plot():
    found = optics(three_groups())
    plot = found.reachability[found.ordering]
    assert sorted(found.ordering.tolist()) == list(range(32))
    assert plot[0] == np.inf
    assert dbscan(three_groups()).ordering is None


@pytest.mark.parametrize("ks", [[1], [2, 30], [32]])
def test_any_number_of_medoids_up_to_all(ks):
    found = kmedoids(three_groups(), ks)
    assert found.parameters["k"] in ks


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda d: kmedoids(d, [33]), "between 1 and 32"),
        (lambda d: kmedoids(d, [0]), "between 1 and 32"),
        (lambda d: kmedoids(d, []), "one or more"),
        (lambda d: dbscan(d, eps=[-1.0]), "radii"),
        (lambda d: dbscan(d, eps=[np.nan]), "radii"),
        (lambda d: dbscan(d, min_samples=[0]), "at least 1"),
        (lambda d: dbscan(d, least_share=1.5), "between 0 and 1"),
        (lambda d: dbscan(d, all_noise="none"), "singletons"),
        (lambda d: optics(d, xi=[0.0]), "slopes"),
        (lambda d: optics(d, min_samples=[1]), "at least 2"),
        (lambda d: optics(d, max_eps=[0.0]), "limits"),
        (lambda d: dbscan(d[:3]), "square"),
        (lambda d: dbscan(np.zeros((0, 0))), "square"),
        (lambda d: dbscan(d + np.nan), "finite"),
        (lambda d: dbscan(-d), "at least 0"),
        (lambda d: dbscan(d + 1), "zero diagonal"),
        (lambda d: dbscan(np.triu(d)), "symmetric"),
    ],
)
def test_bad_input_is_named(call, says):
    with pytest.raises(ValueError, match=says):
        call(three_groups())
