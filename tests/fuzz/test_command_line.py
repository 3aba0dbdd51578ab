"""Words on the command line: help, a result or one sentence, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fedcohort.cli import _commands, main, packages

WORDS = [
    *(
        "md",
        "pow-d:m=2",
        "md:m=",
        "md:m=0",
        "nothing",
        "./no.py",
        "--m",
        "-m",
        "3",
        "-1",
        "0",
        "1e9",
    ),
    *("nan", "inf", "", " ", "--out", "\0", "x" * 300, "9" * 60, "--sizes", "--seed", "--help"),
    *("=", "[", "..", "/", "/dev/null", "--rounds", "--format", "json", "é", "\u202e", "--cite"),
]
COMMANDS = sorted(_commands() | packages.texts(_commands()))
LONG = {"check", "compare", "demo", "price", "reproduce", "tune"}
"""They would run for long."""


def run(words: list[str]) -> tuple[Any, str]:
    """Exit code and errors of a command, in this process."""
    before, shown = sys.argv, warnings.showwarning
    out, err = io.StringIO(), io.StringIO()
    sys.argv = ["fedcohort", *words]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            main()
            return 0, err.getvalue()
    except SystemExit as end:
        return end.code or 0, err.getvalue()
    finally:
        sys.argv, warnings.showwarning = before, shown


@given(st.sampled_from(COMMANDS), st.lists(st.sampled_from(WORDS), max_size=4))
@settings(suppress_health_check=list(HealthCheck))
def test_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: list[str]
) -> None:
    if command in LONG and not set(words) & {"", "\0", "--m"}:
        words = [*words, "--no-such-option"]
    monkeypatch.chdir(tmp_path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        code, told = run([command, *words])
    assert code in (0, 1, 2), (code, told)
    assert "Traceback" not in told
    assert len(told) < 3000


def test_a_table_of_anything(tmp_path: Path) -> None:
    """Files of sizes for ``advise``."""
    odd = [b"", b"\0", b"a,b\n1", b"\xff\xfe", b"1\n2\nx\n", b"id,size\na,1\na,2\n", b"9" * 10_000]
    odd += [os.urandom(200), b"size\n" + b"-1\n", b"id,size\n" + "é,3\n".encode("latin-1")]
    for number, content in enumerate(odd):
        path = tmp_path / f"{number}.csv"
        path.write_bytes(content)
        code, told = run(["advise", "--sizes", str(path)])
        assert code in (0, 1, 2)
        assert "Traceback" not in told
