"""The cohorts of a scheme in another process, where strings hash differently.

A scheme that iterates over a set, hashes a string or reads the clock gives other cohorts there.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import os
import subprocess
import sys
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from fedcohort.core.cohort import Cohort
from fedcohort.core.conversation import Answer
from fedcohort.core.federation import Federation
from fedcohort.core.scheme import Scheme
from fedcohort.harness.trial import Trial

HASH_SEED = "4242"


def fingerprint(cohorts: list[Cohort]) -> list[list[Any]]:
    """Cohorts bit for bit, as JSON can carry them."""
    return [
        [
            c.clients.tolist(),
            [float(w).hex() for w in c.weights],
            c.draws.tolist(),
            c.data_rate,
            c.per_sample,
        ]
        for c in cohorts
    ]


def first_cohorts(trial: Trial, count: int) -> list[Cohort]:
    """The cohorts of the first rounds."""
    return [cohort for cohort, _ in trial.rounds(trial.start(), 0, count)]


def elsewhere(
    scheme: Scheme[Any], federation: Federation, answer: Answer | None, count: int
) -> list[list[Any]] | None:
    """The fingerprint of the same rounds in another process; None if it cannot be sent there."""
    wanted = [type(scheme), *([] if answer is None else [answer])]
    if not all(map(_has_address, wanted)):
        return None
    job = {
        "scheme": _address(type(scheme)),
        "answer": None if answer is None else _address(answer),
        "parameters": dict(scheme.parameters),
        "parts": [int(part) for part in federation.shares.parts],
        "sizes": None if federation.sizes is None else [int(size) for size in federation.sizes],
        "count": count,
    }
    paths = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", "from fedcohort.testing.replay import main; main()"],
        input=json.dumps(job),
        env={**os.environ, "PYTHONHASHSEED": HASH_SEED, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"the other process failed: {done.stderr.strip().splitlines()[-1]}")
    cohorts: list[list[Any]] = json.loads(done.stdout)
    return cohorts


def main() -> None:
    """What runs in the other process: a job comes in, a fingerprint goes out."""
    job = json.load(sys.stdin)
    scheme = _find(job["scheme"]).build(**job["parameters"])
    parts, sizes = (
        None if job[name] is None else _integers(job[name]) for name in ("parts", "sizes")
    )
    federation = Federation.restored(parts, sizes, len(job["parts"]))  # type: ignore[arg-type]
    answer = None if job["answer"] is None else _find(job["answer"])
    cohorts = first_cohorts(Trial.of(scheme, federation, answer), job["count"])
    json.dump(fingerprint(cohorts), sys.stdout)


def _integers(values: list[int]) -> Any:
    return np.array(values, dtype=object if max(values) >= 2**63 else np.int64)


def _has_address(thing: Any) -> bool:
    """Not a local or a lambda, nor typed at a prompt or in a notebook."""
    try:
        inspect.getsource(thing)
        return "<" not in thing.__qualname__ and Path(inspect.getfile(thing)).is_file()
    except (AttributeError, TypeError, OSError):  # a partial; no file, or not in it
        return False


def _address(thing: Any) -> list[str]:
    return [thing.__module__, thing.__qualname__, inspect.getfile(thing)]


def _find(address: list[str]) -> Any:
    """The class or function at an address: by module, else by file."""
    module_name, name, file = address
    try:
        if module_name == "__main__":
            raise ModuleNotFoundError
        module = importlib.import_module(module_name)
    except ModuleNotFoundError:
        spec = importlib.util.spec_from_file_location("fedcohort_checked", file)
        if spec is None or spec.loader is None:
            raise
        module = importlib.util.module_from_spec(spec)
        sys.modules["fedcohort_checked"] = module
        spec.loader.exec_module(module)
    return reduce(getattr, name.split("."), module)
