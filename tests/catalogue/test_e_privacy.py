"""Private sizes: cases E80 to E96 of the catalogue in docs/reliability.md."""

from __future__ import annotations

import inspect
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fedcohort import Federation, Selector, privacy, scheme
from fedcohort._internal.errors import (
    BadCheckpoint,
    BadInput,
    BadParameter,
    BudgetExceeded,
    FedcohortWarning,
    NoEntropy,
    PolicyRefused,
)
from fedcohort.privacy import (
    ClientPolicy,
    PrivateSize,
    SizeReport,
    SizeRequest,
    clipping,
    data_rate,
    estimate_total,
    first_answers,
)
from fedcohort.schemes.fedsampling import FedSampling
from fedcohort.simulation import LocalWork, Quadratic, simulate
from helpers.catalogue import case, refuses

REPORT = SizeReport(300, 3.0)
REQUEST = SizeRequest("task", REPORT)
ODD: list[Any] = [0, -1.0, math.nan, math.inf, 20.5, "3", None, True]

test_E80_an_epsilon_that_is_none = refuses(
    *[case(f"report {e}", lambda e=e: SizeReport(300, e), BadParameter, "'epsilon'") for e in ODD],
    *[
        case(f"scheme {e}", lambda e=e: scheme("fedsampling", epsilon=e), BadParameter, "'epsilon'")
        for e in ODD
    ],
)
test_E81_a_threshold_that_is_none = refuses(
    *[
        case(f"{M}", lambda M=M: SizeReport(M, 3.0), BadParameter, "threshold")
        for M in (2, 0, -5, 10.5, "300", True)
    ],
    *[
        case(f"scheme {M}", lambda M=M: scheme("fedsampling", M=M), BadParameter, "'M'")
        for M in (2, 10.5, "300")
    ],
)


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
def test_E82_a_size_above_the_threshold_is_clipped_first(mechanism: Any) -> None:
    report = SizeReport(11, 3.0, mechanism=mechanism)
    assert report.law(10**9) == report.law(10)  # the law of an answer, exactly
    assert clipping([5, 12, 99], report).relative < 0


@pytest.mark.parametrize("mechanism", ["levels", "paper"])
def test_E83_an_empty_client(mechanism: Any) -> None:
    report = SizeReport(11, 3.0, mechanism=mechanism)
    assert report.law(0) == report.law(1)
    assert max(report.law(0)) / min(report.law(0)) <= math.exp(3.0)


def test_E84_an_answer_outside_the_set() -> None:
    answers: list[Any] = [*list(REPORT.answers) * 30, 10**6, -7, math.nan, "2", None]
    estimate = estimate_total(answers, REPORT, when_imprecise="accept")
    assert (estimate.answered, estimate.rejected) == (len(REPORT.answers) * 30, 4)  # None: silent


test_E85_no_answers = refuses(
    case("none", lambda: estimate_total([], REPORT), BadInput, "No client gave an answer"),
    case("odd", lambda: estimate_total([10**6], REPORT), BadInput, r"\(1 were rejected\)"),
)


def test_E86_an_estimate_below_its_floor() -> None:
    estimate = estimate_total([REPORT.answers[0]] * 20, REPORT, when_imprecise="accept")
    assert estimate.total < 20
    assert estimate.floored
    assert estimate.usable == 20
    assert estimate.standard_error > 0


def test_E87_more_samples_wanted_than_there_are() -> None:
    with pytest.warns(FedcohortWarning, match="K = 10 samples are wanted of about 4"):
        assert FedSampling(K=10).given(4.0, 1.0, np.arange(2)).data_rate == 1.0


test_E88_no_samples_wanted = refuses(
    *[
        case(f"{k}", lambda k=k: data_rate(k, 100.0, 10), BadParameter, "'samples'")
        for k in (0, -1, math.nan, math.inf, "5")
    ],
    case("scheme", lambda: scheme("fedsampling", K=0), BadParameter, "'K'"),
)


def test_E89_an_empty_draw_sends_zero() -> None:
    task = Quadratic([[1.0]] * 30, sizes=[1] * 30)
    few = scheme("fedsampling", K=1, mechanism="exact", when_imprecise="accept")
    trace = simulate(task, few, rounds=6, work=LocalWork(steps=1, lr=0.1, batch=None))
    assert np.isfinite(trace.model).all()
    assert set(trace.distinct.tolist()) == {30}  # everybody takes part, drawn or not


def test_E90_the_budget_is_exhausted(tmp_path: Path) -> None:
    client = PrivateSize(tmp_path)
    told = client.answer(40, REQUEST)
    with pytest.raises(BudgetExceeded, match="is spent, this answer asks for"):
        client.answer(40, SizeRequest("another", REPORT))
    assert client.answer(40, REQUEST) == told  # what was answered is still answered


def test_E91_the_memo_is_lost(tmp_path: Path) -> None:
    PrivateSize(tmp_path).answer(40, REQUEST)
    (tmp_path / "answers.jsonl").unlink()
    with pytest.raises(BadCheckpoint, match=r"lost 1 answer"):
        PrivateSize(tmp_path).answer(40, REQUEST)
    again = PrivateSize(tmp_path, ClientPolicy(ceiling=6.0), lost="respend")
    again.answer(40, REQUEST)
    assert again.spent == 6.0  # booked


@pytest.mark.parametrize(
    ("policy", "report"),
    [
        (ClientPolicy(largest_epsilon=1.0), SizeReport(300, 1.1)),
        (ClientPolicy(thresholds={300}), SizeReport(100, 3.0)),
        (ClientPolicy(mechanisms={"levels"}), SizeReport(300, 3.0, mechanism="paper")),
    ],
)
def test_E92_a_question_that_the_policy_refuses(
    tmp_path: Path, policy: ClientPolicy, report: SizeReport
) -> None:
    with pytest.raises(PolicyRefused, match="nothing was answered and nothing was spent"):
        PrivateSize(tmp_path, policy).answer(40, SizeRequest("task", report))
    assert list(tmp_path.iterdir()) == []


def test_E93_privacy_has_no_seed(tmp_path: Path) -> None:
    for name in privacy.__all__:
        public = getattr(privacy, name)
        if callable(public):
            assert not {"seed", "rng"} & set(inspect.signature(public).parameters), name
    with pytest.raises(TypeError):
        PrivateSize(tmp_path, seed=1)  # type: ignore[call-arg]


def test_E94_a_part_of_the_clients_answers() -> None:
    answers = list(REPORT.answers) * 60
    all_, part = (
        estimate_total(answers, REPORT, asked=asked, when_imprecise="accept")
        for asked in (len(answers), len(answers) * 10 // 6)
    )
    assert part.total == pytest.approx(all_.total * 10 / 6)
    assert part.standard_error > all_.standard_error * 10 / 6


def test_E95_a_second_answer() -> None:
    assert first_answers([("a", 1), ("b", 2), ("a", 3)]) == {"a": 1, "b": 2}


def test_E96_no_entropy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: int) -> bytes:
        raise OSError("no entropy")

    monkeypatch.setattr(random, "_urandom", fail)
    with pytest.raises(NoEntropy):
        PrivateSize(tmp_path).answer(40, REQUEST)


def test_E80_what_holds_for_a_report_holds_for_a_run() -> None:
    exact = scheme("fedsampling", K=20, mechanism="exact")
    assert Selector(exact, Federation.from_sizes([60, 30, 10])).select().data_rate == 0.2
