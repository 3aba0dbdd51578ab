"""The shape of the package, read off its source: imports go down only, and nothing unsafe.

``MAY_IMPORT`` says what a package or module may import of ours. What a file imports
inside a function counts as well. The papers are a distribution of their own above the library:
they may import all of it, and the library finds them by an entry point alone.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "fedcohort"
PAPERS = ROOT / "papers" / "src" / "fedcohort_papers"
LIBRARY = sorted(SOURCE.rglob("*.py"))
FILES = [*LIBRARY, *sorted(PAPERS.rglob("*.py"))]

ROOMS = (
    "_internal", "maths", "selection", "designs", "privacy", "schemes", "training", "server",
    "data", "simulation", "theory", "advice", "testing", "report", "flower", "adapters", "cli",
)  # fmt: skip
"""The packages of the library. Each may import those before it; `APART` has the exceptions."""
APART = {
    "data": {*ROOMS} - {"_internal", "maths", "data"},
    "testing": {"data", "simulation", "advice"},
    "adapters": {"flower"},
}
"""What a package does not import, although it stands before it."""

MAY_IMPORT: dict[str, set[str]] = {
    room: {*ROOMS[: number + 1]} - APART.get(room, set()) for number, room in enumerate(ROOMS)
} | {
    "__init__": {*ROOMS} - {"cli"},
    "__main__": {*ROOMS},
    "papers.__init__": set(),
    "papers.reproduction": {*ROOMS, "papers.reproduction"} - {"cli"},
    "papers.recipes": {*ROOMS, "papers.reproduction", "papers.recipes"} - {"cli"},
    "papers.command": {*ROOMS, "papers.reproduction", "papers.recipes"},
}
VERSION = {"__version__"}
"""What any layer above the core may take from the package itself."""
LIGHT = {"_internal", "selection"}
GLOBAL_NUMPY = {"seed", "rand", "randn", "randint", "random", "choice", "shuffle", "permutation"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "random"}
FORBIDDEN_CALLS = {"eval", "exec", "joblib.load", "yaml.load", "torch.load", "pickle.load"}


def layer(path: Path) -> str:
    """The package or module directly below fedcohort or the papers that a file belongs to."""
    if path.is_relative_to(PAPERS):
        return "papers." + path.relative_to(PAPERS).parts[0].removesuffix(".py")
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of every import of a file; the name is empty for ``import module``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            yield from ((node.module, alias.name) for alias in node.names)


def ours(tree: ast.AST) -> Iterator[str]:
    """The layers of ours that a file imports."""
    for module, name in imported(tree):
        if module == "fedcohort" and name not in VERSION:
            is_part = (SOURCE / name).is_dir() or (SOURCE / f"{name}.py").is_file()
            yield name if is_part else "__init__"
        elif module.startswith("fedcohort."):
            yield module.split(".")[1]
        elif module.split(".")[0] == PAPERS.name:
            parts = [*module.split(".")[1:], name]
            yield f"papers.{parts[0] or '__init__'}"


def problems(path: Path, source: str) -> list[str]:
    """What is wrong with a file; a function of its text, so that defects can be planted."""
    tree = ast.parse(source)
    here = layer(path)
    found = [
        f"{here} must not import {there}" for there in ours(tree) if there not in MAY_IMPORT[here]
    ]
    for module, name in imported(tree):
        top = module.split(".")[0]
        if top in FORBIDDEN_MODULES:
            found.append(f"{module} is not used here")
        if here in LIGHT and top not in {*sys.stdlib_module_names, "numpy", "fedcohort"}:
            found.append(f"{here} imports numpy and the standard library only, not {top}")
        if top == "flwr" and here != "flower":
            found.append("flwr is imported in flower/ only")
        if here == "schemes" and path.stem != "__init__" and _another_scheme(module, name):
            found.append(f"a scheme must not import another ({module}.{name})")
    return found + list(_unsafe(tree))


def _another_scheme(module: str, name: str) -> bool:
    """Whether an import names a scheme; what several share is in modules that begin with _."""
    parts = [*module.split("."), name]
    return parts[:2] == ["fedcohort", "schemes"] and not parts[2].startswith("_")


def _unsafe(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in FORBIDDEN_CALLS:
                yield f"{called}() can run what it reads"
            if called in {f"{np}.random.{f}" for np in ("np", "numpy") for f in GLOBAL_NUMPY}:
                yield f"{called}() uses the global generator"
            if called in {"np.load", "numpy.load"} and not any(
                word.arg == "allow_pickle" and ast.unparse(word.value) == "False"
                for word in node.keywords
            ):
                yield "np.load() needs allow_pickle=False"
            if called.endswith("default_rng") and not node.args and not node.keywords:
                yield "a generator without a seed cannot be replayed"


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_layers(path: Path) -> None:
    assert problems(path, path.read_text(encoding="utf-8")) == []


def test_privacy_never_sees_the_simulator() -> None:
    # Directly by the table; and not through what it imports either.
    reached, waiting = set[str](), ["privacy"]
    while waiting:
        here = waiting.pop()
        reached.add(here)
        waiting += sorted(MAY_IMPORT[here] - reached)
    assert "simulation" not in reached


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("cli/packages.py", "import fedcohort_papers"),
        ("cli/packages.py", "from fedcohort_papers.command import reproduce"),
        ("__init__.py", "from fedcohort_papers import recipes"),
        ("report/_page.py", "def f():\n    from fedcohort_papers.recipes import Recipe"),
        ("selection/_federation.py", "import scipy"),
        ("selection/_federation.py", "from fedcohort.designs import Rows"),
        ("_internal/errors.py", "from fedcohort.selection import Cohort"),
        ("maths/_draws.py", "from fedcohort.selection import Cohort"),
        ("designs/_rows.py", "from fedcohort.schemes import scheme"),
        ("schemes/classical.py", "from fedcohort.schemes.classical import Uniform"),
        ("schemes/classical.py", "from fedcohort.schemes import uniform"),
        ("schemes/_data_groups.py", "from fedcohort.schemes.classical import Uniform"),
        ("schemes/classical.py", "from fedcohort import Selector"),
        ("privacy/_client.py", "from fedcohort.simulation import simulate"),
        ("server/_selector.py", "def f():\n    from fedcohort.simulation import simulate"),
        ("simulation/_engine.py", "from fedcohort.theory import moments"),
        ("training/_task.py", "from fedcohort.simulation import simulate"),
        ("simulation/_engine.py", "import flwr.server"),
        ("simulation/_engine.py", "import pickle"),
        ("simulation/_engine.py", "import random"),
        ("data/_files.py", "np.load('x.npy')"),
        ("data/_files.py", "np.load('x.npy', allow_pickle=True)"),
        ("data/_files.py", "joblib.load('x')"),
        ("data/_files.py", "yaml.load('x')"),
        ("cli/compare.py", "eval('1')"),
        ("simulation/_engine.py", "np.random.shuffle(x)"),
        ("simulation/_engine.py", "rng = np.random.default_rng()"),
    ],
)
def test_a_planted_defect_is_seen(file: str, line: str) -> None:
    assert problems(SOURCE / file, line) != []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("reproduction/judges.py", "from fedcohort_papers.recipes import recipe"),
        ("reproduction/judges.py", "from fedcohort_papers import command"),
        ("recipes/impact/figure_1.py", "from fedcohort.cli import app"),
        ("__init__.py", "import fedcohort"),
        ("recipes/impact/figure_1.py", "import pickle"),
    ],
)
def test_a_defect_planted_in_the_papers_is_seen(file: str, line: str) -> None:
    assert problems(PAPERS / file, line) != []


def test_the_library_names_the_papers_nowhere() -> None:
    """Nor does it import them by a text."""
    told = [path for path in LIBRARY if PAPERS.name in path.read_text(encoding="utf-8")]
    assert told == []


PLAN = Path(__file__).parents[1] / "docs" / "architecture.md"


def floors() -> list[list[str]]:
    """The rooms of the picture in docs/architecture.md, floor by floor, from the top."""
    picture = PLAN.read_text(encoding="utf-8").split("```")[1]
    rows = [line[:54].split() for line in picture.splitlines() if line.strip()]
    assert len(rows) > 5
    return rows


def test_the_picture_of_the_house_is_true() -> None:
    rows = floors()
    height = {room: -number for number, row in enumerate(rows) for room in row}
    built = {layer(path) for path in LIBRARY} - {"__init__", "__main__"}
    assert set(height) == built, "docs/architecture.md must show every package, and no other"
    for path in LIBRARY:
        room = layer(path)
        if room in height:
            tree = ast.parse(path.read_text(encoding="utf-8"))
            for other in set(ours(tree)) - {room, "__init__"}:
                assert height[other] < height[room], f"{path} of '{room}' imports from '{other}'"
