"""Numbers beyond all use: every public function of the theory answers or says one sentence."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Annotated, Any

import numpy as np
import pytest

from fedcohort import Federation, scheme, theory
from fedcohort._internal.errors import BadInput, BadParameter, FedcohortError
from fedcohort._internal.parameters import Whole, within_ranges

FEDERATION = Federation.from_sizes([5, 4, 3, 2, 1])
DESIGN = scheme("md", m=2).law(FEDERATION)
MINIMA = [[1.0, 0.0], [0.0, 2.0], [-1.0, 1.0], [2.0, -1.0], [-2.0, -2.0]]
USUAL: dict[str, Any] = {"eta_l": 0.1, "steps": 5, "rounds": 10}
PROBLEM: dict[str, Any] = {"L": 1.0, "mu": 0.5, "G": 1.0, "sigma": 0.1, "tau": 2, "distance": 1.0}
DRAWN = np.random.Generator(np.random.Philox(1))

NUMBERS: list[Any] = [
    *(0, -1, 5e-324, 1e-30, 1e30, 1e100, 1e308, math.inf, -math.inf, math.nan, 10**15, 10**16),
    *(10**400, -(10**400), 2.5, True, "3", "x" * 5000, None, [1], [[1], [2, 3]], 1j, np.int64(3)),
]
ARRAYS: list[Any] = [
    *(None, 3, "x", [], [1, 2], [[1], [2, 3]], [1e308] * 5, [math.nan] * 5, [math.inf] * 5),
    *([10**400] * 5, [5e-324] * 5, [-1] * 5, np.ones((5, 5, 5)), np.ones((2, 5)), np.ones((5, 2))),
    *([1e300] * 5, [[1e308, 1e308]] * 5, ["a"] * 5, [1j] * 5, {}, [None] * 5, [1] * 5, [0] * 5),
]


def training(**other: Any) -> theory.Training:
    return theory.Training(**{**USUAL, **other})


def problem(**other: Any) -> theory.Smoothness:
    return theory.Smoothness(**{**PROBLEM, **other})


def bounded(**other: Any) -> Any:
    set_up = training(**other)
    theory.largest_local_step(DESIGN, set_up)
    theory.clustered_rate(DESIGN, training(**{**other, "eta_g": 1.0}))
    return str(theory.convergence_bound(DESIGN, set_up))


def run(**other: Any) -> Any:
    return theory.expected_gradients(DESIGN, MINIMA, [0.5, -1.0], training(**other))


def one_round(**other: Any) -> Any:
    usual: dict[str, Any] = {"eta_l": 0.1, "steps": 3}
    return theory.quadratic(DESIGN, MINIMA, [0.5, -1.0], **{**usual, **other}).total


def skewed(**other: Any) -> Any:
    usual = {"gap": 0.5, "lowest": 1.0, "highest": 2.0, "m": 3, "iterations": 9}
    return theory.skew_bound(problem(), **{**usual, **other}).total


def of_problem(**other: Any) -> Any:
    theory.skew_bound(problem(**other), 0.5, 1.0, 1.0, 3, 9)
    return theory.strongly_convex_bound(DESIGN, problem(**other), 0.5, 9).total


def rate(**other: Any) -> Any:
    usual: dict[str, Any] = {"sizes": [2, 3, 1, 2], "samples": 3, "alpha": 0.5, "threshold": 6}
    return theory.rate_error(**{**usual, **other}).ratio


def forms(**other: Any) -> Any:
    theory.uniform_or_md(other.get("n", 9), other.get("m", 2))
    theory.crossing_share(other.get("n", 9), other.get("m", 2))
    return theory.closed_forms(**{"n": 9, "m": 2, "sum_squares": 0.5, **other})


WITH_NUMBERS: dict[str, tuple[Callable[..., Any], str]] = {
    "bounds": (bounded, "eta_l steps rounds smoothness gap noise dissimilarity beta eta_g"),
    "expected_gradients": (run, "eta_l steps rounds noise eta_g"),
    "quadratic": (one_round, "eta_l steps eta_g sigma"),
    "skew_bound": (skewed, "gap lowest highest m iterations"),
    "Smoothness": (of_problem, "L mu G sigma tau distance"),
    "strongly_convex_bound": (
        lambda **other: theory.strongly_convex_bound(
            DESIGN, problem(), **{"gap": 0.5, "iterations": 9, **other}
        ),
        "gap iterations",
    ),
    "rate_error": (rate, "samples alpha threshold floor"),
    "comparison": (forms, "n m sum_squares"),
    "printed_rate": (
        lambda **other: theory.printed_rate(**{"m": 1, "steps": 4, "rounds": 9, **other}),
        "m steps rounds",
    ),
    "proximal_weights": (
        lambda **other: theory.proximal_weights(
            **{"steps": 3, "mu": 1.0, "eta_l": 0.5, **other}
        ).sum(),
        "steps mu eta_l",
    ),
    "decomposition": (
        lambda **other: theory.decomposition(DESIGN, MINIMA, [0.0, 0.0], [1.0, 1.0], **other).total,
        "eta_g",
    ),
    "drawn_weights": (
        lambda rounds: theory.drawn_weights(DESIGN, rounds, DRAWN),
        "rounds",
    ),
    "selection_skew": (
        lambda draws: theory.selection_skew(
            scheme("pow-d", m=1, d=3),
            FEDERATION,
            [[3.0, 2.0, 1.0, 1.0, 1.0]],
            [0.0] * 5,
            draws=draws,
        ),
        "draws",
    ),
}

WITH_ARRAYS: dict[str, Callable[[Any], Any]] = {
    "local_weights": lambda a: theory.convergence_bound(DESIGN, training(), local_weights=a).total,
    "local step": lambda a: theory.largest_local_step(DESIGN, training(), local_weights=a),
    "importance": lambda a: theory.convergence_bound(DESIGN, training(), importance=a).total,
    "constants": lambda a: theory.constants(DESIGN, importance=a),
    "bound": lambda a: theory.constants(DESIGN).bound(a),
    "lemma_4": lambda a: theory.lemma_4(DESIGN, a),
    "second_moment": lambda a: theory.second_moment(DESIGN, a),
    "memory_variance": lambda a: theory.memory_variance(DESIGN, a, MINIMA),
    "last": lambda a: theory.memory_variance(DESIGN, MINIMA, a),
    "step_variance": lambda a: theory.step_variance(DESIGN, a, a),
    "decomposition": lambda a: theory.decomposition(DESIGN, a, [0.0, 0.0], [1.0, 1.0]).total,
    "variance": lambda a: (
        theory.decomposition(DESIGN, MINIMA, [0.0, 0.0], [1.0, 1.0], variance=a).total
    ),
    "products": lambda a: (
        theory.decomposition(DESIGN, MINIMA, [0.0, 0.0], [1.0, 1.0], products=a).total
    ),
    "quadratic": lambda a: theory.quadratic(DESIGN, a, [0.0, 0.0], eta_l=0.1, steps=2).total,
    "theta": lambda a: theory.quadratic(DESIGN, MINIMA, a, eta_l=0.1, steps=2).total,
    "expected_gradients": lambda a: theory.expected_gradients(DESIGN, a, [0.0, 0.0], training()),
    "start": lambda a: theory.expected_gradients(DESIGN, MINIMA, a, training()),
    "sizes": lambda a: rate(sizes=a),
    "gap": lambda a: theory.objective_gap(a, a, a),
    "skew": lambda a: theory.selection_skew(scheme("uniform", m=2), FEDERATION, a, [0.0] * 5),
    "optima": lambda a: theory.selection_skew(scheme("uniform", m=2), FEDERATION, [[1.0] * 5], a),
    "theorem_1": lambda a: theory.theorem_1(a, [0, 0, 1, 1, 1], 2),
    "labels": lambda a: theory.theorem_1(MINIMA, a, 2),
}


def answers_or_says_why(call: Callable[[], Any]) -> None:
    sentence = ""
    try:
        call()
    except FedcohortError as error:
        sentence = str(error)
    assert len(sentence) < 500
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("name", "setting"),
    [(name, word) for name, (_, words) in WITH_NUMBERS.items() for word in words.split()],
)
def test_a_number(name: str, setting: str) -> None:
    for value in NUMBERS:
        answers_or_says_why(lambda value=value: WITH_NUMBERS[name][0](**{setting: value}))


@pytest.mark.parametrize("name", list(WITH_ARRAYS))
def test_an_array(name: str) -> None:
    for value in ARRAYS:
        answers_or_says_why(lambda value=value: WITH_ARRAYS[name](value))


def test_what_is_refused_is_named() -> None:
    with pytest.raises(BadParameter, match=r"'steps' parameter of quadratic must be an int in"):
        one_round(steps=10**12)
    with pytest.raises(BadParameter, match=r"'rounds' parameter of Training must be an int in"):
        training(rounds=10**400)
    with pytest.raises(BadParameter, match=r"'m' parameter of printed_rate .* Got 0 instead"):
        theory.printed_rate(0, 1, 1)
    with pytest.raises(BadInput, match=r"'x' must hold one row .* 5 clients; got shape"):
        theory.second_moment(DESIGN, [[1.0]] * 3)
    with pytest.raises(BadInput, match="'updates' and 'last' must have one shape"):
        theory.memory_variance(DESIGN, MINIMA, [1.0] * 5)
    with pytest.raises(BadInput, match="nor sum to less than 1e-100"):
        theory.convergence_bound(DESIGN, training(), local_weights=[5e-324] * 5)


def test_arguments_are_checked_however_they_are_given() -> None:
    @within_ranges
    def half(m: Annotated[int, Whole(1)], other: float = 2.0) -> float:
        """Half of it."""
        return m / other

    assert half(4) == half(m=4) == half(4, 2.0) == 2.0
    assert half.__doc__ == "Half of it."
    for call in (lambda: half(0), lambda: half(m=0)):
        with pytest.raises(BadParameter, match="'m' parameter of half must be an int"):
            call()
