"""Server optimisers against Algorithm 2 of Reddi et al. (ICLR 2021), coordinate by coordinate."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import LocalWork, scheme, simulate
from fedcohort._internal.errors import BadParameter, UnknownName
from fedcohort.server import Adam, Optimiser, Sgd, Yogi, optimiser
from fedcohort.simulation import Quadratic

ADAPTIVE: dict[str, Callable[[float, float, float], float]] = {
    "adagrad": lambda v, g2, b2: v + g2,
    "adam": lambda v, g2, b2: b2 * v + (1 - b2) * g2,
    "yogi": lambda v, g2, b2: v - (1 - b2) * g2 * ((v > g2) - (v < g2)),
}
"""Lines 12 to 14: how the second moment moves."""


def plain(name: str, theta: list[float], directions: list[list[float]], **s: float) -> list[float]:
    """The obvious twin: one coordinate after another, in Python numbers."""
    out = []
    for j, start in enumerate(theta):
        x, m, v = start, 0.0, s["tau"] ** 2
        for direction in directions:
            m = s["beta1"] * m + (1 - s["beta1"]) * direction[j]
            v = ADAPTIVE[name](v, direction[j] ** 2, s["beta2"])
            x = x + s["eta_g"] * m / (math.sqrt(v) + s["tau"])
        out.append(x)
    return out


def played(rule: Optimiser, theta: list[float], directions: list[list[float]]) -> np.ndarray:
    model, inertia = np.array(theta), rule.start(len(theta))
    for direction in directions:
        model, inertia = rule.step(model, np.array(direction), inertia)
    return model


moves = st.lists(st.lists(st.floats(-5, 5), min_size=3, max_size=3), min_size=1, max_size=6)


@pytest.mark.parametrize("name", ADAPTIVE)
@given(directions=moves, beta1=st.sampled_from([0.0, 0.9]), beta2=st.sampled_from([0.5, 0.99]))
def test_the_adaptive_rules_are_those_of_the_paper(
    name: str, directions: list[list[float]], beta1: float, beta2: float
) -> None:
    settings = {"eta_g": 0.3, "beta1": beta1, "beta2": beta2, "tau": 1e-3}
    start = [0.0, 1.0, -2.0]
    expected = plain(name, start, directions, **settings)
    found = played(optimiser(name, **settings), start, directions)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_one_step_by_hand() -> None:
    # tau = 1: v starts at 1. direction 2: m = 0.5 * 2 = 1.
    settings = {"eta_g": 1.0, "beta1": 0.5, "beta2": 0.5, "tau": 1.0}
    for name, second in (("adagrad", 1 + 4), ("adam", 0.5 + 2), ("yogi", 1 + 0.5 * 4)):
        found = played(optimiser(name, **settings), [0.0], [[2.0]])
        assert found[0] == pytest.approx(1 / (math.sqrt(second) + 1))


def test_momentum_by_hand() -> None:
    # v: 1, then 0.5 + 1; steps 2 v.
    assert played(Sgd(eta_g=2.0, momentum=0.5), [0.0], [[1.0], [1.0]])[0] == 2.0 + 3.0
    assert played(Sgd(), [1.0], [[0.5], [0.25]])[0] == 1.75


def test_yogi_moves_its_second_moment_by_a_bounded_step() -> None:
    # After a burst, Adam forgets by a factor; Yogi by (1 - beta2) times the small square.
    burst = [[10.0], [0.1]]
    adam, yogi = Adam(beta1=0.0), Yogi(beta1=0.0)
    seconds = {}
    for rule in (adam, yogi):
        inertia = rule.start(1)
        for direction in burst:
            _, inertia = rule.step(np.zeros(1), np.array(direction), inertia)
        seconds[rule.name] = inertia.second[0]
    assert seconds["yogi"] > seconds["adam"]


@pytest.mark.parametrize("name", [*ADAPTIVE, "sgd"])
def test_no_direction_no_step_from_rest(name: str) -> None:
    rule = optimiser(name)
    model, inertia = rule.step(np.ones(3), np.zeros(3), rule.start(3))
    np.testing.assert_array_equal(model, np.ones(3))
    assert np.isfinite(inertia.second).all()


@pytest.mark.parametrize("name", [*ADAPTIVE, "sgd"])
def test_inputs_are_not_written_to(name: str) -> None:
    rule = optimiser(name)
    inertia, theta, direction = rule.start(2), np.zeros(2), np.ones(2)
    before = inertia.first.copy(), inertia.second.copy()
    rule.step(theta, direction, inertia)
    np.testing.assert_array_equal(theta, np.zeros(2))
    np.testing.assert_array_equal(inertia.first, before[0])
    np.testing.assert_array_equal(inertia.second, before[1])


@pytest.mark.parametrize("name", [*ADAPTIVE, "sgd"])
@pytest.mark.parametrize("chosen", ["full", "md", "uniform"])
def test_every_rule_works_with_every_scheme(name: str, chosen: str) -> None:
    task = Quadratic([[4.0], [4.0], [4.0]], sizes=[1, 2, 3])
    eta_g = {"sgd": 1.0, "adagrad": 1.0}.get(name, 0.3)
    work = LocalWork(steps=1, batch=None, lr=0.1)
    built = scheme(chosen) if chosen == "full" else scheme(chosen, m=2)
    rule = optimiser(name, eta_g=eta_g)
    trace = simulate(task, built, rounds=150, work=work, optimiser=rule)
    assert trace.train_loss[-1] < 0.05 * trace.train_loss[0]


def test_bad_settings() -> None:
    with pytest.raises(UnknownName, match="adam"):
        optimiser("adan")
    with pytest.raises(UnknownName, match=r"parameter of sgd named 'eta'\. Did you mean 'eta_g'"):
        optimiser("sgd", eta=1.0)
    with pytest.raises(UnknownName, match="no optimiser named Sgd"):  # it has its settings
        optimiser(Sgd(), eta_g=2.0)
    assert optimiser() == Sgd()
    assert optimiser(rule := Adam()) is rule
    for name, setting in (("adam", "tau"), ("sgd", "eta_g")):
        with pytest.raises(BadParameter, match=f"'{setting}' parameter of {name}"):
            optimiser(name, **{setting: 0.0})
    with pytest.raises(BadParameter, match="momentum"):
        Sgd(momentum=float("nan"))
