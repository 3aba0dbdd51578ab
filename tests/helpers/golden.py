"""Small runs of every scheme, in the simulator and on Flower, as plain values.

    python tests/helpers/golden.py                 records tests/golden_rounds.json again
    python tests/helpers/golden.py --exact FILE    writes digests of the exact bytes, or, where
                                                   FILE exists, compares with them

Other processors round differently, so the committed file is compared to a tolerance; the
digests show on one machine that a change of the code left every bit where it was.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import fedcohort
from fedcohort import flower
from fedcohort.simulation import DropOuts, Random
from fedcohort.training import LocalWork, Softmax

FILE = Path(__file__).parent.parent / "golden_rounds.json"
N, ROUNDS, SEED = 12, 4, 0
TOLERANCE = 1e-9
"""Of weights and models, relative to the largest of a vector: processors round differently."""
WORK = LocalWork(steps=2, batch=5, lr=0.2)
SILENT = (1, 5, 8)
QUICK = flower.Limits(population=0.2, poll=0.01)
SETTINGS: dict[str, dict[str, object]] = {
    "fedsampling": {"K": 40, "mechanism": "exact"},
    "fedsampling-naive": {"rate": 0.4},
    "poisson": {"cap": True},
}
WITHOUT_MEMORY = {"fedsampling"}  # a client sends the sum over its samples
WITHOUT_SILENT = {"fedsampling"}  # clients draw from entropy of their own, which no seed repeats


class Played(NamedTuple):
    """What a run came to."""

    clients: list[Any]  # one array per round
    draws: list[Any]
    weights: list[Any]
    model: Any  # (d,)

    def plain(self) -> dict[str, Any]:
        """In lists, as the file keeps it."""
        return {
            "clients": [clients.tolist() for clients in self.clients],
            "draws": [draws.tolist() for draws in self.draws],
            "weights": [weights.tolist() for weights in self.weights],
            "model": self.model.tolist(),
        }

    def digest(self) -> str:
        """Of every bit."""
        seen = hashlib.sha256()
        for part in (*self.clients, *self.draws, *self.weights, self.model):
            seen.update(f"{part.dtype} {part.shape} ".encode() + part.tobytes())
        return seen.hexdigest()


def task() -> Softmax:
    """Twelve clients of different sizes, two of three classes each."""
    rng = np.random.Generator(np.random.Philox(5))
    sizes = 8 + np.arange(N) * 5 % 17
    whole = int(sizes.sum())
    x, y = rng.random((whole, 3)), (rng.random(whole) * 3).astype(np.int64)
    parts = np.split(np.arange(whole), np.cumsum(sizes)[:-1])
    for i, part in enumerate(parts):
        y[part] = (i + (y[part] > 0)) % 3
    return Softmax(x, y, x, y, parts, 3, dtype=np.float64)


def of_size(name: str) -> fedcohort.Scheme:
    """A scheme for twelve clients, whatever its parameters are."""
    fields = fedcohort.schemes.schemes()[name].__dataclass_fields__
    sized = {key: value for key, value in {"m": 4, "d": 6}.items() if key in fields}
    return fedcohort.scheme(name, **SETTINGS.get(name, {}), **sized)


def simulated(name: str, how: str, dropping: bool) -> Played:
    """A run of the simulator."""
    failing = DropOuts(Random(0.6)) if dropping else None
    trace = fedcohort.simulate(
        task(), of_size(name), rounds=ROUNDS, seed=SEED, work=WORK, aggregator=how, dropouts=failing
    )
    return _played([trace.cohort(round) for round in range(ROUNDS)], trace.model)


class Silent(flower.InProcessGrid):
    """Some clients answer questions, but never train."""

    def deliver(self, message: Any) -> Any:
        away = self.partition[message.metadata.dst_node_id] in SILENT
        if away and message.metadata.message_type == "train":
            return None
        return super().deliver(message)


def on_flower(name: str, how: str, dropping: bool) -> Played:
    """A run on the in-process grid."""
    kind = Silent if dropping else flower.InProcessGrid
    grid = kind(flower.client_app(flower.task_client(task(), WORK), simulated=True), N, raises=True)
    strategy = flower.CohortStrategy(
        of_size(name), clients=N, seed=SEED, limits=QUICK, aggregator=how
    )
    result = strategy.start(grid, flower.first_model(task(), SEED), num_rounds=ROUNDS)
    return _played(strategy.cohorts, result.arrays["theta"].numpy())


def _played(cohorts: Any, model: Any) -> Played:
    return Played(
        [np.asarray(cohort.clients) for cohort in cohorts],
        [np.asarray(cohort.draws) for cohort in cohorts],
        [np.asarray(cohort.weights) for cohort in cohorts],
        np.asarray(model),
    )


def cases() -> Iterator[tuple[str, Callable[[], Played]]]:
    """Every run that is recorded, by a key that says what it is."""
    for name in sorted(fedcohort.schemes.schemes()):
        for how in ("plain", "memory"):
            if how == "memory" and name in WITHOUT_MEMORY:
                continue
            for dropping in (False, True):
                tail = f"{name} {how} {'drop-outs' if dropping else 'all answer'}"
                yield f"simulator {tail}", partial(simulated, name, how, dropping)
                if not (dropping and name in WITHOUT_SILENT):
                    yield f"flower {tail}", partial(on_flower, name, how, dropping)


def agrees(now: Played, then: dict[str, Any]) -> bool:
    """Whether a run is what was recorded: clients and draws exactly."""
    plain = now.plain()
    exact = all(plain[key] == then[key] for key in ("clients", "draws"))
    return exact and all(map(_close, [*now.weights, now.model], [*then["weights"], then["model"]]))


def _close(now: Any, then: list[float]) -> bool:
    scale = float(np.abs(then).max(initial=0.0))
    return now.shape == np.shape(then) and bool(np.all(np.abs(now - then) <= TOLERANCE * scale))


def record(file: Path) -> None:
    """Write what the code does now."""
    lines = [f"{json.dumps(key)}: {json.dumps(run().plain())}" for key, run in cases()]
    file.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def compare_exactly(file: Path) -> int:
    """Write digests, or compare with those that are there; how many differ."""
    now = {key: run().digest() for key, run in cases()}
    if not file.exists():
        file.write_text(json.dumps(now, indent=0) + "\n")
        return 0
    before = json.loads(file.read_text())
    changed = sorted(key for key in now if now[key] != before.get(key))
    for key in changed:
        print(f"{'changed' if key in before else 'new'}: {key}")  # noqa: T201
    print(f"{len(changed)} of {len(now)} runs differ")  # noqa: T201
    return len(changed)


def main() -> int:
    parser = argparse.ArgumentParser(description="Record golden rounds, or compare exactly.")
    parser.add_argument("--exact", type=Path, metavar="FILE")
    exact = parser.parse_args().exact
    logging.getLogger("flwr").setLevel(logging.ERROR)
    if exact is None:
        record(FILE)
        return 0
    return min(compare_exactly(exact), 1)


if __name__ == "__main__":
    raise SystemExit(main())
