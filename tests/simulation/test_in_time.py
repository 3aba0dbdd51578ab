"""Availability in time: replay against brute force, days, sessions, clients that leave."""

from __future__ import annotations

import hashlib
import json
import pickle
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from fedcohort import simulate
from fedcohort._internal.errors import BadInput, DataNotFound
from fedcohort.simulation import availability
from fedcohort.simulation._availability import Intervals, InTime, Sessions
from fedcohort.training import LocalWork, Quadratic
from fedscale import convert_behaviour, convert_capacity, plain_values

WORK = LocalWork(steps=10, batch=10)


def brute(intervals, period: int) -> np.ndarray:
    """Whether a client is there in each half second of three periods, painted one by one."""
    there = np.zeros(2 * period, dtype=bool)
    for start, end in intervals:
        for half in range(2 * start, 2 * end):
            there[half % (2 * period)] = True
    return np.tile(there, 3)


def test_replay_is_brute_force_on_1000_random_traces() -> None:
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(1000):
        period = int(rng.integers(2, 40))
        starts = rng.integers(0, 2 * period, rng.integers(0, 5))
        intervals = [(int(s), int(s + rng.integers(0, period + 2))) for s in starts]
        painted, replay = brute(intervals, period), Intervals.of(intervals, period)
        moments = rng.permutation(2 * 2 * period)  # in any order, over the first wrap and back
        for half in moments.tolist():
            now = half / 2
            leaves = replay.until(now)
            assert (leaves > now) == painted[half], (intervals, period, now)
            if leaves > now and leaves != np.inf:
                end = int(2 * leaves)
                assert painted[half:end].all(), (intervals, period, now)
                assert not painted[end % (2 * period)]
            shares.append(leaves == np.inf)
    assert 0 < np.mean(shares) < 1  # clients that never leave were among them


def test_the_second_pass_is_the_first() -> None:
    """The published codes: 41 % online in the first pass, 7 % from the second on."""
    rng = np.random.default_rng(1)
    marks = np.sort(rng.choice(100_000, 40, replace=False)).tolist()
    replay = Intervals.of(list(zip(marks[::2], marks[1::2], strict=True)), 100_000)
    moments = np.arange(0, 100_000, 97)
    passes = [[replay.until(t + k * 100_000) > t + k * 100_000 for t in moments] for k in range(4)]
    assert passes[0] == passes[1] == passes[3]
    assert 0.2 < np.mean(passes[0]) < 0.8


def lines(path, *told) -> str:
    path.write_text("".join(json.dumps(each) + "\n" for each in told), encoding="utf-8")
    return str(path)


def test_a_trace_file(tmp_path) -> None:
    path = lines(
        tmp_path / "t.jsonl",
        {"client": "a", "start": 0, "end": 50, "period": 100},
        {"client": "b", "start": 10, "end": 1000},
        {"client": "c", "period": 5},
    )
    model = availability(f"replay:path={path},period=2000")
    until = {now: sorted(model.until(3, now, 0).tolist()) for now in (20.0, 60.0, 120.0, 2020.0)}
    assert until[20.0] == [20.0, 50.0, 1000.0]
    assert until[60.0] == [60.0, 60.0, 1000.0]
    assert until[120.0] == [120.0, 150.0, 1000.0]
    assert until[2020.0] == [2020.0, 2050.0, 3000.0]
    many = model.until(500, 20.0, 0)
    assert set(many.tolist()) == {20.0, 50.0, 1000.0}


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ([1], "line 1: must read"),
        ({"client": "a", "start": 1}, "numbers of seconds"),
        ({"client": "a", "start": 1, "end": "x"}, "numbers of seconds"),
        ({"client": "a", "start": 3, "end": 1}, "not be before"),
        ({"client": "a", "period": 0}, "numbers of seconds"),
    ],
)
def test_a_bad_line_is_one_sentence(tmp_path, told, said: str) -> None:
    path = lines(tmp_path / "t.jsonl", told)
    with pytest.raises(BadInput, match=said):
        availability(f"replay:path={path}").until(2, 0.0, 0)


def test_files_that_hold_no_trace(tmp_path) -> None:
    with pytest.raises(DataNotFound):
        availability("replay:path=no.jsonl").until(2, 0.0, 0)
    (tmp_path / "t").write_bytes(b"\xff\xfe{")
    with pytest.raises(BadInput, match="JSON lines"):
        availability(f"replay:path={tmp_path / 't'}").until(2, 0.0, 0)


