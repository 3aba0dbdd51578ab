"""What `import fedcohort` gives, and what it does not load for that."""

from __future__ import annotations

import subprocess
import sys

import pytest

import fedcohort

LATER = ("adapters", "advice", "data", "report", "testing", "theory")


def in_a_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("name", LATER)
def test_packages_are_there_without_an_import_of_their_own(name: str) -> None:
    code = f"import fedcohort; print(fedcohort.{name}.__name__, '{name}' in dir(fedcohort))"
    assert in_a_new_process(code) == f"fedcohort.{name} True"


def test_they_are_loaded_when_they_are_used() -> None:
    heavy = ("pandas", "sklearn", "matplotlib", "plotly", "fedcohort.theory", "fedcohort.data")
    code = f"import sys, fedcohort; print([m for m in {heavy} if m in sys.modules])"
    assert in_a_new_process(code) == "[]"


def test_every_public_name_exists() -> None:
    for name in fedcohort.__all__:
        assert getattr(fedcohort, name) is not None
    task = fedcohort.Problem("digits", "iid", {"n": 5}).task()
    assert len(task.sizes) == 5
    assert fedcohort.LocalWork(steps=1).steps == 1


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    assert not hasattr(fedcohort, "no_such_name")
    with pytest.raises(AttributeError, match="module 'fedcohort' has no attribute 'no_such_name'"):
        fedcohort.no_such_name  # noqa: B018
