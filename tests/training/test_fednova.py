"""FedNova, and the warning about clients that make unequal numbers of local steps."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from fedcohort import Federation, LocalWork, compare, scheme, simulate
from fedcohort._internal.errors import BadInput, TooFewClients, UnequalWork
from fedcohort.cli import app as command
from fedcohort.selection import Cohort, RoundContext
from fedcohort.server import Attendance, Ledger
from fedcohort.server._round import Participants, aggregate_updates
from fedcohort.server._state import Selection, Setup, State
from fedcohort.server._transport import UpdateBlock
from fedcohort.training import FedNova, Quadratic

EPOCH = LocalWork(epochs=1, batch=10, lr=0.1)
TOY = Quadratic([[0.0], [1.0]], sizes=[10, 1000], importance=[0.5, 0.5])


def quietly(task: Any, chosen: str, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnequalWork)
        return simulate(task, chosen, **options)


def ends(algorithm: str, work: LocalWork = EPOCH, **options: Any) -> float:
    """Return where the toy ends: minima 0 and 1, equal importance, 1 and 100 local steps."""
    settings = {"rounds": 400, "evaluate_every": 400, **options}
    trace = quietly(TOY, "full", work=work, algorithm=algorithm, **settings)
    return float(trace.model[0])


# The objective that is minimized


@pytest.mark.parametrize(
    ("plain", "before", "normalized"),
    [
        ("sgd", 0.909, "fednova:curvature=1"),
        ("fedprox:mu=0.1", 0.901, "fednova:mu=0.1,curvature=1"),
    ],
)
def test_larger_clients_no_longer_pull_the_model_to_their_minimum(
    plain: str, before: float, normalized: str
) -> None:
    assert ends(plain) == pytest.approx(before, abs=5e-4)
    assert ends(normalized) == pytest.approx(0.5, abs=1e-9)


def test_momentum_is_normalized_too() -> None:
    work = LocalWork(epochs=1, batch=10, lr=0.02, momentum=0.8)
    assert ends("sgd", work) > 0.9
    assert ends("fednova:curvature=1", work, rounds=1000) == pytest.approx(0.5, abs=1e-9)


def test_as_published_it_is_right_for_small_steps_and_goes_too_far_for_large_ones() -> None:
    small = LocalWork(epochs=1, batch=10, lr=1e-4)
    assert ends("sgd", small, optimiser="sgd:eta_g=100") == pytest.approx(0.990, abs=5e-4)
    assert ends("fednova", small, optimiser="sgd:eta_g=2000") == pytest.approx(0.4988, abs=1e-4)
    drifts = np.array([0.1, (1 - 0.9**100) / 100])  # of an update, in units of lr times distance
    assert ends("fednova") == pytest.approx(drifts[1] / drifts.sum(), abs=1e-9)  # 0.091


def test_the_steps_of_clients_that_make_equally_many_are_those_of_plain_averaging() -> None:
    task = Quadratic(np.arange(8.0).reshape(4, 2), sizes=[10, 20, 30, 40])
    options: dict[str, Any] = {"rounds": 8, "seed": 4, "work": LocalWork(steps=3, lr=0.1, mu=0.2)}
    plain, normalized = (
        simulate(task, "uniform:m=2", algorithm=name, **options) for name in ("sgd", "fednova")
    )
    np.testing.assert_allclose(normalized.model, plain.model, rtol=1e-12)


# The local work a_i


def way(steps: int, lr: Fraction, momentum: Fraction, pull: Fraction) -> Fraction:
    """Walk under a constant gradient of 1, step by step, and divide by the step size."""
    place = velocity = Fraction(0)
    for _ in range(steps):
        velocity = momentum * velocity + 1 + pull * place
        place -= lr * velocity
    return -place / lr


@pytest.mark.parametrize("momentum", [Fraction(0), Fraction(3, 4)])
@pytest.mark.parametrize("mu", [Fraction(0), Fraction(1, 2)])
@pytest.mark.parametrize("curvature", [Fraction(0), Fraction(2)])
def test_local_work_is_the_way_under_a_constant_gradient(
    momentum: Fraction, mu: Fraction, curvature: Fraction
) -> None:
    lr, steps = Fraction(1, 8), np.array([7, 1, 30, 7])
    work = LocalWork(lr=float(lr), momentum=float(momentum), mu=float(mu))
    expected = [float(way(k, lr, momentum, mu + curvature)) for k in steps.tolist()]
    np.testing.assert_allclose(work.normalizer(steps, float(curvature)), expected, rtol=1e-13)


# Sampled cohorts

SIZES, STEPS = [1, 2, 3, 4], np.array([1.0, 4.0, 9.0, 30.0])
UPDATES = np.array([[1.0, 0.0], [0.5, 2.0], [-3.0, 1.0], [8.0, -2.0]])


def directions(chosen: str, settled: bool) -> Iterator[tuple[Fraction, Any, np.ndarray]]:
    """Every cohort with its probability, and the direction of the round."""
    how, rule = FedNova(), scheme(chosen)
    federation = Federation.from_sizes(SIZES)
    setup = Setup(rule, 0, algorithm=how)
    state = State.first(setup, federation, np.zeros(2))
    if settled:  # a round before
        sums = {"normalizer": np.array([1.0, 0.2])}
        state = replace(state, algorithm=how.step(state.algorithm, sums))
    for probability, outcome in rule.law(federation).enumerate():
        weights = np.array([float(weight) for weight in outcome.weights])
        cohort = Cohort.of(outcome.clients, weights, outcome.draws)
        yield probability, cohort, aggregated(setup, state, cohort)


def aggregated(setup: Setup, state: State, cohort: Cohort) -> np.ndarray:
    """Return the model after a round from the zero model, which is the direction."""
    clients, selection = cohort.clients, Selection(0, RoundContext(0), cohort)
    attendance = Attendance.of(len(SIZES))
    participants = Participants(
        selection, cohort, attendance, 1.0, False, clients, models=None, heard=None
    )
    payloads = {"normalizer": STEPS[clients, None]}
    block = UpdateBlock(clients, UPDATES[clients], payloads=payloads)
    aggregating = aggregate_updates(setup, state, participants, Ledger())
    try:
        next(aggregating)
        aggregating.send([block])
    except StopIteration as end:
        after, _ = end.value
    return after.theta


@pytest.mark.parametrize("chosen", ["md:m=2", "uniform:m=2", "binomial:m=2", "poisson:m=2", "full"])
def test_the_expected_direction_is_that_of_all_clients(chosen: str) -> None:
    p = np.array(SIZES) / sum(SIZES)
    expected = 5.0 * (p @ (UPDATES / STEPS[:, None]))  # tau = 1 / 0.2, from the round before
    mean = sum(float(chance) * found for chance, _, found in directions(chosen, settled=True))
    np.testing.assert_allclose(mean, expected, rtol=1e-12)


def test_the_first_round_has_the_right_direction_and_the_length_of_its_own_cohort() -> None:
    for _, cohort, found in directions("uniform:m=2", settled=False):
        weights, steps = cohort.weights, STEPS[cohort.clients]
        tau = weights.sum() / (weights / steps).sum()
        expected = tau * (weights / steps) @ UPDATES[cohort.clients]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_tau_is_the_harmonic_mean_over_earlier_rounds() -> None:
    how = FedNova()
    server: Any = how.start(np.zeros(2), np.random.default_rng(0))
    for sums, tau in (([0.0, 0.0], 1.0), ([1.5, 0.5], 3.0), ([0.5, 0.5], 3.0), ([1.0, 0.1], 2.0)):
        server = how.step(server, {"normalizer": np.array(sums)})
        np.testing.assert_allclose(server["tau"], [tau])


@pytest.mark.parametrize("said", [-5.0, 0.0, 1e-300, 1e38])
def test_what_a_client_says_of_its_work_gives_it_no_more_weight_than_one_step(said: float) -> None:
    told = {"normalizer": np.array([[said], [10.0]])}
    rows, sums = FedNova().rows(np.ones((2, 3)), told), FedNova().summed(np.ones((2, 3)), told)
    assert np.isfinite(rows).all()
    assert (np.abs(rows) <= 1).all()
    assert np.isfinite(sums["normalizer"]).all()
    np.testing.assert_array_equal(rows[1], 0.1)


def test_a_tau_of_the_rounds_own_cohort_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def own(self: FedNova, server: Any, sums: Any) -> Any:
        total, divided = sums["normalizer"]
        return {**server, "tau": np.array([total / divided])}

    monkeypatch.setattr(FedNova, "step", own)
    p = np.array(SIZES) / sum(SIZES)
    mean = sum(float(chance) * found for chance, _, found in directions("uniform:m=2", True))
    wanted = p @ (UPDATES / STEPS[:, None])
    turned = abs(mean[0] * wanted[1] - mean[1] * wanted[0])  # whatever the length is
    assert turned > 0.02 * np.linalg.norm(mean) * np.linalg.norm(wanted)


# Where it runs


def task() -> Quadratic:
    rng = np.random.Generator(np.random.Philox(1))
    return Quadratic(rng.standard_normal((6, 3)), sizes=[3, 10, 25, 60, 110, 200], noise=0.2)


WORK = LocalWork(epochs=1, batch=8, lr=0.05, momentum=0.5, schedule="inverse:gamma=5")
HOW = "fednova:mu=0.2,curvature=0.5"


def on_flower(
    local: Any = None, rounds: int = 6, chosen: str = "uniform:m=3", **options: Any
) -> Any:
    flower = pytest.importorskip("fedcohort.flower")
    app = flower.client_app(local or flower.task_client(task(), WORK), simulated=True)
    limits = flower.Limits(population=0.2, poll=0.01)
    settings = {"clients": 6, "seed": 3, "limits": limits, "largest_size": None, **options}
    strategy = flower.CohortStrategy(chosen, **settings)
    result = strategy.start(flower.InProcessGrid(app, 6), flower.first_model(task(), 3), rounds)
    return strategy, result


@pytest.mark.parametrize("chosen", ["uniform:m=3", "binomial:m=2"])
@pytest.mark.parametrize("more", [{}, {"aggregator": "memory"}], ids=str)
def test_flower_plays_the_run_of_the_simulator(chosen: str, more: Any) -> None:
    trace = simulate(task(), chosen, rounds=6, seed=3, work=WORK, algorithm=HOW, **more)
    _, result = on_flower(chosen=chosen, algorithm=HOW, **more)
    np.testing.assert_allclose(result.arrays["theta"].numpy(), trace.model, rtol=1e-12)


def test_the_toy_on_flower() -> None:
    flower = pytest.importorskip("fedcohort.flower")
    app = flower.client_app(flower.task_client(TOY, EPOCH), simulated=True)
    options: dict[str, Any] = {"clients": 2, "importance": "equal"}
    for how, end in (("sgd", 0.909), ("fednova:curvature=1", 0.5)):
        strategy = flower.CohortStrategy("full", algorithm=how, **options)
        result = strategy.start(flower.InProcessGrid(app, 2), flower.first_model(TOY, 0), 60)
        assert result.arrays["theta"].numpy()[0] == pytest.approx(end, abs=5e-4)


def test_a_run_goes_on_with_its_tau(tmp_path: Path) -> None:
    _, whole = on_flower(algorithm=HOW)
    on_flower(algorithm=HOW, rounds=3, folder=tmp_path)
    _, again = on_flower(algorithm=HOW, folder=tmp_path)
    np.testing.assert_array_equal(
        again.arrays["theta"].numpy(), whole.arrays["theta"].numpy(), strict=True
    )


def test_data_fractions_count_as_the_steps_that_were_made() -> None:
    trace = simulate(
        task(), "fedsampling-naive:rate=0.4", rounds=20, seed=0, work=WORK, algorithm="fednova"
    )
    assert np.isfinite(trace.model).all()


def test_it_is_refused_where_local_steps_are_unknown() -> None:
    with pytest.raises(BadInput, match=r"'fednova' counts the update of each client, but with fed"):
        simulate(task(), "fedsampling:K=40", rounds=1, algorithm="fednova")
    with pytest.raises(BadInput, match=r"'gaussian' adds noise.*'fednova' sends more"):
        simulate(task(), "full", rounds=1, algorithm="fednova", aggregator="gaussian")
    flower = pytest.importorskip("fedcohort.flower")
    app = flower.client_app(size=lambda context: 5)

    @app.train()
    def train(message: Any, context: Any) -> Any:
        raise AssertionError

    limits = flower.Limits(population=0.2, poll=0.01)
    strategy = flower.CohortStrategy("full", clients=2, algorithm="fednova", limits=limits)
    with pytest.raises(TooFewClients, match=r"'fednova' needs a method update.*rule"):
        strategy.start(flower.InProcessGrid(app, 2), flower.first_model(TOY, 0), 1)


# The warning

SHARE = r"the share of client 1 is 0\.99 instead of 0\.5\."


def test_a_run_says_once_which_objective_it_minimizes() -> None:
    with pytest.warns(UnequalWork, match=rf"1 to 100 local steps.*p_i a_i.*{SHARE}") as said:
        simulate(TOY, "full", rounds=3, work=EPOCH)
    assert len(said) == 1
    with pytest.warns(UnequalWork, match=r"0\.984 instead of 0\.5"):
        simulate(TOY, "full", rounds=1, work=EPOCH, algorithm="fedprox:mu=0.1")


@pytest.mark.parametrize("name", ["fednova", "scaffold", "feddyn"])
def test_algorithms_that_correct_unequal_steps_need_no_warning(name: str) -> None:
    simulate(TOY, "full", rounds=1, work=EPOCH, algorithm=name)
    simulate(TOY, "full", rounds=1, work=LocalWork(steps=3))
    simulate(TOY, "full", rounds=1, work=LocalWork(epochs=2, batch=None))


def test_a_comparison_says_it_once_for_the_arms_it_is_about() -> None:
    arms = ["md:m=1", "uniform:m=1", "md:m=1+fednova", "md:m=1+work:steps=2"]
    with pytest.warns(UnequalWork) as said:
        compare(TOY, arms, rounds=2, seeds=2, work=EPOCH)
    assert len(said) == 1
    assert str(said[0].message).startswith("md, uniform: Clients make 1 to 100 local steps.")


def test_the_command_prints_it_with_what_is_disclosed(tmp_path: Path) -> None:
    words = ["compare", "md", "--partition", "dirichlet-per-class:n=5,alpha=0.3", "-T", "1"]
    words += ["--seeds", "1", "-m", "2", "--jobs", "1", "--out", str(tmp_path / "out")]
    for more, times in (
        (["--epochs", "1"], 1),
        ([], 0),
        (["--epochs", "1", "--algorithm", "fednova"], 0),
    ):
        place = [*words[:-1], str(tmp_path / f"{len(more)}")]
        result = CliRunner().invoke(command(), [*place, *more])
        assert result.exit_code == 0
        assert result.stderr.count("With small step sizes a run minimizes") == times
    assert "fednova:mu=none,curvature=0.0" in CliRunner().invoke(command(), ["settings"]).output


@pytest.mark.parametrize(
    ("local", "options", "said"),
    [
        ("epochs", {}, r"shares for epochs.*client 5 is 0\.7\d+ instead of 0\.49"),
        ("epochs", {"importance": "equal"}, "another objective"),
        ("epochs", {"algorithm": "fednova"}, ""),
        ("steps", {}, ""),
        ("different steps", {"importance": "equal"}, "another objective"),
    ],
)
def test_flower_says_it_before_the_first_round(
    local: str, options: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    flower = pytest.importorskip("fedcohort.flower")

    def client(context: Any) -> Any:
        number = int(context.node_config["partition-id"])
        steps = 2 if local == "steps" else 1 + number
        work = WORK if local == "epochs" else LocalWork(steps=steps)
        return flower._in_process.TaskClient(task(), number, work)

    with caplog.at_level(logging.WARNING, logger="flwr.fedcohort"):
        on_flower(client, rounds=2, chosen="full", **options)
    lines = [line for line in caplog.messages if "unequal numbers of local steps" in line]
    assert len(lines) == bool(said)
    if said:
        assert pytest.importorskip("re").search(said, lines[0])
