from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from fedcohort import Federation
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.designs import Rows, Simple, Stratified
from fedcohort.maths._groups import kmeans
from fedcohort.maths._inclusion import sequential_inclusion
from fedcohort.selection import Shares
from fedcohort.theory import theorem_1
from fedcohort.theory._strata import (
    gain_of_strata,
    hansen_hurwitz_variance,
    printed_weights,
    simple_random_variance,
    stratified_variance,
)

F = Fraction
# The golden population "horvitz_thompson": two strata, unequal importance.
LABELS = [0, 0, 0, 1, 1]
OMEGA = np.array([F(1, 10), F(1, 5), F(3, 10), F(1, 10), F(3, 10)])
X = np.array([F(4), F(-1), F(2), F(7), F(0)])
NORMS, DRAWS = [1, 2, 3, 1, 1], [2, 1]


def test_golden_hansen_hurwitz_uniform_and_printed_weights():
    assert hansen_hurwitz_variance(X, LABELS, DRAWS, NORMS, OMEGA) == F(107, 100)
    assert stratified_variance(X, LABELS, DRAWS, OMEGA) == F(3, 4)
    printed = printed_weights(X, LABELS, DRAWS, NORMS, OMEGA)
    assert printed.squared_bias == (F(19, 12) - F(3, 2)) ** 2
    assert printed.error == printed.squared_bias + printed.variance


def test_golden_inclusion_of_sequential_draws_is_not_proportional():
    inclusion = [*sequential_inclusion([1, 2, 3], 2), *sequential_inclusion([1, 1], 1)]
    assert inclusion == [F(5, 12), F(11, 15), F(17, 20), F(1, 2), F(1, 2)]
    printed = sum(F(5, 3) * OMEGA * np.array(inclusion) * X)
    assert printed == F(22, 15)  # line 15 without replacement: biased by -1/30 as well
    weights = OMEGA / np.array(inclusion)
    assert weights.tolist() == [F(6, 25), F(3, 11), F(6, 17), F(1, 5), F(3, 5)]


def sequences(strata, draws):
    """All outcomes (chance, clients) of drawing one after the other, in proportion to NORMS."""
    outcomes = [(F(1), ())]
    for mine, m_h in zip(strata, draws, strict=True):
        inside = []
        for order in permutations(mine, m_h):
            chance, left = F(1), sum(NORMS[i] for i in mine)
            for i in order:
                chance, left = chance * F(NORMS[i], left), left - NORMS[i]
            inside.append((chance, order))
        outcomes = [(p * q, a + b) for p, a in outcomes for q, b in inside]
    return outcomes


@pytest.mark.parametrize(
    ("printed", "mean", "variance"),
    [(False, F(3, 2), F(72027, 93500)), (True, F(22, 15), F(173, 300))],
    ids=["Horvitz-Thompson", "line 15 of the paper"],
)
def test_golden_moments_of_sequential_draws(printed, mean, variance):
    """Drawn without replacement: weights 1/inclusion are unbiased, those of line 15 are not."""
    inclusion = [*sequential_inclusion([1, 2, 3], 2), *sequential_inclusion([1, 1], 1)]
    weights = OMEGA * F(5, 3) if printed else OMEGA / np.array(inclusion)
    outcomes = [
        (chance, sum(weights[i] * X[i] for i in clients))
        for chance, clients in sequences([[0, 1, 2], [3, 4]], DRAWS)
    ]
    assert sum(chance for chance, _ in outcomes) == 1
    assert sum(chance * value for chance, value in outcomes) == mean
    assert sum(chance * (value - mean) ** 2 for chance, value in outcomes) == variance


def stratified(federation: Federation, labels, draws, norms=None) -> Stratified:
    """The design that the schemes would build, by hand."""
    groups = np.asarray(labels)
    strata = tuple(np.flatnonzero(groups == h) for h in range(len(draws)))
    parts, scale = [], []
    for mine, m_h in zip(strata, draws, strict=True):
        shares = Shares.of(federation.shares.parts[mine])
        scale.append(Fraction(shares.whole, federation.shares.whole))
        if norms is None:
            parts.append(Simple(shares, m_h))
        else:
            chances = Shares.of(np.asarray(norms)[mine])
            parts.append(Rows.hansen_hurwitz(chances, shares, m_h))
    return Stratified(len(federation), strata, tuple(parts), tuple(scale))


def exact_variance(design, x) -> Fraction:
    outcomes = [
        (chance, sum((w * x[i] for i, w in zip(c.clients, c.weights, strict=True)), F(0)))
        for chance, c in design.enumerate()
    ]
    mean = sum(chance * value for chance, value in outcomes)
    return sum(chance * (value - mean) ** 2 for chance, value in outcomes)


