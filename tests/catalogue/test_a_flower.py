"""Cases of part A that only a deployment can meet, on a grid within the process."""

from __future__ import annotations

import itertools
import time
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Message

from fedcohort import flower
from fedcohort._internal.errors import InUse, TooFewClients
from fedcohort.flower._session import Folder
from helpers.flower_play import QUICK, N, app, play, silent, task


def test_A17_below_the_quorum_a_round_is_void() -> None:
    strategy = flower.CohortStrategy("full", clients=N, seed=3, limits=QUICK)
    with pytest.raises(TooFewClients, match="3 rounds in a row"):
        strategy.start(silent(*range(6)), flower.first_model(task(), 3), num_rounds=9)
    assert strategy.session.state.theta.tolist() == [0.0, 0.0]  # void rounds change nothing


def test_A18_fewer_come_than_are_expected() -> None:
    with pytest.raises(TooFewClients, match=r"8 clients were expected, 3 nodes came within 0\.2 s"):
        play(flower.InProcessGrid(app(), 3))


def test_A19_a_late_answer_is_ignored() -> None:
    class Late(flower.InProcessGrid):
        """One client answers a round with what it had for the round before."""

        kept: Message | None = None

        def deliver(self, message: Message) -> Message | None:
            reply = super().deliver(message)
            mine = self.partition[message.metadata.dst_node_id] == 2
            if not mine or message.metadata.message_type != "train" or reply is None:
                return reply
            late, self.kept = self.kept, reply
            return reply if late is None else late

    strategy, theta = play(Late(app(), N), "full", quorum=0.0)
    assert np.isfinite(theta).all()
    assert sum(strategy.gate.counts.values()) > 0


def test_A28_two_servers_in_one_folder(tmp_path: Path) -> None:
    with Folder(tmp_path).locked(), pytest.raises(InUse, match="Another server runs"):
        play(flower.InProcessGrid(app(), N), folder=tmp_path)


def test_A29_the_clock_jumps_back(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = itertools.count(2e9, -3600)
    monkeypatch.setattr(time, "time", lambda: next(clock))
    strategy, theta = play(flower.InProcessGrid(app(), N))
    assert len(strategy.cohorts) == 4
    assert np.isfinite(theta).all()
