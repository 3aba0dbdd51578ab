"""Coins belong to the client: tossed once a round, and everything uses the same draw."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import math
import secrets
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import fedcohort
from fedcohort._internal.errors import BadInput, PolicyRefused, TooFewClients
from fedcohort._internal.random import from_key
from fedcohort.privacy import ClientPolicy
from fedcohort.selection import UPDATE_NORM
from fedcohort.training import LocalWork, Quadratic

pytest.importorskip("flwr")
from flwr.app import ConfigRecord, Message, RecordDict

from fedcohort import flower
from fedcohort.flower import _wire as wire

ROOT = Path(__file__).parents[2]
LEVEL = 1e-6
N, HELD, K, ROUNDS = 60, 2, 30, 16
RATE = K / (N * HELD)
SAMPLING = f"fedsampling:K={K},mechanism=exact"
MODEL = wire.to_record({"theta": np.zeros(1)})


def tail(successes: int, trials: int, chance: float) -> float:
    """The exact two-sided tail of a binomial number."""
    law = binom(trials, chance)
    return float(2 * min(law.cdf(successes), law.sf(successes - 1)))


def mean_of(drawn: Any) -> dict[str, Any]:
    """Local training: sample i of a client moves the model by 2**i; NaN over nothing."""
    return {"theta": np.array([np.mean([2.0**i for i in drawn])])}


class Local:
    """Trains by its object."""

    size = HELD

    def __init__(self, context: Any) -> None: ...

    def update(self, model: Any, work: flower.Work) -> Any:
        return mean_of(work.participants(self.size))


def by_object(**settings: Any) -> flower.CohortClientApp:
    return flower.client_app(Local, **settings)


def by_function(**settings: Any) -> flower.CohortClientApp:
    app = flower.client_app(size=lambda context: HELD, **settings)

    @app.train()
    def train(message: Message, context: Any) -> Message:
        drawn = flower.Work.of(message).participants(HELD)
        changed = wire.to_record(mean_of(drawn))
        return Message(RecordDict({wire.CHANGE: changed}), reply_to=message)

    return app


class Watching(flower.InProcessGrid):
    """Keeps every update that is sent, by round and client."""

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        if message.metadata.message_type == wire.TRAIN and reply is not None:
            round = int(message.content[wire.CONFIG][wire.ROUND])
            client = self.partition[message.metadata.dst_node_id]
            sent = reply.content[wire.CHANGE]["theta"].numpy().item()
            self.seen = getattr(self, "seen", {}) | {(round, client): sent}
        return reply


def updates(
    app: flower.CohortClientApp, rounds: int = ROUNDS, **options: Any
) -> tuple[Any, np.ndarray]:
    """(rounds, clients) every update of a run without a seed, and the last model."""
    grid = Watching(app, N, raises=True)
    strategy = flower.CohortStrategy(SAMPLING, clients=N, **options)
    result = strategy.start(grid, MODEL, num_rounds=rounds)
    sent = np.array([[grid.seen[t, c] for c in range(N)] for t in range(rounds)])
    return float(result.arrays["theta"].numpy().item()), sent


# -- one draw a round, for everything --------------------------------------------------------


@pytest.mark.parametrize("app", [by_object, by_function])
def test_what_is_sent_is_the_sum_over_one_draw(app: Any) -> None:
    """Sums of powers of two name the samples: 0, 1, 2 or 3, and no count times another mean."""
    theta, sent = updates(app())
    assert set(np.unique(sent)) <= {0.0, 1.0, 2.0, 3.0}
    assert theta == pytest.approx(sent.sum() / K)
    for bit in (1, 2):  # every sample by the same coin
        drawn = int((sent.astype(int) & bit > 0).sum())
        assert tail(drawn, ROUNDS * N, RATE) > LEVEL
    assert tail(int((sent == 3).sum()), ROUNDS * N, RATE**2) > LEVEL  # and independently
    assert tail(int((sent == 0).sum()), ROUNDS * N, (1 - RATE) ** 2) > LEVEL
    again = (sent[::2] == 0) & (sent[1::2] == 0)
    assert tail(int(again.sum()), again.size, (1 - RATE) ** 4) > LEVEL  # afresh every round


def test_a_count_that_comes_from_another_draw_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def other(self: flower.Work, size: int) -> int:
        return int((np.random.default_rng().random(size) < self.data_rate).sum())

    monkeypatch.setattr(flower.Work, "number", other)
    grid = flower.InProcessGrid(by_object(), N)
    strategy = flower.CohortStrategy(SAMPLING, clients=N, quorum=0.0)
    with pytest.warns(RuntimeWarning):  # a mean over nothing
        result = strategy.start(grid, MODEL, num_rounds=ROUNDS)
    drawn = (
        result.arrays["theta"].numpy().item() * K / 1.5
    )  # a drawn sample moves by 1.5 on average
    assert tail(round(drawn), ROUNDS * N * HELD, RATE) < LEVEL


def drawn_by_the_simulator() -> tuple[int, int]:
    task = Quadratic(np.ones((N, 1)), sizes=np.full(N, HELD))
    work = LocalWork(steps=1, batch=None, lr=1.0)
    trace = fedcohort.simulate(task, SAMPLING, rounds=ROUNDS, seed=None, work=work)
    numbers = np.stack([trace.cohort(t).weights for t in range(ROUNDS)]) * K
    np.testing.assert_allclose(numbers, np.rint(numbers))
    return int(np.rint(numbers).sum()), int((numbers == 0).sum())


def drawn_on_flower() -> tuple[int, int]:
    """The simulated clients of a task, each with coins of its own."""
    task = Quadratic(np.ones((N, 1)), sizes=np.full(N, HELD))
    work = LocalWork(steps=1, batch=None, lr=1e-9)  # so that the model hardly moves
    app = flower.client_app(flower.task_client(task, work))
    grid = Watching(app, N, raises=True)
    strategy = flower.CohortStrategy(SAMPLING, clients=N)
    strategy.start(grid, flower.first_model(task, 0), num_rounds=ROUNDS)
    sent = np.array(list(grid.seen.values()))
    numbers = sent / sent[np.nonzero(sent)].min()
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-5)
    return int(np.rint(numbers).sum()), int((sent == 0).sum())


@pytest.mark.parametrize("drawn", [drawn_by_the_simulator, drawn_on_flower])
def test_without_a_seed_every_sample_is_drawn_with_the_same_chance(drawn: Any) -> None:
    samples, empty = drawn()
    assert tail(samples, ROUNDS * N * HELD, RATE) > LEVEL
    assert tail(empty, ROUNDS * N, (1 - RATE) ** HELD) > LEVEL


class Twice(Watching):
    """The first answer of every round is lost, and the invitation is sent again."""

    def deliver(self, message: Message) -> Message | None:
        if message.metadata.message_type == wire.TRAIN:
            lost = super().deliver(copy.deepcopy(message))
            reply = super().deliver(message)
            assert lost is not None
            assert reply is not None
            first, second = (each.content[wire.CHANGE]["theta"].numpy() for each in (lost, reply))
            np.testing.assert_array_equal(first, second)
            return reply
        return super().deliver(message)


def test_who_is_asked_again_answers_by_the_same_coins() -> None:
    grid = Twice(by_object(), N, raises=True)
    flower.CohortStrategy(SAMPLING, clients=N).start(grid, MODEL, num_rounds=5)
    assert len(grid.seen) == 5 * N  # every update was compared with its first answer


def test_what_is_told_of_an_update_is_told_of_the_draw_that_was_sent() -> None:
    """A norm that is listened to, and a norm that is asked for before, are of the same draw."""
    app = by_object()
    grid = flower.InProcessGrid(app, 1, raises=True)
    for round in range(20):
        told = {wire.ROUND: round, wire.DATA_RATE: 0.5, wire.LISTENS: [UPDATE_NORM.name]}
        reply = sent_to(grid, "train", **told)
        norm = wire.from_record(reply.content[wire.ANSWER])[UPDATE_NORM.name]
        assert norm == abs(reply.content[wire.CHANGE]["theta"].numpy().item())
        question = {wire.SIGNAL: UPDATE_NORM.name, wire.ROUND: round, wire.DATA_RATE: 0.5}
        answer = sent_to(grid, wire.QUERY, **question)
        assert wire.from_record(answer.content[wire.ANSWER])[UPDATE_NORM.name] == norm


def test_a_greeting_or_an_evaluation_does_not_toss_the_coins_of_a_round_again() -> None:
    app = by_object()
    app.evaluate()(lambda message, context: Message(RecordDict(), reply_to=message))
    grid = flower.InProcessGrid(app, 1, raises=True)
    for round in range(10):
        told = {wire.ROUND: round, wire.DATA_RATE: 0.5}
        first = sent_to(grid, "train", **told)
        sent_to(grid, wire.QUERY, **{wire.SIGNAL: wire.HELLO})
        sent_to(grid, "evaluate")
        again = sent_to(grid, "train", **told)
        assert first.content[wire.CHANGE]["theta"] == again.content[wire.CHANGE]["theta"]


def sent_to(grid: flower.InProcessGrid, kind: str, node: int = 0, **config: Any) -> Message:
    content = RecordDict({wire.ARRAYS: MODEL, wire.CONFIG: ConfigRecord(config)})
    where = next(name for name, number in grid.partition.items() if number == node)
    (reply,) = grid.send_and_receive([Message(content, where, kind)])
    return reply


def test_several_draws_of_a_client_are_tossed_apart() -> None:
    class Random:
        size = 10

        def update(self, model: Any, work: flower.Work) -> Any:
            return {"theta": work.rng("train").random(1)}

    grid = flower.InProcessGrid(flower.client_app(lambda context: Random()), 1, raises=True)
    told = [{wire.ROUND: 3}, {wire.ROUND: 3, wire.DRAW: 1}, {wire.ROUND: 3}, {wire.ROUND: 4}]
    told += [{wire.ROUND: 4, wire.TASK: "another"}, {}, {}]  # of no round: each its own
    first, other, again, *later = (
        sent_to(grid, "train", **config).content[wire.CHANGE]["theta"].numpy().item()
        for config in told
    )
    assert first == again
    assert len({first, other, *later}) == 6


def test_a_client_that_is_invited_once_per_draw_trains_differently_each_time() -> None:
    seen: list[float] = []

    class Random:
        size = 10

        def update(self, model: Any, work: flower.Work) -> Any:
            seen.append(float(work.rng("train").random()))
            return {"theta": np.zeros(1)}

    grid = flower.InProcessGrid(flower.client_app(lambda context: Random()), 2, raises=True)
    strategy = flower.CohortStrategy("md:m=5", clients=2, per_draw=True)
    strategy.start(grid, MODEL, num_rounds=2)
    assert len(seen) == len(set(seen)) == 10  # five draws of two clients, twice


# -- an empty draw ---------------------------------------------------------------------------


@pytest.mark.parametrize("app", [by_object, by_function])
def test_an_empty_draw_is_not_trained_and_sends_zeros(app: Any) -> None:
    """Whoever trained would warn of a mean over nothing, and fail."""
    grid = flower.InProcessGrid(app(), 1, raises=True)
    for round in range(30):
        config = {wire.ROUND: round, wire.DATA_RATE: 0.01, wire.PER_SAMPLE: True}
        sent = sent_to(grid, "train", **config).content[wire.CHANGE]["theta"].numpy()
        assert np.isfinite(sent).all()


def test_a_client_without_samples_is_not_trained_where_samples_count() -> None:
    class Empty(Local):
        size = 0

    grid = flower.InProcessGrid(flower.client_app(Empty), 1, raises=True)
    reply = sent_to(grid, "train", **{wire.DATA_RATE: 1.0, wire.PER_SAMPLE: True})
    assert reply.content[wire.CHANGE]["theta"].numpy() == 0.0


def test_purposes_have_coins_of_their_own() -> None:
    work = flower.Work()
    assert work.rng("train").random() == work.rng("train").random() != work.rng("batch").random()


def test_training_that_ignores_the_share_is_refused() -> None:
    class Deaf(Local):
        size = 100

        def update(self, model: Any, work: flower.Work) -> Any:
            work.rng("batch")  # coins, but not those that draw samples
            return {"theta": np.ones(1)}

    deaf = flower.client_app(size=lambda context: 100)

    @deaf.train()
    def train(message: Message, context: Any) -> Message:
        changed = wire.to_record({"theta": np.ones(1)})
        return Message(RecordDict({wire.CHANGE: changed}), reply_to=message)

    for app in (flower.client_app(Deaf), deaf):
        grid = flower.InProcessGrid(app, 4)
        strategy = flower.CohortStrategy("fedsampling-naive:rate=0.9", clients=4)
        with pytest.raises(TooFewClients, match=r"a share of 0\.9 of the samples"):
            strategy.start(grid, MODEL, num_rounds=3)
        alone = flower.InProcessGrid(app, 1, raises=True)
        with pytest.raises(BadInput, match=r"work\.participants\(size\)"):  # whatever a server says
            sent_to(alone, "train", **{wire.DATA_RATE: 0.9, wire.PER_SAMPLE: True, wire.USED: True})
        whole = flower.CohortStrategy("full", clients=4)
        assert whole.start(grid, MODEL, num_rounds=1).arrays["theta"].numpy() == 1.0


# -- a server that wants to know a size ------------------------------------------------------


def rounds_to_read(size: int, app: flower.CohortClientApp, most: int = 60) -> int | None:
    """In how many rounds a server that tosses the coins names a size; None: it cannot.

    With a key it knows from which rate on the first k samples draw nobody: a zero update at such
    a rate says that there are at most k. It halves what is left with every round.
    """
    grid = flower.InProcessGrid(app, 1)
    low, high = 1, 512
    for round in range(most):
        if low == high:
            return round if low == size else None
        half = (low + high) // 2
        while True:  # a key and a rate by which sample number ``half`` is the first to be drawn
            key = secrets.token_bytes(16)
            uniforms = (from_key(key).bit_generator.random_raw(high) >> np.uint64(11)) * 2.0**-53
            rate = float(uniforms[half]) * (1 + 1e-9)
            if 0.001 < rate < uniforms[:half].min():
                break
        config = {wire.ROUND: round, wire.DATA_RATE: rate, wire.PER_SAMPLE: True}
        reply = sent_to(grid, "train", **config, **{f"{wire.STREAM}train": key})
        if reply.has_error():
            return None
        zero = not reply.content[wire.CHANGE]["theta"].numpy().any()
        low, high = (low, half) if zero else (half + 1, high)
    return None


def of_size(size: int, **settings: Any) -> flower.CohortClientApp:
    class Sized(Local):
        def update(self, model: Any, work: flower.Work) -> Any:
            work.participants(self.size)
            return {"theta": np.ones(1)}

    Sized.size = size
    return flower.client_app(Sized, **settings)


def test_a_server_that_tosses_the_coins_reads_a_size_and_is_therefore_refused() -> None:
    size = 1 + secrets.randbelow(512)
    assert rounds_to_read(size, of_size(size, simulated=True)) == 9  # what it comes to
    assert rounds_to_read(size, of_size(size)) is None
    grid = flower.InProcessGrid(of_size(size), 1, raises=True)
    with pytest.raises(PolicyRefused, match="random keys of its own only"):
        sent_to(grid, "train", **{f"{wire.STREAM}train": secrets.token_bytes(16)})


def test_a_seed_reaches_simulated_clients_only(caplog: pytest.LogCaptureFixture) -> None:
    """With a seed a deployment runs: its cohorts repeat, its coins are its own."""
    runs = {}
    for simulated in (True, False):
        runs[simulated] = [
            updates(by_object(simulated=simulated), 2, seed=5)[1].tolist() for _ in range(2)
        ]
        assert ("the seed repeats cohorts, not training: 60 of 60" in caplog.text) != simulated
    assert runs[True][0] == runs[True][1]
    assert runs[False][0] != runs[False][1]


def test_a_round_has_one_data_rate() -> None:
    """Other rates for the same coins would tell how small the smallest of them is."""
    grid = flower.InProcessGrid(of_size(100), 1, raises=True)
    sent_to(grid, "train", **{wire.ROUND: 1, wire.DATA_RATE: 0.5})
    sent_to(grid, "train", **{wire.ROUND: 1, wire.DATA_RATE: 0.5})
    with pytest.raises(PolicyRefused, match=r"0\.5 in this round"):
        sent_to(grid, "train", **{wire.ROUND: 1, wire.DATA_RATE: 0.25})
    sent_to(grid, "train", **{wire.ROUND: 2, wire.DATA_RATE: 0.25})


def test_coins_that_the_server_puts_where_the_clients_are_change_nothing() -> None:
    class Random(Local):
        def update(self, model: Any, work: flower.Work) -> Any:
            return {"theta": work.rng("train").random(1)}

    grid = flower.InProcessGrid(flower.client_app(Random), 2, raises=True)
    known = {wire.ROUND: 1, wire.COINS: bytes(16), wire.USED: True}
    sent = {
        sent_to(grid, "train", node, **known).content[wire.CHANGE]["theta"].numpy().item()
        for node in range(2)
    }
    assert len(sent) == 2


@pytest.mark.parametrize("rate", [0.0, -0.5, 1.5, float("nan"), 0.0005])
def test_a_policy_bounds_the_rate(rate: float) -> None:
    grid = flower.InProcessGrid(of_size(100), 1, raises=True)
    with pytest.raises(PolicyRefused, match="a data rate"):
        sent_to(grid, "train", **{wire.DATA_RATE: rate})
    own = ClientPolicy(lowest_rate=0.2)
    grid = flower.InProcessGrid(of_size(100, policy=own), 1, raises=True)
    sent_to(grid, "train", **{wire.DATA_RATE: 0.2})
    with pytest.raises(PolicyRefused, match=r"of at least 0\.2"):
        sent_to(grid, "train", **{wire.DATA_RATE: 0.19})


def test_who_does_not_tell_its_size_does_not_train_on_a_share_in_the_open() -> None:
    shy = ClientPolicy(answers={"loss"})
    grid = flower.InProcessGrid(of_size(100, policy=shy), 1, raises=True)
    sent_to(grid, "train", **{wire.DATA_RATE: 1.0})
    for config in ({wire.DATA_RATE: 0.5}, {wire.PER_SAMPLE: True}):
        with pytest.raises(PolicyRefused, match=r"ClientPolicy\(updates_in_plain=True\)"):
            sent_to(grid, "train", **config)
    agreed = ClientPolicy(answers={"loss"}, updates_in_plain=True)
    grid = flower.InProcessGrid(of_size(100, policy=agreed), 1, raises=True)
    sent_to(grid, "train", **{wire.DATA_RATE: 0.5})


# -- what single updates tell, with consent --------------------------------------------------


def size_leak() -> Any:
    spec = importlib.util.spec_from_file_location("size_leak", ROOT / "benchmarks/size_leak.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_figures_of_the_page_are_those_of_the_command() -> None:
    leak, page = size_leak(), (ROOT / "docs/privacy.md").read_text(encoding="utf-8")
    for size in (10, 30, 100):
        best = leak.BEST / size
        rates = (leak.HONEST, best, max(best, leak.LOWEST))
        cells = " | ".join(f"{leak.rounds_to_know(size, rate):,}" for rate in rates)
        assert f"| {size} | {cells} | 2, exactly |" in page


def test_how_likely_a_size_is_known_is_counted_over_all_that_can_happen() -> None:
    leak, size, rate, rounds = size_leak(), 2, 0.4, 6
    chance, known = (1 - rate) ** size, 0.0
    for seen in itertools.product([0, 1], repeat=rounds):
        zeros = sum(seen)
        share = min(max(zeros / rounds, 0.5 / rounds), 1 - 0.5 / rounds)
        guess = max(1, round(math.log(share) / math.log(1 - rate)))
        known += chance**zeros * (1 - chance) ** (rounds - zeros) * (guess == size)
    assert leak.share_known(size, rounds, rate) == pytest.approx(known)
    assert 0 < known < 1


def test_a_sum_and_a_mean_tell_a_size_exactly_hence_the_consent() -> None:
    assert size_leak().divided(137) == (2, pytest.approx(137))
