"""The draws of Power-of-Choice: exact by enumeration, and the fast path against the slow one."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from fedcohort.maths import every_path, top, weighted_without_replacement
from fedcohort.maths._draws import _one_by_one, as_integers

LEVEL = 1e-6


def law(draw: Callable[[object], np.ndarray]) -> dict[tuple[int, ...], Fraction]:
    """Exact probability of every result, over all paths of the code that draws."""
    total: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    for probability, result in every_path(draw):
        total[tuple(int(i) for i in result)] += probability
    return dict(total)


def successive(weights: list[int], d: int) -> dict[tuple[int, ...], Fraction]:
    """The definition: sum over all orders of w_a / W * w_b / (W - w_a) ..."""
    total: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    support = [i for i, w in enumerate(weights) if w]
    for order in itertools.permutations(support, min(d, len(support))):
        left, probability = sum(weights), Fraction(1)
        for i in order:
            probability *= Fraction(weights[i], left)
            left -= weights[i]
        total[tuple(sorted(order))] += probability
    return dict(total)


@pytest.mark.parametrize("weights", [[1, 1, 1], [3, 1, 2], [2, 0, 5, 1], [1, 7], [4], [0, 0]])
@pytest.mark.parametrize("d", [0, 1, 2, 3, 4])
def test_the_enumerable_draw_is_successive_sampling(weights, d):
    assert law(lambda rng: weighted_without_replacement(rng, weights, d)) == successive(weights, d)


def test_float_weights_are_off_by_rounding_only():
    exact = successive([1, 2, 7], 2)
    near = law(lambda rng: weighted_without_replacement(rng, [0.1, 0.2, 0.7], 2))
    assert near.keys() == exact.keys()
    assert all(abs(near[drawn] - exact[drawn]) < 1e-15 for drawn in exact)
    dyadic = law(lambda rng: weighted_without_replacement(rng, [0.5, 0.25, 0.25], 2))
    assert dyadic == successive([2, 1, 1], 2)


def p_value(draw: Callable[[], np.ndarray], expected: dict, draws: int) -> float:
    seen = Counter(tuple(int(i) for i in draw()) for _ in range(draws))
    if set(seen) - set(expected):
        return 0.0
    statistic = sum(
        (seen[k] - draws * float(p)) ** 2 / (draws * float(p)) for k, p in expected.items()
    )
    return float(chi2.sf(statistic, len(expected) - 1))


@pytest.mark.parametrize(
    ("weights", "ratios", "d"),
    [
        ([5, 1, 1, 3], [5, 1, 1, 3], 2),
        ([100, 1, 1, 1], [100, 1, 1, 1], 3),  # mostly repeats: the table is rebuilt
        ([0.5, 0.1, 0.1, 0.3], [5, 1, 1, 3], 2),
        ([2**70, 2**69, 2**69, 0], [2, 1, 1, 0], 2),  # beyond 64 bits
    ],
)
def test_the_stream_has_the_law_of_the_definition(weights, ratios, d):
    """Chi-square on all sets, level 1e-6, 3,000 draws."""
    rng = np.random.default_rng(20)
    exact = successive(ratios, d)
    assert p_value(lambda: weighted_without_replacement(rng, weights, d), exact, 3000) > LEVEL


def test_the_chi_square_sees_planted_defects():
    rng = np.random.default_rng(21)
    weights, d = [5, 1, 1, 3], 2
    exact = successive(weights, d)

    def uniform():
        return np.sort(rng.choice(4, d, replace=False))

    def systematic_inclusion():  # inclusion d * w_i, as if heavy ones did not crowd out
        other = rng.choice([1, 2, 3], p=[0.2, 0.2, 0.6])
        return np.array([0, other])

    def sorted_before_cut():  # keeps the smallest labels of a stream, not the first ones
        return np.unique(rng.choice(4, 3 * d, p=np.array(weights) / 10))[:d]

    for defect in (uniform, systematic_inclusion, sorted_before_cut):
        assert p_value(defect, exact, 3000) < LEVEL


@given(
    st.lists(st.integers(0, 10**6) | st.just(2**62), max_size=30),
    st.integers(0, 35),
    st.integers(0, 2**32),
)
def test_draws_are_distinct_positive_and_as_many_as_there_can_be(weights, d, seed):
    drawn = weighted_without_replacement(np.random.default_rng(seed), weights, d)
    again = weighted_without_replacement(np.random.default_rng(seed), weights, d)
    assert drawn.tolist() == again.tolist() == sorted(set(drawn.tolist()))
    assert all(weights[i] > 0 for i in drawn)
    assert drawn.size == min(d, sum(w > 0 for w in weights))
    assert drawn.dtype == np.int64


def test_very_uneven_weights_take_few_rebuildings():
    weights = 2 ** np.arange(62)
    drawn = weighted_without_replacement(np.random.default_rng(0), weights, 60)
    assert np.unique(drawn).size == 60
    floats = np.ldexp(1.0, -np.arange(1000))  # down to 1e-301: every one can still be drawn
    assert weighted_without_replacement(np.random.default_rng(0), floats, 999).size == 999


def test_numpy_draws_the_same_law():
    """Inclusion at n = 50, d = 20 against numpy's own sampler and the one-by-one twin.

    Pooled two-sample z per client, level 1e-6 / 50 each.
    """
    rng, repeats = np.random.default_rng(22), 1000
    weights = np.arange(1, 51) ** 2
    p = weights / weights.sum()
    ours, numpys = np.zeros(50), np.zeros(50)
    for _ in range(repeats):
        ours[weighted_without_replacement(rng, weights, 20)] += 1
        numpys[rng.choice(50, 20, replace=False, p=p)] += 1
    pooled = (ours + numpys) / (2 * repeats)
    z = (ours - numpys) / repeats / np.sqrt(2 * pooled * (1 - pooled) / repeats + 1e-12)
    assert np.abs(z[pooled > 0.02]).max() < 5.6

    twin = np.zeros(50)
    for _ in range(repeats):
        twin[_one_by_one(rng, weights, 20)] += 1
    z = (ours - twin) / repeats / np.sqrt(2 * pooled * (1 - pooled) / repeats + 1e-12)
    assert np.abs(z[pooled > 0.02]).max() < 5.6
    assert np.abs(ours / repeats - 20 * p).max() > 0.1  # the naive "d * p" would be seen


@pytest.mark.parametrize(
    "weights",
    [[1.0, np.nan], [1.0, -1.0], [np.inf, 1.0], [-1, 2], [[1.0, 2.0]], ["a", "b"], [None, 1]],
)
def test_bad_weights_are_named(weights):
    with pytest.raises(ValueError, match="The weights must"):
        weighted_without_replacement(np.random.default_rng(0), weights, 1)


def test_a_negative_number_of_draws_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        weighted_without_replacement(np.random.default_rng(0), [1, 2], -1)
    with pytest.raises(ValueError, match="at least 0"):
        top(np.random.default_rng(0), [1, 2], -1)


@given(st.lists(st.floats(0, 1e300) | st.sampled_from([0.0, 5e-324, 1e308]), min_size=1))
def test_float_weights_become_integers_of_the_same_ratios(weights):
    integers = as_integers(weights)
    assert ((integers > 0) == (np.array(weights) > 0)).all()
    total = sum(map(Fraction, weights))
    if total:
        grid = sum(map(int, integers))
        assert grid < 2**62
        for weight, integer in zip(weights, integers, strict=True):
            error = abs(Fraction(int(integer), grid) - Fraction(weight) / total)
            assert error < Fraction(len(weights), 2**59)


def test_large_integers_whose_sum_leaves_64_bits_stay_exact():
    for total in (2**63 - 2, 2**63, 2**64 - 2):
        whole = as_integers(np.array([total // 2, total // 2], dtype=object))
        assert int(whole.sum()) == total


def test_64_bits_do_where_they_suffice():
    """Objects would be drawn by the same law, but many times as slowly."""
    assert as_integers(np.array([2**62, 2**62 - 1], dtype=object)).dtype == np.int64


def top_by_definition(values: list[float], m: int) -> dict[tuple[int, ...], Fraction]:
    """All orders of the positions are equally likely; a stable sort then decides."""
    total: dict[tuple[int, ...], Fraction] = defaultdict(Fraction)
    eligible = [i for i, v in enumerate(values) if v > -np.inf]
    orders = list(itertools.permutations(eligible))
    for order in orders:
        chosen = sorted(order, key=lambda i: -values[i])[:m]
        total[tuple(sorted(chosen))] += Fraction(1, len(orders))
    return dict(total)


@pytest.mark.parametrize("m", [0, 1, 2, 3, 6])
@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, 3.0],
        [2.0, 2.0, 2.0, 2.0],
        [5.0, 1.0, 5.0, 1.0, 1.0],
        [np.nan, 1.0, -np.inf, 1.0, np.inf],
        [np.nan, np.nan],
        [],
        [-3.0, -1.0, -2.0],
    ],
)
def test_top_breaks_ties_uniformly_and_never_takes_a_nan(values, m):
    exact = law(lambda rng: np.sort(top(rng, values, m)))
    assert exact == top_by_definition(values, m)


def test_top_is_best_first_and_equals_by_position():
    rng = np.random.default_rng(0)
    assert top(rng, [1, 7, 3, 7, 0], 4).tolist() == [1, 3, 2, 0]
    assert top(rng, [4, 6, 9, 7], 2).tolist() == [2, 3]  # golden `powd`
    assert top(rng, np.array([2**60, 2**60 + 1]), 1).tolist() == [1]  # not through floats


def test_top_under_a_generator_is_uniform_among_equals():
    """Chi-square over the 10 pairs of 5 equals, level 1e-6; taking the first two is caught."""
    rng = np.random.default_rng(23)
    exact = top_by_definition([1.0] * 5, 2)
    assert p_value(lambda: top(rng, [1.0] * 5, 2), exact, 3000) > LEVEL
    assert p_value(lambda: np.argsort([-1.0] * 5, kind="stable")[:2], exact, 3000) < LEVEL


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=40), st.integers(0, 45))
def test_top_agrees_with_a_full_sort(values, m):
    chosen = top(np.random.default_rng(1), values, m)
    eligible = sorted((v for v in values if v > -np.inf), reverse=True)
    assert [values[i] for i in chosen] == eligible[:m]
    assert np.unique(chosen).size == chosen.size


@pytest.mark.parametrize("values", [[[1.0]], ["a"], [None, 1.0]])
def test_bad_values_are_named(values):
    with pytest.raises(ValueError, match="The values must"):
        top(np.random.default_rng(0), values, 1)