def test_the_formulas_are_the_variance_of_all_outcomes_of_the_designs():
    federation = Federation.from_sizes([1, 2, 3, 1, 3])
    plain, hurwitz = (
        stratified(federation, LABELS, DRAWS),
        stratified(federation, LABELS, DRAWS, NORMS),
    )
    assert exact_variance(plain, X) == F(3, 4) == stratified_variance(X, LABELS, DRAWS, OMEGA)
    assert exact_variance(hurwitz, X) == F(107, 100)
    x = X.astype(float)
    assert plain.aggregate_variance(x) == pytest.approx(0.75)
    assert hurwitz.aggregate_variance(x) == pytest.approx(1.07)
    simple = Simple(federation.shares, 2)
    assert exact_variance(simple, X) == simple_random_variance(X, 2, OMEGA)


def test_equation_7_needs_its_second_sum():
    x = np.array([F(v) for v in (3, 1, 4, 1, 5, 9)])
    labels = [0, 0, 0, 1, 1, 1]
    gain = simple_random_variance(x, 2) - stratified_variance(x, labels, [1, 1])
    assert gain == gain_of_strata(x, labels, 2)
    printed = sum(3 * (x[mine].mean() - x.mean()) ** 2 for mine in ([0, 1, 2], [3, 4, 5])) / F(
        2 * 6
    )
    assert gain < printed  # equation (7) promises more
    alike = np.array([F(0), F(2), F(0), F(2)])
    assert gain_of_strata(alike, [0, 0, 1, 1], 2) < 0  # strata can hurt


def test_equation_9_is_right_for_one_stratum_and_one_draw():
    """In Fractions, of the mean of the cluster: N = N_h, m = 1, with replacement."""
    x, n = np.array([F(v) for v in (3, -1, 4, 1)]), 4
    lengths = [abs(v) for v in x]
    gain = hansen_hurwitz_variance(x, [0] * n, [1], [1] * n) - hansen_hurwitz_variance(
        x, [0] * n, [1], lengths
    )
    total = sum(lengths)
    assert gain == total**2 / n * sum((v / total - F(1, n)) ** 2 for v in lengths) > 0


def populations(number=250, n=10, strata=2):
    for seed in range(number):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((n, 2)) * rng.gamma(4.0, size=(n, 1)) + rng.normal(size=2)
        labels, _ = kmeans(x, strata, np.random.Generator(np.random.Philox(seed)))
        if np.bincount(labels).min() >= 2:
            yield x, labels


def test_theorem_1_holds_in_its_middle_and_fails_at_its_end():
    found = [theorem_1(x, labels, 4) for x, labels in populations()]
    assert len(found) > 100
    hybrid, reallocated, cluster = np.array([t.steps for t in found]).T
    assert reallocated.all()
    assert cluster.mean() > 0.97
    assert 0.5 < hybrid.mean() < 0.85  # the theorem says always
    assert all(t.hybrid <= t.replaced * (1 + 1e-12) for t in found)  # what its proof shows
    worse = np.mean([t.printed.error > t.reallocated for t in found])
    assert worse > 0.8
    bias = np.mean([t.printed.squared_bias for t in found])
    assert bias > 0.3 * np.mean([t.printed.error for t in found])


def test_random_strata_are_worse_than_none_more_often_than_not():
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1, 2], 4)
    worse = [gain_of_strata(rng.normal(size=(12, 2)), labels, 3) < 0 for _ in range(500)]
    assert 0.5 < np.mean(worse) < 0.75


def test_equation_5_over_all_pairs_is_mostly_worse_than_proportional():
    rng = np.random.default_rng(3)
    worse = []
    for _ in range(500):
        sizes, squares = rng.integers(4, 60, 4), rng.gamma(2.0, size=4) ** 2
        shares = {"proportional": sizes, "pairs": sizes**2 * squares}
        V = {name: np.sum(sizes**2 * squares * s.sum() / s) for name, s in shares.items()}
        worse.append(V["pairs"] > V["proportional"])
    assert 0.7 < np.mean(worse) < 0.95


def test_one_client_one_stratum_and_everybody():
    assert simple_random_variance([5.0], 1) == 0.0
    assert stratified_variance([1.0, 2.0], [0, 1], [1, 1]) == 0.0
    assert simple_random_variance([1.0, 2.0, 9.0], 3) == 0.0
    assert hansen_hurwitz_variance([0.0, 0.0], [0, 0], [1], [0.0, 0.0]) == 0.0


def test_importance_alone_is_one_stratum_of_the_design():
    federation = Federation.from_sizes([1, 2, 3, 1, 3])
    x = X.astype(float)
    found = theorem_1(x, LABELS, 3, federation.importance)
    lengths = np.abs(federation.importance * x)
    hurwitz = Rows.hansen_hurwitz(Shares.of_floats(lengths), federation.shares, 3)
    assert found.importance == pytest.approx(hurwitz.aggregate_variance(x))


