"""CPU milliseconds per round of networks that torch computes, on one thread.

    python benchmarks/neural.py [--rounds 5] [--only W3] [--json]
    python benchmarks/neural.py --memory    the peak of 1,000 clients with the CNN in one round

* W3: the CNN of CIFAR-10 (`cnn`), 10 clients, 5 steps on 50 images each;
* W4: the character LSTM of Shakespeare (`lstm`), 5 clients, 5 steps on 64 samples each;
* dense: networks of several sizes, 10 clients, 20 steps, one client after another (`TorchLoop`)
  against side by side (`TorchCohort`): what the rule that chooses between them rests on.

"torch loop" is what one writes: the module as it is, ``optim.SGD``, tensors by index and no
DataLoader. "prototype" is that in channels-last, the fastest way that was found for W3; for W4 no
other way was faster than the loop. Candidates take turns within one run (those of W3 and W4 each in
a process of its own, as one would run them), and processor time is counted: on a shared machine
only the ratios mean much.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from fedcohort import simulate
from fedcohort.training import (
    Batched,
    ClientData,
    Dense,
    LearningTask,
    LocalWork,
    TorchCohort,
    TorchLoop,
    TorchModel,
)
from fedcohort.training import _torch_model as network
from fedcohort.training._model import MODELS
from fedcohort.training.trainers import _torch as torch_cohort

Round = Callable[[int], None]
SAMPLES = 500


def generators(count: int, moment: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.Philox([moment, i])) for i in range(count)]


def divided(x: np.ndarray, classes: int, clients: int) -> ClientData:
    y = np.random.Generator(np.random.Philox(1)).integers(0, classes, len(x))
    return ClientData.divide(x, y, None, None, np.split(np.arange(len(x)), clients), classes)


def photos(clients: int) -> ClientData:
    rng = np.random.Generator(np.random.Philox(0))
    return divided(rng.random((clients * SAMPLES, 32, 32, 3), dtype=np.float32), 10, clients)


def plays(clients: int) -> ClientData:
    rng = np.random.Generator(np.random.Philox(0))
    x = rng.integers(0, 80, (clients * SAMPLES, 80)).astype(np.uint8)
    x[0, 0] = 79
    return divided(x, 80, clients)


def task_of(name: str, data: ClientData) -> LearningTask:
    return LearningTask(MODELS[name].for_data(data), data)


def ours(task: LearningTask, work: LocalWork) -> Round:
    theta, everyone = task.initial(0), np.arange(len(task.sizes))

    def round(moment: int) -> None:
        task.updates(theta, everyone, work, generators(len(everyone), moment))

    return round


def loop(task: LearningTask, work: LocalWork, candidate: str) -> Round:
    model: Any = task.model
    net, theta = model.module(), torch.from_numpy(task.initial(0)).float()
    x, y = model.inputs(task.data.x_train), torch.from_numpy(task.data.y_train)
    if candidate == "prototype":
        net = net.to(memory_format=torch.channels_last)
        x = x.contiguous(memory_format=torch.channels_last)
    else:
        x = x.contiguous()
    parts = [task.data.part(i) for i in range(len(task.sizes))]

    def round(moment: int) -> None:
        for part in parts:
            nn.utils.vector_to_parameters(theta.clone(), net.parameters())
            optimizer = torch.optim.SGD(net.parameters(), lr=work.lr)
            own_x, own_y = x[part], y[part]
            order = torch.randperm(len(own_y))
            for step in range(work.steps or 0):
                rows = order[step * work.batch : (step + 1) * work.batch]
                optimizer.zero_grad()
                functional.cross_entropy(net(own_x[rows]), own_y[rows]).backward()
                optimizer.step()
            nn.utils.parameters_to_vector(net.parameters()).detach() - theta

    return round


def measure(candidates: dict[str, Round], rounds: int) -> dict[str, float]:
    """Median milliseconds per round; the candidates take turns, and warm up first."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for moment in range(rounds + 1):
        for name, round in candidates.items():
            start = time.process_time()
            round(moment)
            times[name].append(1000 * (time.process_time() - start))
    return {name: statistics.median(each[1:]) for name, each in times.items()}


