"""The bound term by term, and that it is a bound: against an exact recursion."""

from __future__ import annotations

from fractions import Fraction
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import Federation, scheme
from fedcohort._internal.errors import BadInput, BadParameter
from fedcohort.designs import Everyone, Rows, Simple, Stratified
from fedcohort.selection import Shares
from fedcohort.theory import (
    Training,
    convergence_bound,
    expected_gradients,
    largest_local_step,
    proximal_weights,
    quadratic,
    second_moment,
)
from helpers.examples import few

SIZES = [5, 4, 3, 2, 1]
FEDERATION = Federation.from_sizes(SIZES)
SHARES = FEDERATION.shares
P = FEDERATION.importance
MINIMA = np.array([[1, 0], [0, 2], [-1, 1], [2, -1], [-2, -2]], dtype=float)


def laws(m=2):
    return {
        "full": Everyone(SHARES),
        "md": Rows.alike(SHARES, m),
        "uniform": Simple(SHARES, m),
        "poisson": scheme("poisson", m=m).law(FEDERATION),
        "clustered": Rows.along(np.arange(5), SHARES, m),
    }


def test_terms_of_theorem_2_by_hand():
    """FedAvg: A to E of (131)-(135), the constants of (121), everything over 1 - 4 Omega."""
    t = Training(
        eta_l=0.001, steps=4, rounds=50, smoothness=2.0, gap=3.0, noise=0.7, dissimilarity=0.4,
        beta=1.5, eta_g=1.1, constants="paper",
    )  # fmt: skip
    bound = convergence_bound(Simple(SHARES, 2), t)
    K, L, eta, sigma, gamma = 4, 2.0, 1.1 * 0.001, 11 / 30, 11 / 24  # weight_statistics
    omega = 1.5 * L * eta * K * gamma * 1.5
    left = 1 - 4 * omega
    assert (bound.sigma, bound.gamma) == pytest.approx((sigma, gamma))
    assert bound.alpha == pytest.approx(3 / 8)
    assert bound.omega == pytest.approx(omega)
    assert list(bound.terms) == pytest.approx(
        [
            4 * 3.0 / (eta * K * 50) / left,
            3 * 0.001**2 * L**2 * 0.7 * (K - 1) / left,
            6 * 0.001**2 * L**2 * 0.4 * K * (K - 1) / left,
            2 * L * eta * 0.7 * (sigma + 11 / 45) / left,
            3 * L * eta * 0.7 * gamma * (K - 1) / K / left,
            6 * L * eta * 0.4 * gamma * K / left,
        ]
    )
    assert bound.valid
    assert bound.total == sum(bound.terms)
    text = str(bound)
    assert "total" in text
    assert "FAILS" not in text


def test_sound_constants_double_where_noise_follows_noise():
    several = {"eta_l": 1e-3, "steps": 3, "rounds": 10, "noise": 1.0, "dissimilarity": 1.0}
    md = laws()["md"]
    paper = convergence_bound(md, Training(**several, constants="paper"))
    sound = convergence_bound(md, Training(**several))
    assert sound.omega == pytest.approx(2 * paper.omega)
    ratio = np.array(sound.terms) / np.array(paper.terms)
    left = (1 - 4 * paper.omega) / (1 - 4 * sound.omega)
    assert ratio == pytest.approx([left] + [2 * left] * 5)
    for exact in ({"steps": 1}, {"noise": 0.0}):  # nothing to repair
        a = convergence_bound(md, Training(**(several | exact), constants="paper"))
        assert a == convergence_bound(md, Training(**(several | exact)))


def test_omega_needs_a_quarter_not_a_half():
    """E2.13: with 1/4 < Omega <= 1/2 the printed theorem claims a bound that is none."""
    md = Rows.alike(Shares.of(np.array([1] * 10)), 1)
    # 1.5 * L * eta * K * gamma * beta^2 = 0.3
    bound = convergence_bound(md, Training(eta_l=0.2, steps=1, rounds=10))
    assert 0.25 < bound.omega <= 0.5
    assert not bound.valid
    assert bound.total == inf
    failed = [c.name for c in bound.conditions if not c.holds]
    assert failed == ["4 Omega, what sampling adds (130, corrected)"]
    assert "FAILS" in str(bound)


