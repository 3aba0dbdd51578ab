"""The silhouette against scikit-learn and against its definition, point by point."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import silhouette_score

from fedcohort.maths._clusters import silhouette


def distances(seed: int, n: int) -> np.ndarray:
    points = np.random.default_rng(seed).integers(0, 6, (n, 2)).astype(float)
    return np.sqrt(((points[:, None] - points[None]) ** 2).sum(axis=2))


def by_definition(matrix: np.ndarray, labels: np.ndarray) -> float:
    scores = []
    for i in np.flatnonzero(labels >= 0):
        mates = [j for j in np.flatnonzero(labels == labels[i]) if j != i]
        if not mates:
            scores.append(0.0)
            continue
        a = matrix[i, mates].mean()
        b = min(matrix[i, labels == c].mean() for c in set(labels) - {labels[i], -1})
        scores.append((b - a) / max(a, b) if max(a, b) else 0.0)
    return float(np.mean(scores))


@given(st.integers(0, 10**6), st.lists(st.integers(-1, 4), min_size=2, max_size=25))
def test_noise_is_left_out_and_the_rest_is_scikit_learn(seed, labels):
    labels = np.array(labels)
    matrix = distances(seed, labels.size)
    kept = labels >= 0
    score = silhouette(matrix, labels)
    if not 2 <= np.unique(labels[kept]).size < kept.sum():
        assert score is None
        return
    assert score == pytest.approx(by_definition(matrix, labels), abs=1e-12)
    theirs = silhouette_score(matrix[np.ix_(kept, kept)], labels[kept], metric="precomputed")
    assert score == pytest.approx(theirs, abs=1e-12)


def test_noise_as_a_cluster_would_score_differently():
    matrix = distances(0, 20)
    labels = np.array([0] * 8 + [1] * 8 + [-1] * 4)
    with_noise = silhouette(matrix, np.where(labels < 0, 2, labels))
    assert abs(silhouette(matrix, labels) - with_noise) > 1e-3


@pytest.mark.parametrize("labels", [[-1, -1], [0, 0], [0, 1], [0, -1], [0]])
def test_undefined(labels):
    assert silhouette(np.zeros((len(labels), len(labels))), np.array(labels)) is None


def test_zero_distances_score_zero():
    assert silhouette(np.zeros((4, 4)), np.array([0, 0, 1, 1])) == 0.0
