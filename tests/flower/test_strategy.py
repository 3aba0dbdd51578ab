"""A strategy among clients that fail, lie, come late, leave and come back."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

import fedcohort
from fedcohort.core import Citation, Cohort, Scheme, store
from fedcohort.core.errors import (
    BadInput,
    BadParameter,
    CannotSave,
    InUse,
    TooFewClients,
    UnknownName,
)
from fedcohort.server import Adam, Fault, Hajek, Memory, Nothing, Redraw
from fedcohort.simulation import LocalWork, Quadratic, Random
from fedcohort.simulation.failing import DropOuts

pytest.importorskip("flwr")
from flwr.app import (
    Array,
    ArrayRecord,
    ConfigRecord,
    Error,
    Message,
    MetricRecord,
    RecordDict,
)
from flwr.clientapp import ClientApp

from fedcohort import flower
from fedcohort.flower import wire

N, ROUNDS = 8, 4
WORK = LocalWork(steps=1, lr=0.5, batch=None)
X = np.linspace(-1.0, 2.0, N)
QUICK = flower.Limits(population=0.2, poll=0.01)


def task() -> Quadratic:
    return Quadratic(np.stack([X, X**2], axis=1), sizes=np.arange(1, N + 1) * 10)


def app() -> ClientApp:
    return flower.client_app(flower.task_client(task(), WORK))


def play(grid, scheme="full", rounds: int = ROUNDS, **options):
    settings = {"clients": N, "seed": 3, "limits": QUICK, **options}
    strategy = flower.CohortStrategy(scheme, **settings)
    result = strategy.start(grid, flower.first_model(task(), 3), num_rounds=rounds)
    return strategy, result.arrays["theta"].numpy()


class Hostile(flower.InProcessGrid):
    """The client of one partition answers training as it likes."""

    def __init__(self, lie: Callable[[Message, Message], Message | None], liar: int = 2) -> None:
        super().__init__(app(), N)
        self.lie, self.liar = lie, liar

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        mine = self.partition[message.metadata.dst_node_id] == self.liar
        if not mine or reply is None or message.metadata.message_type != "train":
            return reply
        return self.lie(message, reply)


def theta_of(reply: Message) -> np.ndarray:
    return reply.content["update"]["theta"].numpy()


def with_update(**arrays: Array | np.ndarray):
    """A lie: other arrays in the reply."""

    def lie(message: Message, reply: Message) -> Message:
        record = {k: v if isinstance(v, Array) else Array(np.asarray(v)) for k, v in arrays.items()}
        reply.content["update"] = ArrayRecord(record)
        return reply

    return lie


def changed(**metadata: object):
    def lie(message: Message, reply: Message) -> Message:
        for name, value in metadata.items():
            reply.metadata.__dict__[f"_{name}"] = value
        return reply

    return lie


def more_records(message: Message, reply: Message) -> Message:
    reply.content["more"] = ArrayRecord({"x": Array(np.zeros(2))})
    return reply


def both_records(message: Message, reply: Message) -> Message:
    reply.content["arrays"] = reply.content["update"]
    return reply


def no_records(message: Message, reply: Message) -> Message:
    return Message(RecordDict(), reply_to=message)


def many_metrics(message: Message, reply: Message) -> Message:
    reply.content["metrics"] = MetricRecord({"long": [0.0] * 2_000_000})
    return reply


def long_text(message: Message, reply: Message) -> Message:
    reply.content["config"] = ConfigRecord({"text": "x" * 10_000_000})
    return reply


def gone(message: Message, reply: Message) -> Message:
    out = Message(Error(5, "node unavailable"), reply_to=message)
    out.metadata.__dict__["_src_node_id"] = 1  # the SuperLink signs for a dead node
    return out


NPY = Array(np.zeros(2))
BOMB = Array("float64", (10**9,), "numpy.ndarray", NPY.data.replace(b"(2,), }", b"(9999999,)}"))
LIES = {
    "raises": (lambda m, r: Message(Error(2, "oh"), reply_to=m), Fault.FAILED),
    "is gone": (gone, Fault.FAILED),
    "is silent": (lambda m, r: None, Fault.MISSING),
    "NaN": (with_update(theta=np.array([np.nan, 0])), Fault.NOT_FINITE),
    "infinity": (with_update(theta=np.array([np.inf, 0])), Fault.NOT_FINITE),
    "1e30": (with_update(theta=np.array([1e30, 0])), Fault.OUT_OF_RANGE),
    "-1e30": (with_update(theta=np.array([-1e30, 0])), Fault.OUT_OF_RANGE),
    "wrong shape": (with_update(theta=np.zeros(3)), Fault.WRONG_SHAPE),
    "scalar": (with_update(theta=np.array(1.0)), Fault.WRONG_SHAPE),
    "text": (with_update(theta=np.array(["a", "b"])), Fault.WRONG_TYPE),
    "complex": (with_update(theta=np.array([1j, 0])), Fault.WRONG_TYPE),
    "garbage": (
        with_update(theta=Array("float64", (2,), "numpy.ndarray", b"\x93NUMPY garbage")),
        Fault.WRONG_TYPE,
    ),
    "a bomb": (with_update(theta=BOMB), Fault.WRONG_TYPE),
    "another format": (
        with_update(theta=Array("float64", (2,), "pickle", b"cos\nsystem\n.")),
        Fault.WRONG_TYPE,
    ),
    "extra key": (with_update(theta=np.zeros(2), more=np.zeros(2)), Fault.WRONG_KEYS),
    "other key": (with_update(weights=np.zeros(2)), Fault.WRONG_KEYS),
    "extra record": (more_records, Fault.WRONG_KEYS),
    "both records": (both_records, Fault.WRONG_KEYS),
    "nothing": (no_records, Fault.WRONG_KEYS),
    "10 MB": (with_update(theta=np.zeros(1_250_000)), Fault.TOO_LARGE),
    "16 MB of metrics": (many_metrics, Fault.TOO_LARGE),
    "10 MB of text": (long_text, Fault.TOO_LARGE),
    "another round": (changed(group_id="77"), Fault.OTHER_ROUND),
    "in another's name": (changed(src_node_id=12345), Fault.NOT_ASKED),
    "to a question never asked": (changed(reply_to_message_id="message-0"), Fault.NOT_ASKED),
}


@pytest.mark.parametrize("name", LIES)
def test_a_bad_report_is_rejected_and_counted_and_the_round_goes_on(name: str) -> None:
    lie, fault = LIES[name]
    strategy, theta = play(Hostile(lie))
    assert strategy.gate.counts[fault] == ROUNDS
    assert np.isfinite(theta).all()
    assert [len(cohort) for cohort in strategy.cohorts] == [N - 1] * ROUNDS
    assert all(2 not in cohort.clients for cohort in strategy.cohorts)
    assert strategy.void == 0


def test_an_extra_metric_ends_nothing() -> None:
    def lie(message: Message, reply: Message) -> Message:
        reply.content["metrics"] = MetricRecord({"loss": float("nan"), "odd": 1})
        return reply

    strategy, _ = play(Hostile(lie))
    assert [len(cohort) for cohort in strategy.cohorts] == [N] * ROUNDS
    assert not strategy.gate.counts


class Twice(flower.InProcessGrid):
    """Every answer comes twice, and once more in the next exchange."""

    last: Iterable[Message] = ()

    def send_and_receive(self, messages, *, timeout=None):
        replies = list(super().send_and_receive(messages, timeout=timeout))
        out = [*replies, *copy.deepcopy(replies), *self.last]
        self.last = copy.deepcopy(replies)
        return out


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
    options = {"server": Adam(), "estimator": Memory()}
    work = {"rounds": 6, "seed": 3, "work": WORK}
    trace = fedcohort.simulate(task(), fedcohort.scheme("md", m=4), **work, **options)
    grid = flower.InProcessGrid(app(), N)
    _, theta = play(grid, fedcohort.scheme("md", m=4), rounds=6, **options)
    np.testing.assert_array_equal(theta, trace.model)


def test_parts_of_the_server_may_be_named() -> None:
    scheme = fedcohort.scheme("md", m=4)
    options = {"server": Adam(), "estimator": Memory(), "dropouts": Nothing()}
    _, expected = play(flower.InProcessGrid(app(), N), scheme, **options)
    names = {"server": "adam", "estimator": "memory", "dropouts": "none"}
    strategy, theta = play(flower.InProcessGrid(app(), N), scheme, **names)
    np.testing.assert_array_equal(theta, expected)
    assert strategy.dropouts == Nothing()
    for part, kind in {"server": "optimiser", "estimator": "estimator", "dropouts": "rule"}.items():
        with pytest.raises(UnknownName, match=f"{kind} named 'memroy'"):
            flower.CohortStrategy("full", clients=N, **{part: "memroy"})


@dataclass(frozen=True)
class Scripted(Scheme[Any]):
    """Always the same cohort: one outcome of a design."""

    clients: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    name: ClassVar[str] = "scripted"
    paper: ClassVar[Citation] = Citation("-", "-", "-", 2026)

    def select(self, state, federation, moment, rng):
        return Cohort.of(np.array(self.clients, dtype=np.int64), np.array(self.weights))


@pytest.mark.parametrize("hidden", [set(), {1}])
@pytest.mark.parametrize("how", ["plain", "memory"])
@pytest.mark.parametrize("name", ["binomial", "md"])
def test_the_expected_step_is_that_of_all_clients(name: str, how: str, hidden: set[int]) -> None:
    """Over all outcomes of a draw, that nobody is drawn among them."""
    three = Quadratic([[3.0], [6.0], [9.0]], sizes=[1, 2, 3])
    clients = flower.client_app(flower.task_client(three, LocalWork(steps=1, lr=1.0, batch=None)))
    there = [i for i in range(3) if i not in hidden]
    federation = fedcohort.Federation.from_sizes([1, 2, 3]).among(there)
    mean = 0.0
    for chance, cohort in fedcohort.scheme(name, m=1).law(federation).enumerate():
        script = Scripted(tuple(cohort.clients.tolist()), tuple(map(float, cohort.weights)))
        strategy = flower.CohortStrategy(script, clients=3, seed=0, estimator=how)
        session, grid = strategy.session, Coming(clients, 3)
        arrays = wire.to_record({"theta": np.array([1.0])})
        session.take(arrays)
        session.look(grid, 3)  # all have come once
        was = np.array([[7.0], [-4.0], [5.0]])
        everyone = Cohort.of([0, 1, 2], 1.0)
        _, session.memory = session.estimator.direction(
            session.memory, everyone, everyone.clients, was
        )
        grid.hidden = hidden
        messages = list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
        strategy.aggregate_train(1, grid.send_and_receive(messages))
        mean += float(chance) * float(session.theta[0] - 1.0)
    updates = np.array([2.0, 5.0, 8.0])  # from 1, with a step of 1
    assert mean == pytest.approx(float(federation.importance @ updates), abs=1e-12)


@pytest.mark.parametrize("how", ["plain", "memory"])
def test_rounds_in_which_nobody_is_drawn_are_those_of_the_simulator(how: str) -> None:
    options = {"estimator": how, "server": "adam"}
    scheme = fedcohort.scheme("binomial", m=1)
    trace = fedcohort.simulate(task(), scheme, rounds=12, seed=3, work=WORK, **options)
    strategy, theta = play(flower.InProcessGrid(app(), N), scheme, rounds=12, **options)
    assert 0 in {len(cohort) for cohort in strategy.cohorts}
    assert strategy.void == 0
    np.testing.assert_array_equal(theta, trace.model)


def test_with_nobody_there_the_model_stays() -> None:
    scheme, grid = fedcohort.scheme("md", m=2), Coming(app(), N)
    options = {"server": "adam", "estimator": "memory", "limits": QUICK}
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, **options)
    arrays = flower.first_model(task(), 3)
    for number, hidden in enumerate([set(), set(range(N))], 1):
        grid.hidden = hidden
        before = getattr(strategy.session, "theta", np.zeros(2))
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        new, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))
        assert (new is None) == bool(hidden)
        assert np.array_equal(strategy.session.theta, before) == bool(hidden)
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
    np.testing.assert_allclose(strategy.session.theta[:4], 1 + 20e-8, rtol=0, atol=1e-12)
    assert result.arrays["w"].numpy()[0, 0] == np.float32(1 + 20e-8)  # not lost by rounding


class Counting(flower.InProcessGrid):
    """Notes to whom messages go."""

    def __init__(self, *args, **options) -> None:
        super().__init__(*args, **options)
        self.seen: list[tuple[str, int]] = []

    def deliver(self, message: Message) -> Message | None:
        kind = message.metadata.message_type
        self.seen.append((kind, self.partition[message.metadata.dst_node_id]))
        return super().deliver(message)


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


# -- who is there ----------------------------------------------------------------------------


def test_too_few_clients_is_an_error_after_the_limit() -> None:
    grid = flower.InProcessGrid(app(), 3)
    with pytest.raises(
        TooFewClients, match=r"8 clients were expected, 3 nodes came within 0.2 s\."
    ):
        play(grid)  # nobody was asked yet, so nothing is said of answers


class Sizeless:
    """A client whose author forgot something."""

    def update(self, model, work): ...


def test_a_mistake_that_all_clients_share_ends_the_wait_and_is_quoted() -> None:
    grid = Counting(flower.client_app(lambda context: Sizeless()), N)
    patient = flower.Limits(population=60, poll=0.01)
    with pytest.raises(TooFewClients, match=r"All 8 nodes raised .* 3 times in a row") as caught:
        play(grid, limits=patient)
    assert "said 'AttributeError(\"This client has no 'size'" in str(caught.value)
    assert "Correct the client app" in str(caught.value)
    assert len(grid.seen) == 3 * N


def test_of_an_error_in_flowers_simulation_the_words_of_the_client_are_quoted() -> None:
    def framed(message: Message, reply: Message) -> Message:
        reason = "<class 'RayTaskError'>:<'" + 99 * "a traceback\n"
        reason += "\nException ClientAppException occurred. Message: no disk'>"
        return Message(Error(2, reason), reply_to=message)

    strategy, _ = play(Hostile(framed), rounds=1)
    assert strategy.gate.quote() == " The last client that failed said 'no disk'."


class Clock:
    """Time that passes only by waiting."""

    def __init__(self, monkeypatch) -> None:
        self.now = 0.0
        monkeypatch.setattr("fedcohort.flower.population.time.monotonic", lambda: self.now)

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_clients_that_fail_are_asked_again_ever_more_rarely(monkeypatch) -> None:
    clock = Clock(monkeypatch)
    asked: list[float] = []

    class Timed(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            if self.partition[message.metadata.dst_node_id] == 0:
                asked.append(clock.now)
            return super().deliver(message)

    def broken(number: int) -> ClientApp:
        return app() if number else flower.client_app(lambda context: Sizeless())

    strategy = flower.CohortStrategy("full", clients=N)
    with pytest.raises(TooFewClients, match=r"7 said who they are within 300 s .* has no 'size'"):
        strategy.session.population.wait(Timed(broken, N), N, clock.pause)
    assert asked == [0, 1, 3, 7, 15, 31, *range(61, 300, 30)]


def test_clients_that_do_not_say_who_they_are_are_no_clients() -> None:
    def broken(number: int) -> ClientApp:
        return ClientApp() if number < 2 else app()

    with pytest.raises(TooFewClients, match="6 said who they are"):
        play(flower.InProcessGrid(broken, N))


@pytest.mark.parametrize("size", [-1, 2.5, float("nan")])
def test_a_size_that_cannot_be_is_rejected(size: float) -> None:
    def odd(number: int) -> ClientApp:
        if number:
            return app()
        client = app()

        def lie(message: Message, context) -> Message:
            record = RecordDict(
                {
                    wire.ANSWER: wire.to_record({"size": np.array(size)}),
                    wire.CONFIG: ConfigRecord({wire.KEY: 0}),
                }
            )
            return Message(record, reply_to=message)

        client._answer = lie  # type: ignore[attr-defined]
        client._registered_funcs["query.fedcohort"] = lie
        return client

    strategy, _ = play(flower.InProcessGrid(odd, N), clients=N - 1, rounds=1)
    assert len(strategy.session.selector.federation) == N - 1
    assert set(strategy.gate.summary()) <= {"out_of_range", "wrong_type", "not_finite"}


def test_of_two_nodes_with_one_key_only_one_takes_part() -> None:
    def config(number: int) -> dict[str, int]:
        return {"partition-id": min(number, N - 1)}

    grid = flower.InProcessGrid(app(), N + 1, node_config=config)
    strategy, _ = play(grid)
    assert [len(cohort) for cohort in strategy.cohorts] == [N] * ROUNDS
    assert strategy.gate.counts[Fault.TWICE] == 1


class Coming(flower.InProcessGrid):
    """Nodes that are hidden in some rounds."""

    hidden: set[int] = frozenset()  # type: ignore[assignment]

    def get_node_ids(self) -> Iterable[int]:
        return {n for n in super().get_node_ids() if self.partition[n] not in self.hidden}


def rounds_with(grid: Coming, hidden: list[set[int]], **options):
    strategy = flower.CohortStrategy("full", clients=1, seed=3, limits=QUICK, **options)
    arrays = flower.first_model(task(), 3)
    for number, gone_now in enumerate(hidden, 1):
        grid.hidden = gone_now
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        new, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))
        arrays = arrays if new is None else new
    return strategy


def test_clients_come_leave_and_come_back() -> None:
    grid = Coming(app(), 4)
    strategy = rounds_with(grid, [{3}, {3}, set(), {0}, set()])
    ids = [strategy.session.selector.federation.ids[i] for i in strategy.cohorts[2].clients]
    assert [len(cohort) for cohort in strategy.cohorts] == [3, 3, 4, 3, 4]
    assert ids == [0, 1, 2, 3]
    strategy = rounds_with(Coming(app(), 4), [{3}, set()], newcomers=False)
    assert [len(cohort) for cohort in strategy.cohorts] == [3, 3]


def test_a_client_that_comes_back_under_another_node_id_is_recognised() -> None:
    grid = Coming(app(), 4)
    strategy = flower.CohortStrategy("full", clients=4, seed=3)
    arrays = flower.first_model(task(), 3)
    for number in (1, 2):
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        arrays, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))
        old = next(iter(grid.contexts))
        new = old ^ 1
        for table in (grid.contexts, grid.apps, grid.partition):
            table[new] = table.pop(old)
    assert [len(cohort) for cohort in strategy.cohorts] == [4, 4]
    assert len(strategy.session.selector.federation) == 4


class Named(flower.InProcessGrid):
    """Nodes that were registered under a name, in the opposite order of their partitions."""

    def get_nodes(self):
        return [
            SimpleNamespace(node_id=node, name=f"node-{9 - self.partition[node]}")
            for node in self.contexts
        ]


@pytest.mark.parametrize("importance", ["size", "equal"])
def test_a_node_may_be_known_by_the_name_it_was_registered_under(importance: str) -> None:
    strategy, _ = play(Named(app(), N), identity="name", importance=importance)
    federation = strategy.session.selector.federation
    assert list(federation.ids) == [f"node-{i}" for i in range(2, 10)]
    if importance == "size":
        assert federation.sizes.tolist() == list(range(80, 0, -10))


# -- drop-outs and void rounds ----------------------------------------------------------------


def silent(*partitions: int):
    class Silent(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            away = self.partition[message.metadata.dst_node_id] in partitions
            if away and message.metadata.message_type == "train":
                return None
            return super().deliver(message)

    return Silent(app(), N)


def test_below_the_quorum_a_round_is_void_and_three_are_an_error() -> None:
    grid = silent(*range(6))
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=QUICK)
    with pytest.raises(TooFewClients, match="3 rounds in a row"):
        strategy.start(grid, flower.first_model(task(), 3), num_rounds=9)
    assert strategy.void == 3
    assert strategy.session.theta.tolist() == [0.0, 0.0]
    assert strategy.session.selector.round == 3


@pytest.mark.parametrize("newcomers", [True, False])
def test_rounds_without_anybody_are_void_and_three_are_an_error(newcomers: bool) -> None:
    grid = Coming(app(), N)
    gone = set(range(N if newcomers else N - 1))  # a newcomer that may not take part is nobody
    options = {"clients": N - 1, "seed": 3, "limits": QUICK, "newcomers": newcomers}
    strategy = flower.CohortStrategy("full", **options)
    arrays = flower.first_model(task(), 3)
    for number, hidden in enumerate([{7}, gone, gone, gone], 1):
        grid.hidden = hidden
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        if number == 4:
            with pytest.raises(TooFewClients, match="3 rounds in a row"):
                strategy.aggregate_train(number, [])
        else:
            new, told = strategy.aggregate_train(number, grid.send_and_receive(messages))
            assert told["cohort-void"] == (number > 1)
            arrays = new or arrays
    assert strategy.void == 3


def test_the_server_waits_for_somebody_to_come_back() -> None:
    grid = Coming(app(), N)
    limits = flower.Limits(population=60, poll=0.01)
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=limits)
    session, waits = strategy.session, []
    session.take(flower.first_model(task(), 3))
    session.look(grid, N)
    grid.hidden = set(range(N))

    def pause(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 5:
            grid.hidden = set(range(2, N))

    session.look(grid, N, pause)
    assert waits == [0.01] * 5
    assert session.available.tolist() == [0, 1]


def test_void_rounds_quote_a_client_that_raised_an_error() -> None:
    class Sized(Sizeless):
        size = 5

        def update(self, model, work):
            raise ValueError(1000 * "! " + "the disk is full")

    grid = flower.InProcessGrid(flower.client_app(lambda context: Sized()), N)
    with pytest.raises(TooFewClients, match=r"'failed': 24.* said '\.\.\. .* the disk is full'"):
        play(grid)


def test_the_weights_of_those_who_answer_are_corrected_or_left_as_the_user_wants() -> None:
    hajek, _ = play(silent(0), dropouts=Hajek())
    assert all(c.weights.sum() == pytest.approx(1.0) for c in hajek.cohorts)
    nothing, _ = play(silent(7), dropouts=Nothing())
    assert nothing.cohorts[0].weights.sum() == pytest.approx(1 - 8 / 36)


def test_void_rounds_with_memory_are_those_of_the_simulator() -> None:
    """Below the quorum the model stays, but scheme and estimator remember what came."""
    scheme = fedcohort.scheme("clustered-similarity", m=4)
    up = tuple(0.0 if i in (5, 6, 7) else 1.0 for i in range(N))
    failing = DropOuts(Random(up), Nothing(), quorum=0.6)
    trace = fedcohort.simulate(
        task(), scheme, rounds=12, seed=3, work=WORK, estimator="memory", dropouts=failing
    )
    options = {"estimator": "memory", "dropouts": "none", "quorum": 0.6}
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, limits=QUICK, **options)
    strategy.VOID_ROUNDS = 99
    strategy.start(silent(5, 6, 7), flower.first_model(task(), 3), num_rounds=12)
    session = strategy.session
    assert 0 < strategy.void < 12
    np.testing.assert_array_equal(session.theta, trace.model)
    assert session.memory.latest is session.selector.latest()  # one table
    expected = session.memory.latest.weighted_sum(session.federation.importance)
    np.testing.assert_allclose(session.memory.average, expected, atol=1e-12)


def test_replacements_come_from_the_same_cluster() -> None:
    scheme = fedcohort.scheme("target", m=2, groups=(0, 0, 0, 0, 1, 1, 1, 1))
    rule = Redraw(attempts=3)
    strategy, _ = play(silent(0, 1, 2), scheme, rounds=8, importance="equal", dropouts=rule)
    for cohort in strategy.cohorts:
        assert len(cohort) == 2
        assert cohort.clients[1] >= 4
        if cohort.clients[0] != 3:
            pytest.fail("only client 3 of the first cluster answers")
    assert strategy.gate.counts[Fault.MISSING] > 0


# -- crash and resume ------------------------------------------------------------------------


class Dies(flower.InProcessGrid):
    """The server is killed at the n-th exchange: before or after the clients have answered."""

    def __init__(self, at: int, after: bool, silent: tuple[int, ...] = ()) -> None:
        super().__init__(app(), N)
        self.left, self.after, self.silent = at, after, silent

    def deliver(self, message: Message) -> Message | None:
        away = self.partition[message.metadata.dst_node_id] in self.silent
        if away and message.metadata.message_type == "train":
            return None
        return super().deliver(message)

    def send_and_receive(self, messages, *, timeout=None):
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        replies = super().send_and_receive(messages, timeout=timeout)
        if self.left == 0:
            raise KeyboardInterrupt
        return replies


@pytest.mark.parametrize("name", ["md", "pow-d", "clustered-size"])
@pytest.mark.parametrize("after", [False, True])
def test_a_server_that_is_killed_goes_on_with_the_same_cohorts(name, after, tmp_path) -> None:
    scheme = fedcohort.scheme(name, m=3, **({"d": 5} if name == "pow-d" else {}))
    whole, expected = play(flower.InProcessGrid(app(), N), scheme, rounds=5, server=Adam())
    for at in (1, 2, 3, 6, 9, 11) if name == "pow-d" else range(1, 7):
        folder = tmp_path / f"{name}-{after}-{at}"
        with pytest.raises(KeyboardInterrupt):
            play(Dies(at, after), scheme, rounds=5, server=Adam(), folder=folder)
        again, theta = play(
            flower.InProcessGrid(app(), N), scheme, rounds=5, server=Adam(), folder=folder
        )
        np.testing.assert_array_equal(theta, expected)
        done = len(again.cohorts)
        assert again.cohorts == whole.cohorts[5 - done :]


@pytest.mark.parametrize("after", [False, True])
def test_a_server_that_is_killed_still_replaces_within_clusters(after: bool, tmp_path) -> None:
    groups = (0, 0, 0, 0, 1, 1, 1, 1)
    scheme = fedcohort.scheme("target", m=2, groups=groups)
    settings = {"rounds": 4, "importance": "equal", "dropouts": Redraw(attempts=3)}
    whole, expected = play(silent(0, 1, 2), scheme, **settings)
    for at in range(2, 6):
        folder = tmp_path / str(at)
        with pytest.raises(KeyboardInterrupt):
            play(Dies(at, after, (0, 1, 2)), scheme, **settings, folder=folder)
        again, theta = play(silent(0, 1, 2), scheme, **settings, folder=folder)
        assert again.cohorts == whole.cohorts[4 - len(again.cohorts) :]
        np.testing.assert_array_equal(theta, expected)


def test_a_server_that_is_killed_with_new_clients_goes_on_with_them(tmp_path) -> None:
    """They were let in and chosen among after model and memory were written down."""
    scheme = fedcohort.scheme("clustered-similarity", m=3)

    def began(folder=None):
        options = {"clients": N - 2, "seed": 3, "limits": QUICK, "estimator": "memory"}
        strategy = flower.CohortStrategy(scheme, folder=folder, **options)
        return strategy, strategy.session.resumed(flower.first_model(task(), 3))

    def rounds(strategy, arrays, numbers, killed=None) -> None:
        grid = Coming(app(), N)
        for number in numbers:
            grid.hidden = {0, 3} if number < 4 else set()
            messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
            if number == killed:
                return
            arrays, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))

    whole, arrays = began()
    rounds(whole, arrays, range(1, 7))
    first, arrays = began(tmp_path)
    rounds(first, arrays, range(1, 7), killed=4)
    again, arrays = began(tmp_path)
    session = again.session
    assert session.selector.round == 3
    assert len(session.attendance.asked) == len(session.selector.federation) == N
    rounds(again, arrays, range(4, 7))
    assert again.cohorts == whole.cohorts[3:]
    np.testing.assert_array_equal(session.theta, whole.session.theta)
    np.testing.assert_array_equal(session.attendance.asked, whole.session.attendance.asked)


@pytest.mark.parametrize("name", ["clustered-size", "clustered-similarity"])
@pytest.mark.parametrize("after", [False, True])
def test_a_server_that_is_killed_at_any_write_goes_on_with_the_same_cohorts(
    name: str, after: bool, tmp_path, monkeypatch
) -> None:
    scheme = fedcohort.scheme(name, m=3)
    whole, expected = play(flower.InProcessGrid(app(), N), scheme, rounds=3, estimator=Memory())
    real = store.save
    for at in range(1, 12):  # 2 writes at the beginning, 3 in every round
        left = [at]

        def save(*args, left=left):
            left[0] -= 1
            if left[0] == 0 and not after:
                raise KeyboardInterrupt
            real(*args)
            if left[0] == 0:
                raise KeyboardInterrupt

        settings = {"rounds": 3, "estimator": Memory(), "folder": tmp_path / str(at)}
        with monkeypatch.context() as patch:
            patch.setattr(store, "save", save)
            with pytest.raises(KeyboardInterrupt):
                play(flower.InProcessGrid(app(), N), scheme, **settings)
        again, theta = play(flower.InProcessGrid(app(), N), scheme, **settings)
        np.testing.assert_array_equal(theta, expected)
        assert again.cohorts == whole.cohorts[3 - len(again.cohorts) :]


def test_a_table_that_scheme_and_estimator_share_is_written_once(tmp_path) -> None:
    scheme = fedcohort.scheme("clustered-similarity", m=3)
    strategy, _ = play(flower.InProcessGrid(app(), N), scheme, estimator="memory", folder=tmp_path)
    assert strategy.session.memory.latest is strategy.session.selector.latest()
    with np.load(tmp_path / f"model-{ROUNDS:06d}.npz") as model:
        assert model["memory.latest.kept"].size == 0
    with np.load(tmp_path / "selector.npz") as selector:
        assert selector["state.latest.kept"].shape == (N, 2)


def test_a_cohort_that_was_written_down_is_not_drawn_again(tmp_path) -> None:
    """Losses have changed in between, so drawing again would choose others."""
    scheme = fedcohort.scheme("pow-d", m=2, d=8)
    grid = Counting(app(), N)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, folder=tmp_path)
    arrays = flower.first_model(task(), 3)
    strategy.session.resumed(arrays)
    list(strategy.configure_train(1, arrays, ConfigRecord(), grid))
    chosen = strategy.session.selector.pending
    asked = Counting(app(), N)
    again, _ = play(asked, scheme, rounds=1, folder=tmp_path)
    assert again.cohorts[0] == chosen
    assert sum(kind.startswith("query") for kind, _ in asked.seen) == N  # only: who are you?


def test_a_folder_of_another_run_is_refused_and_a_second_server_too(tmp_path) -> None:
    play(flower.InProcessGrid(app(), N), fedcohort.scheme("md", m=3), folder=tmp_path)
    with pytest.raises(BadInput, match=r"holds a run of md\(m=3\)"):
        play(flower.InProcessGrid(app(), N), fedcohort.scheme("md", m=4), folder=tmp_path)
    strategy = flower.CohortStrategy("full", clients=N, folder=tmp_path / "x")
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patch, strategy.session.folder.locked():
        patch.setattr("fedcohort.flower.checkpoint.PATIENCE", 0.05)
        with pytest.raises(InUse, match="Another server runs on the folder"):
            strategy.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 0))


def test_a_folder_that_cannot_be_is_one_sentence(tmp_path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        strategy = flower.CohortStrategy("full", clients=N, folder=folder)
        with pytest.raises(CannotSave, match=r"The folder '.*file.*' cannot be used .* choose one"):
            strategy.start(flower.InProcessGrid(app(), N), flower.first_model(task(), 0))


def test_a_finished_run_is_not_run_again(tmp_path) -> None:
    _, theta = play(flower.InProcessGrid(app(), N), "full", folder=tmp_path)
    strategy, again = play(flower.InProcessGrid(app(), N), "full", folder=tmp_path)
    assert strategy.cohorts == []
    np.testing.assert_array_equal(theta, again)


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
