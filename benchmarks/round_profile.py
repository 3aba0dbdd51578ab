"""Through how much of our own code one round on Flower passes.

    python benchmarks/round_profile.py [--json] [--list]

Twelve clients on the in-process grid, four of them chosen: the second round, in which nothing
is greeted or read for the first time any more. Counted are the files and functions of
`fedcohort` that were entered, and how often, clients and server together: what somebody has to
read, or step through, to follow a round.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import fedcohort
from fedcohort import flower
from fedcohort.learning import LocalWork, Softmax

N, SEED = 12, 11
SCHEMES = {"md": {"m": 4}, "pow-d": {"m": 4, "d": 6}}
WORK = LocalWork(steps=3, batch=8, lr=0.1)
OURS = str(Path(fedcohort.__file__).parent)


class Counts(NamedTuple):
    """What was entered."""

    files: int
    functions: int
    calls: int


def task() -> Softmax:
    rng = np.random.default_rng(5)
    sizes = rng.integers(10, 40, N)
    x, y = rng.random((int(sizes.sum()), 6)), rng.integers(0, 4, int(sizes.sum()))
    parts = np.split(np.arange(len(x)), np.cumsum(sizes)[:-1])
    return Softmax(x, y, x, y, parts, 4, dtype=np.float64)


def second_round(name: str) -> Counter[CodeType]:
    """How often each of our functions was entered in the second round."""
    entered: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            entered[frame.f_code] += 1

    def between(done: int, _: Any) -> None:  # Flower calls it after every round
        sys.setprofile(note if done == 1 else None)

    strategy = flower.CohortStrategy(fedcohort.scheme(name, **SCHEMES[name]), clients=N, seed=SEED)
    grid = flower.InProcessGrid(
        flower.client_app(flower.task_client(task(), WORK), simulated=True), N, raises=True
    )
    try:
        start = flower.first_model(task(), SEED)
        strategy.start(grid, start, num_rounds=2, evaluate_fn=between)
    finally:
        sys.setprofile(None)
    return entered


def counts(entered: Counter[CodeType]) -> Counts:
    files = {code.co_filename for code in entered}
    return Counts(len(files), len(entered), entered.total())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--list", action="store_true", help="every function, most entered first")
    asked = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    found = {name: second_round(name) for name in SCHEMES}
    if asked.json:
        print(json.dumps({name: counts(entered)._asdict() for name, entered in found.items()}))
        return
    print(f"{'scheme':10}{'files':>8}{'functions':>12}{'calls':>8}")
    for name, entered in found.items():
        print("{:10}{:>8,}{:>12,}{:>8,}".format(name, *counts(entered)))
        for code, times in entered.most_common() if asked.list else ():
            file = code.co_filename.removeprefix(OURS + "/")
            print(f"    {times:6,}  {file}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
