"""What the checks say about schemes that are wrong; `tests/test_sabotage.py` plants more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import pytest

from fedcohort._internal.errors import BadInput, CheckFailed, UnknownName
from fedcohort.selection import (
    LOSS,
    Ask,
    Citation,
    Cohort,
    Conversation,
    Federation,
    NoState,
    RoundContext,
    Scheme,
    Signal,
    Whole,
)
from fedcohort.server import Selector
from fedcohort.testing import CHECKS, Result, check_scheme, run_check, variants

PAPER = Citation("Nobody", "A defect", "Nowhere", 2000)


@dataclass(frozen=True)
class Trusting(Scheme[NoState]):
    """Believes that every client answers."""

    m: Annotated[int, Whole(1)] = 2
    name: ClassVar[str] = "trusting"
    paper: ClassVar[Citation] = PAPER
    asks: ClassVar[frozenset[Signal]] = frozenset({LOSS})

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Conversation[Cohort]:
        there = federation.present
        losses = yield Ask(LOSS, there)
        return self._chosen(there, losses)

    def _chosen(self, there: Any, losses: Any) -> Cohort:
        highest = int(max(losses) * 1000)  # NaN is no integer
        return Cohort.equal(there[[int(loss * 1000) == highest for loss in losses]])


class Careful(Trusting):
    """Says what is wrong instead of crashing."""

    def _chosen(self, there: Any, losses: Any) -> Cohort:
        if not np.isfinite(losses).all():
            raise BadInput("A client did not answer.")
        return super()._chosen(there, losses)


class Weighing(Trusting):
    """Hands on what it was told: weights that are NaN are refused by the cohort itself."""

    def _chosen(self, there: Any, losses: Any) -> Cohort:
        return Cohort.of(there, losses)


class Outside(Trusting):
    """Chooses somebody who is not there, but only where answers are missing."""

    def _chosen(self, there: Any, losses: Any) -> Cohort:
        return Cohort.equal(there[:1] if np.isfinite(losses).all() else [1000])


def test_a_crash_on_a_silent_client_is_found() -> None:
    results = {result.name: result for result in check_scheme(Trusting)}
    assert [name for name, result in results.items() if not result.passed] == ["answers"]
    assert "where every other answer is NaN, select() ends in ValueError: cannot convert" in (
        results["answers"].detail
    )


def test_a_wrong_cohort_for_silent_clients_is_found() -> None:
    result = run_check("answers", Outside)
    assert not result.passed
    assert "Where every other answer is NaN: trusting(m=2) in round 0: client 1000 is chosen" in (
        result.detail
    )


@pytest.mark.parametrize("cls", [Careful, Weighing])
def test_a_refusal_of_silent_clients_is_fine(cls: type[Scheme[Any]]) -> None:
    result = run_check("answers", cls)
    assert result.passed
    assert result.applies


def test_a_scheme_that_asks_nobody_has_no_silent_clients() -> None:
    assert not run_check("answers", "md").applies


class Undecorated(Scheme[NoState]):
    """Nobody wrote @dataclass above it."""

    m: Annotated[int, Whole(1)] = 2
    name: ClassVar[str] = "undecorated"
    paper: ClassVar[Citation] = PAPER


def test_a_forgotten_decorator_is_said_once() -> None:
    sentence = "Undecorated is not a dataclass: write @dataclass(frozen=True) above the class."
    (result,) = check_scheme(Undecorated)
    assert (result.name, result.passed, result.detail) == ("declaration", False, sentence)
    assert [run_check(name, Undecorated).passed for name in CHECKS] == [False] * len(CHECKS)
    with pytest.raises(CheckFailed, match="Undecorated is not a dataclass"):
        check_scheme(Undecorated, stop=True)


def test_a_word_with_settings_stands_for_itself_alone() -> None:
    assert len(list(variants("clustered-size", 5, 5))) > 1
    (alone,) = variants("clustered-size:m=1,ties=index", 5, 5)
    assert alone().parameters["ties"] == "index"
    with pytest.raises(UnknownName, match="Did you mean 'md'"):
        check_scheme("mdd")


@dataclass(frozen=True)
class Bare(Scheme[NoState]):
    """Returns positions where a cohort is expected."""

    name: ClassVar[str] = "bare"
    paper: ClassVar[Citation] = PAPER

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Any:
        return federation.present[:1]


def test_the_end_of_select_is_a_cohort_or_a_design() -> None:
    sentence = "select() must end in a Cohort or a Design; got ndarray."
    failed = [result for result in check_scheme(Bare) if not result.passed]
    assert len(failed) > 5
    assert all(result.detail.endswith(sentence) for result in failed)
    with pytest.raises(BadInput, match="must end in a Cohort or a Design; got ndarray"):
        Selector(Bare(), Federation.from_sizes([1, 2]), seed=0).select()


def test_a_result_is_one_readable_line() -> None:
    assert str(Result("pure", True, "6 cases", 0.1)) == "ok      pure               6 cases"
    assert Result("pure", False, "it is not", 0.1).outcome == "FAILED"
    assert Result("unbiased", True, "not claimed", 0.1, applies=False).outcome == "–"


def test_a_scheme_that_is_not_installed_is_resumed_as_well() -> None:
    assert run_check("resume", Careful).applies


@dataclass(frozen=True)
class Sampling(Scheme[NoState]):
    """Takes half of the samples."""

    name: ClassVar[str] = "sampling"
    paper: ClassVar[Citation] = PAPER

    def select(
        self, state: NoState, federation: Federation, context: RoundContext, rng: Any
    ) -> Cohort:
        return Cohort.equal(federation.present, data_rate=0.5)


class Declared(Sampling):
    """Says so."""

    subsampling: ClassVar[bool] = True


def test_a_share_of_the_samples_is_declared() -> None:
    result = run_check("cohorts", Sampling)
    assert not result.passed
    assert "write `subsampling = True`" in result.detail
    assert run_check("cohorts", Declared).passed


def test_a_scheme_typed_at_a_prompt_can_be_checked() -> None:
    typed = (
        "from dataclasses import dataclass\n"
        "from fedcohort.schemes.classical import Uniform\n"
        "@dataclass(frozen=True)\n"
        "class Typed(Uniform):\n"
        "    name = 'typed'\n"
    )
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(typed, names)  # noqa: S102 - as a notebook does
    result = run_check("deterministic", names["Typed"])
    assert result.passed
    assert not result.applies
    assert "top of a file" in result.detail


def test_who_asks_nobody_is_not_said_to_ask() -> None:
    @dataclass(frozen=True)
    class First(Scheme[NoState]):
        """Names its cohort and declares no law."""

        name: ClassVar[str] = "first"
        paper: ClassVar[Citation] = PAPER

        def select(
            self, state: NoState, federation: Federation, context: RoundContext, rng: Any
        ) -> Cohort:
            return Cohort.equal(federation.present[:1])

    assert "it declares no law" in run_check("moments", First).detail
    assert "only after asking" in run_check("moments", "pow-d").detail
