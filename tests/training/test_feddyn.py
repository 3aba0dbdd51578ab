"""FedDyn: its fixed point, its sum over the clients, and what travels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fedcohort import LocalWork, scheme, simulate
from fedcohort._internal.errors import BadInput
from fedcohort.server import AsDrawn, Plain, Redraw, Sgd, guards
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, DropOuts, Random
from fedcohort.simulation._engine import Simulation
from fedcohort.training import FedDyn, Quadratic

MINIMA = np.random.Generator(np.random.Philox(0)).standard_normal((6, 5))
SIZES = np.array([1, 2, 3, 4, 5, 6])
FEW = LocalWork(steps=5, lr=0.1, batch=None)


def curved(work: LocalWork) -> LocalWork:
    """Steps after which FedAvg would stop elsewhere: clients are pulled by other amounts."""
    return replace(work, decay=0.3)


def minimiser(problem: Quadratic, decay: float) -> np.ndarray:
    """Of sum_i p_i (F_i(x) + decay/2 x^2)."""
    return problem.optimum / (1 + decay)


@pytest.mark.parametrize("chosen", ["full", "md:m=2", "uniform:m=3", "binomial:m=3"])
@pytest.mark.parametrize("steps", [2, 20])
def test_the_fixed_point_on_quadratics_is_the_minimiser(chosen: str, steps: int) -> None:
    """Also with few local steps, unequal importances, and weights that only sum to 1 on average."""
    problem = Quadratic(MINIMA, sizes=SIZES)
    work = replace(curved(FEW), steps=steps)
    found = simulate(problem, chosen, rounds=500, work=work, algorithm="feddyn:alpha=3").model
    np.testing.assert_allclose(found, minimiser(problem, work.decay), atol=1e-12)


def test_without_the_servers_share_it_would_stop_elsewhere() -> None:
    """What the sums are for: the plain average with the same clients is no minimiser."""

    class Half(FedDyn):
        def direct(self, direction: Any, server: Any) -> Any:
            return direction

    problem = Quadratic(MINIMA, sizes=SIZES)
    work = curved(FEW)
    far = [
        np.abs(
            simulate(problem, "md:m=2", rounds=500, work=work, algorithm=which).model
            - minimiser(problem, work.decay)
        ).max()
        for which in (FedDyn(3.0), Half(3.0))
    ]
    assert far[0] < 1e-12 < 1e-3 < far[1]


def test_it_is_the_algorithm_of_the_paper() -> None:
    """Algorithm 1 with exact local minima, written out; clients count alike and all answer."""
    alpha, n = 0.7, len(MINIMA)
    x, h, g = np.zeros(5), np.zeros(5), np.zeros((n, 5))
    for _ in range(20):
        # argmin 1/2 |y - y_k|^2 - <g_k, y> + alpha/2 |y - x|^2
        y = (MINIMA + g + alpha * x) / (1 + alpha)
        g = g - alpha * (y - x)
        h = h - alpha * (y - x).sum(axis=0) / n
        x = y.mean(axis=0) - h / alpha
    problem = Quadratic(MINIMA)
    work = LocalWork(steps=200, lr=0.5, batch=None)
    found = simulate(problem, "full", rounds=20, work=work, algorithm=FedDyn(alpha))
    np.testing.assert_allclose(found.model, x, atol=1e-12)


@pytest.mark.parametrize("quorum", [0.0, 0.6])
@pytest.mark.parametrize("chosen", ["md:m=3", "uniform:m=3", "poisson:m=3"])
def test_h_is_the_sum_over_the_clients(chosen: str, quorum: float) -> None:
    dropouts = DropOuts(Random(0.6), Redraw(attempts=1), quorum)
    setup = Setup(scheme(chosen), 5, Sgd(), Plain(), dropouts.rule, quorum, FedDyn())
    problem = Quadratic(MINIMA, sizes=SIZES, noise=0.3)
    run = Simulation(problem, setup, FEW, Always(), dropouts)
    for _ in range(25):
        run.play()
        own = np.zeros_like(MINIMA)
        for i, kept in run.kept.items():
            own[i] = kept["g_i"]
        gap = run.state.algorithm["h"] - run.state.federation.importance @ own
        assert np.abs(gap).max() <= 1e-12 * max(1.0, np.abs(own).max())
    assert np.abs(own).max() > 1e-2


def test_h_is_the_sum_over_the_clients_where_updates_are_shortened() -> None:
    short = guards("clip:length=0.05")
    setup = Setup(scheme("md:m=3"), 5, dropouts=AsDrawn(), algorithm=FedDyn(), guards=short)
    run = Simulation(Quadratic(MINIMA, sizes=SIZES), setup, FEW, Always(), None)
    for _ in range(5):
        run.play()
    own = np.zeros_like(MINIMA)
    for i, kept in run.kept.items():
        own[i] = kept["g_i"]
    gap = run.state.algorithm["h"] - run.state.federation.importance @ own
    assert np.abs(gap).max() <= 1e-12
    assert np.abs(own).max() > 0.1 * 0.05 * 5  # more than five short updates could have made


def test_nothing_travels_but_the_model() -> None:
    problem = Quadratic(MINIMA, sizes=SIZES)
    plain, dyn = (
        simulate(problem, "md:m=3", rounds=5, work=FEW, algorithm=which)
        for which in (None, "feddyn")
    )
    assert plain.bytes_down.tolist() == dyn.bytes_down.tolist()
    assert plain.bytes_up.tolist() == dyn.bytes_up.tolist()
    assert FedDyn().disclosures == []


def test_a_scheme_that_hides_single_updates_is_refused() -> None:
    problem = Quadratic(MINIMA, sizes=10 * SIZES)
    for which in ("feddyn", "ifca"):
        with pytest.raises(BadInput, match=f"'{which}' counts the update of each client, but with"):
            simulate(problem, "fedsampling:K=20", rounds=1, algorithm=which)
