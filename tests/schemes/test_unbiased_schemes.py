"""What is particular to a scheme; what all must do stands in test_schemes.py."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, RoundContext, Selector, scheme
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.selection import NoState
from fedcohort.selection._scripted import Trial
from fedcohort.theory import enumerated_moments

FEDERATION = Federation.from_sizes([5, 4, 3, 2, 1])


def law(name: str, federation: Federation = FEDERATION, **parameters: Any) -> Any:
    return Selector(scheme(name, **parameters), federation, seed=0).design()


def test_poisson_varies_less_than_md_for_every_client() -> None:
    assert np.all(law("poisson", m=3).variance() < law("md", m=3).variance())


def test_clustered_varies_no_more_than_md() -> None:
    for m in range(1, 8):
        for dedicate in (False, True):
            clustered = law("clustered-size", m=m, dedicate_large=dedicate)
            assert np.all(clustered.variance() <= law("md", m=m).variance() + 1e-15)


def test_uniform_beats_md_where_corollary_1_says() -> None:
    # The weights vary less in sum exactly when sum p^2 <= 1 / (n - m + 1).
    rng = np.random.default_rng(0)
    for _ in range(200):
        n = int(rng.integers(3, 12))
        m = int(rng.integers(1, n))
        federation = Federation.from_sizes(rng.integers(1, 10, n))
        uniform, md = (law(name, federation, m=m) for name in ("uniform", "md"))
        squares = float(federation.importance @ federation.importance)
        better = uniform.variance().sum() <= md.variance().sum() + 1e-12
        assert better == (squares <= 1 / (n - m + 1) + 1e-12)


def test_fedavg_moves_by_a_fraction() -> None:
    design = law("fedavg", m=2)
    np.testing.assert_allclose(design.mean(), FEDERATION.importance * 2 / 5)


def test_ties_by_index_are_the_oracle_of_clients_stored_class_by_class() -> None:
    federation = Federation.from_sizes([10] * 6)  # clients 0-1, 2-3, 4-5 hold a class each
    by_index = law("clustered-size", federation, m=3, ties="index")
    oracle = law("target", federation, m=3, groups=[0, 0, 1, 1, 2, 2])
    np.testing.assert_array_equal(by_index.covariance(), oracle.covariance())
    shuffled = [
        Selector(scheme("clustered-size", m=3), federation, seed).design().covariance()  # type: ignore[union-attr]
        for seed in range(20)
    ]
    assert len({picture.tobytes() for picture in shuffled}) > 5  # another every run


def test_target_draws_one_of_each_group() -> None:
    groups = [0, 1, 2, 0, 1, 2]
    selector = Selector(
        scheme("target", m=3, groups=groups), Federation.from_sizes([7] * 6), seed=0
    )
    for _ in range(20):
        cohort = selector.select()
        assert sorted(groups[i] for i in cohort.clients) == [0, 1, 2]
        selector.observe()


def test_target_needs_a_group_for_every_client() -> None:
    with pytest.raises(BadParameter, match=r"one group per client \(5\).*2 groups"):
        law("target", groups=[0, 1])


@pytest.mark.parametrize(
    "rows", [np.full((5, 2), np.nan), -np.ones((5, 2)), np.ones(5), np.full((5, 2), "x")]
)
def test_target_refuses_histograms_that_are_none(rows: np.ndarray) -> None:
    selector = Selector(scheme("target", m=2), FEDERATION, seed=0, ask=lambda ask: rows)
    with pytest.raises(BadInput, match=r"label.histogram"):
        selector.select()


def test_optimal_leaves_out_those_with_nothing_to_say() -> None:
    optimal = scheme("optimal", m=2)
    for nothing in (0.0, np.nan, -1.0, np.inf):
        design = optimal.given(np.array([1.0, nothing, 1.0, 2.0, 1.0]), FEDERATION)  # type: ignore[attr-defined]
        assert design.inclusion()[1] == 0
        assert design.inclusion().sum() == pytest.approx(2)
    alike = optimal.given(np.zeros(5), FEDERATION)  # type: ignore[attr-defined]
    np.testing.assert_allclose(alike.inclusion(), 2 / 5)


def test_optimal_has_the_least_variance_of_all_bernoulli_designs() -> None:
    rng = np.random.default_rng(1)
    norms = rng.uniform(0.1, 5, 5)
    best = scheme("optimal", m=2).given(norms, FEDERATION)  # type: ignore[attr-defined]
    least = best.aggregate_variance(norms)
    for name in ("binomial", "poisson"):
        assert law(name, m=2).aggregate_variance(norms) >= least - 1e-12
    for _ in range(200):
        moved = np.clip(best.inclusion() + rng.normal(0, 0.05, 5), 1e-3, 1)
        moved *= 2 / moved.sum()
        if moved.max() <= 1:
            other = type(best).of_floats(FEDERATION.shares, moved)
            assert other.aggregate_variance(norms) >= least - 1e-12


def test_poisson_says_what_it_needs() -> None:
    with pytest.raises(BadParameter) as caught:
        law("poisson", Federation.from_sizes([8, 1, 1]), m=2)
    assert "'m' parameter of poisson must be at most 1 here" in str(caught.value)
    assert "cap=True" in str(caught.value)


@pytest.mark.parametrize("name", ["md", "uniform", "binomial", "poisson", "clustered-size"])
def test_the_code_that_draws_has_the_declared_law(name: str) -> None:
    # The select of the scheme itself along every path, against the moments of its design.
    trial = Trial.of(scheme(name, m=2), FEDERATION, None)
    state = trial.start()
    paths = trial.law(state)
    assert paths is not None
    found, design = enumerated_moments(paths, 5), trial.design(state)
    assert design is not None
    np.testing.assert_allclose(found.covariance.astype(float), design.covariance(), atol=1e-15)


def test_a_scheme_without_memory_says_so() -> None:
    md = scheme("md", m=2)
    state = md.start(FEDERATION, None)
    assert state == NoState()
    assert md.design(state, FEDERATION, RoundContext()) is md.design(
        state, FEDERATION, RoundContext()
    )
