"""A strategy among clients that lie; its step, its questions, its settings."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import fedcohort
from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort.selection import Cohort
from fedcohort.server import Adam, AsDrawn, Fault, Memory
from fedcohort.simulation import LocalWork, Quadratic

pytest.importorskip("flwr")
from flwr.app import (
    ConfigRecord,
    Message,
    MetricRecord,
    RecordDict,
)

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.flower_play import (
    QUICK,
    ROUNDS,
    WORK,
    Coming,
    Counting,
    Hostile,
    N,
    X,
    app,
    play,
    task,
)
from helpers.lies import Twice
from helpers.scripted import Scripted


def test_an_extra_metric_ends_nothing() -> None:
    def lie(message: Message, reply: Message) -> Message:
        reply.content["metrics"] = MetricRecord({"loss": float("nan"), "odd": 1})
        return reply

    strategy, _ = play(Hostile(lie))
    assert [len(cohort) for cohort in strategy.cohorts] == [N] * ROUNDS
    assert not strategy.gate.counts


def test_answers_that_come_twice_or_late_count_once() -> None:
    _, expected = play(flower.InProcessGrid(app(), N))
    strategy, theta = play(Twice(app(), N))
    np.testing.assert_array_equal(theta, expected)
    assert strategy.gate.counts[Fault.TWICE] == N * (ROUNDS + 1)
    assert strategy.gate.counts[Fault.LATE] == N * ROUNDS


# -- the step --------------------------------------------------------------------------------


def test_weights_are_applied_as_they_are() -> None:
    """Poisson: sums of weights differ from round to round, and from 1."""
    scheme = fedcohort.scheme("poisson", m=3, cap=True)
    strategy, theta = play(flower.InProcessGrid(app(), N), scheme)
    expected = np.zeros(2)
    points = np.stack([X, X**2], axis=1)
    for cohort in strategy.cohorts:
        expected = expected + cohort.weights @ (0.5 * (points[cohort.clients] - expected))
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-15)
    assert len({round(float(c.weights.sum()), 6) for c in strategy.cohorts}) > 1


def test_server_optimisers_and_estimators_are_ours() -> None:
    options = {"optimiser": Adam(), "aggregator": Memory()}
    work = {"rounds": 6, "seed": 3, "work": WORK}
    trace = fedcohort.simulate(task(), fedcohort.scheme("md", m=4), **work, **options)
    grid = flower.InProcessGrid(app(), N)
    _, theta = play(grid, fedcohort.scheme("md", m=4), rounds=6, **options)
    np.testing.assert_array_equal(theta, trace.model)


def test_parts_of_the_server_may_be_named() -> None:
    scheme = fedcohort.scheme("md", m=4)
    options = {"optimiser": Adam(), "aggregator": Memory(), "dropouts": AsDrawn()}
    _, expected = play(flower.InProcessGrid(app(), N), scheme, **options)
    names = {"optimiser": "adam", "aggregator": "memory", "dropouts": "none"}
    strategy, theta = play(flower.InProcessGrid(app(), N), scheme, **names)
    np.testing.assert_array_equal(theta, expected)
    assert strategy.dropouts == AsDrawn()
    for part, kind in {
        "optimiser": "optimiser",
        "aggregator": "aggregator",
        "dropouts": "rule",
    }.items():
        with pytest.raises(UnknownName, match=f"{kind} named 'memroy'"):
            flower.CohortStrategy("full", clients=N, **{part: "memroy"})


@pytest.mark.parametrize("hidden", [set(), {1}])
@pytest.mark.parametrize("how", ["plain", "memory"])
@pytest.mark.parametrize("name", ["binomial", "md"])
def test_the_expected_step_is_that_of_all_clients(name: str, how: str, hidden: set[int]) -> None:
    """Over all outcomes of a draw, that nobody is drawn among them."""
    three = Quadratic([[3.0], [6.0], [9.0]], sizes=[1, 2, 3])
    clients = flower.client_app(
        flower.task_client(three, LocalWork(steps=1, lr=1.0, batch=None)), simulated=True
    )
    there = [i for i in range(3) if i not in hidden]
    federation = fedcohort.Federation.from_sizes([1, 2, 3]).among(there)
    mean = 0.0
    for chance, cohort in fedcohort.scheme(name, m=1).law(federation).enumerate():
        script = Scripted(tuple(cohort.clients.tolist()), tuple(map(float, cohort.weights)))
        strategy = flower.CohortStrategy(script, clients=3, seed=0, aggregator=how)
        session, grid = strategy.session, Coming(clients, 3)
        arrays = wire.to_record({"theta": np.array([1.0])})
        session.take(arrays)
        session.look(grid, 3)  # all have come once
        was = np.array([[7.0], [-4.0], [5.0]])
        everyone = Cohort.of([0, 1, 2], 1.0)
        _, memory = session.setup.aggregator.direction(
            session.state.aggregator, everyone, everyone.clients, was
        )
        session.state = replace(session.state, aggregator=memory)
        grid.hidden = hidden
        messages = list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
        strategy.aggregate_train(1, grid.send_and_receive(messages))
        mean += float(chance) * float(session.state.theta[0] - 1.0)
    updates = np.array([2.0, 5.0, 8.0])  # from 1, with a step of 1
    assert mean == pytest.approx(float(federation.importance @ updates), abs=1e-12)


@pytest.mark.parametrize("how", ["plain", "memory"])
def test_rounds_in_which_nobody_is_drawn_are_those_of_the_simulator(how: str) -> None:
    options = {"aggregator": how, "optimiser": "adam"}
    scheme = fedcohort.scheme("binomial", m=1)
    trace = fedcohort.simulate(task(), scheme, rounds=12, seed=3, work=WORK, **options)
    strategy, theta = play(flower.InProcessGrid(app(), N), scheme, rounds=12, **options)
    assert 0 in {len(cohort) for cohort in strategy.cohorts}
    assert strategy.void == 0
    np.testing.assert_array_equal(theta, trace.model)


def test_with_nobody_there_the_model_stays() -> None:
    scheme, grid = fedcohort.scheme("md", m=2), Coming(app(), N)
    options = {"optimiser": "adam", "aggregator": "memory", "limits": QUICK}
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, **options)
    arrays = flower.first_model(task(), 3)
    for number, hidden in enumerate([set(), set(range(N))], 1):
        grid.hidden = hidden
        before = strategy.session.state.theta if strategy.session.begun else np.zeros(2)
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        new, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))
        assert (new is None) == bool(hidden)
        assert np.array_equal(strategy.session.state.theta, before) == bool(hidden)
        assert strategy.void == bool(hidden)
        arrays = new


def test_a_model_of_small_floats_keeps_its_types_and_a_precise_copy() -> None:
    class Local:
        size = 5

        def update(self, model, work):
            assert model["w"].dtype == np.float32
            assert model["steps"].dtype == np.int64
            return {"w": np.full((2, 2), 1e-8), "steps": np.array(1)}

    grid = flower.InProcessGrid(flower.client_app(lambda context: Local()), N)
    start = wire.to_record({"w": np.ones((2, 2), np.float32), "steps": np.array(3)})
    strategy = flower.CohortStrategy("full", clients=N, seed=0)
    result = strategy.start(grid, start, num_rounds=20)
    assert result.arrays["w"].numpy().dtype == np.float32
    assert result.arrays["steps"].numpy() == 23
    np.testing.assert_allclose(strategy.session.state.theta[:4], 1 + 20e-8, rtol=0, atol=1e-12)
    assert result.arrays["w"].numpy()[0, 0] == np.float32(1 + 20e-8)  # not lost by rounding


def test_questions_go_to_exactly_the_clients_asked() -> None:
    grid = Counting(app(), N)
    strategy, _ = play(grid, fedcohort.scheme("pow-d", m=2, d=3), rounds=1)
    queries = [who for kind, who in grid.seen if kind.startswith("query")]
    trained = [who for kind, who in grid.seen if kind == "train"]
    assert sorted(queries[:N]) == list(range(N))  # the first question: who are you?
    assert len(queries) == N + 3
    assert set(trained) == set(strategy.cohorts[0].clients.tolist()) <= set(queries[N:])


@pytest.mark.parametrize("per_draw", [False, True])
def test_a_client_drawn_twice_gets_one_message_or_one_per_draw(per_draw: bool) -> None:
    grid = Counting(app(), N)
    scheme = fedcohort.scheme("md", m=12)
    strategy, theta = play(grid, scheme, rounds=2, per_draw=per_draw)
    trained = [who for kind, who in grid.seen if kind == "train"]
    draws = sum(int(cohort.draws.sum()) for cohort in strategy.cohorts)
    distinct = sum(len(cohort) for cohort in strategy.cohorts)
    assert len(trained) == (draws if per_draw else distinct)
    _, once = play(flower.InProcessGrid(app(), N), scheme, rounds=2)
    np.testing.assert_allclose(theta, once, atol=1e-15)  # nothing is random in these clients


def test_everyone_may_evaluate() -> None:
    clients = app()

    @clients.evaluate()
    def evaluate(message: Message, context) -> Message:
        metrics = MetricRecord({"loss": float(context.node_config["partition-id"])})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    strategy = flower.CohortStrategy("full", clients=N, seed=0, evaluate="everyone")
    result = strategy.start(
        flower.InProcessGrid(clients, N), flower.first_model(task(), 0), num_rounds=1
    )
    sizes = np.arange(1, N + 1)
    expected = float(np.arange(N) @ (sizes / sizes.sum()))
    assert result.evaluate_metrics_clientapp[1]["loss"] == pytest.approx(expected)


# -- bad settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"clients": 0},
        {"clients": 2.5},
        {"quorum": 1.5},
        {"quorum": float("nan")},
        {"largest": 0},
        {"importance": "sizes"},
        {"identity": "key"},
        {"evaluate": "all"},
        {"seed": -1},
        {"folder": 5},
    ],
)
def test_a_bad_setting_is_one_sentence(bad: dict[str, object]) -> None:
    with pytest.raises(BadParameter, match=f"The '{next(iter(bad))}' parameter of"):
        flower.CohortStrategy("full", **{"clients": N, **bad})


def test_rounds_out_of_step_are_refused() -> None:
    strategy = flower.CohortStrategy("full", clients=N, seed=0)
    with pytest.raises(BadInput, match="begins round 2, but 0 rounds are done"):
        strategy.configure_train(
            2, flower.first_model(task(), 0), ConfigRecord(), flower.InProcessGrid(app(), N)
        )
