from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from fedcohort import LocalWork, Replies, Selector, scheme, simulate
from fedcohort._internal.errors import BadInput, BadParameter, UnknownName
from fedcohort._internal.random import stream
from fedcohort.schemes import schemes
from fedcohort.selection import LOSS, UPDATE, Citation, Cohort, RoundContext, Scheme, Signal, Whole
from fedcohort.server import Adam, AsDrawn, Memory, Sgd, aggregator
from fedcohort.server._optimizers import OptimiserState
from fedcohort.server._state import Setup
from fedcohort.simulation import Always, Cyclic, DropOuts, Problem, Quadratic, Random, Softmax
from fedcohort.simulation._engine import Simulation, federation_of
from helpers.scripted import Scripted

STEP = LocalWork(steps=1, batch=None, lr=1.0)


def started(
    task: Any, chosen: Any, server: Any, how: Any, there: Any, failing: DropOuts | None
) -> Simulation:
    """A run that is played round by round."""
    rule, quorum = (failing.rule, failing.quorum) if failing else (AsDrawn(), 0.0)
    return Simulation(task, Setup(chosen, 0, server, how, rule, quorum), STEP, there, failing)


@pytest.fixture(scope="module")
def digits() -> Softmax:
    problem = Problem("digits", "one-class-per-client", {"n": 20, "per_client": 30})
    return problem.task()  # type: ignore[return-value]


def test_full_participation_on_quadratics_is_gradient_descent() -> None:
    task = Quadratic([[0.0, 4.0], [1.0, 0.0], [2.0, 2.0]], sizes=[1, 2, 1])
    trace = simulate(task, "full", rounds=5, work=LocalWork(steps=1, batch=None, lr=0.5))
    optimum = task.importance @ np.array([[0.0, 4.0], [1.0, 0.0], [2.0, 2.0]])
    start = np.asarray(task.initial(0), dtype=float)
    np.testing.assert_allclose(trace.model, optimum + 0.5**5 * (start - optimum), atol=1e-12)


def test_a_run_is_the_loop_that_a_user_would_write(digits: Softmax) -> None:
    work = LocalWork(steps=3, batch=5, lr=0.1)
    trace = simulate(digits, scheme("md", m=4), rounds=6, seed=3, work=work)
    selector = Selector(scheme("md", m=4), federation_of(digits), seed=3)
    theta = np.asarray(digits.initial(3), dtype=float)
    for round in range(6):
        cohort = selector.select()
        rngs = [stream(3, "train", round, int(i)) for i in cohort.clients]
        deltas = digits.updates(theta, cohort.clients, work, rngs)
        theta = theta + sum(
            w * d.astype(float) for w, d in zip(cohort.weights, deltas, strict=True)
        )
        selector.observe()
        assert trace.cohort(round) == cohort
    np.testing.assert_allclose(trace.model, theta, rtol=1e-12, atol=1e-12)
    assert trace.accuracy[-1] == digits.evaluate(theta[None]).accuracy[0]


