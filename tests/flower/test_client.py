"""Clients answer what schemes ask, in their own way and within their own limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import fedcohort
from fedcohort import Ask, Citation, Cohort, Scheme, Signal
from fedcohort._internal.errors import (
    BadInput,
    BudgetExceeded,
    PolicyRefused,
    TooFewClients,
    UnknownName,
)
from fedcohort.privacy import ClientPolicy, PrivateSize
from fedcohort.selection import UPDATE_NORM
from fedcohort.server import Fault
from fedcohort.simulation import LocalWork, Quadratic

pytest.importorskip("flwr")
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from fedcohort import flower
from fedcohort.flower import _wire as wire

N = 6
WORK = LocalWork(steps=1, lr=0.5, batch=None)
X = np.linspace(1.0, 2.0, N)[:, None]
MODEL = wire.to_record({"theta": np.zeros(1)})


def task() -> Quadratic:
    return Quadratic(X, sizes=np.full(N, 200))


def run(grid, scheme, rounds: int = 3, **options):
    strategy = flower.CohortStrategy(scheme, **{"clients": N, "seed": 1, **options})
    result = strategy.start(grid, MODEL, num_rounds=rounds)
    return strategy, result.arrays["theta"].numpy()


def ask(grid, name: str, model: bool = False, **settings: Any) -> Message:
    """Put one question to the first node."""
    config = {wire.SIGNAL: name, **{wire.SETTING + k: v for k, v in settings.items()}}
    content = RecordDict({wire.CONFIG: ConfigRecord(config)})
    if model:
        content[wire.ARRAYS] = MODEL
    node = min(grid.contexts, key=lambda node: grid.partition[node])
    message = Message(content, node, wire.QUERY)
    return next(iter(grid.send_and_receive([message])))


def told(reply: Message, name: str) -> np.ndarray:
    return reply.content[wire.ANSWER][name].numpy()


def test_a_client_answers_every_signal_of_installed_schemes() -> None:
    class Local:
        size = 7
        label_counts = np.array([3, 4])

        def loss(self, model, batch=None, rng=None):
            return 0.5 if batch is None else float(batch)

        def update(self, model, work):
            return {"theta": np.array([3.0])}

        def gradient(self, model, work):
            return {"theta": np.array([-2.0])}

    grid = flower.InProcessGrid(flower.client_app(lambda context: Local()), 1, raises=True)
    assert told(ask(grid, "size"), "size") == 7
    assert told(ask(grid, "label_histogram"), "label_histogram").tolist() == [3, 4]
    assert told(ask(grid, "loss", model=True), "loss") == 0.5
    assert told(ask(grid, "batch_loss", model=True, batch=8), "batch_loss") == 8.0
    assert told(ask(grid, "update", model=True), "update").tolist() == [3.0]
    assert told(ask(grid, "update_norm", model=True), "update_norm") == 3.0
    with pytest.raises(UnknownName, match="no signal on this client named 'diary'"):
        ask(grid, "diary")
    with pytest.raises(BadInput, match="without a model"):
        ask(grid, "loss")


def test_what_the_client_app_lacks_is_said_where_the_server_runs() -> None:
    sized = flower.client_app(size=lambda context: 7)
    lacking = {
        "pow-d:m=2,d=3": r"pow-d asks for 'loss' .* needs a method loss\(model\), or an @app.eval",
        "haccs": "haccs asks for 'label_histogram' .* has no 'label_counts'",
        "optimal": r"optimal asks for 'update_norm' .* a method update\(model, work\), or",
    }
    for scheme, sentence in lacking.items():
        with pytest.raises(TooFewClients, match=sentence):
            run(flower.InProcessGrid(sized, N), scheme)


def test_a_mistake_in_the_users_own_code_keeps_its_words() -> None:
    class Local:
        @property
        def size(self):
            return [].length

    grid = flower.InProcessGrid(flower.client_app(lambda context: Local()), 1, raises=True)
    with pytest.raises(AttributeError, match="'list' object has no attribute 'length'"):
        ask(grid, "size")


# -- a signal and a scheme of one's own ------------------------------------------------------

BATTERY = Signal("battery", "how full the battery is", lambda client: client.battery)


@dataclass(frozen=True)
class FullBatteries(Scheme):
    """The m clients with the fullest batteries."""

    m: int = 2

    name: ClassVar[str] = "full-batteries"
    paper: ClassVar[Citation] = Citation("A student", "A thesis", "A university", 2026)
    asks: ClassVar[frozenset[Signal]] = frozenset({BATTERY})

    def select(self, state, federation, context, rng):
        levels = yield Ask(BATTERY, federation.present)
        return Cohort.equal(federation.present[np.argsort(-levels)[: self.m]])


class Phone:
    size = 10

    def __init__(self, context) -> None:
        self.battery = float(context.node_config["partition-id"] % 4)

    def update(self, model, work):
        return {"theta": np.ones(1)}


def test_a_students_own_signal_needs_no_line_on_the_server() -> None:
    grid = flower.InProcessGrid(flower.client_app(Phone, signals=[BATTERY]), N)
    strategy, _ = run(grid, FullBatteries())
    assert [cohort.clients.tolist() for cohort in strategy.cohorts] == [[2, 3]] * 3
    assert "battery" in strategy.ledger.disclosures()


def test_a_scheme_of_ones_own_goes_on_after_a_crash(tmp_path) -> None:
    for rounds in (1, 3):
        grid = flower.InProcessGrid(flower.client_app(Phone, signals=[BATTERY]), N)
        strategy, theta = run(grid, FullBatteries(), rounds, folder=tmp_path)
    assert len(strategy.cohorts) == 2
    assert theta == 3.0


def test_a_client_answers_only_what_it_agrees_to() -> None:
    shy = flower.client_app(Phone, signals=[BATTERY], policy=ClientPolicy(answers={"size"}))
    grid = flower.InProcessGrid(shy, 1, raises=True)
    assert told(ask(grid, "size"), "size") == 10
    with pytest.raises(PolicyRefused, match=r"allows the signals \['size'\]"):
        ask(grid, "battery")


def test_clients_that_do_not_answer_are_rows_of_nan_and_their_rounds_go_on() -> None:
    def some(number: int) -> ClientApp:
        return flower.client_app(Phone, signals=[BATTERY] if number != 3 else [])

    strategy, _ = run(flower.InProcessGrid(some, N), FullBatteries())
    assert strategy.gate.counts[Fault.FAILED] == 2 * 3  # asked twice in every round
    assert all(len(cohort) == 2 for cohort in strategy.cohorts)


def test_who_cannot_answer_what_a_scheme_must_know_beforehand_is_left_out() -> None:
    class Labelled(Phone):
        label_counts = np.array([3, 4])

    def some(number: int) -> ClientApp:
        return flower.client_app(Labelled if number != 3 else Phone)

    strategy, _ = run(flower.InProcessGrid(some, N), fedcohort.scheme("target", m=2))
    assert strategy.session.state.federation.ids == (0, 1, 2, 4, 5)


# -- an app that was there before ------------------------------------------------------------


def existing() -> ClientApp:
    """As in Flower's own examples, but for the first line."""
    app = flower.client_app(size=lambda context: 10)

    @app.train()
    def train(message: Message, context) -> Message:
        context.state["count"] = MetricRecord({"trained": 1})
        theta = message.content["arrays"]["theta"].numpy()
        step = float(context.node_config["partition-id"])
        content = RecordDict(
            {
                "arrays": ArrayRecord([theta + step]),
                "metrics": MetricRecord({"num-examples": 10, "train_loss": step}),
            }
        )
        content["arrays"] = wire.to_record({"theta": theta + step})
        return Message(content, reply_to=message)

    @app.evaluate()
    def evaluate(message: Message, context) -> Message:
        metrics = MetricRecord({"eval_loss": 2.0 * context.node_config["partition-id"]})
        return Message(RecordDict({"metrics": metrics}), reply_to=message)

    return app


