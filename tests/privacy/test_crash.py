"""Killed at any moment, a client never sends more than it has booked."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from fedcohort.privacy import PrivateSize

EPSILON, ALLOWED = 0.5, 4  # answers per client

PRELUDE = f"""
import json, os, signal, sys
sys.path[:0] = {sys.path!r}
import numpy as np
from fedcohort._internal.errors import BudgetExceeded
from fedcohort.privacy import ClientPolicy, PrivateCounts, PrivateSize, SizeReport, SizeRequest

def run(path, rounds, allowed, send):
    report = SizeReport(300, {EPSILON}, mechanism="paper")
    policy = ClientPolicy(ceiling={EPSILON} * allowed)
    sizes = PrivateSize(path, policy, fresh="every-round")
    counts = PrivateCounts(path, policy)

    def answer(round_index):  # of both kinds, by turns
        if round_index % 2:
            question = f"labels of round {{round_index}}"
            return counts.answer(np.array([40, 2]), question, {EPSILON}, 2).tolist()
        return sizes.answer(40, SizeRequest("task", report, round_index))

    for round_index in range(rounds):
        try:
            send((round_index, answer(round_index)))
        except BudgetExceeded:
            send((round_index, None))
"""

# One process forks a child per point of death: the k-th write or fsync, before, half-way, after.
EVERY_POINT = (
    PRELUDE
    + f"""
root = sys.argv[1]
write = os.write

def fsync(descriptor):
    pass  # a killed process loses nothing that it wrote, only a killed machine does

def die():
    os.kill(os.getpid(), signal.SIGKILL)

def child(path, point, how, pipe):
    calls = 0
    def step(action, *arguments):
        nonlocal calls
        calls += 1
        if calls == point and how == "before":
            die()
        if calls == point and how == "half" and action is write:
            write(arguments[0], bytes(arguments[1])[: len(arguments[1]) // 2])
            die()
        result = action(*arguments)
        if calls == point and how == "after":
            die()
        return result
    os.write = lambda *arguments: step(write, *arguments)
    os.fsync = lambda *arguments: step(fsync, *arguments)
    send = lambda sent: write(pipe, (json.dumps(sent) + "\\n").encode())
    run(path, {ALLOWED} + 1, {ALLOWED}, send)

def fork(*arguments):
    read, pipe = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            child(*arguments, pipe)
        finally:
            os._exit(0)
    os.close(pipe)
    with os.fdopen(read) as lines:
        sent = [json.loads(line) for line in lines]
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status), sent

points = 0
for how in ("before", "half", "after"):  # the first finds out how many points there are
    point, killed = 0, True
    while point < points or how == "before" and killed:
        point += 1
        points = max(points, point)
        path = os.path.join(root, f"{{how}}-{{point}}")
        killed, first = fork(path, point, how)
        _, second = fork(path, 0, "never")
        print(json.dumps([how, point, killed, path, first, second]), flush=True)
"""
)

ENDLESS = PRELUDE + (
    "run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]),"
    " lambda sent: print(json.dumps(sent), flush=True))\n"
)


def spent(path: Path) -> float:
    return PrivateSize(path).spent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a system that can fork")
def test_every_point_of_death(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EVERY_POINT, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(killed for _, _, killed, *_ in outcomes) > 40  # the deaths did happen
    for how, point, _, path, first, second in outcomes:
        where = f"killed {how} step {point}"
        # After the restart everything is answered, within the same ceiling: no death costs more.
        assert [answer is not None for _, answer in second] == [True] * ALLOWED + [False], where
        assert spent(Path(path)) == EPSILON * ALLOWED, where
        # What was sent before the death is what is sent after it.
        assert first == second[: len(first)], where


def killed_again_and_again(path: Path, rounds: int, allowed: int, kills: int) -> None:
    dice = random.Random(1)  # noqa: S311 - only for when to kill
    sent: dict[int, object] = {}
    for kill in range(kills + 1):
        command = [sys.executable, "-c", ENDLESS, str(path), str(rounds), str(allowed)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        lines = [process.stdout.readline()]
        if kill < kills:
            time.sleep(dice.random() * 0.05 * kill)
            process.send_signal(signal.SIGKILL)
        lines += process.stdout.readlines()
        process.stdout.close()
        process.wait()
        for line in lines:
            if not line.endswith("\n"):
                continue
            round_index, answer = json.loads(line)
            if answer is not None:
                assert sent.setdefault(round_index, answer) == answer
    assert len(sent) == allowed
    assert spent(path) == EPSILON * allowed


def test_killed_at_random(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, rounds=25, allowed=20, kills=2)


@pytest.mark.slow
def test_a_thousand_rounds_with_twenty_kills(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, rounds=1000, allowed=900, kills=20)


def test_processes_that_answer_at_once_agree(tmp_path: Path) -> None:
    """Four processes, one directory: one answer per round and one payment for it."""
    command = [sys.executable, "-c", ENDLESS, str(tmp_path), "8", "8"]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(4)]
    outputs = {process.communicate()[0] for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(outputs) == 1
    assert spent(tmp_path) == EPSILON * 8
