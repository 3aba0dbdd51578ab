"""What an index would show of the package: true metadata, links that lead somewhere."""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fedcohort
import fedcohort_papers

pytest.importorskip("hatchling", reason="hatch_build.py needs it; in the extra dev")
REPOSITORY = Path(__file__).parents[1]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
PAPERS = tomllib.loads((REPOSITORY / "papers" / "pyproject.toml").read_text())
HOME = "https://example.org/somebody/fedcohort"


def hook() -> Any:
    """The module hatch_build.py, which is no part of the package."""
    spec = importlib.util.spec_from_file_location("hatch_build", REPOSITORY / "hatch_build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metadata(config: dict[str, Any]) -> dict[str, Any]:
    """What the hook adds."""
    found: dict[str, Any] = {}
    hook().CustomMetadataHook(str(REPOSITORY), config).update(found)
    return found


def test_links_become_absolute_where_there_is_a_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FEDCOHORT_HOME_PAGE", HOME + "/")
    found = metadata(PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"])
    text = found["readme"]["text"]
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    alt = "The report of the demo: a ranking of schemes, and accuracy by round"
    assert f"![{alt}]({HOME}/raw/main/docs/images/report.png)" in text
    paths = [link.split("/main/")[1].split("#")[0] for link in links if link.startswith(HOME)]
    assert len(paths) > 5
    assert [path for path in paths if not (REPOSITORY / path).exists()] == []
    assert all(address.startswith(HOME) for address in found["urls"].values())


def test_nothing_is_invented_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FEDCOHORT_HOME_PAGE", raising=False)
    found = metadata({"home": ""})
    assert found["urls"] == {}
    assert found["readme"]["text"] == (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("[a](docs/b.md#c)", f"[a]({HOME}/blob/main/docs/b.md#c)"),
        ("![a](b.png)", f"![a]({HOME}/raw/main/b.png)"),
        ("[![a](b.png)](c.md)", f"[![a]({HOME}/raw/main/b.png)]({HOME}/blob/main/c.md)"),
        ("[a](https://b.c) [d](#e)", "[a](https://b.c) [d](#e)"),
        ("[a](mailto:b@c.d) [e](//f.g)", "[a](mailto:b@c.d) [e](//f.g)"),
        ('[a](x.md "A title")', f'[a]({HOME}/blob/main/x.md "A title")'),
        ('![a](x.png "A (title)")', f'![a]({HOME}/raw/main/x.png "A (title)")'),
        ("[a](<a b.md>)", f"[a](<{HOME}/blob/main/a b.md>)"),
        ("[a](./x.md) [b](/y.md)", f"[a]({HOME}/blob/main/x.md) [b]({HOME}/blob/main/y.md)"),
        ("[`a`](x.md)", f"[`a`]({HOME}/blob/main/x.md)"),
        ("See [it][r].\n\n[r]: docs/x.md", f"See [it][r].\n\n[r]: {HOME}/blob/main/docs/x.md"),
        ("[r]: docs/x.png 'Title'", f"[r]: {HOME}/raw/main/docs/x.png 'Title'"),
        ("[r]: https://a.b/c", "[r]: https://a.b/c"),
        ("[^1]: a footnote", "[^1]: a footnote"),
        ('<img alt="a" src="x.png">', f'<img alt="a" src="{HOME}/raw/main/x.png">'),
        ("<img src='https://a.b/x.png'>", "<img src='https://a.b/x.png'>"),
        ('<a href="x.md">a</a>', f'<a href="{HOME}/blob/main/x.md">a</a>'),
        ("Write `[a](x.md)` so.", "Write `[a](x.md)` so."),
        ("``[a](x.md) ` [b](y.md)``", "``[a](x.md) ` [b](y.md)``"),
        ("```md\n[a](x.md)\n[r]: y.md\n```\n[b](z.md)",
         f"```md\n[a](x.md)\n[r]: y.md\n```\n[b]({HOME}/blob/main/z.md)"),
        ("<!-- [a](x.md) -->", "<!-- [a](x.md) -->"),
    ],
)  # fmt: skip
def test_each_kind_of_link(text: str, made: str) -> None:
    assert hook().absolute(text, HOME) == made


@pytest.mark.parametrize("home", [HOME, "ssh://git@example.org/a", "example.org/a", r"\\host\1"])
def test_any_home_is_put_in_front_once(home: str) -> None:
    made = f"[![b]({home}/raw/main/p.png)]({home}/blob/main/d.md) [c]({home}/blob/main/e.md)"
    assert hook().absolute("[![b](p.png)](d.md) [c](e.md)", home) == made


def test_the_source_has_all_that_its_tests_read() -> None:
    """And nothing that is large or belongs to one machine."""
    sdist = pytest.importorskip("hatchling.builders.sdist").SdistBuilder(str(REPOSITORY))
    files = {file.relative_path: Path(file.path) for file in sdist.recurse_included_files()}
    read = {".github/workflows/ci.yml", "benchmarks/size_leak.py", "requirements/lock.txt"}
    read |= {"papers/pyproject.toml", "papers/src/fedcohort_papers/command.py"}
    assert read <= set(files)
    top = {Path(name).parts[0] for name in files}
    assert top.isdisjoint({".git", ".venv", "build", "dist", "runs"})
    assert [name for name, path in files.items() if path.stat().st_size > 1_000_000] == []


def test_versions_of_python_are_the_same_everywhere() -> None:
    """Classifiers, the oldest that is required, and the workflow that tests them."""
    project = PROJECT["project"]
    named = re.findall(r"Python :: (3\.\d+)", " ".join(project["classifiers"]))
    assert project["requires-python"] == f">={named[0]}"
    assert PROJECT["tool"]["mypy"]["python_version"] == named[0]
    workflow = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    listed = re.search(r"python: \[(.*)\]", workflow)
    assert listed is not None
    assert re.findall(r"3\.\d+", listed[1]) == named


def test_the_papers_are_released_with_the_library() -> None:
    """Of one version, which they ask for; what they import beside it, it brings with it."""
    project = PAPERS["project"]
    assert fedcohort_papers.__version__ == fedcohort.__version__
    assert project["dependencies"] == [f"fedcohort=={fedcohort.__version__}"]
    assert project["requires-python"] == PROJECT["project"]["requires-python"]
    assert project["license"] == PROJECT["project"]["license"]
    licence = (REPOSITORY / "papers" / "LICENSE").read_bytes()
    assert licence == (REPOSITORY / "LICENSE").read_bytes()
    brought = {re.split(r"[<>=\[ ;]", each)[0] for each in PROJECT["project"]["dependencies"]}
    brought |= {"fedcohort", "fedcohort_papers", "sklearn"}  # the last is scikit-learn
    assert brought >= imported_packages(REPOSITORY / "papers" / "src") - sys.stdlib_module_names


def imported_packages(source: Path) -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in source.rglob("*.py")]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    names = [each.name for node in nodes if isinstance(node, ast.Import) for each in node.names]
    names += [str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)]
    assert names
    return {name.split(".")[0] for name in names}


def test_workflows_call_what_the_makefile_has() -> None:
    targets = re.findall(r"^([a-z-]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)
    called = {
        target
        for file in (REPOSITORY / ".github/workflows").glob("*.yml")
        for target in re.findall(r"run: make ([a-z-]+)", file.read_text())
    }
    assert called
    assert called <= set(targets)


def test_what_is_tested_before_a_release_is_what_would_be_uploaded() -> None:
    recipe = (REPOSITORY / "Makefile").read_text().partition("\nrelease-check:")[2]
    recipe = recipe.partition("\n\n")[0]
    assert "for place in . papers; do" in recipe
    build, test = (
        recipe.index("-m build --outdir dist $$place"),
        recipe.index("tests/test_wheel.py"),
    )
    assert build < recipe.index("FEDCOHORT_DIST=dist") < test


@pytest.mark.parametrize("target", ["check", "test", "docs", "coverage", "release-check"])
def test_a_pull_request_is_held_to_what_the_makefile_checks(target: str) -> None:
    workflow = (REPOSITORY / ".github/workflows/ci.yml").read_text()
    assert "pull_request:" in workflow
    assert f"- run: make {target}\n" in workflow