def test_an_existing_app_trains_as_it_did_and_its_metrics_are_averaged() -> None:
    grid = flower.InProcessGrid(existing(), N, raises=True)
    strategy = flower.CohortStrategy("full", clients=N, seed=0)
    result = strategy.start(grid, MODEL, num_rounds=2)
    assert result.arrays["theta"].numpy() == pytest.approx(2 * 2.5)
    assert result.train_metrics_clientapp[1]["train_loss"] == pytest.approx(2.5)
    assert result.train_metrics_clientapp[1]["cohort-size"] == N


def test_updates_and_losses_of_an_existing_app_are_found_by_calling_it() -> None:
    grid = flower.InProcessGrid(existing(), N, raises=True)
    strategy, _ = run(grid, fedcohort.scheme("pow-d", m=2, d=N), rounds=1)
    assert strategy.cohorts[0].clients.tolist() == [4, 5]
    grid = flower.InProcessGrid(existing(), N, raises=True)
    grid.contexts = {n: c for n, c in grid.contexts.items() if grid.partition[n] == 5}
    assert told(ask(grid, UPDATE_NORM.name, model=True), UPDATE_NORM.name) == 5.0
    assert "count" not in next(iter(grid.contexts.values())).state  # a trial leaves no trace


def test_what_a_scheme_listens_to_comes_with_the_update() -> None:
    grid = flower.InProcessGrid(existing(), N, raises=True)
    strategy, _ = run(grid, fedcohort.scheme("rpow-d", m=2, d=N), rounds=6)
    assert strategy.cohorts[-1].clients.tolist() == [4, 5]  # after all had their turn


