"""The command line: `COMMANDS` names the module of each command.

A command is a function of its own name. Other packages add theirs, see `fedcohort.cli.packages`.
"""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import cache, wraps
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup
from typer.main import get_command

from fedcohort import __version__
from fedcohort._internal.errors import (
    LONGEST_PATH,
    BadInput,
    FedcohortError,
    FedcohortWarning,
    brief,
    own_line,
    shown,
)
from fedcohort.cli import packages

COMMANDS = {
    "advise": "advise",
    "audit": "privacy",
    "check": "check",
    "compare": "compare",
    "demo": "compare",
    "new": "new",
    "price": "privacy",
    "report": "report",
    "schemes": "schemes",
    "settings": "settings",
    "tune": "tune",
}
"""Every command, and the module of this package that defines it."""


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fedcohort {__version__}")
        raise typer.Exit


def app() -> typer.Typer:
    """All commands; each is imported when it is run, and its help read off the source."""
    out = typer.Typer(
        name="fedcohort",
        cls=_Commands,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @out.callback()
    def fedcohort(
        version: bool = typer.Option(
            False, "--version", callback=_version, is_eager=True, help="Show the version and exit."
        ),
    ) -> None:
        """Choose clients in federated learning: who trains, and how much each answer counts."""

    for name, text in sorted((_commands() | packages.texts(_commands())).items()):
        out.command(name=name, help=text)(_unread)
    return out


@cache
def _commands() -> dict[str, str]:
    """Return the docstring of every command by name, read off the source."""
    texts = {}
    for name, module in COMMANDS.items():
        source = Path(__file__).with_name(f"{module}.py").read_bytes()
        for node in ast.parse(source).body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                texts[name] = ast.get_docstring(node) or ""
    return texts


def _unread() -> None:
    """A command whose module is not imported yet."""


class _Commands(TyperGroup):
    """The group whose commands are imported when they are run."""

    def make_context(self, *words: Any, **options: Any) -> Any:
        """As usual; see `_told_briefly`."""
        with _told_briefly():
            return super().make_context(*words, **options)

    def invoke(self, ctx: Any) -> Any:
        """As usual; see `_told_briefly`."""
        with _told_briefly():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is typed, with its options."""
        _check_given(args)
        if args and args[0] in self.commands:
            only, command = typer.Typer(add_completion=False), _command(args[0])
            only.command(
                name=args[0],
                help=_flowing(command.__doc__ or ""),
                context_settings={"help_option_names": ["-h", "--help"]},
            )(_told(command))
            self.commands[args[0]] = get_command(only)
        return super().resolve_command(ctx, args)


def _command(name: str) -> Callable[..., None]:
    if name not in COMMANDS:
        return packages.command(name)
    module = importlib.import_module(f"{__name__}.{COMMANDS[name]}")
    command: Callable[..., None] = getattr(module, name)
    return command


@contextlib.contextmanager
def _told_briefly() -> Iterator[None]:
    """What is wrong with a command, without repeating at length what was typed."""
    try:
        yield
    except _USAGE as error:
        if isinstance(error, _HELP):
            raise
        told = _short(error.format_message())
        told = re.sub(rf"\S{{{LONGEST_PATH},}}", lambda word: brief(word[0]), told)
        raise _USAGE(brief(told, LONGEST_USAGE), error.ctx) from None


def _flowing(text: str) -> str:
    """Paragraphs without the line breaks of the source, which fit no window."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _told(command: Callable[..., None]) -> Callable[..., None]:
    """The same command, which says so when it is interrupted (typer is silent)."""

    @wraps(command)
    def told(*words: Any, **options: Any) -> None:
        try:
            command(*words, **options)
        except KeyboardInterrupt:
            print("Interrupted.", file=sys.stderr)
            raise typer.Exit(130) from None

    return told


def _show_warning(message: Warning | str, category: type[Warning], *where: Any, **_: Any) -> None:
    if issubclass(category, FedcohortWarning):
        print(f"Note: {message}", file=sys.stderr)


_USAGE: Any = typer.BadParameter.__base__
"""The error of a mistyped command: click's, or that of newer typers, which need no click."""
_HELP: Any = getattr(sys.modules[_USAGE.__module__], "NoArgsIsHelpError", ())
"""What click since 8.2 raises where nothing was typed: its message is the whole help."""
LONGEST_USAGE = 1000
"""Characters of a sentence about the words of a command, which may list what is allowed."""
MOST_DIGITS = 50
"""Of a number on the command line: more than any seed has."""


def _check_words(words: list[str]) -> None:
    """Refuse what no command can take, before it is repeated at length or tried as a path."""
    for word in words:
        if "\0" in word:
            raise BadInput(f"No word of a command can have a NUL character; got {shown(word)}.")
        if any("\ud800" <= letter <= "\udfff" for letter in word):  # what no file can hold
            raise BadInput(f"Words of a command must be text in UTF-8; got {shown(word)}.")
        if word.lstrip("+-").isdecimal() and len(word) > MOST_DIGITS:
            raise BadInput(f"A number must have at most {MOST_DIGITS} digits; got {shown(word)}.")


def _check_given(words: list[str]) -> None:
    """Refuse an option without a text: as a path it would be the current folder."""
    for word, after in zip(words, [*words[1:], None], strict=True):
        if word == "--":
            return
        if word.startswith("-") and (after == "" or re.fullmatch(r"--[a-z-]+=", word)):
            raise BadInput(
                f"The option {word.rstrip('=')} is empty; give it a value or leave it out."
            )


def _short(sentence: str) -> str:
    """An error that repeats no word of the command at length."""
    for word in sys.argv[1:]:
        if len(word) > LONGEST_PATH:
            sentence = sentence.replace(word, brief(word))
    return sentence


def main() -> None:
    """Run a command; a mistake of the user's gets one sentence and exit code 1."""
    warnings.showwarning = _show_warning
    try:
        _check_words(sys.argv[1:])
        app()()
    except FedcohortError as error:
        print(f"Error: {_short(str(error))}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:  # before a command has begun
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader has seen enough (`fedcohort schemes | head`)
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:  # a path that cannot be read or written
        why = error.strerror or str(error)
        what = why if error.filename is None else f"'{error.filename}' cannot be used: {why}"
        print(f"Error: {_short(what)}.", file=sys.stderr)
        sys.exit(1)
    except Exception as error:
        _show_own_line(error)
        raise


def _show_own_line(error: Exception) -> None:
    """Of a crash in a file of the user's, the line where it happened: first, then all the rest."""
    where = own_line(error)
    if where is None:
        return
    notes = " ".join(getattr(error, "__notes__", ()))
    what = brief(f"{type(error).__name__}: {error}")
    print(f"Error: {where}: {what}. {notes}".rstrip(), file=sys.stderr)
    print(f"    {where.text}\n\nThe whole way there:", file=sys.stderr)
