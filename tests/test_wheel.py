"""The wheel alone, in an empty environment outside the repository; `make test-wheel`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedcohort

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
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What would be uploaded, where FEDCOHORT_WHEEL names it, else one that is built now."""
    given = os.environ.get("FEDCOHORT_WHEEL")
    if given:
        return Path(given).resolve(strict=True)
    here = tmp_path_factory.mktemp("wheels")
    run(sys.executable, *PIP, "wheel", "--no-deps", "-w", here, REPOSITORY, cwd=here)
    (built,) = here.glob("fedcohort-*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has nothing but the wheel and what it needs."""
    place = tmp_path_factory.mktemp("fresh") / "environment"
    run(sys.executable, "-m", "venv", place, cwd=place.parent)
    install(place, wheel)
    return place


def install(environment: Path, what: str | Path) -> None:
    """Into an environment, with the versions that were tested."""
    constraints = REPOSITORY / "constraints.txt"
    python = environment / "bin/python"
    run(python, *PIP, "install", "-c", constraints, what, cwd=environment.parent)


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
    shown = run(command, "demo", "--out", tmp_path / "demo", cwd=tmp_path)
    assert "7 schemes x 10 seeds x 100 rounds" in shown
    page = (tmp_path / "demo" / "report.html").read_text()
    assert all(name in page for name in ("clustered-similarity", "optimal", "target"))


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
