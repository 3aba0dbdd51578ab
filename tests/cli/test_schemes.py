from __future__ import annotations

import inspect
import io

import pytest
from rich.console import Console

from fedcohort.cli import schemes as command
from fedcohort.schemes import schemes


@pytest.mark.parametrize("width", [40, 80, 200])
def test_one_line_per_scheme_at_any_width(width, monkeypatch):
    out = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    monkeypatch.setattr(command, "Console", lambda: out)
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
