"""Hardened on Flower: the same as in the simulator, kept over a restart, told beforehand."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest

import fedcohort
from fedcohort._internal.errors import BadInput
from fedcohort.simulation import Quadratic

pytest.importorskip("flwr")
from flwr.app import Message, RecordDict

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers import parity
from helpers.flower_play import QUICK, WORK, Counting, Hostile, N, app, play

BITS = "size-cap+rate-cap+losses:report=bit+explore:share=0.3+clip:times=1.5"


@pytest.mark.parametrize("hardened", [True, BITS])
@pytest.mark.parametrize("name", ["md", "uniform", "pow-d", "best-loss", "rpow-d", "optimal"])
def test_the_same_cohorts_weights_and_models_as_in_the_simulator(name: str, hardened: Any) -> None:
    size = parity.SIZES["small"]
    scheme = parity.of_size(name, size.m)
    problem = parity.task(size, "float64")
    found = parity.compared(problem, scheme, 3, size.work, 12, hardened=hardened)
    assert found.within(parity.TOLERANCE["float64"])


def test_one_that_lies_about_its_size_counts_for_twice_its_share() -> None:
    problem = Quadratic(np.eye(N), sizes=[2**40] + [10] * (N - 1))

    def largest(**options: Any) -> float:
        members = flower.client_app(flower.task_client(problem, WORK), simulated=True)
        strategy = flower.CohortStrategy("md:m=4", clients=N, seed=0, largest_size=None, **options)
        grid = flower.InProcessGrid(members, N, raises=True)
        strategy.start(grid, flower.first_model(problem, 0), num_rounds=2)
        return float(strategy.session.state.federation.importance.max())

    assert largest() > 0.99
    assert largest(hardened=True) <= 2 / N


@pytest.mark.parametrize("together", [1, 3])
def test_how_many_updates_are_looked_at_together_changes_nothing(
    together: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large model is a block of its own: the first round was not clipped at all."""

    def lie(message: Message, reply: Message) -> Message:
        change = wire.to_record({"theta": np.full(2, 1e5)})
        return Message(RecordDict({wire.CHANGE: change}), reply_to=message)

    _, whole = play(Hostile(lie), "full", 2, hardened=True)
    monkeypatch.setattr("fedcohort.flower._transport.BLOCK_BYTES", together * 8 * 2)
    _, parts = play(Hostile(lie), "full", 2, hardened=True)
    np.testing.assert_allclose(parts, whole, rtol=0, atol=1e-12)
    assert np.abs(whole).max() < 10


def test_a_restart_goes_on_behind_the_same_guards_or_is_refused(tmp_path: Any) -> None:
    whole, _ = play(Counting(app(), N), "pow-d:m=2,d=4", rounds=8, seed=1, hardened=True)
    half, _ = play(Counting(app(), N), "pow-d:m=2,d=4", 4, seed=1, hardened=True, folder=tmp_path)
    with pytest.raises(BadInput, match="guards"):
        play(Counting(app(), N), "pow-d:m=2,d=4", 8, seed=1, folder=tmp_path)
    rest, _ = play(Counting(app(), N), "pow-d:m=2,d=4", 8, seed=1, hardened=True, folder=tmp_path)
    assert [*half.cohorts, *rest.cohorts] == whole.cohorts


def test_what_is_withdrawn_is_said_before_the_run_and_kept_with_it(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "flwr.fedcohort"):
        play(Counting(app(), N), "md:m=2", rounds=2, seed=1, hardened=True, folder=tmp_path)
    assert "WITHDRAWN, a claim of md: the expected weight of every client" in caplog.text
    trace = fedcohort.Comparison.load(tmp_path).traces[0]
    assert trace.settings["hardened"][0].startswith("size-cap")
    assert trace.settings["withdrawn"]


def test_bits_are_all_that_is_disclosed() -> None:
    strategy = flower.CohortStrategy("pow-d:m=2", clients=3, hardened="losses:report=bit")
    told = {each.what for each in strategy.disclosures()}
    assert "loss_bit" in told
    assert "loss" not in told


class NewNames(flower.InProcessGrid):
    """The last client reports the highest loss; when it has trained, it comes as another node."""

    now, trained = N - 1, 0

    def get_node_ids(self) -> Any:
        nodes = super().get_node_ids()
        return {n for n in nodes if self.partition[n] < N - 1 or self.partition[n] == self.now}

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        if self.partition[message.metadata.dst_node_id] < N - 1:
            return reply
        if wire.config_of(message).get(wire.SIGNAL) == "loss" and reply is not None:
            reply.content[wire.ANSWER] = wire.to_record({"loss": np.array(1e6)})
        if message.metadata.message_type == wire.TRAIN:
            self.trained, self.now = self.trained + 1, self.now + 1
        return reply


@pytest.mark.parametrize(("hardened", "most"), [(None, 30), (True, 13)])
def test_another_key_after_every_round_gains_nothing(hardened: Any, most: int) -> None:
    rounds = 30
    problem = Quadratic(np.eye(N), sizes=[10] * N)

    def local(context: Any) -> Any:
        number = context.node_config["partition-id"]
        context.node_config["partition-id"] = min(number, N - 1)
        try:
            return flower.task_client(problem, WORK)(context)
        finally:
            context.node_config["partition-id"] = number

    grid = NewNames(flower.client_app(local), N + rounds)
    strategy = flower.CohortStrategy(
        f"pow-d:m=2,d={N}", clients=N, seed=3, limits=QUICK, hardened=hardened, timed=False
    )
    strategy.start(grid, flower.first_model(problem, 3), num_rounds=rounds)
    assert grid.trained <= most
    assert grid.trained == rounds or hardened


@pytest.mark.parametrize(
    ("options", "warns"),
    [
        ({"hardened": True}, True),
        ({"hardened": "rate-cap"}, True),
        ({"hardened": "clip"}, False),
        ({"hardened": True, "newcomers": False}, False),
        ({}, False),
    ],
)
def test_that_accounts_can_be_left_behind_is_said_before_the_run(
    options: Any, warns: bool, caplog: pytest.LogCaptureFixture
) -> None:
    play(Counting(app(), N), "full", rounds=1, **options)
    assert ('Set identity="name"' in caplog.text) == warns
    flower.CohortStrategy("md", clients=3, hardened=True, identity="name").summary()
    assert caplog.text.count('Set identity="name"') == warns
