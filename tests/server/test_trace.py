from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort import LocalWork, Trace, compare, simulate
from fedcohort._internal import store
from fedcohort._internal.errors import BadCheckpoint, UnknownName
from fedcohort.maths._statistics import first_at, sustained_at
from fedcohort.selection import Cohort
from fedcohort.selection._scheme import Disclosure
from fedcohort.server._ledger import Entry
from fedcohort.server._records import Record
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
    assert trace.rounds_to(0.75) is None  # it was there, and did not stay
    assert trace.rounds_to(0.75, crossing="first") == 3
    with pytest.raises(UnknownName, match=r"crossing named 'frist'\. Did you mean 'first'"):
        trace.rounds_to(0.5, crossing="frist")


@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=60).map(np.array),
    st.integers(0, 20),
)
def test_a_sustained_crossing_is_the_last_from_below(curve: Any, level: int) -> None:
    """One by one: the first place from which no rolling mean is below the level."""
    width = max(1, round(len(curve) / 20))
    means = [curve[max(0, i + 1 - width) : i + 1].mean() for i in range(len(curve))]
    stays = [i for i in range(len(curve)) if all(m >= level - 1e-9 for m in means[i:])]
    assert sustained_at(curve.astype(float), level) == (stays[0] if stays else None)
    first, lasting = first_at(curve.astype(float), level), sustained_at(curve.astype(float), level)
    assert lasting is None or first is not None


def test_noise_is_rewarded_by_the_first_crossing_only() -> None:
    """Of two curves around the same line, the noisy one crosses first; to stay, it must rise."""
    rng, line = np.random.default_rng(0), np.linspace(0, 1, 200)
    calm, noisy = line + rng.normal(0, 0.01, 200), line + rng.normal(0, 0.2, 200)
    firsts, lasting = ([at(c, 0.7) for c in (calm, noisy)] for at in (first_at, sustained_at))
    assert firsts[1] < firsts[0] - 30
    assert abs(lasting[1] - lasting[0]) < 30


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


def entry(round: int, purpose: str = "training", epsilon: float | None = None) -> Entry:
    return Entry(round, purpose, 2, 4, 100, 10 + round, f"what {purpose} tells", epsilon)


def records() -> list[Record]:
    """Round 2 has none; round 1 was void."""
    chosen = Cohort.of([2, 0], [0.75, 0.25], [3, 1])
    asked = (entry(-1, "size", 0.5), entry(0))
    return [
        Record(0, chosen, np.array([0, 1, 2]), 3, False, 0.5, asked, {"late": 1}, (1.0, 2.0),
               {"train/loss": 0.5, "evaluate/accuracy": 0.25}),
        Record(1, Cohort.empty(), np.array([1]), 2, True, 0.0, (entry(1),), {"late": 2, "odd": 1}),
        Record(3, Cohort.of([1], [1.0]), np.array([1]), 3, entries=(entry(3, "size", 0.5),),
               metrics={"evaluate/accuracy": 0.75, "f1": 0.5}),
    ]  # fmt: skip


SETTINGS = {
    "scheme": "md", "parameters": {"m": 2}, "seed": 3, "rounds": 9, "ids": ["a", "b", "c"],
    "importance": [0.2, 0.3, 0.5], "disclosures": [["size", "beforehand", "a number", 0.5]],
}  # fmt: skip


def test_a_trace_is_made_of_records() -> None:
    trace = Trace.from_records(SETTINGS, records())
    assert trace.rounds == 4
    assert [len(trace.cohort(t)) for t in range(4)] == [2, 0, 0, 1]
    assert trace.cohort(0) == records()[0].cohort
    assert trace.weight_sum.tolist() == [1, 0, 0, 1]
    assert trace.available.tolist() == [3, 2, 0, 3]
    assert trace.void.tolist() == [False, True, False, False]
    assert trace.filled.tolist() == [0.5, 0, 1, 1]
    assert trace.invited.tolist() == [3, 1, 0, 1]
    assert {name: row.tolist() for name, row in trace.faults.items()} == {
        "late": [1, 2, 0, 0], "odd": [0, 1, 0, 0],
    }  # fmt: skip
    assert trace.messages.tolist() == [8, 4, 0, 4]
    assert trace.bytes_up.tolist() == [19, 11, 0, 13]
    assert trace.seconds.tolist() == [[1, 2, 0], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
    np.testing.assert_array_equal(trace.accuracy, [0.25, np.nan, np.nan, 0.75])
    np.testing.assert_array_equal(trace.train_loss, [0.5, np.nan, np.nan, np.nan])
    assert np.isnan(trace.test_loss).all()
    np.testing.assert_array_equal(trace.metrics["f1"], [np.nan, np.nan, np.nan, 0.5])
    assert [(row["purpose"], row["messages"], row["epsilon"]) for row in trace.ledger] == [
        ("size", 8, 1.0), ("training", 8, None),
    ]  # fmt: skip
    assert trace.disclosures == (Disclosure("size", "beforehand", "a number", 0.5),)
    assert trace.ids == ("a", "b", "c")
    assert trace.participation.tolist() == [1, 1, 1]
    assert set(trace.settings) == {"scheme", "parameters", "seed", "rounds"}
    assert trace.sizes.tolist() == [0, 0, 0]
    assert np.isnan(trace.client_losses).all()


def test_what_a_carrier_knows_better_than_the_records_is_taken() -> None:
    held = np.array([[1, 0], [0, 2], [3, 3]])
    trace = Trace.from_records(
        {"scheme": "md", "seed": 0},
        records(),
        curves=np.arange(12.0).reshape(3, 4),
        seconds=np.arange(4.0),
        importance=np.full(3, 1 / 3),
        sizes=np.array([1, 2, 6]),
        label_histograms=held,
        client_losses=np.ones(3),
        model=np.ones(2),
        pictures={"labels": np.zeros(3)},
    )
    assert trace.accuracy.tolist() == [8, 9, 10, 11]
    assert trace.seconds[:, 2].tolist() == [0, 1, 2, 3]
    assert trace.classes.tolist() == [2, 0, 0, 1]
    assert trace.ids == ()
    assert list(trace.pictures) == ["labels"]


def test_a_trace_of_records_is_saved_with_all_it_has(tmp_path: Path) -> None:
    trace = Trace.from_records(SETTINGS, records())
    trace.save(tmp_path / "run.npz")
    back = Trace.load(tmp_path / "run.npz")
    for name, value in vars(trace).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(back, name), value)
        elif name in ("metrics", "faults"):
            assert list(getattr(back, name)) == list(value)
            for key, row in value.items():
                np.testing.assert_array_equal(getattr(back, name)[key], row)
        else:
            assert getattr(back, name) == value


def test_a_trace_of_an_older_version_gets_defaults(trace: Trace, tmp_path: Path) -> None:
    trace.save(tmp_path / "run.npz")
    header, arrays = store.load(tmp_path / "run.npz", "trace")
    for name in ("void", "filled", "invited"):
        del arrays[name]
    del header["disclosures"], header["ids"]
    store.save(tmp_path / "old.npz", header, arrays)
    back = Trace.load(tmp_path / "old.npz")
    assert not back.void.any()
    assert back.filled.tolist() == [1.0] * 8
    assert back.invited.tolist() == trace.distinct.tolist()
    assert (back.disclosures, back.ids, back.metrics, back.faults) == ((), (), {}, {})


def test_no_record_is_a_run_of_no_rounds() -> None:
    trace = Trace.from_records(SETTINGS, [])
    assert trace.rounds == 0
    assert trace.seconds.shape == (0, 3)
    assert trace.participation.tolist() == [0, 0, 0]
