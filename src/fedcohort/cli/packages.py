"""Commands of other packages, named by entry points in the group ``fedcohort.commands``.

A listing reads the docstring of a command off its source. Its module is imported when the command
is run.
"""

from __future__ import annotations

import ast
import sys
import warnings
from collections.abc import Callable, Collection
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from fedcohort._internal.errors import BadInput, FedcohortWarning
from fedcohort._internal.registry import reason

GROUP = "fedcohort.commands"
PAPERS = {"reproduce": "Repeat a figure or table of a paper (in the package fedcohort-papers)."}
"""Commands of the package `fedcohort-papers`, which are listed without it, too."""


def texts(own: Collection[str]) -> dict[str, str]:
    """Return the help of every command by name; one that is broken is left out with a warning."""
    found = dict(PAPERS)
    for point in entry_points(group=GROUP):
        try:
            if point.name in own:
                raise BadInput("fedcohort has a command of that name.")
            found[point.name] = _docstring(point)
        except Exception as error:  # one broken package must not break the other commands
            found.pop(point.name, None)
            warnings.warn(f"{_why_not(point, error)} It is left out.", FedcohortWarning, 2)
    return found


def command(name: str) -> Callable[..., None]:
    """Import the command of that name, or say how to install it and exit with status 2."""
    for point in entry_points(group=GROUP, name=name):
        try:
            loaded: Callable[..., None] = point.load()
            return loaded
        except Exception as error:
            raise BadInput(_why_not(point, error)) from error
    print(f"'{name}' is in the package fedcohort-papers. {how_to_install()}", file=sys.stderr)
    raise typer.Exit(2)


def how_to_install() -> str:
    """Return the line that installs the papers from the repository."""
    try:
        addresses = metadata("fedcohort").get_all("Project-URL") or []
    except PackageNotFoundError:  # the source is on the path and nothing is installed
        addresses = []
    for address in addresses:
        label, _, home = address.partition(", ")
        if label == "Homepage":
            what = f"fedcohort-papers @ git+{home}#subdirectory=papers"
            return f"Install it: pip install '{what}'"
    return "Install it from a checkout of the repository: pip install ./papers"


def _docstring(point: EntryPoint) -> str:
    spec = find_spec(point.module)  # imports the packages around the module alone
    if spec is None:
        raise ModuleNotFoundError(f"No module named '{point.module}'")
    if spec.origin is None or not spec.origin.endswith(".py"):
        return ""
    functions: list[Any] = ast.parse(Path(spec.origin).read_bytes()).body
    named = [node for node in functions if getattr(node, "name", None) == point.attr]
    return (ast.get_docstring(named[-1]) if named else None) or ""


def _why_not(point: EntryPoint, error: Exception) -> str:
    what = f"The command '{point.name}' of another package ({point.value})"
    return f"{what} cannot be loaded: {reason(error, None)}"