def exact_average_gradient(design, t: Training, start, sigma):
    """(1/T) sum_t E||theta^t - theta*||^2 for quadratic clients, by the exact recursion.

    E[theta] and the second moment E[theta theta'] (d x d) close under one round.
    """
    p, optimum = design.mean(), design.mean() @ MINIMA
    phi = 1 - (1 - t.eta_l) ** t.steps
    cov, mean = design.covariance(), start.copy()
    second = np.outer(start, start)
    each = (t.eta_l * sigma) ** 2 * sum((1 - t.eta_l) ** (2 * k) for k in range(t.steps))
    ones, total = np.ones(len(p)), 0.0
    for _ in range(t.rounds):
        total += np.trace(second) - 2 * mean @ optimum + optimum @ optimum
        # theta' = theta (1 - g W) + g sum w_i theta_i*, W = sum w_i, plus noise
        g = t.eta_g * phi
        w1, w2 = 1.0, 1.0 + ones @ cov @ ones  # E W, E W^2
        wx = (cov @ ones + p) @ MINIMA  # E[W sum w_i theta_i*]
        xx = MINIMA.T @ (cov + np.outer(p, p)) @ MINIMA
        linear = np.outer(mean, g * optimum - g**2 * wx)
        second = (
            (1 - 2 * g * w1 + g**2 * w2) * second
            + linear
            + linear.T
            + g**2 * xx
            + t.eta_g**2 * each * (np.diag(cov) + p**2).sum() * np.eye(2)
        )
        mean = (1 - g) * mean + g * optimum
    return total / t.rounds


@pytest.mark.parametrize("name", sorted(laws()))
def test_recursion_is_the_decomposition(name):
    design, start = laws()[name], np.array([3.0, -4.0])
    t = Training(eta_l=0.2, steps=3, rounds=2, eta_g=1.3)
    two = exact_average_gradient(design, t, start, 0.5) * 2
    after = quadratic(design, MINIMA, start, eta_l=0.2, steps=3, eta_g=1.3, sigma=0.5)
    assert two == pytest.approx(after.start + after.total)


@pytest.mark.parametrize("name", sorted(laws()))
@pytest.mark.parametrize(("steps", "sigma"), [(1, 0.0), (1, 1.0), (5, 0.0), (5, 1.0)])
def test_it_is_a_bound(name, steps, sigma):
    design, start = laws()[name], np.array([3.0, -4.0])
    optimum = P @ MINIMA
    # ||theta - theta_i*||^2 <= 2 ||theta - theta*||^2 + 2 ||theta* - theta_i*||^2 for all i.
    kappa = 2 * float(((MINIMA - optimum) ** 2).sum(axis=1).max())
    gap = 0.5 * float(((start - optimum) ** 2).sum())
    t = Training(
        eta_l=1, steps=steps, rounds=300, gap=gap, noise=2 * sigma**2, dissimilarity=kappa, beta=2
    )
    eta_l = largest_local_step(design, t)
    t = Training(**(t.__dict__ | {"eta_l": eta_l * (1 - 1e-9)}))
    bound = convergence_bound(design, t, importance=P)
    assert bound.valid
    assert exact_average_gradient(design, t, start, sigma) <= bound.total


def test_largest_step_is_the_largest():
    for name, design in laws().items():
        for steps in (1, 4):
            t = Training(eta_l=1, steps=steps, rounds=10, noise=1.0, smoothness=2, eta_g=1.5)
            step = largest_local_step(design, t)
            below = convergence_bound(design, Training(**(t.__dict__ | {"eta_l": step * 0.999})))
            above = convergence_bound(design, Training(**(t.__dict__ | {"eta_l": step * 1.001})))
            assert below.valid, name
            assert 4 * below.omega <= 0.5
            assert not above.valid or 4 * above.omega > 0.5


