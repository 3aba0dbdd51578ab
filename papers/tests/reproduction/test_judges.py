"""Verdicts on made-up runs: each of the four can come about, and nothing is decided by luck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort_papers.recipes import (
    NOT,
    NOT_RUN,
    PARTLY,
    REPRODUCED,
    UNDECIDED,
    Alike,
    Close,
    Computed,
    Contrast,
    Estimate,
    Every,
    Exact,
    Holds,
    Learned,
    Own,
    Ratio,
    Results,
    Scale,
    difference,
    order,
)
from fedcohort_papers.reproduction.estimate import (
    ALIKE,
    POWER,
    Question,
    needed,
    ratio_interval,
    reach,
)
from fedcohort_papers.reproduction.findings import judged_above
from fedcohort_papers.reproduction.judged import EXIT, overall


def level(run: Any) -> float:
    return float(run.value)


class Fake:
    """A comparison whose runs are one number each."""

    def __init__(self, arms: Mapping[str, Sequence[float]], partitions: int = 1) -> None:
        self.labels = tuple(arms)
        self.runs = {
            label: tuple(
                SimpleNamespace(
                    value=v, seed=i // partitions, partition=i % partitions, rounds=10,
                    accuracy=np.zeros(1), train_loss=np.zeros(1), test_loss=np.zeros(1),
                    model=np.frombuffer(label.encode(), np.uint8),
                )
                for i, v in enumerate(values)
            )
            for label, values in arms.items()
        }  # fmt: skip

    def of(self, label: str) -> tuple[Any, ...]:
        return self.runs.get(label, ())


def results(*, partitions: int = 1, **arms: Sequence[float]) -> Results:
    recipe: Any = SimpleNamespace(name="fake", cells=())
    cell: Any = (Fake(arms, partitions),)
    return Results(recipe, Scale(), runs={"cell": cell})


def computed(**samples: Any) -> Results:
    recipe: Any = SimpleNamespace(name="fake", cells=())
    return Results(recipe, Scale(), computed={0: Computed(samples=samples)})


SOME = results(a=[0.90, 0.91, 0.92], b=[0.80, 0.81, 0.82], c=[0.79, 0.82, 0.81])


@pytest.mark.parametrize(
    ("judge", "verdict"),
    [
        (difference(level, "a", "b"), REPRODUCED),
        (difference(level, "b", "a"), NOT),
        (difference(level, "b", "c"), UNDECIDED),
        (difference(level, "a", "b", above=0.2), NOT),
        (difference(level, "a", "b", above=0.2, partly=0.05), PARTLY),
        (difference(level, "a", "c", above=0.2, partly=0.1), UNDECIDED),
        (Contrast(level, {"a": 1, "b": -2, "c": 1}), REPRODUCED),
        (Alike(level, "b", "c", within=0.05), REPRODUCED),
        (Alike(level, "b", "c", within=0.01), UNDECIDED),
        (Alike(level, "a", "b", within=0.05), NOT),
        (Ratio(level, "a", "b", at_least=1.1), REPRODUCED),
        (Ratio(level, "a", "b", at_least=1.2), NOT),
        (Ratio(level, "a", "b", at_least=1.2, partly=1.05), PARTLY),
        (Close(level, "a", printed=0.91, within=0.05), REPRODUCED),
        (Close(level, "a", printed=0.91, within=0.001), UNDECIDED),
        (Close(level, "a", printed=0.5, within=0.05), NOT),
        (order(level, ["a", "b"]), REPRODUCED),
        (order(level, ["a", "b", "c"]), UNDECIDED),
        (order(level, ["b", "a"]), NOT),
        (Every(difference(level, "a", "b"), difference(level, "b", "a")), PARTLY),
        (Own("x", lambda r: r.values(level, "a"), above=0.8), REPRODUCED),
        (Own("x", lambda r: [0.1, 0.12, 0.11], within=0.05, printed=0.11), REPRODUCED),
        (Own("x", lambda r: Estimate(1.0, 0.1, 4), above=2.0), NOT),
    ],
    ids=str,
)
def test_each_verdict(judge, verdict):
    assert judge.judge(SOME).verdict == verdict


def test_one_seed_decides_nothing():
    one = results(a=[0.9], b=[0.1])
    for judge in (
        difference(level, "a", "b"),
        Alike(level, "a", "b", within=5),
        Ratio(level, "a", "b", at_least=2),
        Close(level, "a", 0.9, within=0.5),
    ):
        found = judge.judge(one)
        assert found.verdict == UNDECIDED
        assert found.remedy == "too few seeds to know their spread: run at least 3"


def test_not_seen_is_not_the_same_as_equal():
    """A difference that cannot be seen with two noisy seeds is no equivalence."""
    noisy = results(a=[0.5, 0.9], b=[0.9, 0.5])
    assert Alike(level, "a", "b", within=0.1).judge(noisy).verdict == UNDECIDED


def power(judge: Any, arms: Mapping[str, Any], decided: Sequence[str], draws: int = 3000) -> float:
    """How often a judge decides on fresh samples."""
    rng = np.random.default_rng(0)
    said = [judge.judge(results(**{k: v(rng) for k, v in arms.items()})) for _ in range(draws)]
    return sum(each.verdict in decided for each in said) / draws


def test_undecided_says_how_many_would_decide_with_power() -> None:
    """Where the interval is as wide as the gap, one half of the samples would be decided."""
    ahead = difference(level, "a", "b")
    found = ahead.judge(results(a=[1.0, 3.0, 2.0], b=[1.0, 0.0, 2.0]))
    assert found.verdict == UNDECIDED
    sd, n = np.std([0.0, 3.0, 0.0], ddof=1), found.needed
    assert n is not None
    assert f"{n} new seeds would decide with 80 % power" in found.remedy
    draws = {n: lambda rng, n=n: rng.normal(1.0, sd, n) for n in (n, n - 3)}
    enough, fewer = (power(ahead, {"a": own, "b": lambda rng, k=k: np.zeros(k)}, [REPRODUCED])
                     for k, own in draws.items())  # fmt: skip
    assert 0.77 < enough < 0.83  # four standard deviations of 3000 draws
    assert fewer < enough
    half = next(k for k in range(3, n) if reach(sd, k) < 1.0)
    assert half < 0.6 * n  # the number that has a chance of one half
    assert needed(Question(1.0, (1e-9,))) is None


def test_how_many_would_show_that_two_are_alike() -> None:
    """Both margins must be left out: 0.8 for both together, also where the mean is between."""
    for mean in (0.0, 0.4):
        estimate = Estimate(mean, 1.0, 3)
        n = needed(Question.of(estimate, -1.0, 1.0, side=ALIKE))
        assert n is not None
        alike = Alike(level, "a", "b", within=1.0)
        enough, fewer = (
            power(alike, {"a": lambda rng, k=k, m=mean: rng.normal(m, 1.0, k),
                          "b": lambda rng, k=k: np.zeros(k)}, [REPRODUCED])
            for k in (n, n - 2)
        )  # fmt: skip
        assert fewer - 0.03 < 0.8 < enough + 0.03  # four standard deviations of 3000 draws


def test_several_parts_must_be_decided_together() -> None:
    one = Question(1.0, (1.0,))
    alone, both = needed(one), needed(one, one)
    assert alone is not None
    assert both is not None
    assert both > alone
    parts = difference(level, "a", "b"), difference(level, "b", "c")
    found = Every(*parts).judge(SOME)
    assert found.needed == needed(*(q for part in parts for q in part.judge(SOME).questions))
    none = Every(Ratio(level, "a", "z", at_least=1), parts[1]).judge(
        results(a=[1.0] * 3, b=[0.80, 0.81, 0.82], c=[0.79, 0.82, 0.81], z=[0.0] * 3)
    )
    assert none.needed is None
    assert "no number of seeds is known" in none.remedy


def test_a_bound_that_is_clearly_missed_leaves_partly_at_most() -> None:
    for judge in (
        Ratio(level, "c", "b", at_least=1.2, partly=1.0),
        difference(level, "c", "b", above=0.2, partly=0.0),
    ):
        found = judge.judge(SOME)
        assert (found.verdict, found.missed) == (UNDECIDED, True)
        assert found.remedy.startswith("partly at most; "), found.remedy
    held, open_ = difference(level, "a", "b"), difference(level, "b", "c")
    assert Every(judge, held).judge(SOME).verdict == PARTLY  # whichever of the two the other is
    assert Every(judge, open_).judge(SOME).verdict == UNDECIDED
    assert Every(judge, open_).judge(SOME).missed
    assert not open_.judge(SOME).missed


def test_the_unit_is_the_partition_where_there_are_several():
    """Four seeds on each of two partitions are two units, not eight."""
    values = [0.9, 0.1] * 4
    one, two = results(a=values), results(a=values, partitions=2)
    assert one.values(level, "a").unit == "seed"
    assert len(one.values(level, "a").by_unit) == 8
    found = two.values(level, "a")
    assert found.unit == "partition"
    assert found.by_unit == pytest.approx({0: 0.9, 1: 0.1})


def test_seeds_and_partitions_are_not_mixed():
    recipe: Any = SimpleNamespace(name="fake", cells=())
    runs: Any = {"one": (Fake({"a": [1.0, 2.0]}),), "two": (Fake({"a": [1.0, 2.0]}, 2),)}
    mixed = Results(recipe, Scale(), runs=runs)
    with pytest.raises(BadInput, match="must not mix partitions with seeds"):
        difference(level, ("one", "a"), ("two", "a")).judge(mixed)
    with pytest.raises(BadInput, match="several cells"):
        difference(level, "a", "b").judge(mixed)


def test_unknown_arms_and_samples_are_named():
    with pytest.raises(UnknownName, match="arm"):
        difference(level, "a", "d").judge(SOME)
    with pytest.raises(UnknownName, match="cell"):
        difference(level, ("x", "a"), "b").judge(SOME)
    with pytest.raises(UnknownName, match="sample"):
        Exact("x", 1.0, 0.1).judge(computed(y=1.0))


def test_computed_numbers():
    found = computed(x=1.2541, some=[1, 0, 1], none=[0, 0], nan=np.nan)
    assert Exact("x", 1.254, 5e-4).judge(found).verdict == REPRODUCED
    assert Exact("x", 1.255, 5e-4).judge(found).verdict == NOT
    assert Exact("nan", 1.0, 5e-4).judge(found).verdict == NOT
    assert Holds("some").judge(found).verdict == PARTLY
    assert Holds("some").judge(found).found == "in 2 of 3 repetitions"
    assert Holds("none").judge(found).verdict == NOT
    assert "(x 1.254)" in Holds("none", shown="x").judge(found).found
    assert Close("computed", "some", 0.5, within=5).judge(found).verdict == REPRODUCED


def test_runs_that_never_got_there_leave_it_open():
    """A run of 10 rounds that never reached the target counts 11: a lower bound."""

    def wait(arms: Mapping[str, Sequence[float]]) -> Results:
        found = results(**arms)
        for label in arms:
            for run in found.runs["cell"][0].of(label):
                run.accuracy = np.where(np.arange(1, 11) >= run.value, 1.0, 0.0)
                run.metrics, run.rounds = {}, 10
        return found

    def verdict(judge: Any, **arms: Sequence[float]) -> str:
        return judge.judge(wait(arms)).verdict

    sooner = Ratio("rounds-to:target=0.5", "slow", "fast", at_least=2)
    assert verdict(sooner, slow=[9, 9, 10], fast=[2, 2, 2]) == REPRODUCED
    assert verdict(sooner, slow=[11, 11, 11], fast=[2, 2, 3]) == REPRODUCED  # or even later
    assert verdict(sooner, slow=[11, 11, 11], fast=[9, 9, 9]) == UNDECIDED  # how late, who knows
    assert verdict(sooner, slow=[9, 9, 8], fast=[9, 9, 8]) == NOT
    assert verdict(sooner, slow=[11, 11], fast=[11, 11]) == UNDECIDED
    later = difference("rounds-to:target=0.5", "slow", "fast")
    assert verdict(later, slow=[9, 9, 9], fast=[11, 11, 11]) == NOT
    alike = Alike("rounds-to:target=0.5", "slow", "fast", within=2)
    assert verdict(alike, slow=[11, 11], fast=[11, 11]) == UNDECIDED
    found = alike.judge(wait({"slow": [11, 11], "fast": [3, 3]}))
    assert found.remedy == "more rounds would decide: slow did not get there in 2 runs"
    for judge in (sooner, later, alike):
        found = judge.judge(wait({"slow": [11, 11, 11], "fast": [11, 11, 11]}))
        assert found.found == "never reached by slow and fast"  # not "0 (0 to 0)"
        assert (found.verdict, found.estimate, found.low) == (UNDECIDED, None, None)
    found = sooner.judge(wait({"slow": [11, 11, 10], "fast": [2, 2, 2]}))
    assert found.verdict == REPRODUCED
    assert found.found.endswith("; never reached by slow in 2 of 3 runs")
    one = Close("rounds-to:target=0.5", "slow", printed=11, within=5)
    found = Every(one, later).judge(wait({"slow": [11, 11, 11], "fast": [2, 3, 2]}))
    assert "never reached by slow;" in found.found


def test_a_quantity_of_ones_own_is_open_where_its_runs_prove_nothing() -> None:
    """What is left of an arm that diverged is what did well."""
    found = replace(results(a=[0.9, 0.8, 0.85], b=[0.5, 0.6, 0.5]), lost={("cell", "b"): 2})
    judge = Own("a", lambda r: r.values(level, "a"), above=0.5)
    assert judge.judge(found).verdict == REPRODUCED
    gaps = Own("a - b", lambda r: np.subtract(*r.values(level, "a").paired(r.values(level, "b"))),
               above=0.1)  # fmt: skip
    assert gaps.judge(found).verdict == UNDECIDED
    assert gaps.judge(found).remedy == "smaller steps would decide: b diverged in 2 runs"
    for run in found.runs["cell"][0].of("a"):
        run.accuracy, run.metrics = np.zeros(10), {}  # type: ignore[misc]
    late = Own("wait", lambda r: r.values("rounds-to:target=0.5", "a"), above=5.0)
    assert late.judge(found).verdict == UNDECIDED
    assert late.judge(found).remedy == "more rounds would decide: a did not get there in 3 runs"


def test_a_part_without_chance_does_not_hide_what_would_decide_the_others() -> None:
    rows = {"a": [0.5, 0.9, 0.7], "b": [0.6, 0.7, 0.6]}
    found = replace(results(**rows), computed={0: Computed(samples={"x": 1.0})})
    open_ = difference(level, "a", "b")
    both = Every(Exact("x", 1.0, 0.1), open_).judge(found)
    assert both.verdict == UNDECIDED
    assert (both.unit, both.units) == ("seed", 3)
    assert both.remedy == open_.judge(found).remedy != ""


def test_units_that_would_decide_a_ratio_are_held_to_both_bounds() -> None:
    """Between the two a new sample that is below the one must be above the other, too."""
    x, y = np.array([1.30, 1.00, 1.25, 1.10]), np.ones(4)
    found = Ratio(level, "a", "b", at_least=1.3, partly=1.1).judge(results(a=x, b=y))
    assert found.verdict == UNDECIDED
    parts = [Question.of(Estimate.of(x - c * y), 0.0) for c in (1.3, 1.1)]
    assert found.needed == needed(*parts) > needed(parts[0])  # type: ignore[operator]
    same = Contrast(level, {"a": 1, "b": 0}, above=1.3, partly=1.1).judge(results(a=x, b=y))
    assert found.needed == same.needed


def test_arms_that_are_the_same_runs_are_not_compared() -> None:
    """Bit for bit the same models say nothing of two schemes; one run that differs is enough."""

    def made(*models: float) -> Results:
        found = results(a=[0.9, 0.9, 0.9], b=[0.9, 0.9, 0.9], c=[0.5, 0.6, 0.7])
        for label, weights in (("a", (1.0, 1.0, 1.0)), ("b", models)):
            for run, weight in zip(found.runs["cell"][0].of(label), weights, strict=True):
                run.model = np.array([weight])  # type: ignore[misc]
        return found

    judges = (
        difference(level, "a", "b"),
        difference(level, "a", "b", above=0.1),
        Alike(level, "a", "b", within=0.1),
        Ratio(level, "a", "b", at_least=1.1),
        Contrast(level, {"a": 1, "b": -1, "c": 1}),
    )
    for judge in judges:
        found = judge.judge(made(1.0, 1.0, 1.0))
        assert found.verdict == UNDECIDED
        assert found.remedy == "not judged: a and b are the same runs, bit for bit"
        assert not judge.judge(made(1.0, 1.0, 2.0)).same
    both = Every(difference(level, "a", "c"), judges[2]).judge(made(1.0, 1.0, 1.0))
    assert (both.verdict, both.remedy[:10]) == (UNDECIDED, "not judged")
    mean = Contrast(level, {"a": 0.5, "b": 0.5, "c": -1.0}).judge(made(1.0, 1.0, 1.0))
    assert mean.verdict == REPRODUCED  # they are not compared with one another


def test_ahead_of_an_arm_that_guesses_is_left_open() -> None:
    """a is clearly ahead of b, of which it is not clear that it is above 0.8."""
    ahead = difference(level, "a", "b")
    assert Learned(ahead, "b", above=0.5, measure=level).judge(SOME) == ahead.judge(SOME)
    found = Learned(ahead, "a", "b", above=0.8, measure=level).judge(SOME)
    assert found.verdict == UNDECIDED
    assert found.found == ahead.judge(SOME).found
    assert found.remedy.startswith("more rounds would decide: level of b, 0.8"), found.remedy
    assert found.remedy.endswith("is not clearly above 0.8")
    both = Every(ahead, Learned(ahead, "b", above=0.8, measure=level))
    assert "not clearly above" in both.judge(SOME).remedy
    unmeasured = Learned(ahead, "b", above=0.5, measure=lambda run: np.nan).judge(SOME)
    assert unmeasured.verdict == UNDECIDED
    assert "of b, not measured, is not clearly above 0.5" in unmeasured.remedy
    few = results(a=[0.9, 0.9], b=[0.1, 0.1])
    assert "too few seeds" in Learned(ahead, "b", above=0.2, measure=level).judge(few).remedy
    with pytest.raises(BadInput, match="needs the arms"):
        Learned(ahead)


def test_the_level_of_guessing_is_that_of_the_classes() -> None:
    found = results(a=[0.5, 0.6, 0.7], b=[0.2, 0.3, 0.4])
    judge = Learned(difference(level, "a", "b"), "b", measure=level)
    assert str(judge).endswith("; open unless level of b is above 1/classes")
    for classes, verdict in ((100, REPRODUCED), (4, UNDECIDED)):
        for run in found.runs["cell"][0].of("b"):
            run.label_histograms = np.zeros((3, classes), dtype=np.int64)  # type: ignore[misc]
        assert judge.judge(found).verdict == verdict
    for run in found.runs["cell"][0].of("b"):
        run.label_histograms = np.zeros((3, 0), dtype=np.int64)  # type: ignore[misc]
    with pytest.raises(BadInput, match="has no classes to guess"):
        judge.judge(found)


def test_fieller_is_the_paired_t_test():
    rng = np.random.default_rng(1)
    x, y = rng.normal(3, 0.3, 8), rng.normal(1, 0.1, 8)
    low, high = ratio_interval(x, y)
    for edge in (low, high):
        gaps = x - edge * y
        assert abs(gaps.mean()) == pytest.approx(reach(gaps.std(ddof=1), 8))
    assert ratio_interval([1, 2, 3], [-1, 0, 1]) == (-np.inf, np.inf)


def test_the_level_of_an_equivalence():
    """At the edge of the margin two one-sided tests say "alike" in 5 % of cases, not more."""
    rng = np.random.default_rng(0)
    drawn = Own("x", lambda r: rng.normal(1.0, 1.0, 6), within=1.0)
    said = sum(drawn.judge(SOME).verdict == REPRODUCED for _ in range(2000))
    assert said <= 147  # P(Binomial(2000, 0.05) > 147) < 1e-6


def test_the_level_of_a_direction():
    rng = np.random.default_rng(0)
    drawn = Own("x", lambda r: rng.normal(0.0, 1.0, 5), above=0.0)
    said = [drawn.judge(SOME).verdict for _ in range(2000)]
    assert said.count(REPRODUCED) <= 87  # P(Binomial(2000, 0.025) > 87) < 1e-6
    assert said.count(NOT) <= 87
    assert UNDECIDED in said


def test_a_second_look_keeps_its_level_on_new_seeds_only() -> None:
    """Whoever adds to five seeds that nearly decided has decided half; new ones know nothing.

    Nothing is there; who is told that 20 seeds would do goes on. Of such second looks 5 % decide
    on new seeds, about 13 % where the first five are among them: the planted defect.
    """
    rng = np.random.default_rng(0)

    def decides(sample: Any) -> bool:
        return judged_above(Estimate.of(sample), 0.0, None).verdict != UNDECIDED

    new, pooled = [], []
    for first in rng.normal(size=(4000, 5)):
        found = judged_above(Estimate.of(first), 0.0, None)
        if found.verdict == UNDECIDED and found.questions[0].missed(20) <= 1 - POWER:
            fresh = rng.normal(size=found.needed)
            new.append(decides(fresh))
            pooled.append(decides([*first, *fresh[5:]]))
    most = stats.binom.isf(1e-6, len(new), 0.05)
    assert len(new) > 500
    assert sum(new) <= most < sum(pooled)


def test_the_whole_and_its_exit_code():
    assert overall([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert overall([REPRODUCED, UNDECIDED]) == UNDECIDED
    assert overall([REPRODUCED, NOT]) == PARTLY
    assert overall([UNDECIDED, NOT]) == NOT
    assert overall([REPRODUCED, NOT_RUN]) == REPRODUCED
    assert overall([NOT_RUN]) == UNDECIDED
    assert EXIT == {REPRODUCED: 0, PARTLY: 2, NOT: 2, UNDECIDED: 3}


def test_criteria_in_words():
    assert str(difference("accuracy", ("x", "a"), "b", above=0.1, partly=0.0)) == (
        "accuracy: a (x) − b is above 0.1, 95 % interval; partly: above 0"
    )
    assert "within ±0.5, two one-sided tests at 5 %" in str(Alike("loss", "a", "b", 0.5))
    assert "; and " in str(order("accuracy", ["a", "b", "c"]))


def test_bad_criteria():
    for wrong in (
        lambda: Every(),
        lambda: order("accuracy", ["a"]),
        lambda: Own("x", len),
        lambda: difference("loss", "a", "a"),
    ):
        with pytest.raises(BadInput):
            wrong()
