"""The wheel alone, in an empty environment outside the repository; `make test-wheel`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import fedcohort

REPOSITORY = Path(__file__).parents[1]
TUTORIALS = ("first-comparison", "choosing-a-scheme", "your-own-scheme")
"""Those that need no extra."""

pytestmark = pytest.mark.slow


def run(*command: str | Path, cwd: Path) -> str:
    """What a command prints; nothing of this environment or repository is on its path."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    kept |= {"PATH": f"{Path(command[0]).parent}{os.pathsep}{kept['PATH']}", "COLUMNS": "110"}
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_the_wheel_alone_runs_the_demo(tmp_path: Path) -> None:
    pip = "-m", "pip", "--disable-pip-version-check", "--quiet"
    wheels, environment, here = tmp_path / "wheels", tmp_path / "environment", tmp_path / "here"
    here.mkdir()
    run(sys.executable, *pip, "wheel", "--no-deps", "-w", wheels, REPOSITORY, cwd=here)
    (wheel,) = wheels.glob("fedcohort-*.whl")
    run(sys.executable, "-m", "venv", environment, cwd=here)
    python, command = environment / "bin/python", environment / "bin/fedcohort"
    run(python, *pip, "install", "-c", REPOSITORY / "constraints.txt", wheel, cwd=here)
    where = run(python, "-c", "import fedcohort; print(fedcohort.__file__)", cwd=here)
    assert Path(where.strip()).is_relative_to(environment)
    listed = run(command, "schemes", cwd=here)
    missing = [name for name in fedcohort.schemes.schemes() if name not in listed]
    assert missing == []
    shown = run(command, "demo", "--out", here / "demo", cwd=here)
    assert "7 schemes x 10 seeds x 100 rounds" in shown
    page = (here / "demo" / "report.html").read_text()
    assert all(name in page for name in ("clustered-similarity", "optimal", "target"))
    for page in TUTORIALS:  # from their text alone, where there is nothing but the wheel
        (here / page).mkdir()
        runner = REPOSITORY / "tests" / "helpers" / "pages.py"
        run(python, runner, REPOSITORY / "docs/tutorials" / f"{page}.md", cwd=here / page)
