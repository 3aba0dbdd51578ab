"""A run on Flower leaves the trace that the simulator leaves, and has its report at any time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import fedcohort
from fedcohort import Comparison, Trace, simulate
from fedcohort.report import _curves, _ranking, combined
from fedcohort.report import _page as page
from fedcohort.report import _result as prose
from fedcohort.server import Redraw
from fedcohort.server._history import is_running
from fedcohort.simulation import DropOuts, LocalWork, Random, Softmax

pytest.importorskip("flwr")
from flwr.app import ArrayRecord, Message, MetricRecord

from fedcohort import flower
from fedcohort.flower import _wire as wire
from helpers.flower_play import QUICK, Coming, Hostile, N, app, play, silent

ROUNDS, SEED = 6, 5
WORK = LocalWork(steps=3, batch=5, lr=0.1)


@pytest.fixture(scope="module")
def task() -> Softmax:
    rng = np.random.default_rng(2)
    x, y = rng.random((120, 4)), rng.integers(0, 3, 120)
    parts = np.split(np.arange(120), np.cumsum(np.arange(5, 5 + 8 * 3, 3))[:7])
    return Softmax(x, y, x, y, parts, 3)


def of_flower(folder: Path) -> Trace:
    (trace,) = Comparison.load(folder).traces
    return trace


def on_flower(task: Softmax, scheme: fedcohort.Scheme, folder: Path, **options: object) -> Trace:
    def evaluate(round: int, arrays: ArrayRecord) -> MetricRecord:
        found = task.evaluate(arrays["theta"].numpy()[None].astype(np.float64))
        return MetricRecord(
            {"accuracy": float(found.accuracy[0]), "loss": float(found.test_loss[0])}
        )

    grid = flower.InProcessGrid(
        flower.client_app(flower.task_client(task, WORK), simulated=True), 8, raises=True
    )
    strategy = flower.CohortStrategy(
        scheme, clients=8, seed=SEED, folder=folder, limits=QUICK, **options
    )
    # 32 bits, as the simulator's ledger counts them
    first = wire.to_record({"theta": np.asarray(task.initial(SEED), dtype=np.float32)})
    strategy.start(grid, first, num_rounds=ROUNDS, evaluate_fn=evaluate)
    return of_flower(folder)


@pytest.mark.parametrize("name", ["md", "pow-d", "clustered-similarity", "uniform"])
def test_the_trace_is_that_of_the_simulator(name: str, task: Softmax, tmp_path: Path) -> None:
    scheme = fedcohort.scheme(name, m=3)
    there = on_flower(task, scheme, tmp_path / name)
    here = simulate(task, scheme, rounds=ROUNDS, seed=SEED, work=WORK)
    for round in range(ROUNDS):
        one, other = there.cohort(round), here.cohort(round)
        assert one.clients.tolist() == other.clients.tolist()
        assert one.draws.tolist() == other.draws.tolist()
        np.testing.assert_allclose(one.weights, other.weights, rtol=1e-5)
    assert [row for row in there.ledger if row["purpose"] != "greeting"] == list(here.ledger)
    for field in ("messages", "bytes_down", "bytes_up"):
        booked, simulated = getattr(there, field), getattr(here, field)
        assert booked[1:].tolist() == simulated[1:].tolist()
        assert booked[0] > simulated[0]  # clients are greeted before the first round
    np.testing.assert_allclose(there.accuracy, here.accuracy, atol=0.02)
    np.testing.assert_allclose(there.test_loss, here.test_loss, rtol=1e-4)
    for field in ("importance", "sizes", "available", "weight_sum", "void", "filled", "invited"):
        np.testing.assert_allclose(getattr(there, field), getattr(here, field), rtol=1e-12)
    assert there.disclosures == here.disclosures
    for setting in ("scheme", "seed", "optimiser", "aggregator", "algorithm", "rounds", "versions"):
        assert there.settings[setting] == here.settings[setting], setting


def test_both_stand_on_one_page(task: Softmax, tmp_path: Path) -> None:
    scheme = fedcohort.scheme("md", m=3)
    on_flower(task, scheme, tmp_path / "flower")
    options = {"rounds": ROUNDS, "seeds": [SEED], "work": WORK, "jobs": 1}
    fedcohort.compare(task, [scheme], folder=tmp_path / "simulated", **options)
    both = combined([Comparison.load(tmp_path / name) for name in ("flower", "simulated")])
    assert prose.apart(both) == ""
    assert both.labels == ("md (flower)", "md (simulated)")
    table = _ranking.summary(both).set_index("scheme")
    assert table["gini"].nunique() == 1
    assert table["pairs"].max() == 1
    assert "stand beside simulated ones" in page.page(both)


def test_drop_outs_void_rounds_and_liars_are_in_the_report(tmp_path: Path) -> None:
    play(silent(1, 4, 6), "md:m=4", rounds=5, quorum=0.9, dropouts="none", folder=tmp_path / "a")
    trace = of_flower(tmp_path / "a")
    assert trace.void.any()
    assert not trace.void.all()
    assert (trace.distinct[trace.void] == 0).all()
    assert (trace.filled[~trace.void] >= 0.9).all()
    assert trace.faults["missing"].sum() > 0

    def infinite(_: Message, reply: Message) -> Message:
        reply.content["arrays"] = ArrayRecord([np.full(2, np.inf)])
        return reply

    play(Hostile(infinite), "full", rounds=2, folder=tmp_path / "b")
    table = _curves.answers(Comparison.load(tmp_path / "b"))
    assert table["rejected"].tolist() == [1, 1]
    text = re.sub(
        r"<script.*?</script>", "", page.page(Comparison.load(tmp_path / "a")), flags=re.S
    )
    assert "Missing and rejected reports" in text
    assert "void" in text


def test_drop_outs_that_are_replaced_are_those_of_the_simulator(
    task: Softmax, tmp_path: Path
) -> None:
    away = (1, 4)

    class Silent(flower.InProcessGrid):
        def deliver(self, message: Message) -> Message | None:
            gone = self.partition[message.metadata.dst_node_id] in away
            train = message.metadata.message_type == "train"
            return None if gone and train else super().deliver(message)

    class Away(Random):
        def available(self, n: int, round: int, rng: np.random.Generator) -> np.ndarray:
            return np.setdiff1d(np.arange(n), away)

    scheme = fedcohort.scheme("md", m=4)
    grid = Silent(flower.client_app(flower.task_client(task, WORK), simulated=True), 8)
    strategy = flower.CohortStrategy(
        scheme, clients=8, seed=SEED, folder=tmp_path / "run", limits=QUICK, dropouts=Redraw()
    )
    strategy.start(grid, flower.first_model(task, SEED), num_rounds=ROUNDS)
    there = of_flower(tmp_path / "run")
    dropouts = DropOuts(Away(0.5), Redraw(), quorum=0.5)
    here = simulate(task, scheme, rounds=ROUNDS, seed=SEED, work=WORK, dropouts=dropouts)
    assert there.cohort_clients.tolist() == here.cohort_clients.tolist()
    np.testing.assert_allclose(there.cohort_weights, here.cohort_weights, rtol=1e-12)
    assert there.invited.tolist() == here.invited.tolist()
    assert there.filled.tolist() == here.filled.tolist()
    assert there.void.tolist() == here.void.tolist()


def test_a_run_that_goes_on_with_more_rounds_is_one_run(tmp_path: Path) -> None:
    whole, _ = play(flower.InProcessGrid(app(), N), "md:m=3", rounds=6)
    play(flower.InProcessGrid(app(), N), "md:m=3", rounds=2, folder=tmp_path)
    assert prose.how_far(Comparison.load(tmp_path)) == ""
    play(flower.InProcessGrid(app(), N), "md:m=3", rounds=6, folder=tmp_path)
    trace = of_flower(tmp_path)
    assert trace.settings["rounds"] == 6 == trace.rounds
    assert [trace.cohort(t) for t in range(6)] == whole.cohorts


def test_clients_that_come_later_keep_their_place(tmp_path: Path) -> None:
    grid = Coming(app(), N)
    grid.hidden = {0, 3}
    play(grid, "full", rounds=2, clients=N - 2, folder=tmp_path)
    grid.hidden = set()
    play(grid, "full", rounds=4, clients=N - 2, folder=tmp_path)
    trace = of_flower(tmp_path)
    assert len(trace.importance) == N
    assert [trace.cohort(t).clients.tolist() for t in range(4)] == [
        [1, 2, 4, 5, 6, 7], [1, 2, 4, 5, 6, 7], list(range(N)), list(range(N)),
    ]  # fmt: skip
    assert trace.participation.tolist() == [2, 4, 4, 2, 4, 4, 4, 4]


KILLED = """
import sys, time
sys.path.insert(0, sys.argv[2])
from helpers.flower_play import *