def test_same_seed_same_trace_and_other_seed_other_cohorts(digits: Softmax) -> None:
    once, again, other = (
        simulate(digits, "md", rounds=4, seed=seed, work=LocalWork(steps=2)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(once.model, again.model)
    np.testing.assert_array_equal(once.cohort_clients, again.cohort_clients)
    assert not np.array_equal(once.cohort_clients, other.cohort_clients)


def test_schemes_are_paired_on_the_mini_batches_of_a_client(digits: Softmax) -> None:
    """In the first round both start from one model: the same client gives the same update."""

    seen: dict[str, dict[int, Any]] = {}

    @dataclass(frozen=True)
    class Listening(Scheme[Any]):
        inner: str = "md"
        name: ClassVar[str] = "listening"
        paper: ClassVar[Citation] = Citation("-", "-", "-", 2026)
        listens: ClassVar[frozenset[Signal]] = frozenset({UPDATE})

        def select(self, state: Any, federation: Any, context: RoundContext, rng: Any) -> Any:
            return scheme(self.inner, m=8).law(federation).draw(rng)

        def observe(self, state: Any, federation: Any, cohort: Cohort, replies: Replies) -> Any:
            rows = replies.signals["update"]
            seen[self.inner] = dict(zip(replies.clients.tolist(), rows, strict=True))
            return state

    for inner in ("md", "uniform"):
        simulate(digits, Listening(inner), rounds=1, seed=5, work=LocalWork(steps=3))
    both = set(seen["md"]) & set(seen["uniform"])
    assert both
    for client in both:
        np.testing.assert_allclose(seen["md"][client], seen["uniform"][client], atol=1e-6)


def test_deferred_evaluation_changes_nothing(digits: Softmax) -> None:
    work = LocalWork(steps=2)
    told: list[int] = []
    at_once = simulate(digits, "uniform", rounds=7, work=work)
    one_by_one = simulate(
        digits, "uniform", rounds=7, work=work, defer=1, progress=lambda done, _: told.append(done)
    )
    assert told == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(at_once.accuracy, one_by_one.accuracy, atol=1e-9)
    np.testing.assert_allclose(at_once.train_loss, one_by_one.train_loss, rtol=1e-6)


def test_evaluate_every_leaves_gaps_but_not_at_the_end(digits: Softmax) -> None:
    seen: list[int] = []
    trace = simulate(
        digits,
        "md",
        rounds=7,
        work=LocalWork(steps=1),
        evaluate_every=3,
        progress=lambda done, accuracy: seen.append(done),
    )
    assert np.flatnonzero(np.isfinite(trace.accuracy)).tolist() == [2, 5, 6]
    assert seen == [7]


@pytest.mark.parametrize("name", sorted(schemes()))
def test_every_scheme_runs_with_clients_that_come_and_go(digits: Softmax, name: str) -> None:
    cls = schemes()[name]
    fields = cls.__dataclass_fields__  # type: ignore[attr-defined]
    small = {"m": 4, "M": 100, "when_imprecise": "accept"}  # for few clients
    built = scheme(name, **{field: small[field] for field in small if field in fields})
    trace = simulate(
        digits,
        built,
        rounds=6,
        work=LocalWork(steps=1, batch=None, lr=0.01),
        availability=Cyclic(groups=2),
    )
    for round in range(6):
        assert (trace.cohort(round).clients % 2 == round % 2).all()
    assert np.isfinite(trace.model).all()


def test_nobody_available_is_a_void_round() -> None:
    task = Quadratic([[1.0], [2.0]], sizes=[1, 1])
    trace = simulate(task, "md", rounds=3, work=STEP, availability=Random(0.0))
    assert trace.distinct.tolist() == [0, 0, 0]
    assert trace.messages.tolist() == [0, 0, 0]
    np.testing.assert_array_equal(trace.model, task.initial(0))


@pytest.mark.parametrize("away", [(), (1,)])
@pytest.mark.parametrize("how", ["plain", "memory"])
@pytest.mark.parametrize("name", ["binomial", "poisson", "md", "optimal"])
def test_the_expected_step_of_the_engine_is_that_of_all_clients(
    name: str, how: str, away: tuple[int, ...]
) -> None:
    """Over all outcomes of a draw, that nobody is drawn among them."""
    task = Quadratic([[3.0], [6.0], [9.0]], sizes=[1, 2, 3])
    there = [i for i in range(3) if i not in away]
    federation = federation_of(task).among(there)
    chosen = scheme(name, m=1, **({"cap": True} if name == "poisson" else {}))
    law = chosen.given(np.arange(1.0, 4.0)[there], federation) if name == "optimal" else None
    outcomes = list((law or chosen.law(federation)).enumerate())
    assert any(len(cohort) == 0 for _, cohort in outcomes) == (name != "md")
    mean = 0.0
    for chance, cohort in outcomes:
        script = Scripted(tuple(cohort.clients.tolist()), tuple(map(float, cohort.weights)))
        run = started(task, script, Sgd(), aggregator(how), Given(there), None)
        everyone = Cohort.of([0, 1, 2], 1.0)
        was, memory = np.array([[7.0], [-4.0], [5.0]]), run.state.aggregator
        _, memory = aggregator(how).direction(memory, everyone, everyone.clients, was)
        run.state = replace(run.state, theta=np.array([1.0]), aggregator=memory)
        run.play()
        mean += float(chance) * float(run.state.theta[0] - 1.0)
    updates = np.array([2.0, 5.0, 8.0])  # from 1, with a step of 1
    assert mean == pytest.approx(float(federation.importance @ updates), abs=1e-12)


@dataclass(frozen=True)
class Given:
    """These clients are there."""

    clients: list[int]
    name: ClassVar[str] = "given"

    def available(self, n: int, round: int, rng: Any) -> Any:
        return None if len(self.clients) == n else np.array(self.clients)

    def latency(self, n: int, round: int, rng: Any) -> None:
        return None


def test_after_an_empty_draw_momentum_goes_on_and_after_a_void_round_nothing_does() -> None:
    task = Quadratic([[1.0], [1.0]], sizes=[1, 1])
    nobody, silent = Given([]), DropOuts(Random(0.0))
    for away, failing, moved in (
        (Given([0, 1]), None, 0.5),
        (nobody, None, 0.0),
        (Given([0, 1]), silent, 0.0),
    ):
        script = Scripted((0,), (1.0,)) if failing else Scripted()
        run = started(task, script, Sgd(momentum=0.5), Memory(), away, failing)
        run.state = replace(run.state, optimiser=OptimiserState(np.ones(1), np.zeros(1)))
        before = float(run.state.theta[0])
        record = run.play()
        assert run.state.theta[0] - before == moved
        assert run.state.optimiser.first[0] == (moved or 1.0)
        assert record.void == (not moved)


def test_what_came_in_a_void_round_is_remembered_by_scheme_and_server_alike() -> None:
    task = Quadratic(np.eye(6), sizes=[1] * 6)
    failing = DropOuts(Random((1.0, 1.0, 1.0, 0.0, 0.0, 0.0)), AsDrawn(), quorum=0.7)
    chosen = scheme("clustered-similarity", m=3)
    run, records = started(task, chosen, Sgd(), Memory(), Always(), failing), []
    for _ in range(20):
        records.append(run.play())
        table, memory = run.state.aggregator.latest, run.state.aggregator
        np.testing.assert_allclose(memory.average, table.weighted_sum(np.full(6, 1 / 6)))
    void = [record.round for record in records if len(record.cohort) == 0]
    assert 0 < len(void) < 20
    assert run.ledger.of_round(void[0]).messages > 0  # they were asked, and some answered
    assert run.state.aggregator.latest is chosen.latest(run.state.scheme)


@pytest.mark.parametrize("bad", [0, -1, 2.5, True, 10**12, "3", None])
def test_bad_number_of_rounds(bad: Any) -> None:
    task = Quadratic([[1.0]], sizes=[1])
    with pytest.raises(BadParameter, match=r"'rounds' parameter of simulate must be an int"):
        simulate(task, "md", rounds=bad)


def test_divergence_is_one_sentence() -> None:
    task = Quadratic([[1.0], [2.0]], sizes=[1, 1])
    with pytest.raises(BadInput, match="Training diverged"):
        simulate(task, "full", rounds=3000, work=LocalWork(steps=1, batch=None, lr=1e3))


def test_server_and_estimator_are_used(digits: Softmax) -> None:
    work = LocalWork(steps=2)
    plain = simulate(digits, "md", rounds=3, work=work)
    half = simulate(digits, "md", rounds=1, work=work, optimiser=Sgd(eta_g=0.5))
    whole = simulate(digits, "md", rounds=1, work=work)
    np.testing.assert_allclose(half.model, 0.5 * whole.model, atol=1e-12)
    memory = simulate(digits, "md", rounds=3, work=work, aggregator=Memory())
    adam = simulate(digits, "md", rounds=3, work=work, optimiser=Adam())
    assert not np.allclose(plain.model, memory.model)
    assert not np.allclose(plain.model, adam.model)
    assert memory.settings["aggregator"] == "memory:guess=zero,alpha=0.1"
    assert adam.settings["optimiser"]["name"] == "adam"
    by_name = simulate(digits, "md", rounds=3, work=work, aggregator="memory", optimiser="sgd")
    np.testing.assert_array_equal(by_name.model, memory.model)


@pytest.mark.parametrize("part", ["optimiser", "aggregator"])
@pytest.mark.parametrize("bad", ["memroy", "", 3, Memory, ["sgd"]])
def test_an_unknown_part_of_the_server_is_one_sentence(part: str, bad: Any) -> None:
    with pytest.raises(UnknownName, match=r"There is no (optimiser|aggregator) named .* Known: "):
        simulate(Quadratic([[1.0]], sizes=[1]), "full", rounds=1, **{part: bad})


def test_costs_of_a_scheme_that_asks(digits: Softmax) -> None:
    """`optimal`: the model goes to everyone, norms come from everyone, updates from a few."""
    trace = simulate(digits, scheme("optimal", m=4), rounds=5, work=LocalWork(steps=1))
    model = 4 * digits.dimension
    for round in range(5):
        k = len(trace.cohort(round))
        assert trace.messages[round] == 2 * 20 + 2 * k
        assert trace.bytes_down[round] == 20 * (16 + model)
        assert trace.bytes_up[round] == 20 * 8 + k * model
    asked = {row["purpose"]: row for row in trace.ledger}
    assert asked["update_norm"]["discloses"] == "the length of the model update"


def test_loss_answers_are_losses_of_the_current_model(digits: Softmax) -> None:
    heard: list[Any] = []

    @dataclass(frozen=True)
    class Greedy(Scheme[Any]):
        m: Annotated[int, Whole(1)] = 2
        name: ClassVar[str] = "greedy"
        paper: ClassVar[Citation] = Citation("-", "-", "-", 2026)
        asks: ClassVar[frozenset[Signal]] = frozenset({LOSS})

        def select(self, state: Any, federation: Any, context: RoundContext, rng: Any) -> Any:
            from fedcohort.selection import Ask

            losses = yield Ask(LOSS, federation.present)
            heard.append(losses)
            return Cohort.equal(np.argsort(losses)[-self.m :])

    simulate(digits, Greedy(), rounds=2, work=LocalWork(steps=1))
    np.testing.assert_allclose(heard[0], np.log(10), rtol=1e-6)  # the zero model guesses
    assert heard[1].std() > 0


def test_an_availability_without_its_decorator_is_told_before_the_first_round() -> None:
    class Bare(type(Always())):  # type: ignore[misc]
        pass

    class Plain:
        name = "plain"

        def available(self, *_: Any) -> None:
            pytest.fail("a round began")

    task = Quadratic([[0.0], [1.0]], sizes=[1, 1])
    setup = Setup(scheme("md", m=1), 0)
    Simulation(task, setup, STEP, Bare(), None)  # it inherits what makes it one
    with pytest.raises(BadInput, match="Plain is not a dataclass: write @dataclass"):
        Simulation(task, setup, STEP, Plain(), None)  # type: ignore[arg-type]
