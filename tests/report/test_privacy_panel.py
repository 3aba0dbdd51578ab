"""What noise on the sums promises stands in the report, beside the bytes."""

from __future__ import annotations

import numpy as np
import pytest

from fedcohort import compare
from fedcohort.privacy import price
from fedcohort.report import _spent, write
from fedcohort.training import LocalWork, Quadratic

pytest.importorskip("dp_accounting")


def comparison(aggregator):
    task = Quadratic(np.linspace(-1, 1, 6)[:, None], sizes=[2] * 6)
    return compare(
        task,
        ["binomial:m=2", "pow-d:m=2"],
        seeds=2,
        rounds=3,
        work=LocalWork(steps=1, lr=0.5, batch=None),
        aggregator=aggregator,
    )


def page_of(made, folder):
    write(made, folder / "report.html")
    return (folder / "report.html").read_text(encoding="utf-8")


def test_epsilon_stands_beside_the_bytes_and_in_words(tmp_path):
    made = comparison("gaussian:noise=2,seed=0")
    wanted = price("binomial:m=2", [2] * 6, 3, 2.0, 1e-5)
    ledger = _spent.ledger(made).set_index(["scheme", "purpose"])
    first = made.labels[0]
    assert ledger.loc[(first, "training"), "epsilon"] == pytest.approx(wanted.epsilon)
    table = _spent.privacy(made).set_index("scheme")
    assert table.loc[first, "epsilon"] == pytest.approx(wanted.epsilon)
    assert table.loc[first, "known_who"] == pytest.approx(wanted.seen)
    assert "not covered" in table.loc[made.labels[1], "guarantee"]
    page = page_of(made, tmp_path)
    assert "What the noise promises" in page
    assert wanted.guarantee()[:60] in page


def test_runs_without_noise_say_nothing_of_it(tmp_path):
    made = comparison(None)
    assert _spent.privacy(made).empty
    assert "What the noise promises" not in page_of(made, tmp_path)
