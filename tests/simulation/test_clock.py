"""The virtual clock, against closed forms."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy import integrate, stats

from fedcohort import simulate
from fedcohort._internal.errors import BadInput, DataNotFound
from fedcohort.selection import LOSS, Ask
from fedcohort.server import Ledger, Trace
from fedcohort.server._ledger import REQUEST_BYTES
from fedcohort.simulation import devices
from fedcohort.simulation._devices import DEVICES, Equal, Groups, Lognormal, Phones, Table
from fedcohort.simulation._engine import Simulation
from fedcohort.simulation._environment import IDLE, Clock
from fedcohort.training import LocalWork, Quadratic

WORK = LocalWork(epochs=2, batch=5)
pytestmark = pytest.mark.filterwarnings("ignore::fedcohort._internal.errors.UnequalWork")


def quadratic(sizes=(10, 30)) -> Quadratic:
    rng = np.random.default_rng(0)
    return Quadratic(rng.standard_normal((len(sizes), 3)), sizes=list(sizes))


@pytest.fixture
def two(tmp_path) -> Table:
    """Client 0: a second a sample, 6 bytes a second down, 3 up; client 1: a tenth, 12 and 12."""
    path = tmp_path / "devices.csv"
    path.write_text("client,seconds,down,up\n1,0.1,12,12\n0,1,6,3\n", encoding="utf-8")
    return Table(path=str(path))


def test_two_devices_of_known_speed(two: Table) -> None:
    """The model has 3 numbers of 4 bytes: 12/6 + 2*10*1 + 12/3 and 12/12 + 2*30*0.1 + 12/12."""
    trace = simulate(quadratic(), "full", rounds=3, work=WORK, devices=two)
    assert trace.time.tolist() == [26.0] * 3  # the slower of 26 and 8
    np.testing.assert_allclose(trace.latencies["training"], [26.0, 8.0])
    steps = LocalWork(steps=4, batch=20)  # of client 0 all ten samples, four times
    trace = simulate(quadratic(), "full", rounds=1, work=steps, devices=two)
    np.testing.assert_allclose(trace.latencies["training"], [2 + 40 + 4, 1 + 8 + 1])


def test_a_question_takes_its_own_time_and_brings_the_model(two: Table) -> None:
    ledger = Ledger(model_bytes=12)
    clock = Clock(two, np.array([10, 30]), 0, ledger)
    now = clock.round(0, WORK)
    now.asked(Ask(LOSS, np.array([0, 1])), np.zeros(2))
    asked = [(REQUEST_BYTES + 12) / 6 + 10 + 8 / 3, (REQUEST_BYTES + 12) / 12 + 3 + 8 / 12]
    np.testing.assert_allclose(now.watch.measured["loss"][1], asked)
    assert now.elapsed == pytest.approx(max(asked))
    np.testing.assert_allclose(now.training(np.array([0, 1])), [20 + 4, 6 + 1])  # they have it
    fresh = clock.round(1, WORK)
    np.testing.assert_allclose(fresh.training(np.array([0, 1])), [26, 8])


def test_the_expected_maximum_of_m_devices_is_that_of_order_statistics() -> None:
    """Over all cohorts of m of n: sum_j t_(j) C(j - 1, m - 1) / C(n, m)."""
    n, m = 7, 3
    clock = Clock(Lognormal(sigma=1.0), np.full(n, 20), 5, Ledger(model_bytes=1000))
    takes = np.sort(clock.usual(WORK))
    expected = sum(t * comb(j, m - 1) for j, t in enumerate(takes)) / comb(n, m)
    rounds = [clock.round(0, WORK).training(np.array(c)).max() for c in combinations(range(n), m)]
    assert np.mean(rounds) == pytest.approx(expected, rel=1e-12)


def test_the_expected_maximum_of_m_draws_with_jitter() -> None:
    """Equal devices, log-normal jitter: E max = integral of 1 - F(t)^m; exact to 5 sigma."""
    m, sigma, rounds = 5, 0.5, 4000
    clock = Clock(Equal(jitter=sigma), np.full(m, 10), 1, Ledger(model_bytes=0))
    usual = clock.usual(WORK)[0]
    law = stats.lognorm(s=sigma, scale=usual)
    mean = integrate.quad(lambda t: 1 - law.cdf(t) ** m, 0, 60 * usual, limit=200)[0]
    drawn = [clock.round(t, WORK).training(np.arange(m)).max() for t in range(rounds)]
    off = (np.mean(drawn) - mean) / (np.std(drawn) / np.sqrt(rounds))
    assert abs(off) < 4.9  # 1e-6
    assert (np.mean(drawn) - usual) / (np.std(drawn) / np.sqrt(rounds)) > 4.9  # a planted mistake


@pytest.mark.parametrize(
    ("scheme", "algorithm"),
    [("md:m=3", "sgd"), ("pow-d:m=2,d=4", "sgd"), ("optimal:m=3", "sgd"), ("md:m=3", "scaffold"),
     ("fedsampling:K=40,mechanism=exact", "sgd"), ("rpow-d:m=3", "sgd")],
)  # fmt: skip
def test_bytes_are_those_of_the_ledger(tmp_path, scheme: str, algorithm: str) -> None:
    """On devices that compute at once and move a byte a second, seconds are bytes."""
    task, rounds = quadratic((10, 30, 20, 5, 9, 14)), 4
    path = tmp_path / "devices.csv"
    path.write_text("".join(f"{i},1e-12,1,1\n" for i in range(6)), encoding="utf-8")
    from fedcohort.schemes import as_scheme
    from fedcohort.server._state import Setup
    from fedcohort.simulation import Always
    from fedcohort.training import algorithm as algorithm_by_name

    setup = Setup(as_scheme(scheme), 0, algorithm=algorithm_by_name(algorithm))
    run = Simulation(task, setup, WORK, Always(), None, Table(path=str(path)))
    assert run.clock is not None
    for number in range(rounds):
        clocks = []
        make = run.clock.round
        run.clock.round = lambda *a, make=make, clocks=clocks: clocks.append(make(*a)) or clocks[-1]
        record = run.play()
        run.clock.round = make
        taken = sum(seconds.sum() for _, seconds in clocks[0].watch.measured.values())
        booked = sum(entry.bytes_down + entry.bytes_up for entry in record.entries)
        assert taken == pytest.approx(booked, rel=1e-9), number


def test_all_schemes_see_the_same_devices() -> None:
    words = {"rounds": 6, "work": WORK, "devices": "lognormal:sigma=1,jitter=0.3"}
    task = quadratic((10, 30, 20, 5))
    one, other = (simulate(task, scheme, **words) for scheme in ("full", "uniform:m=4"))
    np.testing.assert_array_equal(one.time, other.time)
    again = simulate(task, "full", seed=1, **words)
    assert not np.array_equal(one.time, again.time)
    fixed = {**words, "devices": "lognormal:sigma=1,device_seed=3"}
    np.testing.assert_array_equal(
        simulate(task, "full", seed=1, **fixed).time, simulate(task, "full", seed=2, **fixed).time
    )


def test_a_run_without_devices_knows_no_time() -> None:
    trace = simulate(quadratic(), "full", rounds=2)
    assert np.isnan(trace.time).all()
    assert not trace.clocked
    assert not trace.latencies
    assert "devices" not in trace.settings


def test_devices_change_neither_cohorts_nor_models() -> None:
    task = quadratic((10, 30, 20, 5))
    plain, timed = (simulate(task, "md:m=2", rounds=5, devices=d) for d in (None, "lognormal"))
    np.testing.assert_array_equal(plain.cohort_clients, timed.cohort_clients)
    np.testing.assert_array_equal(plain.model, timed.model)


@pytest.mark.parametrize("profiled", ["false", "true"])
def test_a_run_with_a_clock_is_extended_bit_for_bit(tmp_path, profiled: str) -> None:
    task = quadratic((10, 30, 20, 5, 8, 9))
    words = {
        "work": WORK,
        "devices": f"lognormal:sigma=1,jitter=0.2,profiled={profiled}",
        "stragglers": "over-commit:factor=1.5",
    }
    whole = simulate(task, "md:m=2", rounds=9, **words)
    keep = tmp_path / "end.npz"
    some = simulate(task, "md:m=2", rounds=4, keep=keep, **words)
    longer = simulate(task, "md:m=2", rounds=9, keep=keep, before=some, **words)
    np.testing.assert_array_equal(longer.time, whole.time)
    np.testing.assert_array_equal(longer.model, whole.model)
    np.testing.assert_array_equal(longer.latencies["training"], whole.latencies["training"])


def test_a_trace_keeps_its_time(tmp_path, two: Table) -> None:
    trace = simulate(quadratic(), "full", rounds=2, work=WORK, devices=two)
    trace.save(tmp_path / "trace.npz")
    again = Trace.load(tmp_path / "trace.npz")
    np.testing.assert_array_equal(again.time, trace.time)
    np.testing.assert_array_equal(again.latencies["training"], trace.latencies["training"])


def test_what_is_known_beforehand_is_the_usual_time() -> None:
    task = quadratic((10, 30, 20, 5))
    trace = simulate(task, "md:m=1", rounds=1, work=WORK, devices="lognormal:profiled=true")
    clock = Clock(Lognormal(), task.sizes, 0, Ledger(model_bytes=12))
    np.testing.assert_allclose(trace.latencies["training"], clock.usual(WORK))


def test_groups_have_their_shares() -> None:
    model = Groups(slower=(1.0, 10.0), shares=(3.0, 1.0), seconds=0.5)
    speeds = model.of(40, 0)
    assert np.bincount(np.rint(speeds.seconds / 0.5).astype(int))[[1, 10]].tolist() == [30, 10]
    np.testing.assert_allclose(speeds.down * speeds.seconds, 0.5 * 20e6 / 8)
    assert not np.array_equal(speeds.seconds, model.of(40, 1).seconds)


def test_phones_are_measured_ones() -> None:
    try:
        speeds = Phones(seconds=0.02).of(2000, 0)
    except DataNotFound:
        pytest.skip("the scores are not here")
    assert speeds.seconds.max() / speeds.seconds.min() > 10
    assert np.median(speeds.seconds) == pytest.approx(0.02, rel=0.2)


@pytest.mark.parametrize("name", sorted(set(DEVICES) - {"table"}))
def test_every_device_model_reads_back(name: str) -> None:
    model = devices(name)
    assert devices(model.spec) == model


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0,1,1\n", "columns client,seconds,down,up; got 3"),
        ("0,1,1,1\n", "client 1 is missing"),
        ("0,1,1,1\n0,1,1,1\n", "each once; got '0'"),
        ("0,1,1,1\n2,1,1,1\n", "from 0 to 1"),
        ("0,1,1,1\n1,0,1,1\n", "above 0"),
        ("0,1,1,1\n1,inf,1,1\n", "above 0"),
        ("client,seconds,upload,down\n0,1,1,1\n1,1,1,1\n", "the header must name the columns"),
    ],
)
def test_a_bad_table_is_one_sentence(tmp_path, text: str, said: str) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BadInput, match=said):
        simulate(quadratic(), "full", rounds=1, devices=Table(path=str(path)))


def test_a_header_says_which_column_is_which(tmp_path, two: Table) -> None:
    path = tmp_path / "other.csv"
    path.write_text("up,down,client,seconds\n3,6,0,1\n12,12,1,0.1\n", encoding="utf-8")
    other = Table(path=str(path))
    for mine, theirs in zip(other.of(2, 0), two.of(2, 0), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_a_table_that_is_not_there() -> None:
    with pytest.raises(DataNotFound, match=r"There is no file 'no\.csv'"):
        simulate(quadratic(), "full", rounds=1, devices="table:path=no.csv")


def test_what_lives_in_time_needs_devices() -> None:
    with pytest.raises(BadInput, match="without devices there is none"):
        simulate(quadratic(), "full", rounds=1, stragglers="deadline:seconds=5")


def test_a_round_without_anybody_takes_its_time() -> None:
    trace = simulate(
        quadratic(), "md:m=1", rounds=2, devices="equal", availability="random:probability=0"
    )
    assert trace.time.tolist() == [IDLE, IDLE]
