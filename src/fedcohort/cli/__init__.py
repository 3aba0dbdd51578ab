"""The command line: one file per command.

Every module of this package that defines a function of its own name is a command, so a new
command is a new file.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys
import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any

import typer

from fedcohort import __version__
from fedcohort.core.errors import FedcohortError, FedcohortWarning


def _version(wanted: bool) -> None:
    if wanted:
        print(f"fedcohort {__version__}")
        raise typer.Exit


def app() -> typer.Typer:
    """All commands."""
    out = typer.Typer(
        name="fedcohort",
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

    for info in sorted(pkgutil.iter_modules(__path__), key=lambda info: info.name):
        module = importlib.import_module(f"{__name__}.{info.name}")
        command = getattr(module, info.name, None)
        if callable(command):
            out.command(name=info.name.replace("_", "-"))(_told(command))
    return out


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


def main() -> None:
    """Run a command; a mistake of the user's gets one sentence and exit code 1."""
    warnings.showwarning = _show_warning
    try:
        app()()
    except FedcohortError as error:
        print(f"Error: {error}", file=sys.stderr)
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
        print(f"Error: {what}.", file=sys.stderr)
        sys.exit(1)
