"""The library stays small and plain: its counts keep the limits of tools/budgets.toml."""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fedcohort.server._guards import GUARDS

ROOT = Path(__file__).parents[1]
SLACK = 0.02
"""A limit may be this much above its count. Beyond, lower the limit: limits only fall."""
FIXED = {"largest_file"}
"""Limits that need not be lowered."""


def loaded(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "tools" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


budgets: Any = loaded("budgets")


@pytest.fixture(scope="module")
def counted() -> Any:
    return budgets.tally()


@pytest.fixture(scope="module")
def table(counted: Any) -> dict[str, float]:
    return dict(counted.table())


@pytest.fixture
def tally(counted: Any) -> Any:
    return copy.deepcopy(counted)


def test_every_count_has_a_limit(table: dict[str, float]) -> None:
    assert list(table) == list(budgets.limits())


@pytest.mark.parametrize("name", budgets.limits())
def test_a_count_keeps_its_limit(table: dict[str, float], name: str) -> None:
    count, limit = table[name], budgets.limits()[name]
    assert count <= limit, f"{name}: run `python tools/budgets.py --worst` and shorten"
    tight = limit <= count * (1 + SLACK) + 0.2 or name in FIXED
    assert tight, f"lower {name} in tools/budgets.toml to {count:g}"


DEFECTS = {
    "code_lines": "x = 1\ny = 2\n",
    "files": "x = 1\n",
    "largest_file": "x = 1\n" * 999,
    "public_names": "def f() -> None: ...\nclass C: ...\n",
    "ambiguous_classes": "class Cohort: ...\n",
    "wide_signatures": "def f(a, b, c, d, e, f, g, h, i, j, k): ...\n",
    "most_parameters": f"def f({', '.join(f'a{i}' for i in range(99))}): ...\n",
    "most_fields": "@dataclass\nclass C:\n" + "".join(f"    a{i}: int\n" for i in range(99)),
    "vague_variables_percent": "found = 1\n" * 999,
    "vague_arguments_percent": "def f(found): ...\n" * 999,
    "vague_attributes_percent": "x.found = 1\n" * 999,
    "filler_names_percent": "result = 1\n" * 9999,
    "participle_functions_percent": "def joined(): ...\n" * 99,
    "indefinite_words_docstrings": '"""' + "What somebody told. " * 999 + '"""\n',
    "indefinite_words_messages": "raise E('what nobody told')\n" * 999,
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_counted(
    table: dict[str, float], tally: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "defect.py"
    file.write_text(DEFECTS[name])
    monkeypatch.setattr(budgets, "ROOT", tmp_path)
    monkeypatch.setattr(budgets, "LIBRARY", tmp_path)
    tally.module(file, tmp_path)
    assert tally.table()[name] > table[name]


PAGE_DEFECTS = {
    "indefinite_words_pages": "What somebody told nobody.\n" * 999,
    "words_of_pages": "One word more.\n",
    "sentence_pages_median": f"{'long ' * 99}.\n\n" * 9999,
    "sentence_pages_90_percent": f"{'long ' * 99}.\n\n" * 9999,
}
COMMAND = f"def f({', '.join(f'a{i}' for i in range(99))}): ...\n"


@pytest.mark.parametrize("name", PAGE_DEFECTS)
def test_a_planted_defect_of_a_page_is_counted(
    table: dict[str, float], tally: Any, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE_DEFECTS[name])
    monkeypatch.setattr(budgets, "ROOT", tmp_path)
    tally.page(page)
    assert tally.table()[name] > table[name]


@pytest.mark.parametrize(
    ("name", "folder", "text"),
    [("code_lines_papers", "papers", "x = 1\n"), ("most_options", "cli", COMMAND)],
)
def test_a_planted_defect_elsewhere_is_counted(
    table: dict[str, float],
    tally: Any,
    name: str,
    folder: str,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    file = tmp_path / folder / "defect.py"
    file.parent.mkdir()
    file.write_text(text)
    monkeypatch.setattr(budgets, "ROOT", tmp_path)
    tally.module(file, tmp_path)
    assert tally.table()[name] > table[name]


def test_every_count_has_a_planted_defect(table: dict[str, float]) -> None:
    planted = {*DEFECTS, *PAGE_DEFECTS, "code_lines_papers", "most_options"}
    assert planted == set(table)


def test_a_round_passes_through_few_files() -> None:
    pytest.importorskip("flwr")
    script = ROOT / "benchmarks" / "round_profile.py"
    printed = subprocess.run(
        [sys.executable, str(script), "--json"], capture_output=True, text=True, check=True
    ).stdout
    files = {name: profile["files"] for name, profile in json.loads(printed).items()}
    assert files == budgets.limits("files_per_round")


# -- the public interface --------------------------------------------------------------------


def test_the_public_interface_is_the_listed_one() -> None:
    pytest.importorskip("flwr")
    listed = budgets.API.read_text(encoding="utf-8").splitlines()
    assert budgets.public_api() == listed, (
        "run `python tools/budgets.py --api` and look at the diff"
    )


# -- names that saved runs depend on ---------------------------------------------------------

DRAWS = {"stream", "key_of", "rng", "_rng", "rngs"}
"""Functions that take the purpose of a random stream."""


def purposes() -> Iterator[str]:
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "papers" / "src").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            if getattr(called, "attr", getattr(called, "id", "")) in DRAWS:
                assert isinstance(node, ast.Call)
                for given in node.args:
                    if isinstance(given, ast.Constant) and isinstance(given.value, str):
                        yield given.value
                    if isinstance(given, ast.JoinedStr):
                        yield "".join(
                            part.value if isinstance(part, ast.Constant) else "{}"
                            for part in given.values
                        )


PURPOSES = """
adapt
advice
alone
arrival
audit
availability
batch
centres
cohorts {} {}
configurations
devices
dropouts
evaluate
fact {}
features
first model
full gradient
gradient
guard {}
jitter
labels
line
medoids by {}
minima
models
partition
privacy
private-counts
private-share
private-size
published
replace
rounding
rounds {} {} {}
runs on a partition
runs {} {} {}
sample
sample-losses
select
sessions
signal {}
sizes
start
strata
subsets
ties
time zones
train
training
update
updates
validation
variance
whose trace
"""


def test_the_purposes_of_random_streams_are_frozen() -> None:
    """Another purpose is another stream: every run that was saved would go on differently."""
    assert sorted(set(purposes())) == PURPOSES.strip().splitlines()


def test_the_names_of_guards_are_frozen() -> None:
    """A guard's stream is named after it."""
    assert list(GUARDS) == ["clip", "explore", "losses", "rate-cap", "size-cap"]
