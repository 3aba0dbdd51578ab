"""Both wheels alone, in empty environments outside the repository; `make test-wheel`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedcohort
from fedcohort_papers.recipes import EXIT, recipe, recipes

REPOSITORY = Path(__file__).parents[1]
TUTORIALS = {
    "first-comparison": "",
    "choosing-a-scheme": "",
    "your-own-scheme": "",
    "your-own-model-and-data": "torch",
    "privacy": "privacy",
    "simulation-to-flower": "flower",
}
"""All of them, each with the extra that it needs."""
WHERE_PAPERS = "import fedcohort_papers; print(fedcohort_papers.__file__)"
PIP = ("-m", "pip", "--disable-pip-version-check", "--quiet")

pytestmark = pytest.mark.slow


def done(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """A command that ended; nothing of this environment or repository is on its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"PATH": f"{Path(command[0]).parent}{os.pathsep}{kept['PATH']}", "COLUMNS": "110"}
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True
    )


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints that must succeed."""
    ended = done(*command, cwd=cwd)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of what would be uploaded, where FEDCOHORT_DIST names it, else built now."""
    given = os.environ.get("FEDCOHORT_DIST")
    if given:
        return Path(given).resolve(strict=True)
    here = tmp_path_factory.mktemp("wheels")
    both = (REPOSITORY, REPOSITORY / "papers")
    run(sys.executable, *PIP, "wheel", "--no-deps", "-w", here, *both, cwd=here)
    return here


@pytest.fixture(scope="module")
def wheel(wheels: Path) -> Path:
    """The wheel of the library."""
    (built,) = wheels.glob("fedcohort-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has nothing but the wheel of the library and what it needs."""
    return fresh(tmp_path_factory.mktemp("fresh"), wheel)


def fresh(folder: Path, *what: Path) -> Path:
    """A new environment that has nothing but this and what it needs."""
    place = folder / "environment"
    run(sys.executable, "-m", "venv", place, cwd=folder)
    install(place, *what)
    return place


def install(environment: Path, *what: str | Path) -> None:
    """Into an environment, with the versions that were tested."""
    constraints = REPOSITORY / "constraints.txt"
    python = environment / "bin/python"
    run(python, *PIP, "install", "-c", constraints, *what, cwd=environment.parent)


def test_the_wheel_alone_runs_the_demo(environment: Path, wheel: Path, tmp_path: Path) -> None:
    python, command = environment / "bin/python", environment / "bin/fedcohort"
    where, version = run(
        python, "-c", "import fedcohort as f; print(f.__file__, f.__version__)", cwd=tmp_path
    ).split()
    assert Path(where).is_relative_to(environment)
    assert wheel.name.startswith(f"fedcohort-{version}-")
    listed = run(command, "schemes", cwd=tmp_path)
    missing = [name for name in fedcohort.schemes.schemes() if name not in listed]
    assert missing == []
    shown = done(command, "demo", "--out", tmp_path / "demo", cwd=tmp_path)
    assert shown.returncode == 0, shown.stdout[-3000:] + shown.stderr[-3000:]
    assert "56 runs of 100 rounds (7 schemes x 8 seeds)" in shown.stderr
    page = (tmp_path / "demo" / "report.html").read_text()
    assert all(name in page for name in ("clustered-similarity", "optimal", "target"))


def test_without_the_papers_their_command_says_how_to_install_them(
    environment: Path, tmp_path: Path
) -> None:
    command = environment / "bin/fedcohort"
    assert "reproduce" in run(command, "--help", cwd=tmp_path)
    ended = done(command, "reproduce", "impact-fig1", "--scale", "quick", cwd=tmp_path)
    assert ended.returncode == 2
    assert "pip install " in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_both_wheels_list_and_run_a_recipe(wheels: Path, tmp_path: Path) -> None:
    place = fresh(tmp_path, *wheels.glob("*.whl"))
    command = place / "bin/fedcohort"
    where = run(place / "bin/python", "-c", WHERE_PAPERS, cwd=tmp_path).strip()
    assert Path(where).is_relative_to(place)
    listed = json.loads(run(command, "reproduce", "--json", cwd=tmp_path))
    assert {each["name"] for each in listed} == set(recipes())
    ended = done(command, "reproduce", "impact-fig1", "--json", "--jobs", "1", cwd=tmp_path)
    facts = json.loads(ended.stdout)
    assert ended.returncode == EXIT[facts["verdict"]]
    assert len(facts["claims"]) == len(recipe("impact-fig1").claims)
    assert (tmp_path / "reproduced" / "impact-fig1-quick" / "impact-fig1.png").is_file()


def test_every_tutorial_is_followed() -> None:
    there = {path.stem for path in (REPOSITORY / "docs/tutorials").glob("*.md")} - {"index"}
    assert there == set(TUTORIALS)


@pytest.mark.parametrize("page", TUTORIALS)
def test_a_tutorial_is_followed_from_its_text_alone(
    page: str, environment: Path, wheel: Path, tmp_path: Path
) -> None:
    """Where there is nothing but the wheel, and the extra that the page tells to install."""
    extra = TUTORIALS[page]
    if extra:
        try:
            install(environment, f"{wheel}[{extra}]")
        except AssertionError as error:
            pytest.skip(f"the extra '{extra}' cannot be installed here: {str(error)[-300:]}")
    runner = REPOSITORY / "tests" / "helpers" / "pages.py"
    tutorial = REPOSITORY / "docs/tutorials" / f"{page}.md"
    run(environment / "bin/python", runner, tutorial, cwd=tmp_path)
