"""Client code has one source of randomness, and no way to be given another."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

import fedcohort.privacy

PACKAGE = Path(fedcohort.privacy.__file__).parent
ON_CLIENTS = sorted({*PACKAGE.rglob("*.py")} - {PACKAGE / "_price.py"})
"""Prices of schemes are computed by servers; they draw cohorts from seeded streams."""
FORBIDDEN_MODULES = ("fedcohort.simulation", "fedcohort.maths._draws", "fedcohort._internal.random")
FORBIDDEN_MODULES += ("numpy.random", "random", "pickle")
FORBIDDEN_ARGUMENTS = {"seed", "rng", "generator", "random_state"}


def imports(tree: ast.AST) -> Iterator[str]:
    """Every name that is imported, and every attribute path such as np.random."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports would hide a name"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield ast.unparse(node).replace("np.", "numpy.", 1)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield "a module by name"


def faults(source: str) -> list[str]:
    tree = ast.parse(source)
    found = [
        name
        for name in imports(tree)
        if any(name == bad or name.startswith(f"{bad}.") for bad in FORBIDDEN_MODULES)
        or name in ("a module by name", "fedcohort.selection.stream")
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.arguments):
            arguments = [*node.posonlyargs, *node.args, *node.kwonlyargs]
            found += [a.arg for a in arguments if a.arg in FORBIDDEN_ARGUMENTS]
            found += ["**" + node.kwarg.arg] if node.kwarg and node.kwarg.arg != "more" else []
    return found


@pytest.mark.parametrize("module", ON_CLIENTS, ids=lambda path: path.name)
def test_no_seeded_randomness_can_reach_a_client(module: Path) -> None:
    assert faults(module.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "planted",
    [
        "import random",
        "from random import random",
        "import numpy.random",
        "import numpy as np\nx = np.random.default_rng(1)",
        "from numpy.random import Generator",
        "from fedcohort.simulation._clients import report_size",
        "from fedcohort.simulation._clients import twin_report",
        "import fedcohort.simulation._clients",
        "from fedcohort.maths._draws import below",
        "from fedcohort.maths import _draws",
        "from fedcohort.selection import stream",
        "import importlib\nimportlib.import_module('random')",
        "def draw(size, *, seed=None): ...",
        "def draw(size, rng): ...",
        "def draw(size, **options): ...",
    ],
)
def test_the_check_catches_planted_imports(planted: str) -> None:
    assert faults(planted)


def test_no_public_call_takes_a_seed() -> None:
    for name in fedcohort.privacy.__all__:
        parameters = inspect.signature(getattr(fedcohort.privacy, name)).parameters
        assert not FORBIDDEN_ARGUMENTS & set(parameters)