def test_what_is_told_of_an_update_is_told_of_the_one_that_was_sent() -> None:
    steps = iter([3.0, 4.0])  # whoever trains again finds another one
    app = flower.client_app(size=lambda context: 10)

    @app.train()
    def train(message: Message, context) -> Message:
        theta = message.content["arrays"]["theta"].numpy() + next(steps)
        return Message(RecordDict({"arrays": wire.to_record({"theta": theta})}), reply_to=message)

    grid = flower.InProcessGrid(app, 1, raises=True)
    config = ConfigRecord({wire.LISTENS: [UPDATE_NORM.name]})
    content = RecordDict({wire.ARRAYS: MODEL, wire.CONFIG: config})
    (reply,) = grid.send_and_receive([Message(content, next(iter(grid.contexts)), "train")])
    assert reply.content["arrays"]["theta"].numpy() == 3.0
    assert told(reply, UPDATE_NORM.name) == 3.0


def test_an_app_without_any_training_says_so() -> None:
    grid = flower.InProcessGrid(flower.client_app(size=lambda context: 1), N, raises=True)
    with pytest.raises(BadInput, match="trains by a method update"):
        run(grid, "full")


def test_bad_arguments_are_one_sentence() -> None:
    with pytest.raises(BadInput, match="takes 'local', or single facts"):
        flower.client_app(Phone, size=lambda context: 5)
    with pytest.raises(BadInput, match="must be a function of the context"):
        flower.client_app(size=5)
    grid = flower.InProcessGrid(flower.client_app(Phone), 1, raises=True)
    next(iter(grid.contexts.values())).node_config.clear()
    with pytest.raises(BadInput, match="must have a key that stays the same"):
        ask(grid, wire.HELLO)


# -- a share of the data ---------------------------------------------------------------------


def test_a_client_trains_on_the_share_of_its_data_that_is_asked_for() -> None:
    seen = []

    class Local:
        size = 1000

        def update(self, model, work):
            seen.append(len(work.participants(self.size)))
            assert len(work.participants(self.size)) == seen[-1]  # the same when asked again
            return {"theta": np.zeros(1)}

    grid = flower.InProcessGrid(flower.client_app(lambda context: Local()), N)
    run(grid, fedcohort.scheme("fedsampling-naive", rate=0.1), rounds=5, seed=None)
    assert len(set(seen)) > 10  # entropy of their own: no two alike by design
    assert abs(np.mean(seen) - 100) < 5 * 9.5 / np.sqrt(len(seen))


def test_where_answers_count_per_sample_the_number_is_not_sent() -> None:
    app = existing()
    grid = flower.InProcessGrid(app, N, raises=True)
    config = ConfigRecord({wire.PER_SAMPLE: True, wire.DATA_RATE: 1.0})
    content = RecordDict({wire.ARRAYS: MODEL, wire.CONFIG: config})
    node = max(grid.contexts, key=lambda node: grid.partition[node])
    reply = next(iter(grid.send_and_receive([Message(content, node, "train")])))
    assert reply.content["update"]["theta"].numpy() == 5 * 10  # the update times the samples
    assert list(reply.content) == ["update"]


# -- privacy ---------------------------------------------------------------------------------


def discreet(folder, **policy: Any) -> ClientPolicy:
    def place(context) -> Path:
        return folder / str(context.node_config["partition-id"])

    return ClientPolicy(folder=place, **policy)


def private_app(folder) -> ClientApp:
    policy = discreet(folder, updates_in_plain=True)
    return flower.client_app(flower.task_client(task(), WORK), policy=policy)


SAMPLING = fedcohort.scheme("fedsampling", K=100, M=300, epsilon=3.0, when_imprecise="accept")


def test_a_private_size_is_answered_once_and_accounted(tmp_path) -> None:
    first, _ = run(
        flower.InProcessGrid(private_app(tmp_path), N), SAMPLING, rounds=4, importance="equal"
    )
    spent = [PrivateSize(tmp_path / str(i)).spent for i in range(N)]
    assert spent == [3.0] * N
    again, _ = run(
        flower.InProcessGrid(private_app(tmp_path), N), SAMPLING, rounds=4, importance="equal"
    )
    state = [s.session.state.scheme.private.tolist() for s in (first, again)]
    assert state[0] == state[1]  # the same answers, at no further cost
    assert [PrivateSize(tmp_path / str(i)).spent for i in range(N)] == [3.0] * N
    assert [told.what for told in first.disclosures()][:1] == ["private_size"]
    assert first.disclosures()[0].epsilon == 3.0  # in all, whatever the number of rounds
    assert first.ledger.epsilons() == {"private_size": 3.0}


