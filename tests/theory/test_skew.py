"""Selection skew and the bound of Cho et al.; Claims 1 to 4 of Giunta's thesis."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, LocalWork, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.simulation import Quadratic
from fedcohort.theory import Smoothness, objective_gap, selection_skew, skew_bound
from fedcohort.theory.simulated import skew_on

PROBLEM = Smoothness(L=2.0, mu=0.5, G=3.0, sigma=1.0, tau=5, distance=4.0)


# -- Gamma ---------------------------------------------------------------------------------------


def test_gap_of_quadratics_is_the_spread_of_their_minima() -> None:
    rng = np.random.default_rng(0)
    task = Quadratic(rng.normal(size=(6, 3)), sizes=rng.integers(1, 9, 6))
    at_optimum = task.client_losses(task.optimum[None])[0]
    spread = 0.5 * task.importance @ ((task.minima - task.optimum) ** 2).sum(axis=1)
    assert np.isclose(objective_gap(task.importance, at_optimum, np.zeros(6)), spread)
    alike = Quadratic(np.ones((6, 3)))
    losses = alike.client_losses(alike.optimum[None])[0]
    assert objective_gap(alike.importance, losses, np.zeros(6)) < 1e-30


def test_a_gap_needs_local_optima_that_are_optimal() -> None:
    with pytest.raises(BadInput, match="client 1 has 2 and 1"):
        objective_gap([0.5, 0.5], [1.0, 1.0], [0.0, 2.0])
    with pytest.raises(BadInput, match="one each per client"):
        objective_gap([0.5, 0.5], [1.0], [0.0, 0.0])


# -- rho -----------------------------------------------------------------------------------------

SIZES = [5, 4, 3, 2, 1]


def losses(models: int = 4, n: int = 5) -> Any:
    return np.random.default_rng(1).uniform(0.5, 3.0, (models, n))


def test_sampling_by_importance_has_no_skew() -> None:
    found = selection_skew(scheme("md", m=2), Federation.from_sizes(SIZES), losses(), np.zeros(5))
    assert np.allclose(found.table, 1.0)
    assert np.isclose(found.bias, 0.0)


def test_uniform_selection_has_skew_where_importance_differs() -> None:
    # Equation (1.11) of the thesis says rho = 1; that needs equal p.
    plain = scheme("pow-d", m=2, d=2, candidates="uniform")  # two clients uniformly, 1/2 each
    unequal = selection_skew(plain, Federation.from_sizes(SIZES), losses(), np.zeros(5))
    equal = selection_skew(plain, Federation.from_sizes([1] * 5), losses(), np.zeros(5))
    assert not np.allclose(unequal.table, 1.0)
    assert np.allclose(equal.table, 1.0)


def test_the_skew_grows_with_the_candidates() -> None:
    federation, told = Federation.from_sizes([1] * 5), losses(3)
    at_own_model = [
        np.diag(selection_skew(scheme("pow-d", m=1, d=d), federation, told, np.zeros(5)).table)
        for d in range(1, 6)
    ]
    assert np.allclose(at_own_model[0], 1.0)
    assert np.all(np.diff(at_own_model, axis=0) > -1e-12)
    worst = told.max(axis=1) / told.mean(axis=1)
    assert np.allclose(at_own_model[-1], worst)  # d = n, m = 1: the worst of all


def test_a_sample_agrees_with_the_enumeration() -> None:
    # Ten clients are sampled. Hoeffding at level 1e-6; another d is rejected.
    told, draws = losses(1, 10), 1500
    federation = Federation.from_sizes([1] * 10)
    spread = np.ptp(told[0]) / told[0].mean()
    allowed = spread * np.sqrt(np.log(2e6) / (2 * draws))

    def gap(d: int) -> float:
        chosen = scheme("pow-d", m=1, d=d)
        found = selection_skew(chosen, federation, told, np.zeros(10), draws=draws).table[0, 0]
        pairs = [max(told[0, list(pair)]) for pair in combinations(range(10), 2)]
        return float(abs(found - np.mean(pairs) / told[0].mean()))

    assert gap(2) < allowed < gap(6)


def test_skew_needs_losses_above_the_optima() -> None:
    federation = Federation.from_sizes([1, 1])
    pow_d = scheme("pow-d", m=1, d=2)
    with pytest.raises(BadInput, match="best for every client at once"):
        selection_skew(pow_d, federation, [[1.0, 1.0]], [1.0, 1.0])
    with pytest.raises(BadInput, match=r"losses \(models, 2\)"):
        selection_skew(pow_d, federation, [1.0, 1.0], [0.0, 0.0])
    with pytest.raises(BadInput, match="must be finite"):
        selection_skew(pow_d, federation, [[np.nan, 1.0]], [0.0, 0.0])


# -- Theorem 1 -----------------------------------------------------------------------------------


def test_the_bound_by_hand() -> None:
    # gamma = 16; 4 L (32 tau^2 G^2 + sigma^2 / m) = 8 (7200 + 1/2) = 57604;
    # / (3 mu^2 rho) = / 0.9375; 8 L^2 Gamma / mu^2 = 64; L gamma |..|^2 / 2 = 256.
    bound = skew_bound(PROBLEM, gap=0.5, lowest=1.25, highest=2.0, m=2, iterations=84)
    assert np.isclose(bound.vanishing, (57604 / 0.9375 + 64 + 256) / 100)
    assert np.isclose(bound.bias, 8 * 2 * 0.5 / 1.5 * (2.0 / 1.25 - 1))
    assert np.isclose(bound.total, bound.vanishing + bound.bias)


@given(st.floats(0, 5), st.floats(0.1, 5), st.floats(1, 4), st.integers(1, 10**6))
def test_what_vanishes_and_what_does_not(
    gap: float, lowest: float, ratio: float, iterations: int
) -> None:
    def bound(times: int) -> Any:
        return skew_bound(PROBLEM, gap, lowest, ratio * lowest, 3, times)

    assert bound(2 * iterations).vanishing < bound(iterations).vanishing
    assert bound(2 * iterations).bias == bound(iterations).bias >= 0
    assert skew_bound(PROBLEM, gap, lowest, lowest, 3, iterations).bias == 0
    assert skew_bound(PROBLEM, 0.0, lowest, ratio * lowest, 3, iterations).bias == 0
    faster = skew_bound(PROBLEM, gap, 2 * lowest, 2 * ratio * lowest, 3, iterations)
    assert faster.vanishing <= bound(iterations).vanishing


@pytest.mark.parametrize(
    ("change", "name"),
    [({"L": 0}, "L"), ({"mu": 3.0}, "mu"), ({"G": -1}, "G"), ({"tau": 0}, "tau")],
)
def test_bad_constants(change: dict[str, Any], name: str) -> None:
    good = {"L": 2.0, "mu": 0.5, "G": 3.0, "sigma": 1.0, "tau": 5, "distance": 4.0}
    with pytest.raises(BadParameter, match=f"'{name}' parameter of Smoothness"):
        Smoothness(**{**good, **change})


@pytest.mark.parametrize(
    "arguments",
    [(-1.0, 1.0, 1.0, 3, 10), (1.0, 0.0, 1.0, 3, 10), (1.0, 2.0, 1.0, 3, 10), (1.0, 1, 1, 0, 10)],
)
def test_bad_arguments_of_the_bound(arguments: Any) -> None:
    with pytest.raises(BadParameter):
        skew_bound(PROBLEM, *arguments)


def test_on_a_task_the_trade_off_shows() -> None:
    # More candidates: more skew, and the run ends further from the optimum of the federation.
    task = Quadratic(np.random.default_rng(0).normal(size=(8, 2)) * [3, 1])
    work = LocalWork(steps=2, lr=0.3, batch=None)
    models = np.stack(
        [simulate(task, scheme("md", m=2), rounds=r, work=work).model for r in (1, 4, 9)]
    )
    models = np.concatenate([models, task.optimum[None]])
    found = {d: skew_on(task, scheme("pow-d", m=2, d=d), models) for d in (2, 8)}
    assert np.isclose(found[2].gap, objective_gap(task.importance, _at(task), np.zeros(8)))
    assert np.allclose(found[2].skew.table, 1.0)
    assert found[8].skew.highest > 1.2
    assert np.allclose(found[2].local_optima, 0.0)


def _at(task: Quadratic) -> Any:
    return task.client_losses(task.optimum[None])[0]


# -- Claims 1 to 4 of the thesis, by enumeration -------------------------------------------------


def subsets(values: list[int], k: int) -> Iterator[tuple[int, ...]]:
    return combinations(values, k)


def mean(values: Iterator[int] | list[int]) -> Fraction:
    listed = list(values)
    return Fraction(sum(listed), len(listed))


def plain_sum(values: list[int], k: int) -> Fraction:
    """E S_1: the sum of k values drawn without replacement."""
    return mean([sum(drawn) for drawn in subsets(values, k)])


def smallest_sum(values: list[int], k: int, r: int) -> Fraction:
    """E S_2: the sum of the k smallest of r drawn."""
    return mean([sum(sorted(drawn)[:k]) for drawn in subsets(values, r)])


sets = st.lists(st.integers(0, 50), min_size=2, max_size=7, unique=True)


@given(sets, st.data())
def test_claim_1_the_best_of_more_is_no_worse(values: list[int], data: st.DataObject) -> None:
    r = data.draw(st.integers(1, len(values)))
    k = data.draw(st.integers(1, r))
    assert smallest_sum(values, k, r) <= plain_sum(values, k)
    if k == r:
        assert smallest_sum(values, k, r) == plain_sum(values, k)
    largest = mean([sum(sorted(drawn)[-k:]) for drawn in subsets(values, r)])
    assert largest >= plain_sum(values, k)  # the thesis' remark: the other way round, too


def clusters(data: st.DataObject) -> tuple[list[list[int]], int]:
    """Disjoint clusters of one size n, and c = k / m."""
    n, m = data.draw(st.sampled_from([(1, 2), (2, 2), (3, 2), (2, 3)]))
    values = data.draw(st.lists(st.integers(0, 50), min_size=n * m, max_size=n * m, unique=True))
    return [values[i * n : (i + 1) * n] for i in range(m)], data.draw(st.integers(1, n))


@given(st.data())
def test_claim_2_what_a_cluster_gives_to_a_plain_draw(data: st.DataObject) -> None:
    # E3.11: P_1 draws k from all of X, so that the number Z_i from cluster i is random.
    system, c = clusters(data)
    everything = [value for cluster in system for value in cluster]
    k = c * len(system)
    for cluster in system:
        draws = [[v for v in drawn if v in cluster] for drawn in subsets(everything, k)]
        expected = Fraction(c * sum(cluster), len(cluster))
        assert mean([sum(own) for own in draws]) == expected
        assert mean([sum(own) for own in draws if len(own) == c]) == expected


@given(st.data())
def test_claims_3_and_4_the_best_of_each_cluster(data: st.DataObject) -> None:
    system, c = clusters(data)
    r = data.draw(st.integers(c, len(system[0])))
    everything = [value for cluster in system for value in cluster]
    for cluster in system:
        conditional = plain_sum(cluster, c)
        assert smallest_sum(cluster, c, r) <= conditional
    total = sum(smallest_sum(cluster, c, r) for cluster in system)
    assert total <= plain_sum(everything, c * len(system))


def test_for_unequal_clusters_claim_2_needs_their_sizes() -> None:
    # E Z_i = k n_i / sum n, and not k / m: the thesis restricts itself to equal sizes.
    system, k = [[1, 2, 3], [10]], 2
    everything = [value for cluster in system for value in cluster]
    draws = [sum(v for v in drawn if v in system[1]) for drawn in subsets(everything, k)]
    assert mean(draws) == Fraction(10 * k, 4)
    assert mean(draws) != Fraction(10 * k, 2)
