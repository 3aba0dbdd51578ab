"""The memory estimator with a guess for clients that it has not seen yet."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from fedcohort import Federation, LocalWork, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput
from fedcohort._internal.store import pack, unpack
from fedcohort.adapters._loop import Loop
from fedcohort.selection import Ask, Cohort
from fedcohort.server import Memory
from fedcohort.server._memory import Guess, MemoryState
from fedcohort.theory import step_variance
from fedcohort.training import Softmax

SIZES, D, N = [5, 4, 3, 2, 1], 3, 12
FEDERATION = Federation.from_sizes(SIZES)
COUNTS = np.array([[5, 0], [0, 4], [2, 1], [1, 1], [0, 1]])
WORK = LocalWork(steps=2, batch=8, lr=0.1)


def told(memory: Memory, answers: Any = COUNTS, n: int = 5) -> MemoryState:
    """A memory in which every client was asked, and nobody was seen."""
    federation = FEDERATION if n == 5 else Federation.from_sizes([1] * n)
    talk: Any = memory.told(memory.start(federation.importance, D), federation)
    next(talk)
    with pytest.raises(StopIteration) as end:
        talk.send(answers)
    return end.value.value


def seen(memory: Memory, state: MemoryState, rounds: Any = ([0, 2], [2, 3])) -> MemoryState:
    rng = np.random.default_rng(0)
    for clients in rounds:
        cohort = Cohort.equal(clients)
        rows = rng.standard_normal((len(clients), D)).astype(np.float32)
        _, state = memory.direction(state, cohort, cohort.clients, rows)
    return state


def supposed(memory: Memory, state: MemoryState) -> np.ndarray:
    """(n, d) y of everybody, by the formula as it is printed: the slow twin."""
    h = state.guess.known
    y = state.latest.rows(np.arange(len(h))).astype(float)
    was = state.guess.seen
    unit = (h**2).sum() / (h**2).sum(axis=1).astype(bool).sum()
    slopes = np.linalg.inv(h[was].T @ h[was] + memory.alpha * unit * np.eye(h.shape[1]))
    y[~was] = h[~was] @ slopes @ h[was].T @ y[was]
    return y


@pytest.mark.parametrize("name", ["md", "uniform", "clustered-size", "binomial", "pivotal"])
@pytest.mark.parametrize("away", [(), (2,), (1, 4)])
def test_it_is_unbiased_whatever_the_guess_and_varies_as_the_theory_says(
    name: str, away: tuple[int, ...]
) -> None:
    memory = Memory("labels", alpha=0.3)
    state = seen(memory, told(memory))
    last = supposed(memory, state)
    assert last[1].any()  # a guess: client 1 was not seen
    here = FEDERATION.among([i for i in range(5) if i not in away])
    p = here.importance if away else None
    design = Selector(scheme(name, m=2), here, seed=0).design()
    updates = np.random.default_rng(1).standard_normal((5, D))
    steps, chances = [], []
    for chance, cohort in design.enumerate():
        weights = Cohort(cohort.clients, cohort.weights.astype(float), cohort.draws)
        step, _ = memory.direction(state, weights, cohort.clients, updates[cohort.clients], p)
        steps.append(step)
        chances.append(float(chance))
    mean = np.average(steps, axis=0, weights=chances)
    np.testing.assert_allclose(mean, here.importance @ updates, atol=1e-12)
    spread = np.average(((np.array(steps) - mean) ** 2).sum(axis=1), weights=chances)
    assert spread == pytest.approx(step_variance(design, updates, last).memory, abs=1e-12)


def test_a_guess_that_knows_the_answers_of_the_round_would_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The planted defect: clients are seen before they are guessed at."""
    memory, whole = Memory("labels"), Guess.expected
    state, mean = seen(Memory("labels"), told(Memory("labels"))), np.zeros(D)
    updates = np.random.default_rng(1).standard_normal((5, D))
    for chance, cohort in scheme("md", m=2).law(FEDERATION).enumerate():
        drawn = cohort.clients

        def peeking(guess: Guess, p: Any, slopes: Any, drawn: Any = drawn) -> Any:
            return whole(guess.answered(drawn, updates[drawn]), p, slopes)

        monkeypatch.setattr(Guess, "expected", peeking)
        weights = Cohort(drawn, cohort.weights.astype(float), cohort.draws)
        step, _ = memory.direction(state, weights, drawn, updates[drawn])
        mean += float(chance) * step
    assert np.abs(mean - FEDERATION.importance @ updates).max() > 1e-3


def test_of_clients_with_one_label_the_guess_is_the_mean_of_their_kind() -> None:
    memory = Memory("labels", alpha=0)
    state = told(memory, np.eye(2, dtype=int)[[0, 0, 0, 1, 1]] * 7)
    state = seen(memory, state, ([0, 1], [3]))
    rows = state.latest.rows(np.arange(5)).astype(float)
    slopes = state.guess.slopes(memory.alpha)
    np.testing.assert_allclose(
        state.guess.of(np.array([2, 4]), slopes), [rows[:2].mean(axis=0), rows[3]], rtol=1e-6
    )
    assert not state.guess.of(np.array([0, 1, 3]), slopes).any()  # they are known


def test_blocks_of_a_round_are_guessed_alike() -> None:
    memory = Memory("labels")
    state = seen(memory, told(memory))
    cohort = Cohort.of([1, 2, 4], [0.5, 0.3, 0.2])
    updates = np.random.default_rng(1).standard_normal((3, D)).astype(np.float32)
    whole, after = memory.direction(state, cohort, cohort.clients, updates)
    account = memory.begin(state, cohort)
    for i in range(3):
        account = memory.add(account, cohort.clients[[i]], cohort.weights[[i]], updates[[i]])
    parts, piecewise = memory.finish(account, D)
    np.testing.assert_allclose(parts, whole, atol=1e-12)
    np.testing.assert_allclose(piecewise.guess.moments, after.guess.moments, atol=1e-12)
    h, y = after.guess.known, after.latest.rows(np.arange(5)).astype(float)
    np.testing.assert_allclose(after.guess.moments, h.T @ y, atol=1e-6)  # unseen ones are zero