def test_a_day_has_its_hours_in_every_time_zone() -> None:
    model = availability("diurnal:begins=22,hours=8,spread=0,zones=24")
    for hour in (0.0, 5.0, 13.0, 40.0):
        there = model.until(4000, 3600 * hour, 0) > 3600 * hour
        assert abs(there.mean() - 8 / 24) < 4.9 * np.sqrt(2 / 9 / 4000)
    one = availability("diurnal:begins=22,hours=8,spread=0,zones=1")
    leaves = one.until(3, 3600 * 23.0, 0)
    assert leaves.tolist() == [3600 * 30.0] * 3
    assert (one.until(3, 3600 * 7.0, 0) <= 3600 * 7.0).all()


@pytest.mark.parametrize("name", ["sessions", "markov"])
def test_sessions_last_as_long_as_they_should(name: str) -> None:
    model = availability(f"{name}:online=300,offline=600")
    times = np.arange(0.0, 60_000.0, 50.0)
    until = np.stack([model.until(60, now, 0) for now in times])
    online = until > times[:, None]
    assert abs(online[200:].mean() - 1 / 3) < 0.03
    for client in range(60):  # a session ends when it was said to, whenever one asks
        ends = until[online[:, client], client]
        assert all(np.diff(np.unique(ends.round(6))) > 0)
        assert (ends > times[online[:, client]]).all()
    lengths = [len(set(until[online[:, c], c].tolist())) for c in range(60)]
    assert 45 < np.mean(lengths) < 80  # 60,000 s in cycles of 900 s, short ones may be missed


ONLINE, OFFLINE, CLIENTS = 300.0, 600.0, 4000
LEVEL = 1e-6
TIMES = (0.0, 30.0, 300.0, 900.0, 2_000.0, 20_000.0)


def exceeds(name: str, seconds: float) -> float:
    """Probability that a session under way at a random time lasts longer than these seconds.

    P(R > x) = E[max(L - x, 0)] / E[L] for sessions of length L.
    """
    x, sigma = seconds / ONLINE, 1.27
    if name == "markov":
        return float(np.exp(-x))
    upper = norm.sf(np.log(x) / sigma - sigma / 2)  # E[L; L > x]
    return float(upper - x * norm.sf(np.log(x) / sigma + sigma / 2))


def smallest_tails(model: InTime, now: float) -> tuple[float, float]:
    """Exact tails of the number of clients online, and of the sessions that last long."""
    until = model.until(CLIENTS, now, 0)
    online = until > now
    share = binomtest(int(online.sum()), CLIENTS, ONLINE / (ONLINE + OFFLINE)).pvalue
    tails = []
    for seconds in (20.0, 100.0, 300.0, 2_000.0):
        longer = int((until[online] - now > seconds).sum())
        expected = exceeds(model.name, seconds)
        tails.append(binomtest(longer, int(online.sum()), expected).pvalue)
    return share, min(tails) * len(tails)


@pytest.mark.parametrize("name", ["sessions", "markov"])
def test_clients_are_in_balance_from_the_first_second_on(name: str) -> None:
    model = availability(f"{name}:online={ONLINE},offline={OFFLINE}")
    tails = [tail for now in TIMES for tail in smallest_tails(model, now)]
    assert min(tails) * len(tails) > LEVEL


@pytest.mark.parametrize("name", ["sessions", "markov"])
def test_a_start_within_a_first_whole_cycle_is_noticed(name: str) -> None:
    """Every client came online once in the last ``online + offline`` seconds: too many stay."""

    class FirstCycle(type(availability(name))):  # type: ignore[misc]
        def until(self, n: int, now: float, seed: int) -> np.ndarray:
            rng = np.random.default_rng(0)
            begin = -(self.online + self.offline) * rng.random(n)
            on = self.online * self.lengths(rng, (n, 400))
            ends = begin[:, None] + np.cumsum(
                on + self.offline * rng.standard_exponential(on.shape), axis=1
            )
            off_from = np.concatenate([begin[:, None], ends[:, :-1]], axis=1) + on
            cycle = (ends > now).argmax(axis=1)[:, None]
            leaves = np.take_along_axis(off_from, cycle, axis=1)[:, 0]
            return np.maximum(leaves, now)

    model = FirstCycle(online=ONLINE, offline=OFFLINE)
    assert smallest_tails(model, 0.0)[0] < LEVEL
    assert min(smallest_tails(model, 20_000.0)) > LEVEL  # balance comes late, so the start is it


def test_a_whole_session_instead_of_the_rest_of_one_is_noticed() -> None:
    class Whole(Sessions):
        def remaining(self, rng: np.random.Generator, n: int) -> Any:
            return self.lengths(rng, (n,))

    assert smallest_tails(Whole(online=ONLINE, offline=OFFLINE), 0.0)[1] < LEVEL