class Slow(flower.InProcessGrid):
    rounds = 0
    def push_messages(self, messages):
        messages = list(messages)
        if any(m.metadata.message_type == "train" for m in messages):
            self.rounds += 1
            if self.rounds == 4:
                print("in round 4", flush=True)
                time.sleep(600)
        return super().push_messages(messages)

play(Slow(app(), N), "md:m=3", rounds=6, folder=sys.argv[1])
"""


def test_a_killed_server_has_its_report(tmp_path: Path) -> None:
    tests = str(Path(__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path), tests],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as server:  # fmt: skip
        assert server.stdout is not None
        assert server.stdout.readline() == "in round 4\n"
        assert prose.how_far(Comparison.load(tmp_path)) == (
            "3 of 6 rounds so far: the server is running"
        )
        os.kill(server.pid, signal.SIGKILL)
    for _ in range(100):  # the system lets go of the lock a moment later
        if not is_running(tmp_path):
            break
        time.sleep(0.05)
    found = Comparison.load(tmp_path)
    assert prose.how_far(found) == "3 of 6 rounds so far: the server has stopped"
    assert "3 of 6 rounds so far" in page.page(found)
    whole, _ = play(flower.InProcessGrid(app(), N), "md:m=3", rounds=6, folder=tmp_path)
    again, _ = play(flower.InProcessGrid(app(), N), "md:m=3", rounds=6)
    trace = of_flower(tmp_path)
    assert [trace.cohort(t) for t in range(6)] == again.cohorts
    assert len(whole.cohorts) == 3
