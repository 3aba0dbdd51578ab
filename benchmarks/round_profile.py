"""How much of our own code runs in one round: in the simulator and on Flower.

    python benchmarks/round_profile.py [--json] [--list]

The conditions are fixed, so that numbers of different versions compare: the second round, in
which nothing is read or greeted for the first time; twelve clients, four of them selected; the
`Quadratic` task; nobody evaluates. On Flower clients and server are counted together, on the
in-process grid. Counted are

files        modules of `fedcohort` of which a function was entered
functions    their functions that were entered
calls        how often they were entered
changes      calls of a function in another file than the call before
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

import fedcohort
from fedcohort import flower, simulate
from fedcohort.simulation._engine import Simulation
from fedcohort.training import LocalWork, Quadratic

N, SEED = 12, 11
SCHEMES = ("md:m=4", "pow-d:m=4,d=6")
WORK = LocalWork(steps=3, batch=8, lr=0.1)
SOURCE = str(Path(fedcohort.__file__).parent)


class Counts(NamedTuple):
    """What was entered."""

    files: int
    functions: int
    calls: int
    changes: int


class Profile:
    """Calls of our functions while `recording`."""

    def __init__(self) -> None:
        self.calls: Counter[CodeType] = Counter()
        self.changes = 0
        self._last = ""

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Count the calls of this thread."""
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(SOURCE):
            return
        self.calls[frame.f_code] += 1
        self.changes += file != (self._last or file)
        self._last = file

    @property
    def counts(self) -> Counts:
        """What was entered, in numbers."""
        files = {code.co_filename for code in self.calls}
        return Counts(len(files), len(self.calls), self.calls.total(), self.changes)


def task() -> Quadratic:
    """Return twelve clients of different sizes with a minimum each."""
    rng = np.random.default_rng(5)
    return Quadratic(rng.normal(size=(N, 6)), rng.integers(10, 40, N))


def simulated(scheme: str) -> Profile:
    """Profile the second round of a simulation."""
    profile, play = Profile(), Simulation.play

    def noted(run: Simulation) -> Any:
        if run.state.round != 1:
            return play(run)
        with profile.recording():
            return play(run)

    with patch.object(Simulation, "play", noted):
        simulate(task(), scheme, rounds=3, seed=SEED, work=WORK, evaluate_every=3)
    return profile


def on_flower(scheme: str) -> Profile:
    """Profile the second round of a run on Flower's in-process grid."""
    profile = Profile()

    def between(done: int, _: Any) -> None:  # called before the first round and after each one
        sys.setprofile(profile._note if done == 1 else None)

    app = flower.client_app(flower.task_client(task(), WORK), simulated=True)
    strategy = flower.CohortStrategy(scheme, clients=N, seed=SEED, evaluate="nobody")
    grid = flower.InProcessGrid(app, N, raises=True)
    try:
        start = flower.first_model(task(), SEED)
        strategy.start(grid, start, num_rounds=3, evaluate_fn=between)
    finally:
        sys.setprofile(None)
    return profile


def profiles() -> Iterator[tuple[str, Profile]]:
    """Yield the profile of every combination, with its name."""
    for where, profiled in (("simulate", simulated), ("flower", on_flower)):
        for scheme in SCHEMES:
            yield f"{where} {scheme.partition(':')[0]}", profiled(scheme)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="every function, most entered first")
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    results = dict(profiles())
    if options.json:
        print(json.dumps({name: each.counts._asdict() for name, each in results.items()}))
        return
    print(f"{'round':16}" + "".join(f"{name:>11}" for name in Counts._fields))
    for name, profile in results.items():
        print(f"{name:16}" + "".join(f"{number:>11,}" for number in profile.counts))
        for code, times in profile.calls.most_common() if options.list else ():
            file = code.co_filename.removeprefix(SOURCE + "/")
            print(f"    {times:6,}  {file}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
