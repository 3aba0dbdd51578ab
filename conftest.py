"""Where torch, Flower or the like is missing, files and doctests that need it are skipped.

Files are read for it and not run: an import that ends in the middle leaves halves of modules
behind, which break other tests.
"""

from __future__ import annotations

import ast
import doctest
from collections.abc import Generator, Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest

from fedcohort._internal.errors import MissingExtra

ROOT = Path(__file__).parent
SOURCES = (ROOT / "src", ROOT / "papers" / "src")
EXTRAS = {"torch": "torch", "flwr": "flower", "ray": "ray", "nbformat": "docs"}
EXTRAS |= {"dp_accounting": "privacy"}
MISSING = {package for package in EXTRAS if find_spec(package) is None}


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> pytest.CollectReport | None:
    """The report of a file that cannot be imported here; of others pytest makes its own."""
    needs = missing(collector.path) if MISSING and isinstance(collector, pytest.File) else set()
    if not needs:
        return None
    reason = (str(collector.path), 1, f"Skipped: needs {' and '.join(sorted(needs))}")
    return pytest.CollectReport(collector.nodeid, "skipped", reason, [])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Skip a doctest that asks for an extra which really is not here."""
    try:
        return (yield)
    except doctest.UnexpectedException as failure:
        error = failure.exc_info[1]
        if isinstance(error, MissingExtra) and error.args[1] in map(EXTRAS.get, MISSING):
            pytest.skip(str(error))
        raise


def missing(file: Path) -> set[str]:
    """What is not installed of all that a file imports, itself or through files of ours."""
    seen, todo, needs = set(), [file], set()
    while todo:
        file = todo.pop()
        if file in seen or file.suffix != ".py":
            continue
        seen.add(file)
        for name in imports(file):
            needs |= MISSING & {name.partition(".")[0]}
            todo += files(name)
    return needs


@cache
def imports(file: Path) -> tuple[str, ...]:
    """The modules that are imported whenever a file is: not those within functions or ``try``."""
    return tuple(_imports(ast.parse(file.read_text("utf-8")), file))


def _imports(tree: ast.Module, file: Path) -> Iterator[str]:
    for source in SOURCES:
        if file.is_relative_to(source):  # packages come before their modules
            yield ".".join(file.relative_to(source).parent.parts)
    for line in tree.body:
        if isinstance(line, ast.Import):
            yield from (each.name for each in line.names)
        elif isinstance(line, ast.ImportFrom) and line.module:
            yield from (f"{line.module}.{each.name}" for each in line.names)


@cache
def files(name: str) -> tuple[Path, ...]:
    """The files of ours that the import of a name runs: of its packages and of itself."""
    parts = name.split(".")
    places = [Path(*parts[:i]) for i in range(1, len(parts) + 1)]
    found = [top / place for top in (*SOURCES, ROOT / "tests") for place in places]
    choices = [
        choice for each in found for choice in (each / "__init__.py", each.with_suffix(".py"))
    ]
    return tuple(choice for choice in choices if choice.is_file())
