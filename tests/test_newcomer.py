"""Whoever adds a part writes one file: it is then on the command line, in Python and compared."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from typer.testing import CliRunner

import fedcohort
from fedcohort._internal.registry import Kind, kinds
from fedcohort.cli import app

CLASS = """
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort.selection import Whole
from fedcohort._internal.parameters import Real
"""


class New(NamedTuple):
    """One file; the word that names it without its name; how `compare` takes it."""

    kind: str
    text: str
    settings: str
    option: str | None


NEW = {
    "scheme": New(
        "scheme",
        CLASS
        + '''
from fedcohort import Citation, Federation, Scheme
from fedcohort.selection import NoState
from fedcohort.designs import Simple


@dataclass(frozen=True)
class Fresh(Scheme[NoState]):
    """Equal chances for all."""

    m: Annotated[int, Whole(1)] = 10
    name: ClassVar[str] = "NAME"
    paper: ClassVar[Citation] = Citation("A", "B", "C", 2026)

    def law(self, federation):
        return Simple(federation.shares, self.m)
''',
        "m=3",
        None,
    ),
    "optimiser": New(
        "optimiser",
        CLASS
        + '''
from fedcohort.server._optimizers import Optimiser


@dataclass(frozen=True)
class Fresh(Optimiser):
    """Steps by the sign of the direction."""

    eta_g: Annotated[float, Real(0, open_low=True)] = 0.5
    name: ClassVar[str] = "NAME"

    def step(self, theta, direction, inertia):
        return theta + self.eta_g * np.sign(direction), inertia
''',
        "eta_g=0.25",
        "--optimiser",
    ),
    "aggregator": New(
        "aggregator",
        CLASS
        + '''
from fedcohort.server._aggregators import Plain


@dataclass(frozen=True)
class Fresh(Plain):
    """The plain sum, each answer cut to a range."""

    bound: Annotated[float, Real(0, open_low=True)] = 1.0
    name: ClassVar[str] = "NAME"

    def add(self, account, clients, weights, updates):
        return super().add(account, clients, weights, np.clip(updates, -self.bound, self.bound))
''',
        "bound=0.25",
        "--aggregator",
    ),
    "availability model": New(
        "availability model",
        CLASS
        + '''
from fedcohort.simulation import Availability


@dataclass(frozen=True)
class Fresh(Availability):
    """All but the first few."""

    away: Annotated[int, Whole(0)] = 1
    name: ClassVar[str] = "NAME"

    def available(self, n, round, rng):
        return np.arange(self.away, n)
''',
        "away=2",
        "--availability",
    ),
    "partition": New(
        "partition",
        '''
from typing import Annotated

import numpy as np

from fedcohort.selection import Whole
from fedcohort.data import Partition


def STEM(y, rng, n: Annotated[int, Whole(1)] = 8):
    """Every n-th sample, in turn."""
    return Partition(tuple(np.arange(start, len(y), n) for start in range(n)))
''',
        "n=12",
        "--partition",
    ),
    "data set": New(
        "data set",
        '''
from typing import Annotated

import numpy as np

from fedcohort.selection import Whole
from fedcohort.data import Dataset


def STEM(request, samples: Annotated[int, Whole(1)] = 600):
    """Three classes, told apart by one feature each."""
    y = np.arange(samples) % 3
    x = np.eye(3, dtype=np.float32)[y]
    return Dataset("NAME", x, y, x[:30], y[:30], classes=3)
''',
        "samples=1500",
        "--data",
    ),
    "model": New(
        "model",
        '''
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, ClassVar

import numpy as np

from fedcohort._internal.parameters import Real
from fedcohort.training._model import Model


@dataclass(frozen=True)
class Fresh(Model):
    """Softmax regression without a bias, started elsewhere."""

    features: int
    classes: int
    _: KW_ONLY
    start: Annotated[float, Real()] = 0.0
    name: ClassVar[str] = "NAME"

    @classmethod
    def for_data(cls, data, **settings):
        return cls(int(np.prod(data.x_train.shape[1:])), data.classes, **settings)

    @property
    def layers(self):
        return {"weight": (self.features, self.classes)}

    def initial(self, seed):
        return np.full(self.dimension, self.start)

    def _chances(self, theta, x):
        scores = x.reshape(len(x), -1) @ theta.reshape(self.features, self.classes)
        scores = np.exp(scores - scores.max(axis=1, keepdims=True))
        return scores / scores.sum(axis=1, keepdims=True)

    def sample_losses(self, theta, x, y):
        return -np.log(self._chances(theta, x)[np.arange(len(y)), y])

    def gradient(self, theta, x, y):
        error = self._chances(theta, x) - np.eye(self.classes)[y]
        return (x.reshape(len(x), -1).T @ error / len(y)).ravel()

    def predictions(self, theta, x):
        return self._chances(theta, x).argmax(axis=1)
''',
        "start=0.125",
        "--model",
    ),
    "algorithm": New(
        "algorithm",
        CLASS
        + '''
from dataclasses import replace

from fedcohort.training._algorithms import Algorithm, LocalRule


@dataclass(frozen=True)
class Fresh(Algorithm):
    """Plain SGD with another step size."""

    lr: Annotated[float, Real(0, open_low=True)] = 0.05
    name: ClassVar[str] = "NAME"

    def rule(self, work, server, kept):
        return LocalRule(replace(work, lr=self.lr))
''',
        "lr=0.025",
        "--algorithm",
    ),
}


def written(folder: Path, new: New, stem: str) -> Path:
    text = new.text.replace("NAME", stem.replace("_", "-")).replace("STEM", stem)
    path = folder / f"{stem}.py"
    path.write_text(text)
    return path


AT_ONCE = ("scheme", "model")
"""Kinds that are also compared when time is short: an argument, and an option of the problem."""

SHORT = ["--rounds", "2", "--seeds", "2", "--steps", "2", "--jobs", "2", "--out", "run"]


@pytest.mark.parametrize(
    "kind",
    [each if each in AT_ONCE else pytest.param(each, marks=pytest.mark.slow) for each in NEW],
)
def test_a_file_is_compared_in_worker_processes(kind: str, tmp_path: Path) -> None:
    new = NEW[kind]
    (tmp_path / "lab").mkdir()
    written(tmp_path / "lab", new, "fresh_file")
    word = f"lab/fresh_file.py:{new.settings}"
    words = ["compare", "md:m=3", *([word] if new.option is None else [new.option, word]), *SHORT]
    code = "from fedcohort.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        capture_output=True, text=True, cwd=tmp_path, timeout=300, check=False,
        env={**os.environ, "COLUMNS": "160", "NO_COLOR": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "run" / "settings.json").read_text())
    assert new.settings in json.dumps(kept), "what was set is kept with the runs"
    files = [path for path in tmp_path.rglob("*.py") if "run" not in path.parts]
    assert len(files) == 1


def problem(kind: str, word: str) -> fedcohort.Problem:
    given = {"data set": "data", "partition": "partition", "model": "model"}.get(kind)
    settings = {"data": "digits", "partition": "iid:n=6", "model": "softmax"}
    return fedcohort.Problem(**(settings | ({given: word} if given else {})))  # type: ignore[arg-type]


def simulated(kind: str, word: str) -> fedcohort.Trace:
    argument = {
        "optimiser": "optimiser", "aggregator": "aggregator",
        "availability model": "availability", "algorithm": "algorithm",
    }.get(kind)  # fmt: skip
    options = {argument: word} if argument else {}
    scheme = word if kind == "scheme" else "md:m=3"
    work = fedcohort.LocalWork(steps=1, batch=5)
    return fedcohort.simulate(problem(kind, word).task(), scheme, rounds=1, work=work, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", NEW)
def test_a_file_is_used_in_python(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    stem = f"fresh_python_{NEW[kind].kind.replace(' ', '_')}"
    path = written(tmp_path, NEW[kind], stem)
    assert simulated(kind, f"{path}:{NEW[kind].settings}").rounds == 1


@pytest.fixture
def anew(request: pytest.FixtureRequest) -> Iterator[Kind[object]]:
    kind = kinds()[request.param]
    kind.refresh()
    yield kind
    kind.refresh()


FOLDERS = [k for k in NEW if hasattr(importlib.import_module(kinds()[k].modules[0]), "__path__")]
"""Kinds with a folder of files; the others are one file, and another part is a class in it."""


@pytest.mark.parametrize(("anew", "kind"), [(k, k) for k in FOLDERS], indirect=["anew"])
def test_a_file_in_the_package_has_a_name_everywhere(
    anew: Kind[object], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = f"fresh_inside_{NEW[kind].kind.replace(' ', '_')}"
    written(tmp_path, NEW[kind], stem)
    package = importlib.import_module(anew.modules[0])
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    everywhere(anew, kind, stem.replace("_", "-"))
    anew.refresh()


@pytest.mark.parametrize(("anew", "kind"), [(k, k) for k in NEW], indirect=["anew"])
def test_an_installed_package_adds_a_part_by_an_entry_point(
    anew: Kind[object], kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = f"fresh_package_{NEW[kind].kind.replace(' ', '_')}"
    written(tmp_path, NEW[kind], stem)
    about = tmp_path / f"{stem}-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {stem}\nVersion: 1.0\n")
    what = stem if kind in ("partition", "data set") else "Fresh"
    (about / "entry_points.txt").write_text(f"[{anew.group}]\nanything = {stem}:{what}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    anew.refresh()
    everywhere(anew, kind, stem.replace("_", "-"))


def everywhere(parts: Kind[object], kind: str, name: str) -> None:
    """In the listing of its kind, on the command line, in Python."""
    assert name in parts
    run = CliRunner().invoke
    command = ["schemes", "--json"] if kind == "scheme" else ["settings", "--json"]
    listed = json.loads(run(app(), command).stdout)
    rows = listed if kind == "scheme" else listed[NEW[kind].option or ""]
    (row,) = [row for row in rows if row["name"] == name]
    assert row["summary"]
    word = f"{name}:{NEW[kind].settings}"
    built = parts.build(word, files=False)
    assert NEW[kind].settings in built.spec  # type: ignore[attr-defined]
    assert simulated(kind, word).rounds == 1
