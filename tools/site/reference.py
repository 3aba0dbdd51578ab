"""The reference, read off the source: the command line, every kind's settings, the API."""

from __future__ import annotations

import importlib
import inspect
from functools import cache
from types import ModuleType
from typing import Any

import typer
from typer.cli import get_docs_for_click
from typer.main import get_command

import fedcohort
from fedcohort._internal.errors import MissingExtra
from fedcohort._internal.parameters import written
from fedcohort._internal.registry import Kind, kinds, summary
from fedcohort.cli import app

FOLDER = "reference"
MODULES = {
    "selection": "selection",
    "designs": "designs",
    "privacy": "privacy",
    "schemes": "schemes",
    "training": "training",
    "server": "server",
    "data": "data data.partition data.heterogeneity data.sets",
    "simulation": "simulation",
    "theory": "theory theory.simulated",
    "advice": "advice",
    "testing": "testing",
    "report": "report",
    "flower": "flower",
    "adapters": "adapters.nvflare adapters.pfl adapters.fedlab",
    "papers": "fedcohort_papers.reproduction",
}
"""Pages of the API, each with the packages and modules whose public names it has: of fedcohort, or
with their full names."""


def navigation() -> list[Any]:
    """The pages in order."""
    api = [f"{FOLDER}/api/{page}.md" for page in MODULES]
    return [
        f"{FOLDER}/index.md",
        {"Command line": f"{FOLDER}/cli.md"},
        {"Settings of everything": f"{FOLDER}/settings.md"},
        {"API": api},
    ]


def pages() -> dict[str, str]:
    """Every page by its path."""
    made = {f"{FOLDER}/api/{page}.md": api(page) for page in MODULES}
    return {
        f"{FOLDER}/index.md": index(),
        f"{FOLDER}/cli.md": command_line(),
        f"{FOLDER}/settings.md": settings(),
        **made,
    }


def index() -> str:
    """What is imported from where."""
    rows = []
    for name in fedcohort.__all__:
        value = getattr(fedcohort, name)
        page = next((page for page, names in documented().items() if path_of(value) in names), None)
        what = summary(inspect.getdoc(value)).replace("|", "\\|")
        shown = f"[`{name}`](api/{page}.md#{path_of(value)})" if page else f"`{name}`"
        rows.append(f"| {shown} | {what} |")
    listed = "\n".join(f"- [{page}](api/{page}.md)" for page in MODULES)
    return f"""# Reference

All of this is read off the source when the site is built.

- [Command line](cli.md): every command with its options
- [Settings of everything](settings.md): schemes, data sets, partitions, models, optimisers and
  all else that is spelt `name:setting=value`

## `import fedcohort`

| name | what it is |
|---|---|
{chr(10).join(rows)}

## By package

{listed}
"""


def command_line() -> str:
    """Help of every command."""
    command = get_command(app())
    context = typer.Context(command, info_name="fedcohort")
    for name in list(command.commands):  # type: ignore[attr-defined]
        command.resolve_command(context, [name])  # type: ignore[attr-defined]  # with its options
    text: str = get_docs_for_click(obj=command, ctx=context, name="fedcohort", title="Command line")
    return text.replace("**Usage**:\n\n```console", "\n```console")


def settings() -> str:
    """A table for every kind of part."""
    out = ["# Settings of everything\n"]
    out.append("Spelt `name:setting=value,...`, on the command line as in Python.\n")
    for kind in kinds().values():
        rows = [row for name in kind for row in _rows(kind, name)]
        out += [
            f"## {kind.name}\n",
            "| name | setting | must be | by default |",
            "|---|---|---|---|",
        ]
        out += [*rows, ""]
    return "\n".join(out)


def _rows(kind: Kind[Any], name: str) -> list[str]:
    what = _cell(kind.listed()[name].summary)
    shown = f"[`{name}`](../schemes/{name}.md)" if kind.name == "scheme" else f"`{name}`"
    rows = [f"| {shown} | | {what} | |"]
    try:
        declared = kind.settings(kind[name])
    except MissingExtra as error:
        return [*rows, f"| | | {_cell(error)} | |"]
    for key, setting in declared.items():
        if setting.constraint is None and kind.make:
            continue  # those of a model are for Python
        default = "must be given" if setting.required else f"`{written(setting.default)}`"
        rows.append(f"| | `{key}` | {_cell(setting.constraint or '')} | {default} |")
    return rows


def _cell(value: object) -> str:
    return str(value).replace("|", "\\|").replace("<", "&lt;").replace("``", "`")


def api(page: str) -> str:
    """What mkdocstrings is to write about."""
    modules = [_module(name) for name in MODULES[page].split()]
    text = summary(inspect.getdoc(modules[0])).replace("<", "&lt;")
    told = "\n".join(f"::: {path}\n" for path in documented()[page])
    return f"# {page}\n\n{text}\n\n{told}"


@cache
def documented() -> dict[str, list[str]]:
    """The full names that each page has; one that is in several packages is on the first page."""
    seen: set[str] = set()
    out: dict[str, list[str]] = {}
    for page, modules in MODULES.items():
        found = [path for name in modules.split() for path in public(_module(name))]
        out[page] = [path for path in dict.fromkeys(found) if path not in seen]
        seen |= set(out[page])
    return out


def public(module: ModuleType) -> list[str]:
    """Classes and functions that a module offers."""
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
        ]
    values = [getattr(module, name) for name in names]
    wanted = [v for v in values if inspect.isclass(v) or inspect.isfunction(v)]
    return [
        path
        for path in map(path_of, wanted)
        if path.startswith(("fedcohort.", "fedcohort_papers."))
    ]


def path_of(value: Any) -> str:
    """The full name of a class or function where it is defined."""
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"


def _module(name: str) -> ModuleType:
    papers = name.startswith("fedcohort_papers.")
    return importlib.import_module(name if papers else f"fedcohort.{name}")
