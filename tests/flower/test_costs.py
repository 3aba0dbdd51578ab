"""The ledger books what is sent: compared with the bytes of real messages."""

from __future__ import annotations

import numpy as np
import pytest

import fedcohort
from fedcohort.server._ledger import GREETING, REQUEST_BYTES

pytest.importorskip("flwr")
from flwr.app import Message

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.flower_play import WORK as STEP
from helpers.flower_play import N, app, play, task
from helpers.weighed import numbers


class Weighing(flower.InProcessGrid):
    """Weighs every message; some clients lose what they kept, or answer every other time."""

    def __init__(self, *args, forgetful: bool = False, moody: bool = False) -> None:
        super().__init__(*args)
        self.forgetful, self.moody, self.turns = forgetful, moody, 0
        self.down = self.up = self.messages = self.models = 0

    def deliver(self, message: Message) -> Message | None:
        kind = message.metadata.message_type
        hello = wire.config_of(message).get(wire.SIGNAL) == wire.HELLO
        if not hello:
            self.messages += 1
            self.down += numbers(message) + REQUEST_BYTES * (kind == wire.QUERY)
        if self.forgetful and kind == wire.TRAIN:
            self.contexts[message.metadata.dst_node_id].state.clear()
        self.turns += 1
        if self.moody and not hello and self.turns % 3 == 0:
            return None
        reply = super().deliver(message)
        if reply is not None and not reply.has_error() and not hello:
            self.up += numbers(reply)
            self.messages += 1
        return reply


@pytest.mark.filterwarnings("ignore:pow-d")  # clients that did not answer, on purpose
@pytest.mark.parametrize("moody", [False, True])
@pytest.mark.parametrize("name", ["pow-d:m=3,d=6", "optimal:m=3", "md:m=3", "rpow-d:m=3,d=6"])
def test_the_ledger_is_what_went_over_the_wire(name: str, moody: bool) -> None:
    grid = Weighing(app(), N, moody=moody)
    strategy, _ = play(grid, name, quorum=0.0)
    cost = [c for p, c in strategy.ledger.by_purpose().items() if p != GREETING]
    assert sum(c.messages for c in cost) == grid.messages
    assert sum(c.bytes_down for c in cost) == grid.down
    assert sum(c.bytes_up for c in cost) == grid.up
    greeting = strategy.ledger.by_purpose()[GREETING]
    assert greeting.messages == 2 * N
    assert greeting.bytes_up > 8 * N  # a name and a size


def test_a_client_that_has_the_model_is_not_sent_it_again() -> None:
    grid = Weighing(app(), N)
    strategy, theta = play(grid, "pow-d:m=3,d=6", rounds=4)
    model = 2 * 8  # two numbers of 64 bits
    down = sum(c.bytes_down for p, c in strategy.ledger.by_purpose().items() if p != GREETING)
    assert down == 4 * 6 * (model + REQUEST_BYTES)
    trace = fedcohort.simulate(task(), "pow-d:m=3,d=6", rounds=4, seed=3, work=STEP)
    np.testing.assert_array_equal(theta, trace.model)
    assert sum(row["bytes_down"] for row in trace.ledger) == 4 * 6 * (2 * 4 + REQUEST_BYTES)


def test_a_client_that_lost_the_model_gets_it_in_the_same_round() -> None:
    kept, expected = play(Weighing(app(), N), "pow-d:m=3,d=6")
    grid = Weighing(app(), N, forgetful=True)
    lost, theta = play(grid, "pow-d:m=3,d=6")
    np.testing.assert_array_equal(theta, expected)
    assert lost.cohorts == kept.cohorts
    assert lost.void == 0
    cost = [c for p, c in lost.ledger.by_purpose().items() if p != GREETING]
    assert sum(c.bytes_down for c in cost) == grid.down
