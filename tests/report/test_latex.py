"""The table for LaTeX."""

from __future__ import annotations

import re

import pytest

from fedcohort import report
from fedcohort.report._tables import escaped


def test_the_table_has_what_the_terminal_shows_and_nothing_runs(make) -> None:
    text = report.to_latex(make(("md", r"50%_x\\input{evil}"), rounds=20, seeds=3))
    lines = text.splitlines()
    assert lines[1].startswith(r"\begin{tabular}{lr")
    assert lines[-1] == r"\end{tabular}"
    body = [line for line in lines if line.endswith(r"\\")]
    assert len(body) == 3
    assert len({line.count(" & ") for line in body}) == 1
    assert body[0].startswith(r"Scheme & \shortstack[r]{Final test\\accuracy} & $\pm$ sd & Gap")
    assert "Computed" not in text
    assert body[1].count(r"\textbf{") == 2  # the scheme and its result: the best of nothing else
    assert re.search(r"& \+\d+\.\d & \+\d+\.\d to \+\d+\.\d & n/a \(3 seeds\) &", body[1])
    assert " & reference & -- & -- & " in body[2]
    assert r"50\%\_x\textbackslash{}" in text
    assert not re.search(r"\\input", text)


@pytest.mark.parametrize("letter", "\\&%$#_{}~^")
def test_no_letter_is_a_command(letter: str) -> None:
    assert escaped(letter) != letter
    assert escaped(letter).startswith("\\")


def test_every_scheme_against_every_other_is_public(make) -> None:
    assert len(report.pairwise(make(("md", "uniform", "fedavg"), seeds=3), "all")) == 6
    assert set(report.pairwise(make(("md", "uniform"), seeds=3), ["md"])["reference"]) == {"md"}
