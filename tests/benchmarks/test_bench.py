"""benchmarks/tools/bench.py: every scheme gets a row, answers are not counted."""

from __future__ import annotations

import json
import time

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from bench import Script, bench
from fedcohort import Federation
from fedcohort._internal.errors import BadParameter
from fedcohort.schemes import schemes
from fedcohort.selection import LOSS, Ask

run = CliRunner().invoke


def app() -> typer.Typer:
    out = typer.Typer()
    out.command()(bench)
    return out


def test_every_scheme_has_a_row_and_times():
    rows = json.loads(run(app(), ["-n", "30", "-m", "3", "-d", "20", "--json"]).stdout)
    assert [row["scheme"] for row in rows] == list(schemes())
    uniform = next(row for row in rows if row["scheme"] == "uniform")
    for row in rows:
        assert row["note"] == ""
        assert min(row["start"], row["first choice"], row["a choice"], row["learning"]) >= 0
        assert row["round"] == pytest.approx(row["a choice"] + row["learning"])
        assert row["times uniform"] == pytest.approx(row["round"] / uniform["round"])
        assert row["times uniform"] > 0


def test_a_mistake_in_a_word_is_told_before_anything_is_timed():
    with pytest.raises(BadParameter, match="at least m"):
        run(app(), ["uniform", "pow-d:d=6", "-m", "20"], catch_exceptions=False)


def test_what_does_not_fit_is_a_note():
    found = run(app(), ["pow-d", "md", "-n", "10", "-m", "20", "--json"])
    refused, timed = json.loads(found.stdout)
    assert "at most the number of clients" in refused["note"]
    assert refused["round"] is None
    assert timed["round"] > 0


def test_the_time_of_answers_is_not_counted():
    script = Script(Federation.from_sizes([1] * 5), 3, 0)
    ask = Ask(LOSS, np.arange(5))

    def busy(ask, i):
        begun = time.process_time()
        while time.process_time() - begun < 0.02:
            pass
        return 1.0

    script._answer = busy
    assert script.seconds(lambda: script(ask)) < 0.05 < 0.1 <= script.spent
