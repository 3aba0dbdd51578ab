"""A scheme in a file of one's own, named by its path on the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fedcohort._internal.errors import BadInput
from fedcohort.schemes import SCHEMES, schemes
from fedcohort.schemes import find as find_scheme
from fedcohort.selection import Scheme

SCHEME = '''
from dataclasses import dataclass
from typing import Annotated, ClassVar

from fedcohort.selection import Citation, Federation, NoState, Scheme, Whole
from fedcohort.designs import Simple


@dataclass(frozen=True)
class CLASS(Scheme[NoState]):
    """The first of all."""

    m: Annotated[int, Whole(1)] = 10
    name: ClassVar[str] = "NAME"
    paper: ClassVar[Citation] = Citation("A", "B", "C", 2026)

    def law(self, federation: Federation) -> Simple:
        return Simple(federation.shares, min(self.m, len(federation.present)))
'''


def parse_scheme(word: str, m: int) -> Scheme[Any]:
    return SCHEMES.build(word, otherwise={"m": m})


def written(path: Path, *names: str) -> str:
    """A file with schemes of these names."""
    path.write_text("\n".join(SCHEME.replace("CLASS", n.title()).replace("NAME", n) for n in names))
    return str(path)


@pytest.fixture(autouse=True)
def _imports_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())


def test_a_file_is_a_scheme(tmp_path: Path) -> None:
    path = written(tmp_path / "own_one.py", "own")
    assert find_scheme(path).name == "own"
    assert parse_scheme(f"{path}:m=3", m=5).parameters == {"m": 3}
    assert parse_scheme(path, m=5).parameters == {"m": 5}
    assert find_scheme(path) is find_scheme(path)


def test_a_file_of_ours_is_the_scheme_that_is_known() -> None:
    haccs = schemes()["haccs"]  # a file with one scheme
    assert find_scheme(str(Path(sys.modules[haccs.__module__].__file__ or ""))) is haccs


def refused(path: str) -> str:
    with pytest.raises(BadInput) as told:
        find_scheme(path)
    return str(told.value)


def test_a_file_that_is_missing_is_said_to_be_so_where_it_was_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert f"There is no file './nowhere.py' in '{tmp_path}'; " in refused("./nowhere.py")
    assert f"There is no file '{tmp_path}/nowhere.py'; " in refused(f"{tmp_path}/nowhere.py")


def test_mistakes_are_one_sentence(tmp_path: Path) -> None:
    assert "There is no file 'nowhere.py'" in refused("nowhere.py")
    two = written(tmp_path / "own_two.py", "one", "two")
    assert refused(two).endswith("must define exactly one Scheme with a `name`; found One, Two.")
    assert "found none" in refused(written(tmp_path / "own_none.py"))
    assert "is named 'md' as one of fedcohort" in refused(written(tmp_path / "own_md.py", "md"))
    assert "another Python module named 'json'" in refused(written(tmp_path / "json.py", "own"))
    assert "letters, digits and '_'" in refused(written(tmp_path / "own-one.py", "own"))
    (tmp_path / "own_broken.py").write_text("x = 1\nif x\n")
    assert "cannot be loaded: SyntaxError in line 2: " in refused(str(tmp_path / "own_broken.py"))
    (tmp_path / "own_import.py").write_text("import nothing_of_that_name")
    assert "ModuleNotFoundError in line 1: " in refused(str(tmp_path / "own_import.py"))


def fedcohort(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "from fedcohort.cli import main; main()", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
        timeout=300,
        check=False,
    )


def test_a_new_scheme_is_listed_where_it_lies(tmp_path: Path) -> None:
    made = fedcohort("new", "own-scheme", "--in", "lab", cwd=tmp_path)
    assert "fedcohort check lab/own_scheme.py " in made.stdout
    listed = fedcohort("schemes", "lab/own_scheme.py", "--json", cwd=tmp_path)
    assert [row["name"] for row in json.loads(listed.stdout)] == ["own-scheme"]


@pytest.mark.slow
def test_a_new_scheme_is_checked_and_compared_where_it_lies(tmp_path: Path) -> None:
    made = fedcohort("new", "own-scheme", "--in", "lab", cwd=tmp_path)
    assert "fedcohort check lab/own_scheme.py " in made.stdout
    checked = fedcohort("check", "lab/own_scheme.py", "--json", cwd=tmp_path)
    assert checked.returncode == 0, checked.stderr
    rows = {row["name"]: row for row in json.loads(checked.stdout)}
    assert rows["deterministic"]["applies"]  # in another process, too
    words = ["lab/own_scheme.py:m=3", "md:m=3", "--rounds", "2", "--seeds", "2", "--jobs", "2"]
    compared = fedcohort("compare", *words, "--steps", "2", "--out", "run", cwd=tmp_path)
    assert compared.returncode == 0, compared.stderr
    assert "own-scheme" in compared.stdout
    listed = fedcohort("schemes", "lab/own_scheme.py", "--json", cwd=tmp_path)
    assert [row["name"] for row in json.loads(listed.stdout)] == ["own-scheme"]