def test_a_private_size_in_the_open_needs_consent_and_the_server_says_why(
    tmp_path, caplog: pytest.LogCaptureFixture
) -> None:
    shy = flower.client_app(flower.task_client(task(), WORK), policy=discreet(tmp_path))
    with pytest.raises(TooFewClients, match=r"ClientPolicy\(updates_in_plain=True\)"):
        run(flower.InProcessGrid(shy, N), SAMPLING, importance="equal")
    assert [PrivateSize(tmp_path / str(i)).spent for i in range(N)] == [0.0] * N
    assert "size (over the rounds): the number of samples, from which updates are" in caplog.text


def test_beyond_its_budget_a_client_refuses(tmp_path) -> None:
    grid = flower.InProcessGrid(private_app(tmp_path), 1, raises=True)
    law = {"threshold": 300, "epsilon": 3.0, "levels": 4, "mechanism": "levels", "round": 0}
    ask(grid, "private_size", **law)
    with pytest.raises(BudgetExceeded):
        ask(grid, "private_size", **{**law, "threshold": 200})
    with pytest.raises(PolicyRefused, match="an epsilon"):
        ask(grid, "private_size", **{**law, "epsilon": 9.0})


def test_without_a_memory_nothing_private_is_answered() -> None:
    grid = flower.InProcessGrid(flower.client_app(flower.task_client(task(), WORK)), 1, raises=True)
    law = {"threshold": 300, "epsilon": 3.0, "levels": 4, "mechanism": "levels", "round": 0}
    with pytest.raises(PolicyRefused, match="only with a folder"):
        ask(grid, "private_size", **law)


NOISY = Signal(
    "noisy_labels",
    "roughly how many samples of each class",
    lambda client, epsilon: client.private_counts(client.label_counts, epsilon, 2),
)


def test_noisy_counts_are_drawn_once_and_accounted(tmp_path) -> None:
    class Local:
        size = 10
        label_counts = np.array([1000, 2000])

    app = flower.client_app(
        lambda context: Local(), signals=[NOISY], policy=discreet(tmp_path, ceiling=1.0)
    )
    grid = flower.InProcessGrid(app, 1, raises=True)
    first = told(ask(grid, "noisy_labels", epsilon=0.5), "noisy_labels")
    assert np.abs(first - [1000, 2000]).max() < 200
    for _ in range(5):
        again = told(ask(grid, "noisy_labels", epsilon=0.5), "noisy_labels")
        np.testing.assert_array_equal(first, again)
    ask(grid, "noisy_labels", epsilon=0.25)
    with pytest.raises(BudgetExceeded):
        ask(grid, "noisy_labels", epsilon=0.5001)
    with pytest.raises(PolicyRefused, match="an epsilon"):
        ask(grid, "noisy_labels", epsilon=5.0)


def test_sizes_and_counts_of_a_client_have_one_budget(tmp_path) -> None:
    class Local:
        size = 10
        label_counts = np.array([1000, 2000])

    policy = discreet(tmp_path, ceiling=3.0, updates_in_plain=True)
    app = flower.client_app(lambda context: Local(), signals=[NOISY], policy=policy)
    grid = flower.InProcessGrid(app, 1, raises=True)
    law = {"threshold": 300, "epsilon": 2.5, "levels": 4, "mechanism": "levels", "round": 0}
    ask(grid, "private_size", **law)
    ask(grid, "noisy_labels", epsilon=0.5)
    for name, settings in (
        ("noisy_labels", {"epsilon": 0.25}),
        ("private_size", law | {"levels": 3}),
    ):
        with pytest.raises(BudgetExceeded, match=r"epsilon 3\.0 is spent"):
            ask(grid, name, **settings)
    assert PrivateSize(tmp_path / "0").spent == 3.0


def test_a_flower_client_answers_all_that_a_signal_may_look_at() -> None:
    """Whatever the base class of `core` names, a deployed client has."""
    from fedcohort.flower import _client_values as module
    from fedcohort.selection import Client

    wanted = {name for name in vars(Client) if not name.startswith("_")}
    holders = [cls for cls in vars(module).values() if hasattr(cls, "private_size")]
    assert holders
    for cls in holders:
        assert wanted <= set(dir(cls)), wanted - set(dir(cls))
        offered = {name.removeprefix("offer_") for name in dir(cls) if name.startswith("offer_")}
        facts = {"fact", "lacks", "quantity", "state", "who"}
        if cls is not Client:
            assert wanted - facts <= offered
