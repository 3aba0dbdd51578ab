"""Clients that do, round by round and part by part, what the run configuration says.

``faults`` has a list for every round, separated by semicolons: ``NaN,,dies;,,`` lets client 0
send NaN and client 2 die in the first round; where nothing is said a client is honest, and every
honest client adds 1 to every parameter. Client 0 claims 2**62 samples, the last one to be called
"x", and both evaluate as badly as they can.
"""

import json
import os
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, client_app
from fedcohort.flower._wire import to_record

HEADER = b"{'descr': (), 'fortran_order': False, 'shape': (3,)}"
CRAFTED = b"\x93NUMPY\x01\x00" + len(HEADER).to_bytes(2, "little") + HEADER + bytes(24)
LIES = {
    "NaN": lambda theta: {"w": theta * np.nan},
    "1e30": lambda theta: {"w": theta + 1e30},
    "shape": lambda theta: {"w": np.zeros(7)},
    "key": lambda theta: {"w": theta, "more": theta},
    "other key": lambda theta: {"weights": theta},
    "10 MB": lambda theta: {"w": np.zeros(1_250_000)},
    "text": lambda theta: {"w": theta.astype(str)},
}


def number_of(context):
    return context.node_config["partition-id"]


def is_last(context):
    return number_of(context) == context.node_config["num-partitions"] - 1


def key(context):
    return "x" if is_last(context) else number_of(context)


def size(context):
    return 10 if number_of(context) else 2**62


def fault_of(message, context):
    rounds = [each.split(",") for each in context.run_config["faults"].split(";")]
    faults = dict(enumerate(rounds[message.content["config"]["server-round"] - 1]))
    return faults.get(number_of(context), "")


client = client_app(size=size, key=key)


@client.train()
def train(message, context):
    fault = fault_of(message, context)
    if fault == "raises":
        raise RuntimeError("on purpose")
    if fault == "sleeps":
        time.sleep(context.run_config["train-limit"] + 10)
    if fault == "dies":
        os._exit(1)
    theta = message.content["arrays"]["w"].numpy() + 1.0
    told = to_record(LIES[fault](theta) if fault in LIES else {"w": theta})
    if fault == "header":
        told = ArrayRecord({"w": Array("<f8", (3,), "numpy.ndarray", CRAFTED)})
    metrics = MetricRecord({"num-examples": 10, f"metric-of-{fault}": float("nan")})
    return Message(RecordDict({"arrays": told, "metrics": metrics}), reply_to=message)


@client.evaluate()
def evaluate(message, context):
    loss = float("nan") if number_of(context) == 0 else 1.0
    return Message(RecordDict({"metrics": MetricRecord({"loss": loss})}), reply_to=message)


class Twice:
    """A grid on which every answer comes twice."""

    def __init__(self, grid):
        self.grid = grid

    def __getattr__(self, name):
        return getattr(self.grid, name)

    def pull_messages(self, message_ids):
        replies = list(self.grid.pull_messages(message_ids))
        return replies + replies


server = ServerApp()


@server.main()
def main(grid, context):
    config = context.run_config
    strategy = CohortStrategy(
        "full",
        clients=config["clients"],
        seed=0,
        quorum=0.1,
        dropouts="redraw:scale=weights",  # weights sum to 1, so each round adds exactly 1
        limits=Limits(population=config["patience"], train=config["train-limit"]),
        evaluate=config["evaluate"],
        folder=config["folder"] or None,
    )
    start = ArrayRecord({"w": Array(np.zeros(3))})
    result = strategy.start(Twice(grid), start, num_rounds=config["rounds"])
    ids = strategy.session.federation.ids
    told = {
        "model": result.arrays["w"].numpy().tolist(),
        "cohorts": [[ids[i] for i in cohort.clients] for cohort in strategy.cohorts],
        "sizes": dict(zip(map(str, ids), strategy.session.federation.sizes.tolist(), strict=True)),
        "rejected": strategy.gate.summary(),
        "losses": [m.get("loss") for m in result.evaluate_metrics_clientapp.values()],
    }
    Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
