"""Commands of other packages: listed without an import, run, and never in the way of others."""

from __future__ import annotations

import json
import sys
from email.message import Message
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fedcohort._internal.errors import FedcohortWarning
from fedcohort.cli import app, main, packages

COMMAND = '''
from typing import Annotated

import typer


def shout(
    word: str, times: Annotated[int, typer.Option(help="How many times.")] = 1
) -> None:
    """Say a word loudly.

    More than once
    if you like.
    """
    print(word.upper() * times)
'''


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A function that installs a package with one command."""

    def install(name: str, module: str, text: str | None) -> None:
        if text is not None:
            (tmp_path / f"{module}.py").write_text(text)
        about = tmp_path / f"{module}-1.0.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
        point = f"[{packages.GROUP}]\n{name} = {module}:shout\n"
        (about / "entry_points.txt").write_text(point)

    monkeypatch.syspath_prepend(str(tmp_path))
    return install


def said(*words: str) -> Any:
    return CliRunner().invoke(app(), list(words))


def test_a_command_of_another_package_is_listed_without_an_import(installed: Any) -> None:
    installed("shout", "listed_command", COMMAND)
    assert "Say a word loudly." in said("--help").stdout
    assert "listed_command" not in sys.modules


def test_it_runs_with_its_options(installed: Any) -> None:
    installed("shout", "running_command", COMMAND)
    assert said("shout", "ab", "--times", "2").stdout == "ABAB\n"
    told = said("shout", "--help").stdout
    assert "How many times." in told
    assert "More than once if you like." in told


def test_a_command_without_a_module_is_left_out_with_one_sentence(installed: Any) -> None:
    installed("shout", "missing_command", None)
    with pytest.warns(FedcohortWarning) as told:
        found = said("schemes", "--json")
    assert found.exit_code == 0
    assert len(json.loads(found.stdout)) > 30
    (warning,) = told
    assert str(warning.message) == (
        "The command 'shout' of another package (missing_command:shout) cannot be loaded: "
        "ModuleNotFoundError: No module named 'missing_command'. It is left out."
    )


@pytest.mark.parametrize("text", ["import no_such_module", "def other(): ..."])
def test_a_command_that_cannot_be_imported_ends_with_one_sentence(
    text: str, installed: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    installed("shout", f"broken_command_{len(text)}", text)
    assert "shout" in said("--help").stdout
    monkeypatch.setattr(sys, "argv", ["fedcohort", "shout"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 1
    told = capsys.readouterr().err
    assert told.startswith("Error: The command 'shout' of another package (broken_command_")
    assert told.count("\n") == 1


def test_a_command_of_ours_is_not_replaced(installed: Any) -> None:
    installed("schemes", "replacing_command", COMMAND)
    with pytest.warns(FedcohortWarning, match=r"has a command of that name\. It is left out"):
        found = said("schemes", "--json")
    assert len(json.loads(found.stdout)) > 30


@pytest.fixture
def without_papers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages, "entry_points", lambda **which: ())


def addresses(*urls: str) -> Message:
    found = Message()
    for url in urls:
        found["Project-URL"] = url
    return found


@pytest.mark.parametrize("words", [(), ("impact-fig1", "--scale", "quick"), ("--help",)])
def test_without_the_papers_one_line_installs_them(
    words: tuple[str, ...], without_papers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "metadata", lambda name: addresses())
    assert "Repeat a figure or table of a paper" in said("--help").stdout
    found = said("reproduce", *words)
    assert found.exit_code == 2
    assert found.stdout == ""
    assert found.stderr == (
        "'reproduce' is in the package fedcohort-papers. "
        "Install it from a checkout of the repository: pip install ./papers\n"
    )


def test_the_line_has_the_address_of_the_repository_where_there_is_one(
    without_papers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = "https://example.org/somebody/fedcohort"
    urls = (f"Issues, {home}/issues", f"Homepage, {home}")
    monkeypatch.setattr(packages, "metadata", lambda name: addresses(*urls))
    where = f"'fedcohort-papers @ git+{home}#subdirectory=papers'"
    assert said("reproduce").stderr.endswith(f"Install it: pip install {where}\n")


def test_a_source_that_is_not_installed_has_no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> Message:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(packages, "metadata", none)
    assert packages.how_to_install().endswith(": pip install ./papers")
