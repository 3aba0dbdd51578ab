"""Client i of ten has the fault FAULTS[i]; the others are honest."""

import json
import os
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, client_app
from fedcohort.flower.wire import to_record

FAULTS = ["raises", "sleeps", "NaN", "1e30", "shape", "key", "10 MB", "dies"]
TRAIN_LIMIT = 15.0

client = client_app(size=lambda context: 10)


@client.train()
def train(message, context):
    number = context.node_config["partition-id"]
    fault = FAULTS[number] if number < len(FAULTS) else ""
    if fault == "raises":
        raise RuntimeError("on purpose")
    if fault == "sleeps":
        time.sleep(TRAIN_LIMIT + 5)
    if fault == "dies":
        os._exit(1)
    theta = message.content["arrays"]["w"].numpy() + 1.0
    told = {"w": theta}
    if fault == "NaN":
        told = {"w": theta * np.nan}
    if fault == "1e30":
        told = {"w": theta + 1e30}
    if fault == "shape":
        told = {"w": np.zeros(7)}
    if fault == "key":
        told = {"w": theta, "more": theta}
    if fault == "10 MB":
        told = {"w": np.zeros(1_250_000)}
    metrics = MetricRecord({"num-examples": 10, f"metric-of-{number}": float("nan")})
    content = RecordDict({"arrays": to_record(told), "metrics": metrics})
    return Message(content, reply_to=message)


server = ServerApp()


@server.main()
def main(grid, context):
    config = context.run_config
    strategy = CohortStrategy(
        "full",
        clients=config["clients"],
        seed=0,
        importance="equal",
        quorum=0.1,
        limits=Limits(population=120.0, train=TRAIN_LIMIT),
    )
    start = ArrayRecord({"w": Array(np.zeros(3))})
    result = strategy.start(grid, start, num_rounds=config["rounds"])
    told = {
        "model": result.arrays["w"].numpy().tolist(),
        "cohorts": [cohort.clients.tolist() for cohort in strategy.cohorts],
        "rejected": strategy.gate.summary(),
    }
    Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