def test_who_told_nothing_is_guessed_to_do_nothing_and_is_not_asked_again() -> None:
    memory, answers = Memory("labels"), COUNTS.astype(float)
    answers[1], answers[4] = np.nan, -3.0
    state = seen(memory, told(memory, answers))
    slopes = state.guess.slopes(memory.alpha)
    assert not state.guess.of(np.array([1, 4]), slopes).any()
    assert memory.told(state, FEDERATION) is state
    nothing = told(memory, np.zeros((5, 2)))
    step, _ = memory.direction(nothing, Cohort.of([0], 0.5), np.array([0]), np.ones((1, D)))
    np.testing.assert_array_equal(step, 0.5)
    plain = Memory()
    assert plain.told(plain.start(FEDERATION.importance, D), FEDERATION).guess.known.shape == (5, 0)


def test_clients_come_and_go() -> None:
    memory = Memory("labels")
    state = seen(memory, told(memory))
    came = np.array([3, -1, 0, 1])
    moved = memory.moved(state, np.full(4, 0.25), came)
    assert moved.guess.seen.tolist() == [True, False, True, False]
    assert moved.guess.strangers(Federation.from_sizes([1] * 4)).tolist() == [1]
    h, y = moved.guess.known, moved.latest.rows(np.arange(4)).astype(float)
    np.testing.assert_allclose(moved.guess.moments, h.T @ y, atol=1e-12)
    talk: Any = memory.told(moved, Federation.from_sizes([1] * 4))
    assert next(talk).clients.tolist() == [1]
    with pytest.raises(BadInput, match="alike: the memory estimator got 3 numbers"):
        talk.send(np.ones((1, 3)))


def test_it_is_kept_and_read_back() -> None:
    memory = Memory("labels")
    state = seen(memory, told(memory))
    header, arrays = pack(state, "m.")
    again = unpack(MemoryState, header, arrays, "m.", {"n": 5, "d": D})
    for name in ("known", "asked", "seen", "moments"):
        np.testing.assert_array_equal(getattr(again.guess, name), getattr(state.guess, name))
    arrays["m.guess.seen"] = np.zeros(4, dtype=bool)
    with pytest.raises(BadInput, match=r"'seen' has shape \(4,\)"):
        unpack(MemoryState, header, arrays, "m.", {"n": 5, "d": D})


@pytest.fixture(scope="module")
def task() -> Softmax:
    rng = np.random.default_rng(5)
    x, y = rng.random((240, 6)), np.repeat(np.arange(4), 60)
    return Softmax(x, y, x, y, np.array_split(np.arange(240), N), 4, dtype=np.float64)


@pytest.mark.parametrize(
    ("name", "guess", "signal"),
    [("md", "labels", "label_histogram"), ("md", "sketches", "update_sketch"),
     ("balanced", "labels", "label_histogram")],
)  # fmt: skip
def test_the_simulator_asks_everybody_once(
    task: Softmax, name: str, guess: str, signal: str
) -> None:
    """Also where the scheme asks for the same."""
    trace = simulate(
        task, scheme(name, m=4), rounds=3, seed=1, work=WORK, aggregator=f"memory:guess={guess}"
    )
    (asked,) = [row for row in trace.ledger if row["purpose"] == signal]
    assert asked["messages"] == 2 * N  # there and back
    assert any(told.what == signal for told in trace.disclosures)


@pytest.mark.parametrize("guess", ["labels", "sketches"])
def test_flower_takes_the_same_steps_also_after_a_crash(
    task: Softmax, guess: str, tmp_path: Path
) -> None:
    pytest.importorskip("flwr")
    from fedcohort import flower

    how = f"memory:guess={guess}"
    trace = simulate(task, "md:m=4", rounds=6, seed=3, work=WORK, aggregator=how)
    for rounds in (3, 6):  # the second run goes on with the first
        grid = flower.InProcessGrid(
            flower.client_app(flower.task_client(task, WORK), simulated=True), N, raises=True
        )
        strategy = flower.CohortStrategy(
            scheme("md", m=4), clients=N, seed=3, aggregator=how, folder=tmp_path
        )
        result = strategy.start(grid, flower.first_model(task, 3), num_rounds=rounds)
    np.testing.assert_allclose(result.arrays["theta"].numpy(), trace.model, rtol=0, atol=1e-9)


class OwnLoop(Loop):
    """A loop of somebody's own."""

    name: ClassVar[str] = "own"


def test_a_loop_of_another_framework_asks_through_its_selector() -> None:
    asked: list[Ask] = []

    def answer(ask: Ask) -> Any:
        asked.append(ask)
        return COUNTS[ask.clients]

    loop = OwnLoop(
        Selector("md:m=2", FEDERATION, seed=0, ask=answer), aggregator="memory:guess=labels"
    )
    memory, theta = Memory("labels"), np.zeros(D)
    twin = told(memory)
    for _ in range(4):
        cohort = loop.invite(dimension=D)
        came = {int(i): np.arange(D) + i - theta for i in cohort.clients}
        rows = np.array([came[int(i)] for i in cohort.clients])
        step, twin = memory.direction(twin, cohort, cohort.clients, rows)
        wanted = theta + step
        theta = loop.step(theta, came)
        np.testing.assert_allclose(theta, wanted, atol=1e-12)
    assert [ask.signal.name for ask in asked] == ["label_histogram"]
