"""Measures of a run, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from fedcohort import LocalWork, Problem, Trace, scheme, simulate
from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort.training import Quadratic
from fedcohort_papers.reproduction.measures import MEASURES, measure, never, word


@pytest.fixture(scope="module")
def run() -> Trace:
    task = Problem("digits", "iid:n=5").task()
    return simulate(task, scheme("uniform", m=2), rounds=8, work=LocalWork(steps=2), measures="f1")


def bent(trace: Trace, accuracy: list[float]) -> Trace:
    """The same run with another curve."""
    return replace(trace, accuracy=np.array(accuracy))


CURVE = [0.1, 0.6, 0.4, 0.7, np.nan, 0.8, 0.6, 0.9]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("accuracy", 0.9),
        ("accuracy:last=2", 0.75),
        ("accuracy:last=0.4", (0.8 + 0.6 + 0.9) / 3),
        ("spread:last=2", 0.15),
        ("jumps", (0.1 + 0.2 + 0.3) / 3),
        ("area", (0.1 + 0.6 + 0.4 + 0.7 + 0.8 + 0.6 + 0.9) / 7),
        ("best", 0.9),
        ("best:round=5", 0.7),
        ("at:round=5", 0.7),
        ("rounds-to:target=0.5", 4),
        ("first-to:target=0.5", 2),
        ("rounds-to:target=0.85", 8),
        ("rounds-to:target=0.95", 9),
        ("first-to:target=0.95", 9),
        ("rounds-to:target=0.05", 1),
        ("rounds-to:target=0.5,window=2", 3),
        ("clients", 2),
    ],
)
def test_by_hand(run: Trace, name: str, value: float) -> None:
    assert measure(name)(bent(run, CURVE)) == pytest.approx(value)


def test_every_measure_is_a_number_or_nan(run: Trace) -> None:
    given = dict.fromkeys(("rounds-to", "first-to", "time-to"), ":target=0.5") | {"at": ":round=3"}
    missing = ("client-accuracy", "perplexity", "worst-clients", "time-to")
    for name in MEASURES:
        found = measure(name + given.get(name, ""))(run)
        assert isinstance(found, float)
        assert np.isfinite(found) or name in missing
    assert measure("f1")(run) == pytest.approx(float(run.f1.mean()))
    assert measure("class-f1")(run) == pytest.approx(float(run.f1.mean()))


def test_of_perplexity_less_is_better(run: Trace) -> None:
    told = replace(run, metrics={"perplexity": np.array([9.0, 7, 8, 5, 6, 4, 3, 3])})
    for name, value in (("best", 3), ("first-to:target=5", 4), ("rounds-to:target=5", 6)):
        which = f"{name}{',' if ':' in name else ':'}of=perplexity"
        assert measure(which)(told) == value, which


def test_when_everybody_was_seen() -> None:
    task, work = Quadratic(np.zeros((6, 1))), LocalWork(steps=1, batch=None)
    assert measure("all-seen")(simulate(task, "full", rounds=2, work=work)) == 1
    few = simulate(task, scheme("uniform", m=1), rounds=3, work=work)
    assert measure("all-seen")(few) == 4
    assert np.isnan(measure("accuracy")(few))


def test_words() -> None:
    with pytest.raises(UnknownName, match="accuracy"):
        measure("acuracy")
    with pytest.raises(UnknownName, match="setting of the measure 'accuracy'"):
        measure("accuracy:first=3")
    with pytest.raises(BadInput, match="rounds-to:target="):
        measure("rounds-to")

    def my_own(trace: Trace) -> float:
        return 1.0

    assert word(my_own) == "my own"
    assert measure(my_own) is my_own


def test_time_to_a_level_is_that_of_its_round(run: Trace) -> None:
    """Seconds 1, 2, 4, ...: after three rounds 7, after all eight 255; then one mean round more."""
    timed = replace(bent(run, CURVE), time=2.0 ** np.arange(8))
    assert measure("time-to:target=0.5")(timed) == 3  # round 2
    assert measure("time-to:target=0.7")(timed) == 15  # round 4
    assert measure("time-to:target=0.9")(timed) == 255
    late = measure("time-to:target=0.95")(timed)
    assert late == 255 + 255 / 8
    assert never("time-to:target=0.95", timed, late)
    assert not never("time-to:target=0.9", timed, 255.0)  # more than rounds, and not late
    assert np.isnan(measure("time-to:target=0.5")(bent(run, CURVE)))  # there was no clock


def test_which_runs_never_got_there(run: Trace) -> None:
    found = bent(run, CURVE)
    assert never("rounds-to:target=0.95", found, 9.0)
    assert not never("rounds-to:target=0.5", found, 8.0)
    assert not never("accuracy", found, 9.0)
    assert not never(lambda trace: 99.0, found, 99.0)
