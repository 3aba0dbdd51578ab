"""Hellinger distances: golden values, the double loop of the definition, metric axioms."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fedcohort.maths import _distances as module
from fedcohort.maths._distances import hellinger, hellinger_by_class, mean_and_rms, rms

GOLDEN = [["1", "0", "0"], ["16/25", "9/25", "0"], ["0", "0", "1"], ["4/9", "4/9", "1/9"]]
GOLDEN_SQUARED = [
    ["0", "1/5", "1", "1/3"],
    ["1/5", "0", "1", "1/15"],
    ["1", "1", "0", "2/3"],
    ["1/3", "1/15", "2/3", "0"],
]

counts = arrays(
    np.int64, st.tuples(st.integers(1, 12), st.integers(1, 6)), elements=st.integers(0, 9)
).map(lambda a: np.where(a.any(axis=1, keepdims=True), a, 1))


def by_definition(p: np.ndarray, q: np.ndarray) -> float:
    p, q = p / p.sum(), q / q.sum()
    return float(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2))


def test_golden_values():
    frequencies = [[float(Fraction(x)) for x in row] for row in GOLDEN]
    squared = [[float(Fraction(x)) for x in row] for row in GOLDEN_SQUARED]
    matrix = hellinger(frequencies)
    np.testing.assert_allclose(matrix**2, squared, rtol=0, atol=1e-15)
    np.testing.assert_allclose(matrix, np.sqrt(squared), rtol=1e-15, atol=0)
    mean, root = mean_and_rms(matrix)
    assert mean == pytest.approx(0.6832098892274119, abs=1e-15)
    assert root == pytest.approx(0.7378647873726218, abs=1e-15)
    assert rms(frequencies) == pytest.approx(0.7378647873726218, abs=1e-15)


def test_counts_and_frequencies_are_the_same():
    as_counts = [[9, 0, 0], [16, 9, 0], [0, 0, 1], [4, 4, 1]]
    frequencies = [[float(Fraction(x)) for x in row] for row in GOLDEN]
    np.testing.assert_allclose(hellinger(as_counts), hellinger(frequencies), atol=1e-15)


@given(counts)
def test_the_product_agrees_with_the_double_loop(histograms):
    matrix = hellinger(histograms)
    slow = [[by_definition(p, q) for q in histograms] for p in histograms]
    np.testing.assert_allclose(matrix**2, np.square(slow), rtol=0, atol=2e-14)
    assert np.array_equal(matrix, matrix.T)
    assert not matrix.diagonal().any()
    assert matrix.max() <= 1
    same = (histograms[:, None] == histograms[None]).all(axis=2)
    assert not matrix[same].any()
    assert rms(histograms) == pytest.approx(mean_and_rms(matrix)[1], abs=1e-7)


@given(counts)
def test_the_triangle_inequality_holds(histograms):
    matrix = hellinger(histograms)
    detours = (matrix[:, :, None] + matrix[None, :, :]).min(axis=1)
    assert (matrix <= detours + 3e-7).all()


def test_blocks_do_not_show(monkeypatch):
    histograms = np.random.default_rng(0).integers(0, 50, (37, 10)) + 1
    whole = hellinger(histograms)
    monkeypatch.setattr(module, "BLOCK", 5)
    blocks = hellinger(histograms)
    np.testing.assert_allclose(blocks, whole, atol=1e-9)
    assert np.array_equal(blocks, blocks.T)


def test_huge_and_tiny_counts():
    assert hellinger([[1e308, 1e308], [1e-320, 1e-320]]).max() < 1e-7
    assert hellinger([[2**62, 0], [0, 1]])[0, 1] == 1


@pytest.mark.parametrize(
    ("histograms", "says"),
    [
        ([[1, -1], [1, 1]], "at least 0.*client 0"),
        ([[1, 1], [1, np.nan]], "finite.*client 1"),
        ([[1, 1], [np.inf, 1]], "finite.*client 1"),
        ([[1, 1], [0, 0]], "positive somewhere.*client 1"),
        ([1, 2], "shape"),
        ([[1, 2], [1]], "as many"),
        ([["a", "b"]], "numbers"),
        (np.zeros((0, 3)), "shape"),
        (np.zeros((3, 0)), "shape"),
    ],
)
def test_bad_histograms_are_named(histograms, says):
    with pytest.raises(ValueError, match=says):
        hellinger(histograms)
    with pytest.raises(ValueError, match=says):
        rms(histograms)


def slow_by_class(first, second, combine, absent):
    distances = []
    for p, q in zip(first, second, strict=True):
        if p.any() and q.any():
            distances.append(by_definition(p, q))
        elif absent == "zero":
            distances.append(np.sqrt(0.5) if p.any() or q.any() else 0.0)
        elif absent == "far" and (p.any() or q.any()):
            distances.append(1.0)
    if not distances:
        return len(first) if combine == "sum" else 1.0
    return sum(distances) if combine == "sum" else sum(distances) / len(distances)


@pytest.mark.parametrize("combine", ["mean", "sum"])
@pytest.mark.parametrize("absent", ["far", "skip", "zero"])
def test_by_class_agrees_with_the_loop(combine, absent):
    rng = np.random.default_rng(1)
    clients = rng.integers(0, 5, (9, 4, 3)) * (rng.random((9, 4, 1)) < 0.5)
    clients[~clients.any(axis=(1, 2))] = 1
    clients[0, 1:] = 0  # these two have no class in common
    clients[0, 0] = 1
    clients[1] = 1
    clients[1, 0] = 0
    matrix = hellinger_by_class(clients, combine, absent)
    for i, j in np.ndindex(9, 9):
        expected = 0.0 if i == j else slow_by_class(clients[i], clients[j], combine, absent)
        assert matrix[i, j] == pytest.approx(expected, abs=1e-7)
    assert np.array_equal(matrix, matrix.T)


def test_by_class_refuses_bad_input():
    with pytest.raises(ValueError, match="bins"):
        hellinger_by_class([[1, 2]])
    with pytest.raises(ValueError, match="positive somewhere"):
        hellinger_by_class(np.zeros((2, 2, 2)))
    with pytest.raises(ValueError, match="'mean' or 'sum'"):
        hellinger_by_class(np.ones((2, 2, 2)), combine="max")
    with pytest.raises(ValueError, match="absent class"):
        hellinger_by_class(np.ones((2, 2, 2)), absent="near")


def test_clients_with_nothing_in_common_are_1_apart_and_no_more():
    for a, b, c in ((2, 9, 3), (5, 8, 1), (6, 7, 6)):  # whose squared roots sum to less than 1
        assert rms([[a, b, c, 0, 0, 0], [0, 0, 0, a, b, c]]) == 1


def test_one_client_differs_from_nobody():
    assert mean_and_rms(hellinger([[1, 2]])) == (0.0, 0.0)
    assert rms([[1, 2]]) == 0.0
    with pytest.raises(ValueError, match="square"):
        mean_and_rms([[1.0, 2.0]])
