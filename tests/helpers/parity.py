"""The same runs in the simulator and on Flower, side by side.

    python tests/helpers/parity.py [--seeds 20] [--sizes small,middle,large] [--dtypes ...]
    python tests/helpers/parity.py --quick    two seeds, one size; and what was recorded
    python tests/helpers/parity.py --torch    torch models, in every scheme

Clients that train together are multiplied together, one that trains alone is not, and an
optimised product rounds differently for other shapes and on other processors. So losses, norms
and updates of the two differ in the last digits. Nothing else differs: cohorts must be equal,
weights and models equal up to what such digits come to in a few rounds. Prints a line of JSON
per scheme and ends with 1 if anything is further apart than that. Tests run it under several
kernels (test_kernels.py): the linear algebra of a process is decided by its environment.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import logging
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

import fedcohort
from fedcohort import flower
from fedcohort.training import LocalWork, Softmax

ROUNDS = 5
TOLERANCE = {"float64": 1e-12, "float32": 1e-5}
"""Of weights and models, relative to the largest of a vector."""
SETTINGS: dict[str, dict[str, object]] = {
    "fedsampling": {"K": 60, "mechanism": "exact"},
    "fedsampling-naive": {"rate": 0.5},
    "poisson": {"cap": True},
}
DIGITS = Path(__file__).parents[2] / "examples" / "flower" / "digits" / "digits_app" / "task.py"


class Size(NamedTuple):
    """How large a problem is."""

    clients: int
    m: int
    features: int
    classes: int
    samples: int  # a client has so many to four times as many
    work: LocalWork


SIZES = {
    "small": Size(12, 4, 6, 4, 10, LocalWork(steps=3, batch=8, lr=0.1)),
    "middle": Size(30, 6, 20, 5, 15, LocalWork(steps=5, batch=16, lr=0.1)),
    "large": Size(60, 10, 64, 10, 20, LocalWork(steps=10, batch=20, lr=0.05)),
}


class Difference(NamedTuple):
    """How far the two are apart."""

    cohorts: int  # the first round with other clients or draws; -1 for none
    weights: float  # relative to the largest
    model: float

    def within(self, tolerance: float) -> bool:
        return self.cohorts < 0 and max(self.weights, self.model) <= tolerance


@cache
def task(size: Size, dtype: str) -> Softmax:
    """Clients differ in size, and in their two classes."""
    rng = np.random.Generator(np.random.Philox(5))
    sizes = size.samples + (rng.random(size.clients) * 3 * size.samples).astype(np.int64)
    whole = int(sizes.sum())
    x, y = rng.random((whole, size.features)), (rng.random(whole) * 4).astype(np.int64)
    parts = np.split(np.arange(whole), np.cumsum(sizes)[:-1])
    for i, part in enumerate(parts):
        y[part] = (i + (y[part] > 1)) % size.classes
    return Softmax(x, y, x, y, parts, size.classes, dtype=np.dtype(dtype))


def of_size(name: str, m: int) -> fedcohort.Scheme:
    """A scheme that chooses m, whatever its parameters are."""
    fields = fedcohort.schemes.schemes()[name].__dataclass_fields__
    sized = {key: value for key, value in {"m": m, "d": 2 * m}.items() if key in fields}
    return fedcohort.scheme(name, **SETTINGS.get(name, {}), **sized)


def difference(name: str, seed: int, size: Size, dtype: str) -> Difference:
    """Run a scheme on a problem of a size, and compare."""
    return compared(task(size, dtype), of_size(name, size.m), seed, size.work, ROUNDS)


def compared(
    problem: Any, scheme: Any, seed: int, work: LocalWork, rounds: int, **options: Any
) -> Difference:
    """Run a scheme in the simulator and on Flower, and compare."""
    trace = fedcohort.simulate(problem, scheme, rounds=rounds, seed=seed, work=work, **options)
    clients = len(problem.sizes)
    app = flower.client_app(flower.task_client(problem, work), simulated=True)
    strategy = flower.CohortStrategy(scheme, clients=clients, seed=seed, **options)
    result = strategy.start(
        flower.InProcessGrid(app, clients, raises=True),
        flower.first_model(problem, seed),
        num_rounds=rounds,
    )
    weights = 0.0
    for round, cohort in enumerate(strategy.cohorts):
        expected = trace.cohort(round)
        same = np.array_equal(cohort.clients, expected.clients)
        if not same or not np.array_equal(cohort.draws, expected.draws):
            return Difference(round, np.inf, np.inf)
        if not cohort.per_sample:  # the trace shows what those came to count for
            weights = max(weights, apart(cohort.weights, expected.weights))
    model = np.concatenate([array.numpy().ravel() for array in result.arrays.values()])
    return Difference(-1, weights, apart(model, trace.model))


def apart(one: Any, other: Any) -> float:
    """The largest difference, relative to the largest value."""
    scale = float(np.abs(other).max(initial=0.0))
    return float(np.abs(one - other).max(initial=0.0)) / scale if scale else 0.0


def digits() -> ModuleType:
    """The problem of the example."""
    spec = importlib.util.spec_from_file_location("digits_task", DIGITS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_digits(seed: int, clients: int, m: int) -> Difference:
    """HACCS, whose weights sum to 1/2 whatever the losses are, on the example."""
    example = digits()
    scheme = fedcohort.scheme("haccs", m=m)
    return compared(example.task(clients), scheme, seed, example.WORK, rounds=8)


def rows(seeds: int, sizes: list[str], dtypes: list[str]) -> Iterator[dict[str, Any]]:
    """What every scheme came to."""
    for dtype in dtypes:
        for size in sizes:
            for name in sorted(fedcohort.schemes.schemes()):
                found = [difference(name, seed, SIZES[size], dtype) for seed in range(seeds)]
                yield _row(found, TOLERANCE[dtype], scheme=name, dtype=dtype, size=size)


def quick() -> Iterator[dict[str, Any]]:
    """Two seeds of one size, the digits, and what the simulator did when it was recorded."""
    yield from rows(2, ["small"], list(TOLERANCE))
    found = [on_digits(seed, 10, 4) for seed in range(2)]
    yield _row(found, TOLERANCE["float32"], scheme="haccs", dtype="float32", size="digits")
    from helpers import golden

    recorded = json.loads(golden.FILE.read_text())
    for key, run in golden.cases():
        if key.startswith("simulator"):
            now = run()
            again = not key.endswith("plain all answer") or run().digest() == now.digest()
            yield {"scheme": key, "good": again and golden.agrees(now, recorded[key])}


def torch_task(size: Size, images: bool) -> Any:
    """The same problem for a dense torch network, or for one that convolves, drops and counts."""
    import torch
    from torch import nn

    from fedcohort.training import LearningTask, TorchModel

    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(size.features, 8), nn.ReLU(), nn.Linear(8, size.classes))
    if images:
        layers = nn.Conv2d(1, 3, 2), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Dropout(0.3)
        net = nn.Sequential(nn.Unflatten(1, (1, 2, -1)), *layers, nn.Linear(6, size.classes))
    data = task(size, "float32").data
    return LearningTask(TorchModel(net), data)


def torch_rows(seeds: int) -> Iterator[dict[str, Any]]:
    """What every scheme came to with torch models."""
    size = SIZES["small"]
    for images in (False, True):
        problem = torch_task(size, images)
        for name in sorted(fedcohort.schemes.schemes()):
            scheme = of_size(name, size.m)
            found = [compared(problem, scheme, seed, size.work, 3) for seed in range(seeds)]
            labels = {"scheme": name, "size": "images" if images else "dense"}
            yield _row(found, TOLERANCE["float32"], dtype="float32", **labels)


def _row(found: list[Difference], tolerance: float, **labels: str) -> dict[str, Any]:
    same = [each for each in found if each.cohorts < 0]
    return {
        **labels,
        "runs": len(found),
        "other cohorts": [seed for seed, each in enumerate(found) if each.cohorts >= 0],
        "weights": max((each.weights for each in same), default=0.0),
        "model": max((each.model for each in same), default=0.0),
        "good": all(each.within(tolerance) for each in found),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare the simulator with Flower.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sizes", default=",".join(SIZES))
    parser.add_argument("--dtypes", default=",".join(TOLERANCE))
    asked = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    every = rows(asked.seeds, asked.sizes.split(","), asked.dtypes.split(","))
    if asked.torch:
        every = torch_rows(asked.seeds)
    bad = 0
    for row in quick() if asked.quick else every:
        bad += not row["good"]
        print(json.dumps(row), flush=True)  # noqa: T201
    return min(bad, 1)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))  # as pytest does
    raise SystemExit(main())
