from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fedcohort import LocalWork, Trace, compare, simulate
from fedcohort.core.errors import BadCheckpoint
from fedcohort.simulation import Quadratic


@pytest.fixture(scope="module")
def trace() -> Trace:
    task = Quadratic([[float(i)] for i in range(6)], sizes=[1, 2, 3, 4, 5, 6])
    return simulate(task, "md", rounds=8, work=LocalWork(steps=1, batch=None, lr=0.1))


def test_round_trip(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "run.npz")
    back = Trace.load(tmp_path / "run.npz")
    assert back.settings == trace.settings
    assert back.ledger == trace.ledger
    for name, value in vars(trace).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value)


def test_a_damaged_trace_is_refused(trace: Trace, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    trace.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadCheckpoint):
        Trace.load(path)


def test_participation_counts_rounds(trace: Trace) -> None:
    by_hand = np.zeros(6, dtype=int)
    for round in range(trace.rounds):
        by_hand[trace.cohort(round).clients] += 1
    np.testing.assert_array_equal(trace.participation, by_hand)
    assert trace.distinct.sum() == by_hand.sum()
    np.testing.assert_allclose(trace.weight_sum, 1.0)
    assert trace.jain == pytest.approx(by_hand.sum() ** 2 / (6 * (by_hand**2).sum()))


def test_rounds_to_target() -> None:
    task = Quadratic([[1.0]], sizes=[1])
    trace = simulate(task, "full", rounds=2, work=LocalWork(steps=1, batch=None, lr=0.1))
    object.__setattr__(trace, "accuracy", np.array([np.nan, 0.4, 0.8, 0.7]))
    assert trace.rounds_to(0.5) == 3
    assert trace.rounds_to(0.9) is None


def test_a_notebook_shows_a_line_not_the_arrays() -> None:
    """A comparison of a few runs used to fill the screen with 430,000 characters."""
    task = Quadratic(np.eye(3))
    found = compare(task, ["md", "full"], rounds=2, seeds=2, jobs=1)
    assert repr(found) == "<Comparison of md, full: 4 runs, 2 seeds>"
    line = repr(found.traces[0])
    assert line.startswith("<Trace of md, seed 0: 2 rounds, training loss ")
    assert len(line) < 100
    html = found._repr_html_()
    assert html.count("<tr>") == 3
    name, value = found.traces[0].last()
    assert (name, value) == ("training loss", found.traces[0].train_loss[-1])
