from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from fedcohort._internal.errors import TooLarge
from fedcohort.designs import Bernoulli, Everyone, Rows, Simple, Stratified
from fedcohort.selection import Design, Shares
from fedcohort.testing._claims import check_design
from fedcohort.theory import enumerated_moments

SIZES = np.array([5, 4, 3, 2, 1, 6])
STRATA = (np.array([4, 0]), np.array([1, 3, 5]), np.array([2]))


def stratified(parts: list[Design]) -> Stratified:
    whole = int(SIZES.sum())
    scale = tuple(Fraction(int(SIZES[s].sum()), whole) for s in STRATA)
    return Stratified(len(SIZES), STRATA, tuple(parts), scale)


def test_a_different_design_in_every_stratum() -> None:
    first, second, third = (Shares.of(SIZES[s]) for s in STRATA)
    design = stratified(
        [Rows.alike(first, 2), Simple(second, 2), Bernoulli(third, np.array([1]), 3)]
    )
    check_design(design)
    mean = enumerated_moments(design.enumerate(), design.n).mean
    assert list(mean) == [Fraction(int(size), int(SIZES.sum())) for size in SIZES]


def test_the_bound_on_the_covariance_adds_what_each_stratum_has_and_no_more() -> None:
    first, second, third = (Shares.of(SIZES[s]) for s in STRATA)
    design = stratified(
        [Rows.alike(first, 2), Bernoulli(second, np.array([1, 2, 3]), 4), Everyone(third)]
    )
    bound, mean = design.covariance_bound(), SIZES / SIZES.sum()
    assert bound is not None
    extra = np.zeros(6)
    extra[STRATA[0]] = mean[STRATA[0]] ** 2 / 2  # alpha = 1/2; coins and all have alpha = 0
    np.testing.assert_allclose(bound.gamma, design.variance() + extra, rtol=1e-12, atol=1e-15)
    assert bound.alpha == 0


def test_everyone_in_every_stratum_is_everyone() -> None:
    design = stratified([Everyone(Shares.of(SIZES[s])) for s in STRATA])
    check_design(design)
    [(chance, cohort)] = list(design.enumerate())
    assert chance == 1
    assert cohort.clients.tolist() == list(range(6))
    assert sum(cohort.weights) == 1


def test_as_many_outcomes_as_are_allowed_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    strata = (np.arange(3), np.arange(3, 5))  # 3 times 2 outcomes
    parts = tuple(Simple(Shares.of(np.ones(len(s), np.int64)), 1) for s in strata)
    design = Stratified(5, strata, parts, (Fraction(3, 5), Fraction(2, 5)))
    monkeypatch.setattr("fedcohort.designs._stratified.OUTCOME_LIMIT", 6)
    assert [chance for chance, _ in design.enumerate()] == [Fraction(1, 6)] * 6
    monkeypatch.setattr("fedcohort.designs._stratified.OUTCOME_LIMIT", 5)
    with pytest.raises(TooLarge):
        list(design.enumerate())


def test_too_many_outcomes_are_refused() -> None:
    n, groups = 120, 12
    strata = tuple(np.arange(h, n, groups) for h in range(groups))
    parts = tuple(Simple(Shares.of(np.ones(len(s), np.int64)), 5) for s in strata)
    design = Stratified(n, strata, parts, (Fraction(1, groups),) * groups)
    with pytest.raises(TooLarge):
        for _ in design.enumerate():
            pass
