"""``fedcohort settings``: what the options of ``compare`` take beside schemes."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from fedcohort import data
from fedcohort.core.errors import DataNotFound, FedcohortError
from fedcohort.data.partition import PARTITIONS, options
from fedcohort.server.estimators import ESTIMATORS
from fedcohort.server.optimisers import OPTIMISERS
from fedcohort.simulation.availability import AVAILABILITIES
from fedcohort.simulation.problem import MODELS


def settings(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List data sets, partitions, models, optimisers, estimators and availability models."""
    found = {
        "--data": [{"name": name, "settings": {}, "summary": _data(name)} for name in data.names()],
        "--partition": [
            _described(name, function, _of_partition(name)) for name, function in PARTITIONS.items()
        ],
        **{
            option: [_described(name, kind, _of_class(kind)) for name, kind in kinds.items()]
            for option, kinds in KINDS.items()
        },
    }
    if as_json:
        print(json.dumps(found, indent=2, default=str))
        return
    console = Console()
    for option, rows in found.items():
        console.print(f"[bold]{option}[/bold]")
        for row in rows:
            given = ",".join(_shown(key, value) for key, value in row["settings"].items())
            word = f"{row['name']}:{given}" if given else row["name"]
            console.print(Padding(Text(word), (0, 0, 0, 2)))
            console.print(Padding(Text(row["summary"], style="dim"), (0, 0, 0, 6)))
    console.print("\nA setting without a value must be given. Schemes: fedcohort schemes.")


KINDS: dict[str, Mapping[str, Callable[..., Any]]] = {
    "--model": MODELS,
    "--server": OPTIMISERS,
    "--estimator": ESTIMATORS,
    "--availability": AVAILABILITIES,
}
MODEL_SETTINGS = ("hidden",)
"""The settings of a model that can be written in a word; the others are for Python."""


def _data(name: str) -> str:
    try:
        return str(data.load(name)).strip("<>")
    except DataNotFound:
        return f"not found: compare --data {name} says where it was looked for and how to get it"
    except FedcohortError as error:
        return str(error)


def _described(name: str, thing: Callable[..., Any], takes: dict[str, Any]) -> dict[str, Any]:
    summary = (inspect.getdoc(thing) or "").split("\n\n")[0].replace("\n", " ")
    return {"name": name, "settings": takes, "summary": summary}


def _of_partition(name: str) -> dict[str, Any]:
    """Settings and defaults; None for one that must be given."""
    declared = inspect.signature(PARTITIONS[name]).parameters
    takes = [key for key in options(name) if key != "sizes" or "n" not in options(name)]
    return {key: _default(declared.get(key)) for key in takes}


def _of_class(kind: Callable[..., Any]) -> dict[str, Any]:
    if is_dataclass(kind):
        return {f.name: None if f.default is MISSING else f.default for f in fields(kind)}
    declared = inspect.signature(kind).parameters
    return {key: _default(declared[key]) for key in MODEL_SETTINGS if key in declared}


def _default(parameter: inspect.Parameter | None) -> Any:
    missing = parameter is None or parameter.default is inspect.Parameter.empty
    return None if parameter is None or missing else parameter.default


def _shown(key: str, default: Any) -> str:
    if default is None:
        return key
    return f"{key}={str(default).lower() if isinstance(default, bool) else default}"
