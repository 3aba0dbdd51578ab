from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from fedcohort.maths._inclusion import minimal_variance_inclusion, sequential_inclusion


def exact_water_filling(norms, m):
    """The slow, obvious twin in Fractions: cap the largest one by one while somebody exceeds 1."""
    norms = [Fraction(x) for x in norms]
    capped: set[int] = set()
    while True:
        rest = [i for i in range(len(norms)) if i not in capped]
        total = sum(norms[i] for i in rest)
        if total == 0:
            return [Fraction(i in capped) for i in range(len(norms))]
        share = {i: (m - len(capped)) * norms[i] / total for i in rest}
        over = {i for i in rest if share[i] > 1}
        if not over:
            return [share.get(i, Fraction(1)) for i in range(len(norms))]
        capped.add(max(over, key=lambda i: norms[i]))


def variance(norms, q):
    return sum((1 / q[i] - 1) * norms[i] ** 2 for i in range(len(norms)) if norms[i] > 0)


norm_lists = st.lists(st.integers(0, 12), min_size=1, max_size=8)


@given(norm_lists, st.data())
def test_equals_exact_water_filling(norms, data):
    m = data.draw(st.fractions(Fraction(1, 4), len(norms), max_denominator=4))
    q = minimal_variance_inclusion(norms, float(m))
    positive = sum(x > 0 for x in norms)
    expected = exact_water_filling(norms, min(m, positive)) if positive else [0] * len(norms)
    np.testing.assert_allclose(q, np.array(expected, dtype=float), rtol=1e-12, atol=0)
    assert np.all(q <= 1)
    assert q.sum() == pytest.approx(float(min(m, positive)), rel=1e-12)


@given(st.lists(st.floats(0, 1e300, allow_subnormal=False), min_size=1, max_size=30), st.data())
def test_probabilities_for_any_norms(norms, data):
    m = data.draw(st.integers(1, len(norms)))
    q = minimal_variance_inclusion(norms, m)
    assert np.all((q >= 0) & (q <= 1))
    order = np.argsort(norms, kind="stable")
    assert np.all(np.diff(q[order]) >= 0)
    shuffled = data.draw(st.permutations(range(len(norms))))
    np.testing.assert_array_equal(
        minimal_variance_inclusion(np.array(norms)[shuffled], m), q[shuffled]
    )


def test_one_index_too_far_is_caught():
    # The off-by-one of a known library gives [1/6, 1/6, 5/3] here.
    np.testing.assert_array_equal(minimal_variance_inclusion([1, 1, 10], 2), [0.5, 0.5, 1])


@pytest.mark.parametrize(
    ("norms", "m", "expected"),
    [
        ([1, 1, 1, 1], 2, [0.5] * 4),
        ([0.1] * 7, 7, [1] * 7),
        ([3, 3, 3], 3, [1, 1, 1]),
        ([0, 0, 0], 2, [0, 0, 0]),
        ([0, 5, 0], 2, [0, 1, 0]),
        ([2, 1, 1], 2, [1, 0.5, 0.5]),  # the cap is reached exactly
        ([1e300, 1e300, 1e300, 1e300], 1, [0.25] * 4),
        ([5], 1, [1]),
        ([4, 4], 0.5, [0.25, 0.25]),
    ],
)
def test_edges_are_exact(norms, m, expected):
    np.testing.assert_array_equal(minimal_variance_inclusion(norms, m), expected)


def test_no_other_probabilities_vary_less():
    rng = np.random.default_rng(0)
    for _ in range(5):
        norms = rng.pareto(1.0, 6) + 0.1
        norms /= norms.max()
        q = minimal_variance_inclusion(norms, 3)
        found = minimize(
            lambda x, norms=norms: variance(norms, x),
            np.full(6, 0.5),
            jac=lambda x, norms=norms: -((norms / x) ** 2),
            bounds=[(1e-3, 1)] * 6,
            constraints={"type": "eq", "fun": lambda x: x.sum() - 3},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert found.success
        assert variance(norms, q) <= found.fun * (1 + 1e-9)
        np.testing.assert_allclose(found.x, q, atol=1e-3)


@pytest.mark.parametrize("m", [0, -1, 4, float("nan")])
def test_budget_out_of_range(m):
    with pytest.raises(ValueError, match="m must be in"):
        minimal_variance_inclusion([1, 2, 3], m)


@pytest.mark.parametrize("norms", [[1, float("nan")], [1, float("inf")], [1, -1], [[1, 2]], 3.0])
def test_norms_out_of_range(norms):
    with pytest.raises(ValueError, match="norms must be"):
        minimal_variance_inclusion(norms, 1)


def test_sequential_inclusion_golden():
    first = sequential_inclusion([1, 2, 3], 2)
    second = sequential_inclusion([1, 1], 1)
    assert [*first, *second] == [Fraction(s) for s in ("5/12", "11/15", "17/20", "1/2", "1/2")]
    assert list(first) != [Fraction(2 * k, 6) for k in (1, 2, 3)]  # not m p_k


@given(st.lists(st.integers(0, 5), min_size=1, max_size=5), st.data())
def test_sequential_inclusion_equals_all_ordered_draws(weights, data):
    m = data.draw(st.integers(0, sum(w > 0 for w in weights)))
    expected = [Fraction(0)] * len(weights)
    for path in permutations(range(len(weights)), m):
        left, probability = sum(weights), Fraction(1)
        for i in path:
            probability *= Fraction(weights[i], left) if left else 0
            left -= weights[i]
        for i in path:
            expected[i] += probability
    found = sequential_inclusion(weights, m)
    assert list(found) == expected
    assert sum(found) == m
    as_floats = sequential_inclusion([float(w) for w in weights], m)
    assert as_floats.dtype == np.float64
    np.testing.assert_allclose(as_floats, np.array(expected, dtype=float), rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "m", "message"),
    [
        ([1, 0], 2, "cannot draw 2 of 1"),
        ([1, -1], 1, "weights must be"),
        ([1.0, float("nan")], 1, "weights must be"),
        ([1] * 21, 2, "at most 20"),
    ],
)
def test_sequential_inclusion_refuses(weights, m, message):
    with pytest.raises(ValueError, match=message):
        sequential_inclusion(weights, m)
