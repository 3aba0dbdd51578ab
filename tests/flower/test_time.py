"""Time on Flower: latencies are measured, kept, told and shown; rounds end early."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future

import numpy as np
import pytest

import fedcohort
from fedcohort import report
from fedcohort._internal.errors import BadInput

pytest.importorskip("flwr")
from flwr.app import Error, Message

from fedcohort import flower
from fedcohort.flower import _wire as wire
from fedcohort.server import Fault
from helpers.flower_play import QUICK, N, app, play, task
from helpers.lies import unreadable

SLOW = (6, 7)


class Sleeping(flower.InProcessGrid):
    """Some clients sleep before they train, or before they answer a question."""

    def __init__(self, nap: float, kind: str = "train", *, threads: int = N, slow=SLOW) -> None:
        super().__init__(app(), N, threads=threads)
        self.nap, self.kind, self.slow = nap, kind, slow

    def deliver(self, message: Message) -> Message | None:
        slow = self.partition[message.metadata.dst_node_id] in self.slow
        if slow and message.metadata.message_type == self.kind:
            time.sleep(self.nap)
        return super().deliver(message)


@pytest.mark.parametrize("threads", [0, N])
def test_latencies_are_measured_by_client_and_purpose(threads: int) -> None:
    strategy, _ = play(Sleeping(0.8, threads=threads), "pow-d:m=8,d=8", rounds=1)
    known = strategy.session.state.latencies
    assert set(known) == {"loss", "training"}
    assert (known["training"][list(SLOW)] >= 0.8).all()
    assert (known["training"][:6] < 0.8).all()
    assert (known["loss"] < 0.8).all()
    asked, _ = play(Sleeping(0.8, wire.QUERY, threads=threads, slow=[2]), "pow-d:m=8,d=8", rounds=1)
    loss = asked.session.state.latencies["loss"]
    assert np.flatnonzero(loss >= 0.8).tolist() == [2]


def test_whoever_is_never_asked_is_not_known() -> None:
    strategy, _ = play(flower.InProcessGrid(app(), N), "uniform:m=2", rounds=1)
    known = strategy.session.state.latencies["training"]
    assert np.flatnonzero(np.isfinite(known)).tolist() == strategy.cohorts[0].clients.tolist()


def test_a_deadline_ends_the_round() -> None:
    began = time.monotonic()
    strategy, _ = play(Sleeping(4.0), rounds=1, stragglers="deadline:seconds=1.5")
    assert time.monotonic() - began < 4.0  # nobody waited for those who sleep
    assert strategy.cohorts[0].clients.tolist() == list(range(6))
    assert strategy.cohorts[0].weights.sum() == pytest.approx(1.0)  # as drawn, by hajek
    known = strategy.session.state.latencies["training"]
    assert (known[list(SLOW)] >= 1.5).all()  # at least so long
    assert (known[:6] < 1.5).all()
    assert strategy.gate.counts[Fault.MISSING] == len(SLOW)


def test_without_a_deadline_they_are_waited_for() -> None:
    strategy, _ = play(Sleeping(0.5), rounds=1)
    assert len(strategy.cohorts[0]) == N


@pytest.mark.parametrize("threads", [0, N])
def test_over_commitment_counts_the_first_m(threads: int) -> None:
    grid = Sleeping(1.0 if threads else 0.2, threads=threads)
    strategy, _ = play(grid, "uniform:m=4", rounds=2, stragglers="over-commit:factor=2")
    for cohort in strategy.cohorts:
        assert len(cohort) == 4
        assert not set(SLOW) & set(cohort.clients.tolist())
    assert strategy.scheme == fedcohort.scheme("uniform:m=8")


def test_the_quorum_is_of_those_who_are_waited_for() -> None:
    """Two of eight are a quarter of the draws, and all that the rule wants."""
    strategy, _ = play(flower.InProcessGrid(app(), N), rounds=1, stragglers="first:k=2", quorum=0.9)
    assert strategy.void == 0
    assert len(strategy.cohorts[0]) == 2


class Hasty(Sleeping):
    """Client 0 answers at once, with nonsense; the others take their time."""

    def deliver(self, message: Message) -> Message | None:
        reply = super().deliver(message)
        mine = self.partition[message.metadata.dst_node_id] == 0
        if mine and message.metadata.message_type == "train" and reply is not None:
            (name,) = {wire.ARRAYS, wire.CHANGE} & set(reply.content)
            reply.content[name] = wire.to_record({"theta": np.full(2, np.nan)})
        return reply


def test_an_answer_that_is_rejected_ends_nothing() -> None:
    grid = Hasty(0.3, slow=range(1, N))
    strategy, _ = play(grid, rounds=1, stragglers="first:k=5")
    assert len(strategy.cohorts[0]) == 5
    assert 0 not in strategy.cohorts[0].clients
    assert strategy.gate.counts[Fault.NOT_FINITE] == 1
    assert np.isnan(strategy.session.state.latencies["training"][0])  # nobody knows how fast it is


def test_latencies_are_kept_in_the_checkpoint_and_shown(tmp_path) -> None:
    folder = tmp_path / "run"
    first, _ = play(
        Sleeping(0.6, threads=0), rounds=2, folder=folder, stragglers="deadline:seconds=0.4"
    )
    again = flower.CohortStrategy(
        "full", clients=N, seed=3, limits=QUICK, folder=folder, stragglers="deadline:seconds=0.4"
    )
    again.session.resumed(flower.first_model(task(), 3))
    kept, were = again.session.state.latencies, first.session.state.latencies
    np.testing.assert_array_equal(kept["training"], were["training"])
    comparison = fedcohort.Comparison.load(folder)
    np.testing.assert_allclose(comparison.traces[0].latencies["training"], were["training"])
    assert comparison.traces[0].settings["stragglers"] == "deadline:seconds=0.4"
    page = report.write(comparison, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "How long clients take" in page


def test_a_run_goes_on_with_its_rule_alone(tmp_path) -> None:
    play(flower.InProcessGrid(app(), N), rounds=1, folder=tmp_path, stragglers="first:k=4")
    with pytest.raises(BadInput, match=r"the rule for stragglers first:k=4.*; this is None"):
        play(flower.InProcessGrid(app(), N), rounds=2, folder=tmp_path)


def test_schemes_are_told_unless_the_run_is_to_be_repeated() -> None:
    """Everybody is tried first; then those who sleep are too slow for fedcs."""
    scheme = "fedcs:m=8,d=8,deadline=0.3"
    told, _ = play(Sleeping(0.5, threads=0), scheme, rounds=2, timed=True)
    assert [len(cohort) for cohort in told.cohorts] == [8, 6]
    drawn, _ = play(Sleeping(0.5, threads=0), scheme, rounds=2, seed=None)
    assert [len(cohort) for cohort in drawn.cohorts] == [8, 6]
    seeded, _ = play(Sleeping(0.5, threads=0), scheme, rounds=2)
    assert [len(cohort) for cohort in seeded.cohorts] == [8, 8]


def test_a_time_limit_still_ends_a_round() -> None:
    limits = flower.Limits(population=0.2, poll=0.01, train=1.0)
    strategy, _ = play(Sleeping(3.0), rounds=1, limits=limits, dropouts="hajek")
    assert strategy.cohorts[0].clients.tolist() == list(range(6))
    assert (strategy.session.state.latencies["training"][list(SLOW)] >= 1.0).all()


class Stumbling(flower.InProcessGrid):
    """Flower fails on the answer of one client, over a network."""

    def pull_messages(self, message_ids):
        names = list(message_ids)
        if any(self.bad(name) for name in names):
            raise ValueError("Object not found")
        return super().pull_messages(names)

    def bad(self, name: str) -> bool:
        work = self._working.get(name)
        reply = work.result() if work is not None and work.done() else None
        train = reply is not None and reply.metadata.message_type == "train"
        return train and self.partition[reply.metadata.src_node_id] == 2


def test_an_answer_that_flower_cannot_read_is_lost_alone() -> None:
    strategy, _ = play(Stumbling(app(), N, threads=N), rounds=2)
    assert [len(cohort) for cohort in strategy.cohorts] == [N - 1] * 2
    assert strategy.gate.by_client[2, Fault.FAILED] == 2


class Forging(flower.InProcessGrid):
    """Client 0 replies to the message of client 1, which replies only after that was pulled."""

    def __init__(self, forge) -> None:
        super().__init__(app(), N, threads=N)
        self.forge, self.asked, self.pulled = forge, Future(), threading.Event()

    def deliver(self, message: Message) -> Message | None:
        reply, number = super().deliver(message), self.partition[message.metadata.dst_node_id]
        if message.metadata.message_type != "train" or reply is None or number > 1:
            return reply
        if number == 1:
            self.asked.set_result(message.metadata.message_id)
            self.pulled.wait()
            return reply
        return self.forge(message, reply, self.asked.result())

    def pull_messages(self, message_ids):
        replies = list(super().pull_messages(message_ids))
        if self.asked.done() and any(
            r.metadata.reply_to_message_id == self.asked.result() for r in replies
        ):
            self.pulled.set()
        return replies


def forged_reply(message: Message, reply: Message, name: str) -> Message:
    reply.metadata.__dict__["_reply_to_message_id"] = name
    return reply


def forged_error(message: Message, reply: Message, name: str) -> Message:
    return forged_reply(message, Message(Error(2, "oh"), reply_to=message), name)


def unreadable_reply(message: Message, reply: Message, name: str) -> Message:
    return unreadable(message, forged_reply(message, reply, name))


@pytest.mark.parametrize("forge", [forged_reply, forged_error, unreadable_reply])
def test_a_reply_to_the_message_of_another_client_is_not_that_clients(forge) -> None:
    """The wait for client 1 goes on, its reply counts, and no fault is filed under its name."""
    limits = flower.Limits(population=0.2, poll=0.01, train=20.0)
    rule = f"first:k={N - 1}"
    strategy, _ = play(Forging(forge), rounds=1, limits=limits, stragglers=rule)
    assert strategy.cohorts[0].clients.tolist() == list(range(1, N))
    assert strategy.gate.counts == {Fault.NOT_ASKED: 1, Fault.MISSING: 1}
    assert strategy.gate.by_client == {(0, Fault.MISSING): 1}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stragglers": "first:k=2", "dropouts": "redraw"}, "late clients are not replaced"),
        ({"stragglers": "first:k=2", "per_draw": True}, "once per draw"),
        ({"stragglers": "over-commit", "scheme": "full"}, "has no number 'm'"),
    ],
)
def test_what_does_not_go_with_a_rule(options, said: str) -> None:
    given = {"scheme": "md:m=3", "clients": N, **options}
    with pytest.raises(BadInput, match=said):
        flower.CohortStrategy(given.pop("scheme"), **given)
