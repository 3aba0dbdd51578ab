import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedcohort._internal.errors import UnknownName
from fedcohort.report._measures import (
    ACCURACY,
    TRAIN_LOSS,
    best,
    drawn,
    final,
    measured,
    rolling,
    stacked,
    window,
)

VALUES = st.lists(st.floats(-5, 5), min_size=1, max_size=40)


@given(VALUES, st.integers(1, 50))
def test_the_rolling_mean_is_that_of_a_plain_loop(values, width):
    slow = [np.mean(values[max(0, i - width + 1) : i + 1]) for i in range(len(values))]
    assert rolling(np.array(values), width) == pytest.approx(slow, abs=1e-9)


@given(VALUES)
def test_the_running_best_only_gets_better(values):
    curve = np.array([values])
    assert (np.diff(drawn(curve, "best", ACCURACY)) >= 0).all()
    assert (np.diff(drawn(curve, "best", TRAIN_LOSS)) <= 0).all()
    assert drawn(curve, "best", ACCURACY)[0, -1] == best(curve, ACCURACY)[0]


def test_final_is_the_mean_of_the_last_tenth():
    assert final(np.arange(20.0)[None]).tolist() == [18.5]
    assert final(np.arange(5.0)[None]).tolist() == [4.0]
    assert np.isnan(final(np.empty((2, 0)))).all()
    assert np.isnan(best(np.empty((2, 0)), ACCURACY)).all()


def test_rounds_without_evaluation_are_left_out(make):
    accuracy = np.full(20, np.nan)
    accuracy[4::5] = 0.5
    rounds, curves = stacked(make(accuracy=accuracy).of("md"), ACCURACY)
    assert rounds.tolist() == [5, 10, 15, 20]
    assert curves.shape == (3, 4)


def test_a_task_without_accuracy_is_judged_by_its_loss(make):
    nothing = np.full(20, np.nan)
    assert measured(make(accuracy=nothing, test_loss=nothing)) == (TRAIN_LOSS,)
    assert measured(make())[0] is ACCURACY


def test_an_unknown_way_to_draw_is_refused():
    with pytest.raises(UnknownName, match="rolling"):
        drawn(np.zeros((1, 3)), "roling", ACCURACY)


def test_the_window_is_a_twentieth():
    assert [window(n) for n in (1, 10, 100, 1000)] == [1, 1, 5, 50]