def test_clustered_by_corollary_2():
    t = Training(eta_l=1e-3, steps=3, rounds=10, noise=1.0, dissimilarity=1.0)
    clustered = convergence_bound(laws()["clustered"], t)
    md = convergence_bound(laws()["md"], t)
    assert clustered.terms.aggregate_noise < md.terms.aggregate_noise  # A is smaller
    assert clustered.terms[4:] == pytest.approx(md.terms[4:])  # D and E are those of MD
    assert "Corollary 2" in clustered.covariance


def test_strata_are_bounded_by_independence():
    parts = (Simple(Shares.of(np.array([5, 4, 3])), 1), Rows.alike(Shares.of(np.array([2, 1])), 1))
    design = Stratified(5, (np.arange(3), np.arange(3, 5)), parts, (Fraction(4, 5), Fraction(1, 5)))
    bound = convergence_bound(design, Training(eta_l=1e-3, steps=2, rounds=5), importance=P)
    assert bound.valid
    x = np.random.default_rng(0).normal(size=(5, 3))
    gamma = design.variance()
    gamma[:3] += parts[0].alpha * P[:3] ** 2
    gamma[3:] += parts[1].alpha * P[3:] ** 2
    assert bound.gamma == pytest.approx(gamma.sum())
    assert second_moment(design, x) <= gamma @ (x**2).sum(axis=1) + np.sum((P @ x) ** 2)


@given(st.floats(0, 5), st.floats(0.01, 0.19), st.integers(1, 9))
@few(40)
def test_proximal_weights_are_those_of_the_recursion(mu, eta_l, steps):
    gradients = np.random.default_rng(0).normal(size=steps)
    moved = 0.0
    for g in gradients:
        moved -= eta_l * (g + mu * moved)
    weights = proximal_weights(steps, mu, eta_l)
    assert moved == pytest.approx(-eta_l * weights @ gradients)
    assert weights[-1] == 1


def test_fedprox_and_given_weights():
    md, t = laws()["md"], Training(eta_l=1e-3, steps=3, rounds=10, noise=1.0, dissimilarity=1.0)
    plain = convergence_bound(md, t)
    ones = convergence_bound(md, t, local_weights=np.ones(3))
    assert list(plain.terms) == pytest.approx(list(ones.terms))
    prox = convergence_bound(md, t, local_weights=proximal_weights(3, 100.0, 1e-3))
    assert prox.terms.sampling_dissimilarity < plain.terms.sampling_dissimilarity
    each = convergence_bound(md, t, local_weights=np.ones((5, 3)))
    assert each.total == pytest.approx(plain.total)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda t: convergence_bound(Simple(SHARES, 2, compensated=False), t), "unbiased"),
        (lambda t: convergence_bound(laws()["md"], t, importance=[0.2] * 5), "biased"),
        (lambda t: convergence_bound(laws()["md"], t, local_weights=-np.ones(2)), "local_weights"),
        (lambda t: Training(eta_l=0.0, steps=1, rounds=1), "eta_l"),
        (lambda t: Training(eta_l=0.1, steps=0, rounds=1), "steps"),
        (lambda t: Training(eta_l=0.1, steps=1, rounds=1, beta=0.5), "beta"),
        (lambda t: Training(eta_l=0.1, steps=1, rounds=1, noise=float("nan")), "noise"),
        (lambda t: proximal_weights(2, 3.0, 0.5), "mu"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises((BadInput, BadParameter), match=words):
        call(Training(eta_l=0.01, steps=2, rounds=3))


@pytest.mark.parametrize("name", sorted(laws()))
def test_two_recursions_agree(name):
    """One of raw second moments (above), one of the distance alone."""
    design, start = laws()[name], np.array([3.0, -4.0])
    t = Training(eta_l=0.2, steps=3, rounds=7, eta_g=1.3, noise=2 * 0.5**2)
    twin = exact_average_gradient(design, t, start, 0.5)
    assert expected_gradients(design, MINIMA, start, t).mean() == pytest.approx(twin)
