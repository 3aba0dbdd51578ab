from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from fedcohort import Claim, Federation, Selector, scheme
from fedcohort._internal.errors import CheckFailed
from fedcohort.selection._scripted import Trial
from fedcohort.testing import check_scheme, run_check
from fedcohort.testing._claims import check_unbiased
from fedcohort.theory import enumerated_moments

SIZES = [3, 2, 1]
NORMALISED = scheme("fedavg:m=2,weights=normalised")


def expected_by_hand(sizes: list[int], m: int) -> list[Fraction]:
    """E[n_i / sum_S n] over all cohorts of m, worked out the long way."""
    cohorts = list(combinations(range(len(sizes)), m))
    total = [Fraction(0)] * len(sizes)
    for chosen in cohorts:
        for i in chosen:
            total[i] += Fraction(sizes[i], sum(sizes[j] for j in chosen)) / len(cohorts)
    return total


def expected(sizes: list[int]) -> list[float]:
    """The same, by every path through the scheme itself."""
    trial = Trial.of(NORMALISED, Federation.from_sizes(sizes), None)
    law = trial.law(trial.start())
    assert law is not None
    return [float(mean) for mean in enumerated_moments(law, len(sizes)).mean]


def test_normalised_weights_are_biased_towards_small_clients() -> None:
    by_hand = expected_by_hand(SIZES, 2)
    assert by_hand == [Fraction(9, 20), Fraction(16, 45), Fraction(7, 36)]
    assert expected(SIZES) == pytest.approx([float(mean) for mean in by_hand], rel=1e-12)
    with pytest.raises(CheckFailed, match=r"client 0 is 0\.45, its importance 0\.5"):
        check_unbiased(NORMALISED, Federation.from_sizes(SIZES))


@pytest.mark.parametrize("sizes", [[5, 4, 3, 2, 1], [10, 3, 2, 1], [7, 7, 1]])
def test_every_path_agrees_with_the_long_way(sizes: list[int]) -> None:
    by_hand = [float(mean) for mean in expected_by_hand(sizes, 2)]
    assert expected(sizes) == pytest.approx(by_hand, rel=1e-12)


def test_equal_sizes_are_not_biased() -> None:
    assert expected([4, 4, 4]) == pytest.approx([1 / 3] * 3, rel=1e-12)


def test_both_weigh_the_same_clients_in_proportion() -> None:
    federation = Federation.from_sizes([5, 4, 3, 2, 1])
    for seed in range(10):
        plain = Selector(scheme("fedavg:m=3"), federation, seed).select()
        whole = Selector(scheme("fedavg:m=3,weights=normalised"), federation, seed).select()
        assert np.array_equal(plain.clients, whole.clients)
        assert np.allclose(whole.weights, plain.weights / plain.weights.sum(), rtol=1e-12)


def test_claims_and_law_follow_the_weights() -> None:
    federation = Federation.from_sizes(SIZES)
    assert scheme("fedavg").claims == {Claim.EXACTLY_M}
    assert NORMALISED.claims == {Claim.EXACTLY_M, Claim.SUMS_TO_ONE}
    assert scheme("fedavg", m=2).law(federation) is not None
    assert NORMALISED.law(federation) is None
    assert run_check("sums-to-one", NORMALISED).outcome == "ok"
    assert run_check("exactly-m", NORMALISED).outcome == "ok"


def test_equal_weights_average_over_clients_whatever_their_sizes() -> None:
    chooser = scheme("fedavg:m=2,weights=equal")
    federation = Federation.from_sizes(SIZES)
    trial = Trial.of(chooser, federation, None)
    law = trial.law(trial.start())
    assert law is not None
    means = enumerated_moments(law, len(SIZES)).mean
    assert list(means) == pytest.approx([1 / 3] * 3, rel=1e-12)
    for seed in range(10):
        chosen = Selector(chooser, federation, seed).select()
        plain = Selector(scheme("fedavg:m=2"), federation, seed).select()
        assert np.array_equal(chosen.clients, plain.clients)
        assert chosen.weights.tolist() == [0.5, 0.5]
    assert chooser.claims == {Claim.EXACTLY_M, Claim.SUMS_TO_ONE}
    assert [each for each in check_scheme(chooser) if not each.passed] == []
