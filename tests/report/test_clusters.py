import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import pdist, squareform

from fedcohort.report._clusters import cluster_figures, clusters


@pytest.fixture
def pictures():
    points = np.repeat([[0.0, 0], [5, 5], [9, 0]], 4, axis=0)
    points = points + np.random.default_rng(0).normal(0, 0.1, points.shape)
    distances = pdist(points)
    return {
        "labels": np.repeat([0, 1, 2], 4),
        "distances": squareform(distances),
        "linkage": linkage(distances, "ward"),
        "reachability": np.r_[np.inf, np.full(11, 0.3)],
        "ordering": np.arange(12)[::-1],
        "strata_sizes": np.array([4, 8]),
        "allocation": np.array([1, 2]),
    }


def test_a_scheme_without_clusters_shows_none(make):
    assert clusters(make()) == ()
    assert cluster_figures(make()) == ()


def test_everything_there_is_is_shown(make, pictures):
    (found, _) = clusters(make(pictures=pictures))
    assert found.sizes["clients"].tolist() == [4, 4, 4]
    assert found.sizes["samples"].sum() == (10 + np.arange(12)).sum()
    assert found.tree.shape == (11, 2, 4)
    assert found.tree[:, 1].max() == pytest.approx(pictures["linkage"][:, 2].max())
    assert found.tree[:, 0].min() == 0
    assert found.tree[:, 0].max() == 11
    assert found.reachability["client"].tolist() == list(range(11, -1, -1))
    assert found.strata["draws"].tolist() == [1, 2]
    keys = [drawing.key for drawing in cluster_figures(make(pictures=pictures))]
    assert keys == ["embedding", "tree", "reachability", "sizes", "strata"]


def test_clients_of_no_stratum_are_not_counted(make, pictures):
    pictures["labels"][[0, 5]] = -1
    found = clusters(make(pictures=pictures))[0]
    assert found.sizes["cluster"].tolist() == [0, 1, 2]
    assert found.sizes["clients"].tolist() == [3, 3, 4]


def test_neighbours_stay_neighbours(make, pictures):
    table = clusters(make(pictures=pictures))[0].embedding
    places = table[["x", "y"]].to_numpy()
    apart = squareform(pdist(places))
    np.fill_diagonal(apart, np.inf)
    nearest = table["cluster"].to_numpy()[apart.argmin(axis=1)]
    assert (nearest == table["cluster"]).all()


def test_the_picture_is_the_same_every_time(make, pictures):
    one, two = (clusters(make(pictures=pictures))[0].embedding for _ in range(2))
    assert one.equals(two)


def test_what_does_not_fit_is_left_out(make):
    odd = {
        "labels": np.zeros(3),
        "distances": np.full((12, 12), np.nan),
        "linkage": np.zeros((2, 3)),
        "reachability": np.zeros(3),
        "ordering": np.zeros(4),
    }
    found = clusters(make(pictures=odd))[0]
    assert len(found.sizes) == 0
    assert found.embedding is None
    assert found.tree is None
    assert found.reachability is None
    assert cluster_figures(make(pictures=odd)) == ()
