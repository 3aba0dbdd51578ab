"""What seeds can decide, counted out, and what is said before a run."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np
import pytest
from rich.console import Console

from fedcohort import compare, report, scheme
from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort.report._ranking import holm, sign_flip_p
from fedcohort.simulation import Comparison
from fedcohort.simulation._comparison import Plan, default_seeds, seeds_needed
from fedcohort.training import LocalWork, Softmax

RNG = np.random.default_rng(0)
TASK = Softmax(
    RNG.random((60, 3)), np.arange(60) % 3, RNG.random((9, 3)), np.arange(9) % 3,
    np.split(np.arange(60), 6), 3,
)  # fmt: skip
QUICK = {"jobs": 1, "work": LocalWork(steps=1, batch=2)}


@pytest.mark.parametrize("tests", [1, 2, 3, 6, 7, 12, 13, 25, 26, 51, 52])
def test_the_fewest_seeds_are_those_with_which_the_largest_gap_is_decided(tests: int) -> None:
    seeds = seeds_needed(tests)
    for count, decides in ((seeds, True), (seeds - 1, False)):
        p = Fraction(tests * 2, 2**count)  # all signs equal, in all of the tests
        assert (p <= Fraction(1, 20)) is decides
        if count < 10:
            largest = sign_flip_p(np.ones(count) + np.arange(count))
            assert bool(holm([largest] * tests).max() <= 0.05) is decides


def test_the_default_decides() -> None:
    for schemes in range(2, 200):
        assert default_seeds(schemes) >= seeds_needed(schemes - 1)
    assert [default_seeds(schemes) for schemes in (1, 2, 7, 8, 36)] == [8, 8, 8, 11, 11]


def test_the_plan_says_what_the_seeds_can_decide() -> None:
    few = str(Plan(6, "md", 5, 1, 100, 30, 75.0))
    assert few.splitlines() == [
        "30 runs of 100 rounds (6 schemes x 5 seeds); about 1 min 15 s.",
        "Every scheme is tested against md: 5 seeds cannot decide at 5 % (the smallest p is 0.31 "
        "after Holm's correction for 5 tests); 8 can.",
    ]
    enough = str(Plan(7, "md", 8, 1, 100, 50, None))
    assert "(7 schemes x 8 seeds), 6 of them finished before." in enough
    assert "8 seeds can decide at 5 % (the smallest p is 0.047 after" in enough
    assert "6 divisions can decide" in str(Plan(2, "md", 1, 6, 9, 12, None))
    assert "tested" not in str(Plan(1, "md", 8, 1, 9, 8, None))


def test_the_plan_comes_before_the_first_run_and_names_the_default_seeds() -> None:
    heard: list[Plan | str] = []
    found = compare(
        TASK, ["uniform:m=2", "md:m=2"], rounds=3, planned=heard.append,
        finished=lambda *_: heard.append("run"), **QUICK,
    )  # fmt: skip
    plan, *runs = heard
    assert isinstance(plan, Plan)
    assert runs == ["run"] * 16
    assert (plan.seeds, plan.reference, plan.missing) == (8, "md", 16)
    assert plan.seconds is not None
    assert plan.seconds > 0
    assert found.reference == "md"


def test_no_time_is_measured_where_that_would_take_long() -> None:
    heard: list[Plan] = []
    compare(TASK, "md:m=2", rounds=2, seeds=2, planned=heard.append, **QUICK)
    assert heard[0].seconds is None


def test_the_view_shows_the_plan() -> None:
    console = Console(file=io.StringIO(), width=200)
    with report.watch(["md"], 1, 1, console) as view:
        view.planned(Plan(1, "md", 1, 1, 1, 1, None))
        assert "1 run of 1 round (1 scheme x 1 seed)." in view.html()
    assert "1 run of 1 round (1 scheme x 1 seed)." in console.file.getvalue()  # type: ignore[attr-defined]


def run(schemes: object, **options: object) -> Comparison:
    """Two seeds of one round."""
    return compare(TASK, schemes, rounds=1, seeds=2, **QUICK, **options)  # type: ignore[arg-type]


def test_the_reference_is_md_then_the_first_that_is_no_oracle() -> None:
    target = scheme("target", m=2, groups=[0, 0, 1, 1, 2, 2])
    assert run(["uniform:m=2", "md:m=2"]).reference == "md"
    assert run(["uniform:m=2", "md+fedprox:mu=1", "md"]).reference == "md"
    assert run({"own": "uniform:m=2", "base": "md:m=2"}).reference == "base"
    assert run([target, "full", "uniform:m=2"]).reference == "full"
    found = run([target, "full", "uniform:m=2"], reference="uniform", centralised=5)
    assert found.reference == "uniform"
    assert found.oracles == ("target",)
    assert found.against("full").reference == "full"


def test_an_oracle_or_an_unknown_scheme_is_no_reference() -> None:
    schemes = [scheme("target", m=2, groups=[0, 0, 1, 1, 2, 2]), "full"]
    with pytest.raises(BadInput, match=r"Got 'target' instead, which is an oracle.*: full\."):
        run(schemes, reference="target")
    with pytest.raises(BadInput, match="is an oracle"):
        run(schemes).against("target")
    with pytest.raises(UnknownName, match="no scheme of this comparison named 'ful'"):
        run(schemes, reference="ful")
