from __future__ import annotations

import json
import re
from collections import Counter
from importlib import import_module

import pytest
from typer.testing import CliRunner

from fedcohort import scheme
from fedcohort._internal.errors import BadParameter, UnknownName
from fedcohort.cli import app
from fedcohort.schemes import find
from fedcohort.testing import Result, Subject


def check(*words: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(app(), ["check", "--json", *words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    rows: list[dict[str, object]] = json.loads(done.output)
    return rows


def test_a_name_stands_for_all_variants_and_a_name_with_settings_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    checked = []

    def only_look(subject: Subject, stop: bool) -> tuple[Result, ...]:
        checked.append(subject)
        return (Result("seen", True, "", 0.0),)

    monkeypatch.setattr(import_module("fedcohort.cli.check"), "check_scheme", only_look)
    rows = check("clustered-size:ties=index,m=3", "md")
    assert [row["scheme"] for row in rows] == ["clustered-size:ties=index,m=3", "md"]
    assert checked == [scheme("clustered-size", ties="index", m=3), find("md")]


def test_settings_are_checked() -> None:
    rows = check("uniform:m=1")
    assert {row["scheme"] for row in rows} == {"uniform:m=1"}
    assert len(rows) > 10
    assert all(row["passed"] for row in rows)


@pytest.mark.parametrize(
    ("word", "error", "message"),
    [
        ("hcsfedd:weights=paper", UnknownName, "Did you mean 'hcsfed'"),
        ("hcsfed:weight=paper", UnknownName, "Did you mean 'weights'"),
        ("hcsfed:weights=none", BadParameter, "'weights' parameter of hcsfed must be one of"),
    ],
)
def test_bad_words_are_refused(word: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        CliRunner().invoke(app(), ["check", word], catch_exceptions=False)


def test_help_shows_how_settings_are_given() -> None:
    assert "hcsfed:weights=paper" in CliRunner().invoke(app(), ["check", "--help"]).output


def test_what_has_nothing_to_say_is_not_counted_as_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    rows = check("md")
    counts = Counter(str(row["outcome"]) for row in rows)
    assert set(counts) == {"ok", "–"}
    shown = CliRunner().invoke(app(), ["check", "md"]).output
    assert f"{counts['ok']} checks passed, 0 failed, {counts['–']} have nothing to say" in shown
    assert re.search(r"exactly-m +– +not claimed", shown)


def test_the_same_complaint_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [
        Result("a", False, "On 'equal': it is wrong [b] here", 0.0),
        Result("b", False, "On 'skewed': it is wrong [b] here", 0.0),
        Result("c", False, "On 'equal': another", 0.0),
    ]
    monkeypatch.setattr(
        import_module("fedcohort.cli.check"), "check_scheme", lambda subject, stop: results
    )
    done = CliRunner().invoke(app(), ["check", "md"])
    assert done.exit_code == 1
    assert done.output.count("it is wrong [b] here") == 1
    assert done.output.count("as above") == 1
    assert "another" in done.output
