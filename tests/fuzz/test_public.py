"""Public functions with values that nobody meant: a result, or one sentence of ours."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fedcohort
from fedcohort import Federation, Replies, Selector, scheme, theory
from fedcohort._internal.errors import FedcohortError, FedcohortWarning
from fedcohort._internal.registry import Kind
from fedcohort.privacy import SizeReport, data_rate, estimate_total
from fedcohort.schemes import SCHEMES
from fedcohort.selection import Cohort
from fedcohort.selection._scripted import Trial
from fedcohort.server._aggregators import AGGREGATORS
from fedcohort.server._guards import GUARDS
from fedcohort.server._optimizers import OPTIMISERS

SCALARS: list[Any] = [
    *(None, True, False, 0, -1, 1, 2, 3, 2.5, math.nan, math.inf, -math.inf, 1e300, 2**63, 10**400),
    *("", "3", "all", "x" * 1000, "\0", b"x", 1j, float, object(), [], {}, (), range(3), {1, 2}),
    *(np.int64(2), np.float32(0.5), np.array(3), np.array([1, 2]), np.datetime64("2020-01-01")),
]
scalars = st.sampled_from(SCALARS)
arrays = st.one_of(
    scalars,
    st.lists(scalars, max_size=5),
    st.lists(st.integers(-2, 9), max_size=5),
    st.lists(st.floats(allow_nan=True), max_size=5),
    st.lists(st.lists(st.floats(allow_nan=True), max_size=3), max_size=4),
    st.builds(
        lambda shape, kind: np.ones(shape).astype(kind),
        st.sampled_from([(), (0,), (3,), (4,), (3, 2), (4, 0), (3, 3), (2, 2, 2)]),
        st.sampled_from(["f8", "f2", "i1", "u8", "?", "O", "U3", "c16"]),
    ),
)
FEDERATION = Federation.from_sizes([3, 2, 1])
DESIGN = scheme("md", m=2).law(FEDERATION)
TRAINING = theory.Training(eta_l=0.01, steps=3, rounds=10)
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sizes": lambda a, b: Federation(sizes=a),
    "importance": lambda a, b: Federation(importance=a),
    "both": lambda a, b: Federation(importance=a, sizes=b),
    "ids": lambda a, b: Federation(sizes=[1, 2, 3], ids=a),
    "sizes and ids": lambda a, b: Federation(sizes=a, ids=b),
    "available": lambda a, b: Selector("md", FEDERATION, seed=0).select(available=a),
    "seed": lambda a, b: Selector("md", FEDERATION, seed=a),
    "scheme": lambda a, b: Selector(a, FEDERATION, seed=0).select(),
    "m": lambda a, b: Selector(scheme("uniform", m=a), FEDERATION, seed=0).select(),
    "replies": lambda a, b: observing(a, b),
    "bound": lambda a, b: theory.convergence_bound(DESIGN, TRAINING, local_weights=a),
    "bound for": lambda a, b: theory.convergence_bound(DESIGN, TRAINING, importance=a),
    "weights": lambda a, b: theory.proximal_weights(a, b, 0.1),
    "quadratic": lambda a, b: theory.quadratic(DESIGN, a, b, eta_l=0.1, steps=2),
    "report": lambda a, b: SizeReport(a, b),
    "total": lambda a, b: estimate_total(a, SizeReport(30, 3.0), when_imprecise="accept"),
    "rate": lambda a, b: data_rate(a, b, 1),
}


def observing(clients: Any, rows: Any) -> Any:
    chooser = Selector(scheme("clustered-similarity", m=2), FEDERATION, seed=0)
    chooser.select()
    return chooser.observe(Replies(clients, {"update": rows}))


def one_sentence(call: Callable[[], Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FedcohortWarning)
        sentence = ""
        try:
            call()
        except FedcohortError as error:
            sentence = str(error)
    assert len(sentence) < 700
    assert "\n" not in sentence


@given(st.sampled_from(sorted(FUNCTIONS)), arrays, arrays)
@settings(suppress_health_check=list(HealthCheck))
def test_a_function(name: str, first: Any, second: Any) -> None:
    one_sentence(lambda: FUNCTIONS[name](first, second))


KINDS: list[Kind[Any]] = [SCHEMES, GUARDS, AGGREGATORS, OPTIMISERS]


@given(st.sampled_from([(kind, name) for kind in KINDS for name in sorted(kind)]), st.data())
@settings(suppress_health_check=list(HealthCheck))
def test_a_setting(part: tuple[Kind[Any], str], data: Any) -> None:
    kind, name = part
    field = data.draw(st.sampled_from(sorted(kind[name].__dataclass_fields__) or ["m"]))
    one_sentence(lambda: kind.build(name, **{field: data.draw(scalars)}))


@given(st.text(alphabet="md:m=3,[]()'\"\\ \0é-pow_.", max_size=30))
def test_a_word(text: str) -> None:
    one_sentence(lambda: scheme(text))


ODD_ROWS = st.sampled_from([np.nan, np.inf, -np.inf, 1e300, -1e300, 0.0, -1.0, 1e-320])


GUARDED = st.sampled_from([None, True, "losses:report=bit"])


@given(
    st.sampled_from(sorted(SCHEMES)),
    st.lists(ODD_ROWS, min_size=1, max_size=6),
    st.booleans(),
    GUARDED,
)
@settings(suppress_health_check=list(HealthCheck))
def test_answers_and_replies(name: str, odd: list[float], zero: bool, hardened: Any) -> None:
    """Every scheme, with rows of clients that overflow, fail or lie."""
    known = SCHEMES[name].__dataclass_fields__
    wanted = {"m": 2, "strata": 2, "when_imprecise": "accept"}
    built = scheme(name, **{key: value for key, value in wanted.items() if key in known})
    trial = Trial.of(built, Federation.from_sizes([4, 3, 2, 1, 1, 1]), None)

    def spoilt(ask: Any) -> Any:
        rows = np.array(trial.answer(ask), dtype=np.float64)
        for row, value in enumerate(odd[: len(rows)]):
            rows[row] = value
        return np.zeros_like(rows) if zero else rows

    def rounds() -> None:
        chooser = Selector(built, trial.federation, seed=0, ask=spoilt, hardened=hardened)
        for _ in range(2):
            cohort = chooser.select()
            assert np.isfinite(cohort.weights.astype(float)).all()
            told = {s.name: spoilt(fedcohort.Ask(s, cohort.clients)) for s in built.listens}
            chooser.observe(Replies(cohort.clients, told))

    with np.errstate(all="ignore"):
        one_sentence(rounds)


LARGEST = 1e6  # of a number that the gate lets through, as a rule
SENT = st.lists(
    st.lists(st.floats(-LARGEST, LARGEST, width=32), min_size=2, max_size=2), min_size=1, max_size=5
)


@given(st.sampled_from(sorted(AGGREGATORS)), SENT, st.floats(0, 1), st.sampled_from("fd"))
def test_whatever_passes_the_gate_becomes_a_finite_step(
    name: str, sent: list[list[float]], weight: float, kind: str
) -> None:
    aggregator, rows = AGGREGATORS.build(name), np.array(sent, dtype=kind)
    n = len(rows)
    cohort = Cohort.of(np.arange(n), np.append(np.full(n - 1, 1 / n), weight))
    memory = aggregator.start(np.full(n, 1 / n), 2)
    for _ in range(2):
        account = aggregator.add(
            aggregator.begin(memory, cohort), cohort.clients, cohort.weights, rows
        )
        step, memory = aggregator.finish(account, 2)
        assert step.shape == (2,)
        assert np.isfinite(step).all()
