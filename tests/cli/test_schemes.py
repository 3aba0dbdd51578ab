from __future__ import annotations

import inspect
import io

import pytest
from rich.console import Console

from fedcohort._internal.errors import BadInput, UnknownName
from fedcohort.advice import advise
from fedcohort.advice._recommendation import secure
from fedcohort.cli import schemes as command
from fedcohort.schemes import schemes


@pytest.mark.parametrize("width", [40, 80, 200])
def test_one_line_per_scheme_at_any_width(width, monkeypatch):
    out = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(command, "wide", lambda: out)
    command.schemes(None, False, False)
    lines = out.file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    assert [line.split()[0] for line in lines[1 : 1 + len(schemes())]] == sorted(schemes())


@pytest.mark.parametrize("name", sorted(schemes()))
def test_a_narrow_text_has_the_same_words_and_no_ragged_lines(name):
    text = inspect.getdoc(schemes()[name])
    narrow = command.reflowed(text, 60)
    assert narrow.split() == text.split()
    for block in narrow.split("\n\n"):
        if not block.startswith((">>>", " ")):
            assert max(map(len, block.splitlines())) <= 60
    assert command.reflowed(text, 200) == text


def test_items_of_a_list_begin_anew():
    assert (
        command.reflowed("1. one two\n   three\n2. four", 9) == "1. one\n   two\n   three\n2. four"
    )


def test_one_scheme_shows_what_it_tells_and_whether_it_can_be_hidden() -> None:
    row = command.describe(schemes()["pow-d"])
    assert "loss (when asked): the loss of the model on local data" in row["discloses"]
    assert row["secure_aggregation"].startswith("partly: updates are hidden, but the loss")
    out = Console(file=io.StringIO(), width=100)
    command._print_one(row, out)
    assert "loss (when asked)" in out.file.getvalue()
    shown = " ".join(out.file.getvalue().split())
    assert "secure agg. partly: secure aggregation can hide the updates, but not the loss" in shown


def test_what_secure_aggregation_hides_is_said_as_advice_says_it() -> None:
    out = Console(file=io.StringIO(), width=200)
    command._print_one(command.describe(schemes()["pivotal"]), out)
    advice = advise([5] * 12, m=3, only=["pivotal"])
    (said,) = [secure(row) for row in advice.rows if row.name == "pivotal"]
    assert f"yes: {said}" in " ".join(out.file.getvalue().split())


def test_schemes_are_filtered_by_what_they_are() -> None:
    everyone = list(schemes())
    unbiased = command._filtered(everyone, True, False, None)
    assert "md" in unbiased
    assert "pow-d" not in unbiased
    hidden = command._filtered(everyone, False, True, None)
    assert "pivotal" in hidden  # it asks nothing unless its settings say so
    assert "optimal" not in hidden
    assert {"pow-d", "cpow-d"} & set(command._filtered(everyone, False, False, "loss"))
    assert "pow-d" not in command._filtered(everyone, False, False, "nothing")
    with pytest.raises(UnknownName, match="Did you mean 'loss'"):
        command._filtered(everyone, False, False, "los")
    with pytest.raises(BadInput, match="No scheme is like that"):
        command._filtered(["pow-d"], True, False, None)
