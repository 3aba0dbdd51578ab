from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fedcohort import Cohort, Federation, scheme
from fedcohort.theory import enumerated_moments, moments

FEDERATION = Federation.from_sizes([5, 4, 3, 2, 1])


@pytest.mark.parametrize("name", ["md", "uniform", "binomial", "poisson"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_table_1_holds(name: str, m: int) -> None:
    # gamma = Sigma + alpha sum p^2 and Var(sum omega) = gamma - alpha, for unbiased weights.
    found = moments(scheme(name, m=m).law(FEDERATION))  # type: ignore[arg-type]
    squares = float(FEDERATION.importance @ FEDERATION.importance)
    assert found.alpha is not None
    assert found.gamma == pytest.approx(found.sigma + found.alpha * squares)
    assert found.weight_sum_variance == pytest.approx(found.gamma - found.alpha, abs=1e-12)
    assert found.expected_distinct == pytest.approx(found.inclusion.sum())
    np.testing.assert_allclose(found.mean, FEDERATION.importance)


def test_pairs_that_differ_have_no_alpha() -> None:
    target = scheme("target", m=2, groups=[0, 1, 0, 1, 0])
    *_, state = _run(target)
    found = moments(target.design(state, FEDERATION, None))  # type: ignore[arg-type]
    assert found.alpha is None
    assert found.gamma is None


def _run(target: object) -> list[object]:
    talk = target.start(FEDERATION, None)  # type: ignore[attr-defined]
    try:
        next(talk)
    except StopIteration as end:
        return [end.value]
    raise AssertionError("groups are given: nobody need be asked")


def test_sums_over_outcomes() -> None:
    # Two clients: with probability 1/4 both (weights 1 and 2), else the second alone (4).
    outcomes = [
        (Fraction(1, 4), Cohort.of([0, 1], [1.0, 2.0])),
        (Fraction(3, 4), Cohort.of([1], [4.0])),
    ]
    found = enumerated_moments(outcomes, 3)
    assert found.mean.tolist() == [Fraction(1, 4), Fraction(7, 2), 0]
    assert found.inclusion.tolist() == [Fraction(1, 4), 1, 0]
    assert found.variance.tolist() == [Fraction(3, 16), Fraction(3, 4), 0]
    assert found.covariance[0, 1] == Fraction(1, 2) - Fraction(7, 8)
    assert found.weight_sum_variance == Fraction(3, 16)  # 3 or 4
    assert found.distinct == (1.25, 0.1875)


def test_probabilities_must_add_up() -> None:
    with pytest.raises(ValueError, match="add up to 1, not 1/2"):
        enumerated_moments([(Fraction(1, 2), Cohort.empty())], 1)
    rounded = [(Fraction(1 / 3), Cohort.of([i], [1.0])) for i in range(3)]  # add up to 1 - 5e-17
    assert np.allclose(enumerated_moments(rounded, 3).mean.astype(float), 1 / 3, rtol=1e-15)
    with pytest.raises(ValueError, match="add up to 1"):
        enumerated_moments([*rounded[:2], (Fraction(1 / 3 - 1e-9), Cohort.empty())], 3)