def alone(candidate: str, name: str, batch: int, link: Connection) -> None:
    """A candidate in a process of its own: it answers a round's number with its milliseconds."""
    torch.set_num_threads(1)
    if candidate != "fedcohort":  # a loop of one's own leaves the allocator as it is
        network.keep_freed_memory = lambda: False
    task = task_of(name, photos(10) if name == "cnn" else plays(5))
    work = LocalWork(steps=5, batch=batch, lr=0.01)
    round = ours(task, work) if candidate == "fedcohort" else loop(task, work, candidate)
    while (moment := link.recv()) is not None:
        start = time.process_time()
        round(moment)
        link.send(1000 * (time.process_time() - start))


def networks(name: str, batch: int, rounds: int) -> dict[str, float]:
    """Median milliseconds per round; candidates take turns, and the first round is not counted.

    Each has its own process: they share no allocator, and what one has freed serves no other.
    """
    spawn = multiprocessing.get_context("spawn")
    links, times = dict[str, Connection](), dict[str, list[float]]()
    for candidate in ("fedcohort", "torch loop", *(["prototype"] if name == "cnn" else [])):
        links[candidate], end = spawn.Pipe()
        spawn.Process(target=alone, args=(candidate, name, batch, end), daemon=True).start()
    for moment in range(rounds + 1):
        for candidate, link in links.items():
            link.send(moment)
            times.setdefault(candidate, []).append(link.recv())
    for link in links.values():
        link.send(None)
    return {candidate: statistics.median(each[1:]) for candidate, each in times.items()}


def dense(widths: tuple[int, ...], batch: int, rounds: int) -> dict[str, float]:
    rng = np.random.Generator(np.random.Philox(0))
    data = divided(rng.random((10 * SAMPLES, widths[0]), dtype=np.float32), widths[-1], 10)
    layers = [part for pair in pairwise(widths) for part in (nn.Linear(*pair), nn.ReLU())]
    model, work = TorchModel(nn.Sequential(*layers[:-1])), LocalWork(steps=20, batch=batch)
    tasks = {
        "side by side": LearningTask(model, data, TorchCohort()),
        "one by one": LearningTask(model, data, TorchLoop()),
        "numpy": LearningTask(Dense(widths), data, Batched()),
    }
    return measure({name: ours(task, work) for name, task in tasks.items()}, rounds)


def memory() -> None:
    """One round in which all of 1,000 clients train the CNN."""
    clients = 1000
    x = np.zeros((2 * clients, 32, 32, 3), np.float32)
    task = task_of("cnn", divided(x, 10, clients))
    theta = task.initial(0)
    task.updates(theta, np.arange(1), LocalWork(steps=1, batch=2), generators(1, 0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    simulate(task, "full", rounds=1, work=LocalWork(steps=1, batch=2))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    table = clients * task.dimension * 8 / 2**20
    print(f"peak {peak:.0f} MB, {peak - before:.0f} above the start; all updates: {table:.0f} MB")


def show(workload: str, row: dict[str, float], as_json: bool) -> None:
    first = next(iter(row.values()))
    cells = (f"{name} {value:.0f} ({value / first:.2f}x)" for name, value in row.items())
    line = json.dumps({workload: row}) if as_json else f"{workload:24}" + "   ".join(cells)
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="W3, W4 or dense")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.memory:
        memory()
        return
    torch_cohort._PARAMETERS = 1 << 30  # both ways are measured, also beyond the rule
    rounds, only = arguments.rounds, arguments.only
    if only in (None, "W3"):
        show("W3", networks("cnn", 50, rounds), arguments.json)
    if only in (None, "W4"):
        show("W4", networks("lstm", 64, rounds), arguments.json)
    if only in (None, "dense"):
        for widths, batch in (
            ((60, 10), 10),
            ((60, 32, 10), 10),
            ((784, 50, 10), 50),
            ((784, 64, 30, 10), 50),
            ((784, 200, 10), 50),
            ((784, 200, 200, 10), 50),
        ):
            show("-".join(map(str, widths)), dense(widths, batch, rounds), arguments.json)


if __name__ == "__main__":
    main()
