"""Old public names work for one more version, and say what they are called now."""

from __future__ import annotations

import pytest

import fedcohort
from fedcohort import core, server


@pytest.mark.parametrize(
    ("module", "old", "new"),
    [
        (fedcohort, "Moment", "RoundContext"),
        (core, "Moment", "RoundContext"),
        (server, "Estimator", "Aggregator"),
        (server, "Nothing", "AsDrawn"),
        (server, "estimator", "aggregator"),
        (fedcohort, "estimator", "aggregator"),
    ],
)
def test_an_old_name_is_the_new_thing_with_a_warning(module, old: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{old} has become .*{new}"):
        assert getattr(module, old) is getattr(module, new)


def test_a_name_that_never_was_is_an_ordinary_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Moments'"):
        _ = fedcohort.Moments


def test_old_and_new_arguments_mean_the_same() -> None:
    task = fedcohort.Problem("digits", "iid:n=4").task()
    work = fedcohort.LocalWork(steps=1)
    old = fedcohort.simulate(task, "md:m=2", rounds=2, work=work, server="adam", estimator="memory")
    new = fedcohort.simulate(
        task, "md:m=2", rounds=2, work=work, optimiser="adam", aggregator="memory"
    )
    assert old.model.tolist() == new.model.tolist()
    assert old.settings == new.settings
    both = fedcohort.compare(task, "md:m=2", rounds=1, seeds=1, work=work, optimiser="adam")
    assert both.traces[0].settings["server"]["name"] == "adam"
