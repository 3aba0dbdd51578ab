"""The command ``settings``."""

from __future__ import annotations

import json
from typing import Annotated, Any, get_args, get_type_hints

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fedcohort import data
from fedcohort._internal.errors import (
    DataNotFound,
    FedcohortError,
    MissingExtra,
)
from fedcohort._internal.parameters import written
from fedcohort._internal.registry import Kind, kinds
from fedcohort.cli.compare import compare
from fedcohort.data.sets import DATA_SETS


def settings(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List data sets, partitions, models, optimisers and all else that has settings."""
    named = _options() | {name: name for name in kinds() if name not in ELSEWHERE}
    found = {
        option: [_described(kinds()[name], each) for each in kinds()[name]]
        for name, option in (named | _options()).items()
    }
    if as_json:
        print(json.dumps(found, indent=2, default=str))
        return
    console = Console()
    for option, rows in found.items():
        console.print(f"[bold]{option}[/bold]")
        for row in rows:
            takes = [
                key if key in row["required"] else f"{key}={written(default)}"
                for key, default in row["settings"].items()
            ]
            word = f"{row['name']}:{','.join(takes)}" if takes else row["name"]
            console.print(Padding(Text(word), (0, 0, 0, 2)))
            console.print(Padding(Text(row["summary"], style="dim"), (0, 0, 0, 6)))
    console.print("\nA setting without a value must be given. Schemes: fedcohort schemes.")


ELSEWHERE = {"scheme"}
"""Kinds with a command of their own: ``fedcohort schemes``."""


def _options() -> dict[str, str]:
    """The options of `compare` that take a part, by the kind with which they are annotated."""
    found = {}
    for parameter, hint in get_type_hints(compare, include_extras=True).items():
        for option, kind in [get_args(hint)[1:]] if len(get_args(hint)) == 3 else []:
            names = [option.default, *(option.param_decls or ()), f"--{parameter}"]
            found[kind.name] = next(name for name in names if str(name).startswith("--"))
    return found


def _described(kind: Kind[Any], name: str) -> dict[str, Any]:
    summary = kind.listed()[name].summary
    try:
        declared = {
            key: setting
            for key, setting in kind.settings(kind[name]).items()
            if setting.constraint or not kind.make  # the others of a model are for Python
        }
    except MissingExtra as error:
        return {"name": name, "settings": {}, "required": [], "summary": f"{summary} {error}"}
    return {
        "name": name,
        "settings": {key: setting.default for key, setting in declared.items()},
        "required": [key for key, setting in declared.items() if setting.required],
        "summary": _data(name, summary) if kind is DATA_SETS else summary,
    }


def _data(name: str, summary: str) -> str:
    """What a data set is, and whether it is here; it is not read, for some are large."""
    try:
        place = data.where(name) if not _needs_a_path(name) else None
    except DataNotFound:
        place, summary = None, f"{summary} {NOT_FOUND.format(name=name)}"
    except FedcohortError as error:
        return str(error)
    return summary if place is None else f"{summary} Here: {place}"


NOT_FOUND = "Not found: compare --data {name} says where it was looked for and how to get it."


def _needs_a_path(name: str) -> bool:
    return any(setting.required for setting in DATA_SETS.settings(DATA_SETS[name]).values())
