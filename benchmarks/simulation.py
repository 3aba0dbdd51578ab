"""CPU milliseconds per round of local training and of evaluation, on one thread.

    python benchmarks/simulation.py [--rounds 20] [--only W1] [--alone] [--json]

Workloads: 100 clients, 10 of them train in a round, 50 steps of SGD each;

* W1: MNIST, 500 samples per client, one hidden layer of 50, batches of 50;
* W2: the same data, softmax regression;
* W5: 100 samples of 60 features per client, softmax regression, batches of 10.

Each round also computes the loss over all training samples and loss and accuracy on the
test set (10,000 images; 1,000 samples for W5). "evaluation" keeps the models of 10 rounds
and evaluates them at once, as the simulator does when nothing reads them earlier; "evaluation,
each round" does not wait. The other ways to write the loop (plain numpy, and torch on indexed
tensors where torch is installed) evaluate each round.

All candidates take turns within one run, and processor time is counted, not the clock: on a
shared machine only the ratios mean much.
MNIST is read from FEDCOHORT_DATA/mnist.npz, or else noise of that shape stands in.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from fedcohort.training import MLP, LocalWork, Softmax
from fedcohort.training.trainers import _plain as plain

CLIENTS, COHORT, DEFERRED = 100, 10, 10


def mnist() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    path = Path(os.environ.get("FEDCOHORT_DATA", "")) / "mnist.npz"
    if path.is_file():
        with np.load(path, allow_pickle=False) as file:
            x, y, x_test, y_test = (file[k] for k in ("x_train", "y_train", "x_test", "y_test"))
        x, x_test = (a.reshape(len(a), -1).astype(np.float32) / 255 for a in (x, x_test))
        return x[:50_000], y[:50_000], x_test, y_test
    print("MNIST not found: noise of its shape instead")
    return noise(50_000, 10_000, 784)


def noise(train: int, test: int, features: int) -> tuple[np.ndarray, ...]:
    rng = np.random.Generator(np.random.Philox(0))
    x = rng.random((train + test, features), dtype=np.float32)
    y = rng.integers(0, 10, train + test)
    return x[:train], y[:train], x[train:], y[train:]


def workloads() -> dict[str, tuple[MLP | Softmax, LocalWork]]:
    images, small = mnist(), noise(10_000, 1_000, 60)
    work = LocalWork(steps=50, batch=50, lr=0.01)
    parts, small_parts = np.split(np.arange(50_000), CLIENTS), np.split(np.arange(10_000), CLIENTS)
    return {
        "W1": (MLP(*images, parts, 10, hidden=50), work),
        "W2": (Softmax(*images, parts, 10), work),
        "W5": (Softmax(*small, small_parts, 10), LocalWork(steps=50, batch=10, lr=0.01)),
    }


def generators(clients: np.ndarray, moment: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.Philox([moment, int(i)])) for i in clients]


class Fast:
    """The library."""

    name = "fedcohort"

    def __init__(self, task: MLP | Softmax, work: LocalWork) -> None:
        self.task, self.work = task, work
        for first in range(0, CLIENTS, COHORT):  # builds the Gram matrices, once
            clients = np.arange(first, first + COHORT)
            task.updates(task.initial(0), clients, work, generators(clients, 0))

    def train(self, theta: np.ndarray, clients: np.ndarray, moment: int) -> np.ndarray:
        moved = self.task.updates(theta, clients, self.work, generators(clients, moment))
        return theta + moved.mean(axis=0)

    def evaluate(self, thetas: np.ndarray) -> float:
        return float(self.task.evaluate(thetas).train_loss[-1])


class Plain(Fast):
    """One client and one step after another."""

    name = "plain numpy loop"

    def train(self, theta: np.ndarray, clients: np.ndarray, moment: int) -> np.ndarray:
        total, single = np.zeros_like(theta, dtype=np.float32), theta.astype(np.float32)
        for client, rng in zip(clients, generators(clients, moment), strict=True):
            samples = self.task.data.samples(self.task.data.part(int(client)))
            total += plain.update(self.task.model, single, *samples, self.work, rng)
        return theta + total / len(clients)

    def evaluate(self, thetas: np.ndarray) -> float:
        data, model = self.task.data, self.task.model
        single = thetas[-1].astype(np.float32)
        model.sample_losses(single, data.x_test, data.y_test).mean()
        (model.predictions(single, data.x_test) == data.y_test).mean()
        return float(model.sample_losses(single, data.x_train, data.y_train).mean())


class Torch:
    """What one writes in torch when one avoids the DataLoader."""

    name = "torch loop"

    def __init__(self, task: MLP | Softmax, work: LocalWork) -> None:
        import torch

        self.torch, self.task, self.work = torch, task, work
        torch.set_num_threads(1)
        data, widths = task.data, task.model.widths
        self.x = torch.from_numpy(np.ascontiguousarray(data.x_train))
        self.x_test = torch.from_numpy(np.ascontiguousarray(data.x_test))
        self.y, self.y_test = torch.from_numpy(data.y_train), torch.from_numpy(data.y_test)
        linear = [torch.nn.Linear(a, b) for a, b in pairwise(widths)]
        modules = [linear[0], torch.nn.ReLU(), linear[1]] if len(linear) == 2 else linear
        self.model = torch.nn.Sequential(*modules)

    def _load(self, theta: np.ndarray) -> None:
        flat = self.torch.from_numpy(theta.astype(np.float32))
        self.torch.nn.utils.vector_to_parameters(flat, self.model.parameters())

    def train(self, theta: np.ndarray, clients: np.ndarray, moment: int) -> np.ndarray:
        torch, batch = self.torch, self.work.batch or 0
        total = np.zeros_like(theta)
        for client in clients:
            self._load(theta)
            optimizer = torch.optim.SGD(self.model.parameters(), lr=self.work.lr)
            part = self.task.data.part(int(client))
            x, y, at = self.x[part], self.y[part], len(self.y)
            for _ in range(self.work.steps or 0):
                if at + batch > len(y):
                    order, at = torch.randperm(len(y)), 0
                rows = order[at : at + batch]
                at += batch
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(self.model(x[rows]), y[rows])
                loss.backward()
                optimizer.step()
            flat = torch.nn.utils.parameters_to_vector(self.model.parameters())
            total += flat.detach().numpy() - theta
        return theta + total / len(clients)

    def evaluate(self, thetas: np.ndarray) -> float:
        torch = self.torch
        self._load(thetas[-1])
        with torch.no_grad():
            scores = self.model(self.x_test)
            torch.nn.functional.cross_entropy(scores, self.y_test)
            (scores.argmax(1) == self.y_test).float().mean()
            return float(torch.nn.functional.cross_entropy(self.model(self.x), self.y))


@contextmanager
def stopwatch(times: list[float], share: int = 1) -> Iterator[None]:
    start = time.process_time()
    yield
    times.append(1000 * (time.process_time() - start) / share)


def measure(
    task: MLP | Softmax, work: LocalWork, kinds: list[Callable[..., Any]], rounds: int
) -> dict[str, dict[str, float]]:
    """Median milliseconds per round; the candidates take turns, round by round."""
    runners = [kind(task, work) for kind in kinds]
    thetas = {runner.name: task.initial(0) for runner in runners}
    kept: list[np.ndarray] = []
    times: dict[str, dict[str, list[float]]] = {
        runner.name: {"train": [], "evaluation": [], "evaluation, each round": []}
        for runner in runners
    }
    for moment in range(rounds):
        clients = np.random.Generator(np.random.Philox(moment)).permutation(CLIENTS)[:COHORT]
        for runner in runners:
            spent = times[runner.name]
            with stopwatch(spent["train"]):
                thetas[runner.name] = runner.train(thetas[runner.name], clients, moment)
            with stopwatch(spent["evaluation, each round"]):
                runner.evaluate(thetas[runner.name][None])
            if type(runner) is Fast:
                kept = [*kept, thetas[runner.name]][-DEFERRED:]
                if len(kept) == DEFERRED and moment % 2:
                    with stopwatch(spent["evaluation"], DEFERRED):
                        runner.evaluate(np.stack(kept))
    result = {}
    for name, spent in times.items():
        if not spent["evaluation"]:
            spent["evaluation"] = spent["evaluation, each round"]
        row = {part: statistics.median(values) for part, values in spent.items()}
        result[name] = {**row, "total": row["train"] + row["evaluation"]}
    return result


def show(results: dict[str, dict[str, dict[str, float]]]) -> None:
    parts = ["train", "evaluation", "total", "evaluation, each round"]
    print(f"{'':4} {'ms per round':18}" + "".join(f"{part:>24}" for part in parts))
    for workload, rows in results.items():
        ours = rows[Fast.name]
        for name, row in rows.items():
            cells = (f"{row[part]:.2f} ({row[part] / ours[part]:.1f}x)" for part in parts)
            print(f"{workload:4} {name:18}" + "".join(f"{cell:>24}" for cell in cells))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", help="W1, W2 or W5")
    parser.add_argument("--alone", action="store_true", help="only the library")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    kinds: list[Callable[..., Any]] = [Fast]
    if not arguments.alone:
        kinds += [Plain] + ([Torch] if importlib.util.find_spec("torch") else [])
    with threadpool_limits(1):
        results = {
            name: measure(task, work, kinds, max(arguments.rounds, DEFERRED))
            for name, (task, work) in workloads().items()
            if arguments.only in (None, name)
        }
    print(json.dumps(results)) if arguments.json else show(results)


if __name__ == "__main__":
    main()
