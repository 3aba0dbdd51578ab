"""Who is there: clients that fail to say who they are, come, leave, drop out and come back."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import fedcohort
from fedcohort._internal.errors import TooFewClients
from fedcohort.server import AsDrawn, Fault, Hajek, Redraw
from fedcohort.simulation import DropOuts, Random

pytest.importorskip("flwr")
from flwr.app import (
    ConfigRecord,
    Error,
    Message,
    RecordDict,
)
from flwr.clientapp import ClientApp

from fedcohort import flower
from fedcohort.flower import _population as population
from fedcohort.flower import _wire as wire
from fedcohort.flower._exchange import Node
from fedcohort.server import Gate
from helpers.flower_play import (
    QUICK,
    ROUNDS,
    WORK,
    Coming,
    Counting,
    Hostile,
    N,
    app,
    play,
    silent,
    task,
)

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
    assert "said 'NotOffered(\"This client has no 'size'" in str(caught.value)
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
        monkeypatch.setattr("fedcohort.flower._population.time.monotonic", lambda: self.now)

    def pause(self, seconds: float) -> None:
        self.now += seconds


def test_while_clients_are_waited_for_the_log_says_how_many_came(monkeypatch, caplog) -> None:
    """At once and every ten seconds: 2 nodes for 15 seconds, then 5 that say who they are."""
    clock, grid = Clock(monkeypatch), Coming(app(), N)

    def pause(seconds: float) -> None:
        clock.pause(seconds)
        grid.hidden = set(range(2 if clock.now < 15 else 5, N))

    pause(0.0)
    limits = flower.Limits(population=38.0, poll=1.0)
    present = population.Population(Gate(), limits)
    with caplog.at_level("INFO"), pytest.raises(TooFewClients, match="8 clients were expected"):
        present.wait(grid, N, pause)
    said = [line for line in caplog.messages if "expected" in line]
    assert said == [f"\t├──> 8 clients expected, {came} connected" for came in (2, 2, 5, 5)]


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
    assert len(strategy.session.state.federation) == N - 1
    assert set(strategy.gate.summary()) <= {"out_of_range", "wrong_type", "not_finite"}


def claims(key: int):
    """The node beside the usual ones says that it is a client that there is."""
    return lambda number: {"partition-id": key} if number == N else {}


def test_nobody_becomes_another_client_by_claiming_its_key(caplog) -> None:
    """Of two nodes that come together nobody can say which one is the client."""
    grid = flower.InProcessGrid(app(), N + 1, node_config=claims(4))
    strategy, _ = play(grid)
    assert [len(cohort) for cohort in strategy.cohorts] == [N - 1] * ROUNDS  # and it does begin
    assert 4 not in strategy.session.state.federation.ids
    assert strategy.gate.counts[Fault.TAKEN] >= 2
    assert "is refused: the key 4 is claimed by several nodes" in caplog.text


def test_a_key_that_is_taken_is_refused_until_it_is_free(monkeypatch) -> None:
    clock = Clock(monkeypatch)
    grid = Coming(app(), N + 1, node_config=claims(4))
    population = flower.CohortStrategy("full", clients=N).session.population
    grid.hidden = {N}  # the true client comes first
    population.wait(grid, N, clock.pause)
    true, other = (next(n for n, p in grid.partition.items() if p == at) for at in (4, N))
    grid.hidden = set()
    for _ in range(3):
        population.refresh(grid, 1.0)
        assert population.nodes[4] == true
    assert population.gate.by_client[Node(other), Fault.TAKEN] == 1
    grid.hidden = {4}  # its old node is gone, as that of a client that was started again
    population.refresh(grid, 1.0)
    assert 4 not in population.nodes
    clock.now += 2
    population.refresh(grid, 1.0)
    assert population.nodes[4] == other


def test_of_nodes_that_claim_one_key_the_last_that_stays_has_it(monkeypatch) -> None:
    Clock(monkeypatch)
    grid = Coming(app(), N + 1, node_config=claims(4))
    population = flower.CohortStrategy("full", clients=N).session.population
    population.wait(grid, N)
    assert 4 not in population.nodes
    grid.hidden = {N}
    population.refresh(grid, 1.0)
    assert grid.partition[population.nodes[4]] == 4


def test_a_node_that_failed_to_say_who_it_is_is_asked_again_ever_more_rarely(monkeypatch) -> None:
    clock, asked = Clock(monkeypatch), []

    class Late(flower.InProcessGrid):
        well = False

        def deliver(self, message: Message) -> Message | None:
            if self.partition[message.metadata.dst_node_id] == 0:
                asked.append(clock.now)
                if not self.well:
                    return None
            return super().deliver(message)

    grid = Late(app(), N)
    population = flower.CohortStrategy("full", clients=N - 1).session.population
    population.wait(grid, N - 1, clock.pause)
    for _ in range(100):
        clock.now += 1
        population.refresh(grid, 1.0)
    assert asked == [0, 2, 6, 14, 30, 62]
    grid.well = True
    clock.now += 30
    population.refresh(grid, 1.0)
    assert len(population.nodes) == N


@pytest.mark.parametrize("odd", ["x", 5.5, True, "", "a\nb", "x" * 201, b"x"])
def test_a_key_that_can_be_none_is_refused(odd: object) -> None:
    def key(context):
        number = context.node_config["partition-id"]
        return odd if number == 3 else number

    client = flower.client_app(flower.task_client(task(), WORK), key=key)
    for _ in range(3):  # node ids are random: any order
        strategy, _ = play(flower.InProcessGrid(client, N), clients=N - 1, rounds=1)
        assert strategy.session.state.federation.ids == tuple(i for i in range(N) if i != 3)
        assert strategy.gate.counts[Fault.OUT_OF_RANGE] >= 1


def test_a_stranger_that_is_first_does_not_decide_the_type_of_the_keys(monkeypatch) -> None:
    """All others are slow to answer for the first time."""
    clock = Clock(monkeypatch)

    class Slow(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            mine = self.partition[message.metadata.dst_node_id] == 3
            return super().deliver(message) if mine or clock.now else None

    def config(number: int):
        return {"client-key": "x"} if number == 3 else {}

    population = flower.CohortStrategy("full", clients=N - 1).session.population
    population.wait(Slow(app(), N, node_config=config), N - 1, clock.pause)
    assert sorted(population.nodes) == [i for i in range(N) if i != 3]


# -- sizes -----------------------------------------------------------------------------------


def lying(size: int):
    def client(number: int) -> ClientApp:
        return flower.client_app(Liar(number, size)) if number == 2 else app()

    return client


class Liar:
    def __init__(self, number: int, size: int) -> None:
        self.client, self.told = flower.task_client(task(), WORK), size

    def __call__(self, context):
        honest = self.client(context)

        class Lies:
            size = self.told
            update = staticmethod(honest.update)
            loss = staticmethod(honest.loss)

        return Lies()


@pytest.mark.parametrize("size", [10**6, 2**62])
def test_a_lie_about_a_size_counts_ten_times_the_median(size: int, caplog) -> None:
    grid = flower.InProcessGrid(lying(size), N)
    strategy, _ = play(grid, "md:m=3", rounds=1)
    federation = strategy.session.state.federation
    assert federation.sizes.tolist() == [10, 20, 500, 40, 50, 60, 70, 80]
    assert "1 clients claim more than 10 times the median size" in caplog.text
    assert f"2 ({size:,})" in caplog.text
    strategy, _ = play(flower.InProcessGrid(lying(size), N), "md:m=3", rounds=1, largest_size=None)
    assert strategy.session.state.federation.sizes[2] == size


def test_a_hardened_run_refuses_whoever_claims_too_much_by_name(caplog) -> None:
    """And the run begins without it, for a lie ends nothing."""
    options = {"clients": N, "seed": 3, "limits": QUICK, "hardened": "size-cap"}
    strategy = flower.CohortStrategy("md:m=3", **options)
    grid = flower.InProcessGrid(lying(2**62), N)
    strategy.start(grid, flower.first_model(task(), 3), num_rounds=3)
    assert strategy.session.state.federation.ids == (0, 1, 3, 4, 5, 6, 7)
    assert strategy.gate.by_client == {(2, Fault.OUT_OF_RANGE): 1}
    assert "client 2 is refused: 4,611,686,018,427,387,904 samples are more than 10" in caplog.text


def test_a_cap_on_sizes_holds_for_the_whole_run(tmp_path) -> None:
    """Smaller clients that come later, or another session, do not change what counted once."""
    settings = {"clients": 4, "folder": tmp_path, "rounds": 2}
    play(flower.InProcessGrid(lying(10**6), 4), "md:m=3", **settings)
    grid = flower.InProcessGrid(lying(10**6), N)
    strategy, _ = play(grid, "md:m=3", **{**settings, "rounds": 4})
    assert strategy.session.state.federation.sizes.tolist() == [10, 20, 200, 40, 50, 60, 70, 80]


def rounds_with(grid: Coming, hidden: list[set[int]], scheme: str = "full", **options):
    strategy = flower.CohortStrategy(scheme, clients=1, seed=3, limits=QUICK, **options)
    arrays = flower.first_model(task(), 3)
    for number, gone_now in enumerate(hidden, 1):
        grid.hidden = gone_now
        messages = list(strategy.configure_train(number, arrays, ConfigRecord(), grid))
        new, _ = strategy.aggregate_train(number, grid.send_and_receive(messages))
        arrays = arrays if new is None else new
    return strategy


@pytest.mark.parametrize("scheme", ["full", "fedsampling:K=10,mechanism=exact"])
def test_clients_come_leave_and_come_back(scheme: str) -> None:
    grid = Coming(app(), 4)
    strategy = rounds_with(grid, [{3}, {3}, set(), {0}, set()], scheme)
    ids = [strategy.session.state.federation.ids[i] for i in strategy.cohorts[2].clients]
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
    assert len(strategy.session.state.federation) == 4


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
    federation = strategy.session.state.federation
    assert list(federation.ids) == [f"node-{i}" for i in range(2, 10)]
    if importance == "size":
        assert federation.sizes.tolist() == list(range(80, 0, -10))


@pytest.mark.parametrize("importance", ["size", "equal"])
def test_where_nodes_have_no_names_the_error_says_who_gives_them(importance: str) -> None:
    with pytest.raises(TooFewClients, match=r"no name: .* --name` gives one, a simulation none"):
        play(flower.InProcessGrid(app(), N), identity="name", importance=importance)


# -- drop-outs and void rounds ----------------------------------------------------------------


def test_below_the_quorum_a_round_is_void_and_three_are_an_error() -> None:
    grid = silent(*range(6))
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=QUICK)
    with pytest.raises(TooFewClients, match="3 rounds in a row"):
        strategy.start(grid, flower.first_model(task(), 3), num_rounds=9)
    assert strategy.void == 3
    assert strategy.session.state.theta.tolist() == [0.0, 0.0]
    assert strategy.session.state.round == 3


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
    nothing, _ = play(silent(7), dropouts=AsDrawn())
    assert nothing.cohorts[0].weights.sum() == pytest.approx(1 - 8 / 36)


def test_void_rounds_with_memory_are_those_of_the_simulator() -> None:
    """Below the quorum the model stays, but scheme and estimator remember what came."""
    scheme = fedcohort.scheme("clustered-similarity", m=4)
    up = tuple(0.0 if i in (5, 6, 7) else 1.0 for i in range(N))
    failing = DropOuts(Random(up), AsDrawn(), quorum=0.6)
    trace = fedcohort.simulate(
        task(), scheme, rounds=12, seed=3, work=WORK, aggregator="memory", dropouts=failing
    )
    options = {"aggregator": "memory", "dropouts": "none", "quorum": 0.6}
    strategy = flower.CohortStrategy(scheme, clients=N, seed=3, limits=QUICK, **options)
    strategy.VOID_ROUNDS = 99
    strategy.start(silent(5, 6, 7), flower.first_model(task(), 3), num_rounds=12)
    session = strategy.session
    assert 0 < strategy.void < 12
    np.testing.assert_array_equal(session.state.theta, trace.model)
    assert session.state.aggregator.latest is scheme.latest(session.state.scheme)  # one table
    expected = session.state.aggregator.latest.weighted_sum(session.federation.importance)
    np.testing.assert_allclose(session.state.aggregator.average, expected, atol=1e-12)


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
