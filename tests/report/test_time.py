"""Time in tables and on the page: simulated seconds, apart from those of the simulator."""

from __future__ import annotations

import numpy as np
import pytest

import fedcohort
from fedcohort import report
from fedcohort.report import _curves, _spent
from fedcohort.report._measures import measured
from fedcohort.report._tables import summary_columns
from fedcohort.server._trace import SUSTAINED
from fedcohort.training import LocalWork


@pytest.fixture(scope="module")
def compared() -> dict[bool, fedcohort.Comparison]:
    task = fedcohort.Problem("digits", "iid:n=10").task()
    words = {"rounds": 12, "seeds": 3, "work": LocalWork(steps=3, batch=5, lr=0.5)}
    return {
        timed: fedcohort.compare(
            task, ["md:m=3", "tifl:m=3"], devices="lognormal:sigma=1" if timed else None, **words
        )
        for timed in (True, False)
    }


def test_curves_have_the_time_until_each_round(compared) -> None:
    comparison = compared[True]
    measure = measured(comparison)[0]
    rows = _curves.curves(comparison, measure).query("scheme == 'md'")
    spent = np.mean([np.cumsum(trace.time) for trace in comparison.of("md")], axis=0)
    np.testing.assert_allclose(rows["time"], spent[rows["round"] - 1])
    assert _curves.curves(compared[False], measure)["time"].isna().all()


def test_the_summary_has_simulated_time_to_the_target(compared) -> None:
    """The time of the round in which each run got there; the median over runs."""
    comparison = compared[True]
    for label, row in report.summary(comparison, target=0.3).set_index("scheme").iterrows():
        traces = comparison.of(label)
        one = [trace.rounds_to(0.3, SUSTAINED) for trace in traces]
        there = [np.cumsum(t.time)[int(k) - 1] for t, k in zip(traces, one, strict=True)]
        assert row["time_to_target"] == pytest.approx(np.median(there))
        assert row["time"] == pytest.approx(np.mean([trace.time.sum() for trace in traces]))


def test_the_terminal_names_the_simulators_own_seconds_apart(compared) -> None:
    for timed, comparison in compared.items():
        columns = summary_columns(comparison, report.summary(comparison, 0.3), 0.3)
        assert ("Time to 30%" in columns) == timed
        assert "Computed in" in columns


def test_the_page_has_both_clocks_and_says_which_is_which(compared, tmp_path) -> None:
    page = report.write(compared[True], tmp_path / "timed.html").read_text(encoding="utf-8")
    assert "in simulated time" in page
    assert "How long clients take" in page
    assert "By the virtual clock" in page
    plain = report.write(compared[False], tmp_path / "plain.html").read_text(encoding="utf-8")
    assert "in simulated time" not in plain
    assert "How long clients take" not in plain


def test_latencies_are_a_table_by_purpose_and_client(compared) -> None:
    table = _spent.latencies(compared[True])
    assert set(table["purpose"]) == {"training"}
    assert (table["seconds"] > 0).all()
    assert set(table["client"]) <= set(range(10))
    assert _spent.latencies(compared[False]).empty
