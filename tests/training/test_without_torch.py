"""The base install does without torch, and whoever asks for it is told what to install."""

from __future__ import annotations

import subprocess
import sys

HIDE = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
sys.meta_path.insert(0, Absent())
"""
RUN = """
import fedcohort, fedcohort.training, fedcohort.cli
task = fedcohort.Problem("digits", "iid:n=5").task()
fedcohort.simulate(task, "md:m=2", rounds=1)
"""


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_nothing_imports_torch_unasked() -> None:
    assert python(f"{RUN}\nimport sys\nprint('torch' in sys.modules)") == "False\n"


def test_the_base_install_runs() -> None:
    python(HIDE + RUN)


def test_the_extra_is_named() -> None:
    names = ["TorchModel", "TorchLoop", "TorchCohort", "Network", "Images"]
    code = f"""
from fedcohort._internal.errors import MissingExtra
import fedcohort.training
for name in {names}:
    try:
        getattr(fedcohort.training, name)
    except MissingExtra as error:
        print(error)
"""
    assert python(HIDE + code).splitlines() == [
        f"fedcohort.training.{name} needs an optional dependency: "
        "run `pip install 'fedcohort[torch]'`."
        for name in names
    ]


def test_models_by_name_say_what_they_need() -> None:
    code = """
from fedcohort._internal.errors import MissingExtra
from fedcohort import Problem
from fedcohort.cli.settings import settings
from fedcohort.training._model import MODELS
assert Problem("digits", "iid:n=3", model="mlp:hidden=8-8").task().dimension
assert "cnn" in MODELS and "cnn" not in MODELS.all() and "softmax" in MODELS.all()
settings(as_json=True)
try:
    Problem("digits", "iid:n=3", model="cnn").task()
except MissingExtra as error:
    print(error)
"""
    said = python(HIDE + code)
    assert "cnn needs an optional" not in said
    assert said.endswith(
        "The model 'cnn' needs an optional dependency: run `pip install 'fedcohort[torch]'`.\n"
    )
    assert said.count("fedcohort[torch]") > 2  # the settings of each say so, too
