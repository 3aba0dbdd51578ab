"""Local algorithms on Flower: what clients remember survives whatever happens in between."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort._internal import store
from fedcohort._internal.errors import BadInput, TooFewClients
from fedcohort.privacy import ClientPolicy
from fedcohort.server import AsDrawn, Redraw
from fedcohort.training import Algorithm, FedProx, LocalWork, Payload, Quadratic
from helpers.control import Control

pytest.importorskip("flwr")
from flwr.app import ConfigRecord, Context, Message, RecordDict

from fedcohort import flower
from fedcohort.flower import _wire as wire
from fedcohort.flower._client_values import Memory
from helpers import weighed

FILE = Path(__file__).parents[1] / "helpers" / "control.py"
N, D, ROUNDS = 8, 3, 6
WORK = LocalWork(steps=4, lr=0.2, batch=None, mu=0.1)
QUICK = flower.Limits(population=0.2, poll=0.01)


def task() -> Quadratic:
    rng = np.random.Generator(np.random.Philox(0))
    return Quadratic(rng.standard_normal((N, D)), sizes=np.arange(1, N + 1) * 10, noise=0.3)


def app(folder: Path | None, local: Any = None, own: Any = (Control,)) -> flower.CohortClientApp:
    def place(context: Any) -> Path:
        return folder / str(context.node_config["partition-id"])  # type: ignore[operator]

    policy = ClientPolicy(folder=None if folder is None else place)
    local = local or flower.task_client(task(), WORK)
    return flower.client_app(local, algorithms=own, policy=policy, simulated=True)


class Trouble(flower.InProcessGrid):
    """Clients that do not answer, reports that are spoilt, and a server that is killed.

    ``silent`` and ``spoilt`` are pairs (round, partition): the client has trained, and its report
    is lost, or has a NaN in a payload.
    """

    def __init__(
        self,
        app: flower.CohortClientApp,
        silent: Any = frozenset(),
        spoilt: Any = frozenset(),
        dies_in: int | None = None,
    ) -> None:
        super().__init__(app, N)
        self.silent, self.spoilt, self.dies_in = silent, spoilt, dies_in

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        if message.metadata.message_type != wire.TRAIN or reply is None or reply.has_error():
            return reply
        round = int(wire.config_of(message)[wire.ROUND])
        here = round, self.partition[message.metadata.dst_node_id]
        if here in self.spoilt:
            found = wire.from_record(reply.content.array_records[wire.PAYLOADS])
            reply.content[wire.PAYLOADS] = wire.to_record({**found, "c": found["c"] * np.nan})
        return None if here in self.silent else reply

    def push_messages(self, messages: Any) -> Any:
        sent = list(messages)
        names = super().push_messages(sent)
        rounds = {
            wire.config_of(m)[wire.ROUND] for m in sent if m.metadata.message_type == wire.TRAIN
        }
        if self.dies_in in rounds:  # clients have trained, the server hears nothing of it
            raise KeyboardInterrupt
        return names


def play(grid: Any, chosen: str = "md:m=4", rounds: int = ROUNDS, **options: Any) -> Any:
    settings = {"clients": N, "seed": 3, "limits": QUICK, "algorithm": Control(), **options}
    strategy = flower.CohortStrategy(chosen, **settings)
    strategy.start(grid, flower.first_model(task(), 3), num_rounds=rounds)
    return strategy


def memory(folder: Path, client: int) -> Memory:
    return Memory.of(folder / str(client), "fedcohort")


def imbalance(strategy: Any, folder: Path, which: Algorithm | None = None) -> float:
    """|c - sum p_i c_i| beside the largest c_i, of what is on the disks of the clients."""
    return weighed.imbalance(
        strategy, "c", weighed.remembered(strategy, folder, which or Control(), "c_i")
    )


EVERYBODY = {(2, client) for client in range(N)}
TROUBLE: dict[str, dict[str, Any]] = {
    "none": {},
    "drop-outs": {"silent": {(r, c) for r in range(ROUNDS) for c in (r % N, (3 * r + 1) % N)}},
    "a void round": {"silent": EVERYBODY},
    "rejected reports": {"spoilt": {(r, c) for r in range(ROUNDS) for c in (1, 5, 7)}},
}


@pytest.mark.parametrize("rule", [AsDrawn(), Redraw(attempts=2)], ids=["nothing", "redraw"])
@pytest.mark.parametrize("trouble", TROUBLE.values(), ids=TROUBLE.keys())
def test_a_tally_is_the_sum_over_the_clients(trouble: Any, rule: Any, tmp_path: Path) -> None:
    grid = Trouble(app(tmp_path), **trouble)
    strategy = play(grid, dropouts=rule, quorum=0.3)
    state = strategy.session.state
    assert imbalance(strategy, tmp_path) <= 1e-12
    assert np.abs(state.algorithm["c"]).max() > 1e-2
    assert strategy.void >= (trouble is TROUBLE["a void round"])
    lost = {c for r, c in trouble.get("spoilt", ()) if state.counted[c] >= 0}
    assert not lost  # a report that the gate rejects changes nobody's memory


def test_a_tally_by_omega_would_be_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    roles = (Payload("c", "estimate"), Payload("gradient", "estimate"))
    monkeypatch.setattr(Control, "payloads", roles)
    monkeypatch.setattr(
        Control, "step", lambda self, server, sums: {**server, "c": server["c"] + sums["c"]}
    )
    strategy = play(Trouble(app(tmp_path)))
    assert imbalance(strategy, tmp_path) > 1e-3


@pytest.mark.parametrize("chosen", ["md:m=4", "optimal:m=3", "binomial:m=4"])
def test_the_simulator_plays_the_same_run(chosen: str, tmp_path: Path) -> None:
    """`optimal` lets clients train to tell a length: that changes no memory."""
    strategy = play(Trouble(app(tmp_path, own=[str(FILE)])), chosen)
    trace = fedcohort.simulate(
        task(), chosen, rounds=ROUNDS, seed=3, work=WORK, algorithm=str(FILE)
    )
    assert [cohort.clients.tolist() for cohort in strategy.cohorts] == [
        trace.cohort(round).clients.tolist() for round in range(ROUNDS)
    ]
    np.testing.assert_allclose(strategy.session.state.theta, trace.model, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dies_in", range(4))
@pytest.mark.parametrize("seed", [3, None])
def test_killed_servers_and_restarted_clients(
    dies_in: int, seed: int | None, tmp_path: Path
) -> None:
    """A new server, new apps and contexts, the old folders; without a seed all coins are new."""
    server, clients = tmp_path / "server", tmp_path / "clients"
    trouble = TROUBLE["drop-outs"]
    with pytest.raises(KeyboardInterrupt):
        play(Trouble(app(clients), dies_in=dies_in, **trouble), folder=server, seed=seed)
    again = play(Trouble(app(clients), **trouble), folder=server, seed=seed, rounds=4)
    assert imbalance(again, clients) <= 1e-12
    last = play(Trouble(app(clients), **trouble), folder=server, seed=seed)  # all start again
    assert imbalance(last, clients) <= 1e-12
    if seed is not None:
        whole = play(Trouble(app(tmp_path / "others"), **trouble))
        np.testing.assert_array_equal(last.session.state.theta, whole.session.state.theta)
        np.testing.assert_array_equal(
            last.session.state.algorithm["c"], whole.session.state.algorithm["c"]
        )


@pytest.mark.parametrize("after", [False, True])
def test_a_server_or_a_client_that_is_killed_at_any_write(
    after: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Proposals of clients, selections and states: both sides agree, whatever was written last."""
    real = store.save
    for at in range(1, 18, 4 if after else 1):  # after one write is before the next
        left = [at]

        def save(*args: Any, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == 0 and not after:
                raise KeyboardInterrupt
            real(*args)
            if left[0] == 0:
                raise KeyboardInterrupt

        server, clients = tmp_path / f"server-{at}", tmp_path / f"clients-{at}"
        with monkeypatch.context() as patch:
            patch.setattr(store, "save", save)
            with pytest.raises(KeyboardInterrupt):
                play(Trouble(app(clients)), folder=server, seed=None)
        again = play(Trouble(app(clients)), folder=server, seed=None)
        assert imbalance(again, clients) <= 1e-12


BAD: dict[str, Any] = {
    "none at all": lambda found: {},
    "one is missing": lambda found: {"c": found["c"]},
    "one too many": lambda found: {**found, "more": found["c"]},
    "another shape": lambda found: {**found, "c": found["c"][:-1]},
    "infinite": lambda found: {**found, "gradient": found["gradient"] + np.inf},
    "huge": lambda found: {**found, "c": found["c"] + 1e300},
    "text": lambda found: {**found, "c": found["c"].astype(str)},
}


@pytest.mark.parametrize("lie", BAD.values(), ids=BAD.keys())
def test_a_bad_payload_is_rejected_and_nothing_is_remembered(lie: Any, tmp_path: Path) -> None:
    class Hostile(Trouble):
        def deliver(self, message: Message) -> Message | None:
            reply = super().deliver(message)
            mine = self.partition[message.metadata.dst_node_id] == N - 1
            if mine and reply is not None and message.metadata.message_type == wire.TRAIN:
                found = wire.from_record(reply.content.array_records[wire.PAYLOADS])
                reply.content[wire.PAYLOADS] = wire.to_record(lie(found))
            return reply

    strategy = play(Hostile(app(tmp_path)), "full", dropouts="none")
    assert strategy.gate.counts.total() == ROUNDS
    counted = strategy.session.state.counted
    assert counted.tolist() == [ROUNDS - 1] * (N - 1) + [-1]
    assert imbalance(strategy, tmp_path) <= 1e-12


def test_payloads_that_nobody_asked_for_are_rejected(tmp_path: Path) -> None:
    class Eager(Trouble):
        def deliver(self, message: Message) -> Message | None:
            reply = super().deliver(message)
            if reply is not None and message.metadata.message_type == wire.TRAIN:
                reply.content[wire.PAYLOADS] = wire.to_record({"c": np.ones(D)})
            return reply

    with pytest.raises(TooFewClients, match="wrong_keys"):
        play(Eager(app(tmp_path)), algorithm=None)


def test_who_draws_no_sample_remembers_what_it_did(tmp_path: Path) -> None:
    """As in the simulator; 10 to 120 samples, of which one in 22 takes part."""
    chosen = "fedsampling:K=30,mechanism=exact"
    trace = fedcohort.simulate(
        task(), chosen, rounds=ROUNDS, seed=3, work=WORK, algorithm=Control()
    )
    assert any((trace.cohort(round).weights == 0).any() for round in range(ROUNDS))  # nobody drawn
    strategy = play(Trouble(app(tmp_path)), chosen)
    np.testing.assert_allclose(strategy.session.state.theta, trace.model, rtol=0, atol=1e-12)
    assert imbalance(strategy, tmp_path) < 1e-12


def test_estimates_count_by_samples_where_updates_do(tmp_path: Path) -> None:
    def place(context: Any) -> Path:
        return tmp_path / str(context.node_config["partition-id"])

    policy = ClientPolicy(folder=place, largest_epsilon=20.0, updates_in_plain=True)
    clients = flower.client_app(
        flower.task_client(task(), WORK), algorithms=[Control], policy=policy
    )
    strategy = play(
        Trouble(clients),
        "fedsampling:K=90,epsilon=20,M=100",
        algorithm=Control(share=1.0),
        rounds=1,
        importance="equal",
    )
    state = strategy.session.state
    expected = -state.theta / (WORK.lr * WORK.steps)  # the model began at zero
    np.testing.assert_allclose(state.algorithm["mean"], expected, rtol=1e-10)
    assert imbalance(strategy, tmp_path, Control(share=1.0)) <= 1e-12


def test_a_new_run_on_old_folders_begins_anew(tmp_path: Path) -> None:
    first, second = (play(Trouble(app(tmp_path))) for _ in range(2))
    np.testing.assert_array_equal(first.session.state.theta, second.session.state.theta)
    assert imbalance(second, tmp_path) <= 1e-12


def test_a_client_that_lost_its_folder_is_refused_with_a_sentence(tmp_path: Path) -> None:
    server, clients = tmp_path / "server", tmp_path / "clients"
    play(Trouble(app(clients)), "full", folder=server, rounds=2)
    for client in range(N):
        memory(clients, client).path.unlink()
    with pytest.raises(TooFewClients, match=r"does not hold what this client remembered .* round"):
        play(Trouble(app(clients)), "full", folder=server, dropouts="none")


def test_an_older_invitation_changes_nothing(tmp_path: Path) -> None:
    kept = Memory.of(tmp_path, "run")
    one = {"c_i": np.ones(D)}
    vectors, rounds = {"kept": {"c_i": np.zeros(D)}, "proposed": one}, {"kept": -1, "proposed": 4}
    kept.propose(Control(), vectors, rounds, 20.0)
    with pytest.raises(BadInput, match="a later invitation to the same round"):
        kept.propose(Control(), {**vectors, "proposed": {"c_i": 2 * np.ones(D)}}, rounds, 10.0)
    np.testing.assert_array_equal(kept.kept(Control(), 4, D)["c_i"], one["c_i"])
    assert not kept.kept(Control(), -1, D)["c_i"].any()
    for other in (3, 5):
        with pytest.raises(BadInput, match=f"after round {other + 1}"):
            kept.kept(Control(), other, D)
    with pytest.raises(BadInput, match="does not hold what"):
        kept.kept(Control(share=0.1), 4, D)


# -- what does not fit is said before the first round -----------------------------------------


def refused(client: flower.CohortClientApp, **options: Any) -> str:
    with pytest.raises(TooFewClients) as caught:
        play(Trouble(client), **options)
    return str(caught.value)


def test_a_client_without_a_folder_is_one_sentence() -> None:
    said = refused(app(None))
    assert "'control' lets clients remember c_i from round to round" in said
    assert "ClientPolicy(folder=...)" in said
    play(Trouble(app(None)), algorithm=FedProx(0.5))  # it has nothing to remember


def test_a_client_without_the_algorithm_is_one_sentence(tmp_path: Path) -> None:
    said = refused(app(tmp_path, own=()))
    assert "no algorithm named 'control'" in said
    assert "client_app(algorithms=[...])" in said


def test_a_path_that_came_over_the_wire_is_not_run(tmp_path: Path) -> None:
    client = app(tmp_path, own=())
    with pytest.raises(BadInput, match="only a file that a person names is run"):
        client.algorithm({wire.ALGORITHM: str(FILE)})


def test_a_train_function_of_ones_own_is_one_sentence(tmp_path: Path) -> None:
    client = app(tmp_path)

    @client.train()
    def train(message: Message, context: Any) -> Message:
        raise AssertionError

    for greeted in ({}, {"importance": dict.fromkeys(range(N), 1.0), "dropouts": "none"}):
        assert "work.rule(LocalWork(...))" in refused(client, algorithm="fedprox", **greeted)
    message = Message(
        RecordDict({wire.CONFIG: ConfigRecord({wire.ALGORITHM: "fedprox"})}), 1, "train"
    )
    with pytest.raises(BadInput, match="trains by 'sgd' only"):  # whom nobody greeted
        client(message, Context(1, 1, {"partition-id": 0}, RecordDict(), {}))


def test_an_update_that_ignores_the_rule_is_one_sentence(tmp_path: Path) -> None:
    class Own:
        size = 10

        def update(self, model: Any, work: flower.Work) -> Any:
            return {name: -0.1 * array for name, array in model.items()}

    said = refused(app(tmp_path, lambda context: Own()), algorithm="fedprox", dropouts="none")
    assert "'fedprox' needs a method update(model, work)" in said


def test_an_object_of_ones_own_trains_by_the_rule(tmp_path: Path) -> None:
    """The same clients, written by hand over two arrays: drift and mu come in their shapes."""
    minima = task().minima

    class Own:
        def __init__(self, context: Any) -> None:
            self.number = int(context.node_config["partition-id"])
            self.size = 10 * (self.number + 1)

        def update(self, model: Any, work: flower.Work) -> Any:
            rule = work.rule(WORK)
            here = {name: np.array(array) for name, array in model.items()}
            for _ in range(rule.work.steps):
                for name, aim in (("a", minima[self.number, :1]), ("b", minima[self.number, 1:])):
                    gradient = here[name] - aim + rule.work.mu * (here[name] - model[name])
                    here[name] = here[name] - rule.work.lr * (gradient + rule.drift[name])
            return {name: here[name] - model[name] for name in model}

    strategy = flower.CohortStrategy("md:m=4", clients=N, seed=3, limits=QUICK, algorithm=str(FILE))
    first = wire.to_record({"a": np.zeros(1), "b": np.zeros(D - 1)})
    strategy.start(Trouble(app(tmp_path, Own)), first, num_rounds=ROUNDS)
    assert imbalance(strategy, tmp_path) <= 1e-12
    quiet = Quadratic(minima, sizes=task().sizes)
    trace = fedcohort.simulate(
        quiet, "md:m=4", rounds=ROUNDS, seed=3, work=WORK, algorithm=Control()
    )
    np.testing.assert_allclose(strategy.session.state.theta, trace.model, atol=1e-12)


def test_per_draw_refuses_what_is_counted_once_per_client() -> None:
    with pytest.raises(BadInput, match="'control' remembers and reports once per client"):
        flower.CohortStrategy("md", clients=N, algorithm=Control(), per_draw=True)
    flower.CohortStrategy("md", clients=N, algorithm="fedprox", per_draw=True)


def test_a_folder_of_another_algorithm_is_refused(tmp_path: Path) -> None:
    server, clients = tmp_path / "server", tmp_path / "clients"
    play(Trouble(app(clients)), folder=server, rounds=1)
    with pytest.raises(BadInput, match=r"the local algorithm control:share=0.5; this is sgd"):
        play(Trouble(app(clients)), folder=server, algorithm=None)


def test_payloads_are_booked_as_they_are_sent(tmp_path: Path) -> None:
    class Weighed(weighed.Weighing, Trouble): ...

    grid = Weighed(app(tmp_path))
    cost = play(grid).ledger.by_purpose()["training"]
    assert (cost.bytes_down, cost.bytes_up) == (grid.down, grid.up)
    assert grid.down == 3 * 8 * D * cost.messages // 2  # the model, c and the mean
    assert "'control' made of the local data" in str(play(grid, rounds=1).disclosures())


def test_newcomers_change_a_tally_by_the_factor_of_the_importances(tmp_path: Path) -> None:
    class Coming(Trouble):
        hidden: frozenset[int] = frozenset({0, 5})

        def get_node_ids(self) -> Any:
            return {n for n in super().get_node_ids() if self.partition[n] not in self.hidden}

        def deliver(self, message: Message) -> Message | None:
            if int(wire.config_of(message).get(wire.ROUND, 0)) == 2:
                self.hidden = frozenset()
            return super().deliver(message)

    strategy = play(Coming(app(tmp_path)), clients=N - 2)
    assert len(strategy.session.state.federation) == N
    assert imbalance(strategy, tmp_path) <= 1e-12
