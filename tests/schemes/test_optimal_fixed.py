from __future__ import annotations

import numpy as np
import pytest

from fedcohort import Federation, scheme
from fedcohort.selection import Claim
from fedcohort.theory import enumerated_moments

FEDERATION = Federation.from_sizes([5, 4, 3, 2, 1])
JOINT = ["conditional-poisson", "sampford"]


def law(norms, federation=FEDERATION, **settings):
    return scheme("optimal-fixed", **settings).given(np.asarray(norms, dtype=float), federation)


@pytest.mark.parametrize("joint", JOINT)
def test_weights_do_not_sum_to_one(joint):
    """The counter-example, and the reason why it is not claimed."""
    two = Federation.from_sizes([1, 1])
    outcomes = list(law([1, 3], two, m=1, joint=joint).enumerate())
    found = {int(c.clients[0]): [float(chance), float(c.weights[0])] for chance, c in outcomes}
    assert found[0] == pytest.approx([1 / 4, 2], rel=1e-8)
    assert found[1] == pytest.approx([3 / 4, 2 / 3], rel=1e-8)
    assert scheme("optimal-fixed", m=1).claims == {Claim.UNBIASED, Claim.EXACTLY_M}


@pytest.mark.parametrize("joint", JOINT)
def test_of_opposite_updates_it_varies_more_than_independent_coins(joint):
    two, updates = Federation.from_sizes([1, 1]), np.array([1.0, -1.0])
    assert law([1, 1], two, m=1, joint=joint).aggregate_variance(updates) == pytest.approx(1.0)
    coins = scheme("optimal", m=1).given(np.ones(2), two)
    assert coins.aggregate_variance(updates) == pytest.approx(0.5)


@pytest.mark.parametrize("joint", JOINT)
def test_of_updates_that_do_not_oppose_it_never_varies_more(joint):
    rng = np.random.default_rng(0)
    for _ in range(20):
        updates = rng.random((5, 3))
        norms = np.linalg.norm(updates, axis=1)
        fixed = law(norms, m=2, joint=joint)
        coins = scheme("optimal", m=2).given(norms, FEDERATION)
        np.testing.assert_allclose(fixed.inclusion(), coins.inclusion(), atol=1e-8)
        assert fixed.aggregate_variance(updates) <= coins.aggregate_variance(updates) + 1e-12


@pytest.mark.parametrize("joint", JOINT)
def test_exactly_m_come_and_the_mean_is_exact(joint):
    for norms in ([3, 1, 4, 1, 5], [1e-30, 1, 1e9, 2, 0], [1, np.nan, 1, 2, np.inf]):
        for m in (1, 2, 3, "all"):
            outcomes = list(law(norms, m=m, joint=joint).enumerate())
            assert {len(cohort) for _, cohort in outcomes} == {5 if m == "all" else m}
            mean = enumerated_moments(outcomes, 5).mean
            told = np.nan_to_num(np.asarray(norms, dtype=float), posinf=0) > 0
            for i in np.flatnonzero(told):
                assert mean[i] == FEDERATION.shares.fraction(i)


@pytest.mark.parametrize("joint", JOINT)
def test_those_with_nothing_to_say_make_up_the_number(joint):
    design = law([0, 2, 0, 0, 1], m=3, joint=joint)
    np.testing.assert_allclose(design.inclusion(), [1 / 3, 1, 1 / 3, 1 / 3, 1])
    assert law([0, 2, 0, 0, 1], m=2, joint=joint).inclusion().tolist() == [0, 1, 0, 0, 1]
    np.testing.assert_allclose(law(np.zeros(5), m=2, joint=joint).inclusion(), 2 / 5)
    here = FEDERATION.among([0, 2, 4])
    np.testing.assert_allclose(law([1, 1, 3], here, m=2, joint=joint).inclusion()[[1, 3]], 0)