def test_whoever_asks_and_when_hears_the_same() -> None:
    model = availability("sessions")
    late = model.until(20, 90_000.0, 3)
    for now in (10.0, 5e5, 90_000.0):
        again = model.until(20, now, 3)
    assert again.tolist() == late.tolist()
    assert late.tolist() != model.until(20, 90_000.0, 4).tolist()


def test_clients_leave_in_the_middle_of_training(tmp_path) -> None:
    """Both are there for 6 seconds; client 0 would need 10, client 1 needs 5."""
    table = tmp_path / "d.csv"
    table.write_text("0,0.1,1e9,1e9\n1,0.05,1e9,1e9\n", encoding="utf-8")
    path = lines(
        tmp_path / "t.jsonl",
        {"client": "a", "start": 0, "end": 6, "period": 1000},
        {"client": "b", "start": 0, "end": 6, "period": 1000},
    )
    task = Quadratic([[1.0], [2.0]], sizes=[10, 10])
    options = {
        "work": WORK,
        "devices": f"table:path={table}",
        "availability": f"replay:path={path}",
    }
    trace = simulate(task, "full", rounds=3, **options)
    assert trace.cohort(0).clients.tolist() == [1]
    assert trace.filled.tolist()[0] == 0.5
    assert trace.time[0] == 6.0  # then client 0 is known to be gone
    assert trace.void[1:].all()  # nobody is there any more
    assert trace.available.tolist() == [2, 0, 0]
    assert trace.settings["dropouts_rule"] == "hajek:scale=difference"


def test_availability_in_time_needs_devices() -> None:
    with pytest.raises(BadInput, match="'diurnal' lives in time"):
        simulate(Quadratic([[1.0]], sizes=[3]), "full", rounds=1, availability="diurnal")


PHONES = {
    7: {"duration": 9, "active": [10, 80], "inactive": [30, 5], "finish_time": 100, "model": "x"},
    8: {"duration": 9, "active": [], "inactive": [], "finish_time": 50, "model": ""},
}


@pytest.mark.parametrize("protocol", range(6))
def test_fedscales_behaviour(tmp_path, protocol: int) -> None:
    source = tmp_path / "behave"
    source.write_bytes(pickle.dumps(PHONES, protocol))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    assert convert_behaviour(source, tmp_path / "t.jsonl", digest) == 2
    model = availability(f"replay:path={tmp_path / 't.jsonl'}")
    until = {now: sorted(model.until(2, now, 0).tolist()) for now in (20.0, 90.0, 102.0, 106.0)}
    assert until == {20.0: [20.0, 30.0], 90.0: [90.0, 105.0], 102.0: [102.0, 105.0],
                     106.0: [106.0, 106.0]}  # fmt: skip


def test_fedscales_capacity(tmp_path) -> None:
    source, target = tmp_path / "capacity", tmp_path / "d.csv"
    content = {i: {"computation": 10.0 * (i + 1), "communication": 800.0} for i in range(2)}
    source.write_bytes(pickle.dumps(content))
    assert convert_capacity(source, target, None) == 2
    trace = simulate(
        Quadratic([[1.0], [2.0]], sizes=[10, 10]), "full", rounds=1, work=WORK,
        devices=f"table:path={target}",
    )  # fmt: skip
    np.testing.assert_allclose(trace.time, 100 * 0.06 + 2 * 4 / 100_000)


class Evil:
    def __reduce__(self):
        return print, ("it ran",)


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_code_is_refused(tmp_path, protocol: int, capsys) -> None:
    source = tmp_path / "evil"
    source.write_bytes(pickle.dumps({1: Evil()}, protocol))
    with pytest.raises(BadInput, match="does more than hold values"):
        convert_behaviour(source, tmp_path / "t", None)
    assert capsys.readouterr().out == ""


def test_another_file_is_refused_by_its_checksum(tmp_path) -> None:
    source = tmp_path / "other"
    source.write_bytes(pickle.dumps(PHONES))
    with pytest.raises(BadInput, match="not the file that FedScale published"):
        convert_behaviour(source, tmp_path / "t")


@pytest.mark.parametrize(
    "value", [{}, [], {"a": [1, 2.5, None, True], "b": {"c": (1, (2, 3), ())}}, "é", -(2**70), [[]]]
)
def test_values_are_those_of_pickle(value) -> None:
    for protocol in range(6):
        assert plain_values(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("content", [b"", b"x", pickle.dumps([1])[:-3], pickle.dumps([1])])
def test_damaged_pickles_are_one_sentence(tmp_path, content: bytes) -> None:
    source = tmp_path / "bad"
    source.write_bytes(content)
    with pytest.raises(BadInput, match="cannot be read"):
        convert_capacity(source, tmp_path / "t", None)