def test_measure_says_what_lengths_and_deviations_are_those_of():
    found = {
        measure: theorem_1(X.astype(float), LABELS, 3, OMEGA.astype(float), measure)
        for measure in ("contribution", "update")
    }
    x, p, lengths = X.astype(float), OMEGA.astype(float), np.abs(X.astype(float))
    alone = hansen_hurwitz_variance(x, [0] * 5, [3], lengths, p)
    assert found["update"].importance == pytest.approx(alone)
    assert found["contribution"].importance < alone  # the best chances there are
    assert found["contribution"].reallocated <= found["update"].reallocated
    assert found["contribution"].random == found["update"].random
    for x, labels in list(populations(5)):
        assert theorem_1(x, labels, 4) == theorem_1(x, labels, 4, measure="update")
    with pytest.raises(BadParameter, match="'measure' parameter of theorem_1 must be one of"):
        theorem_1(X, LABELS, 3, measure="length")


def test_bad_strata_are_refused():
    with pytest.raises(BadInput, match="none of them empty"):
        stratified_variance([1.0, 2.0], [0, 2], [1, 1])
    with pytest.raises(BadInput, match="at least one for each stratum"):
        stratified_variance([1.0, 2.0], [0, 1], [2])
    with pytest.raises(BadInput, match="never drawn"):
        hansen_hurwitz_variance([1.0, 2.0], [0, 0], [1], [1.0, 0.0])


@pytest.mark.parametrize("m", [0, 4, 1.5, True, -1])
def test_draws_that_cannot_be_are_refused(m):
    x, labels = [1.0, 2.0, 5.0], [0, 0, 0]
    for function in (
        lambda: simple_random_variance(x, m),
        lambda: gain_of_strata(x, labels, m),
        lambda: theorem_1(x, labels, m),
    ):
        with pytest.raises(BadParameter, match=r"'m' parameter of .* must be an int in \[1, 3\]"):
            function()


def test_theorem_1_needs_a_draw_for_each_stratum():
    with pytest.raises(BadParameter, match=r"an int in \[2, 3\]"):
        theorem_1([1.0, 2.0, 5.0], [0, 0, 1], 1)


GOOD = {"x": [1.0, 2.0, 5.0], "labels": [0, 0, 1], "draws": [1, 1], "norms": [1.0, 1.0, 1.0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"x": [1.0, np.nan, 0.0]}, "'x' must be an array of real numbers without NaN"),
        ({"x": ["a", "b", "c"]}, "'x' must be an array of real numbers"),
        ({"x": [[1.0], [1.0, 2.0], [0.0]]}, "'x' must be an array of real numbers"),
        ({"x": [1j, 0, 0]}, "'x' must be an array of real numbers"),
        ({"x": np.ones((3, 1, 1))}, r"'x' must be \(N, d\) or \(N,\)"),
        ({"x": []}, r"got shape \(0,\)"),
        ({"labels": [0, 0]}, "'labels' must have one number for each of 3 clients"),
        ({"labels": [0, 0.5, 1]}, "'labels' must give every client a stratum 0, 1"),
        ({"labels": [0, 0, -1]}, "'labels' must not be negative; got -1"),
        ({"labels": [0, 1, 10**12]}, "'labels' must give every client a stratum 0, 1"),
        ({"draws": [1, 1.9]}, "'draws' must be an int of at least one for each stratum"),
        ({"draws": [1, 0]}, r"for each stratum; got \[1, 0\]"),
        ({"draws": 2}, "for each stratum; got 2"),
        ({"norms": [1.0, 1.0]}, "'norms' must have one number for each of 3 clients"),
        ({"norms": [1.0, -1.0, 3.0]}, r"'norms' must not be negative; got -1\.0"),
        ({"norms": [1.0, np.inf, 3.0]}, "'norms' must be an array of real numbers without NaN"),
        ({"importance": [0.5, 0.5]}, "'importance' must have one number for each of 3"),
        ({"importance": [-0.5, 0.5, 1.0]}, "'importance' must not be negative"),
        ({"importance": [1.0, 2.0, 3.0]}, "'importance' must sum to 1; got 6"),
    ],
)
def test_malformed_input_is_refused_in_one_sentence(change, message):
    for function in (hansen_hurwitz_variance, printed_weights):
        function(**GOOD)
        with pytest.raises(BadInput, match=message):
            function(**GOOD | change)


def test_more_draws_than_clients_need_replacement():
    x, labels = [0.0, 2.0, 10.0, 10.0], [0, 0, 1, 1]
    with pytest.raises(BadInput, match=r"at most the clients of each stratum, \[2, 2\]"):
        stratified_variance(x, labels, [4, 1])
    assert hansen_hurwitz_variance(x, labels, [4, 1], [1, 1, 1, 1]) > 0


def test_one_client_gains_nothing():
    assert gain_of_strata([1.0], [0], 1) == 0.0
    assert gain_of_strata([F(1)], [0], 1) == 0
