"""Clients that add 1 to every parameter; the last one sleeps before it does."""

import json
import time
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, client_app
from fedcohort.server import _history as history


def number_of(context):
    return context.node_config["partition-id"]


client = client_app(size=lambda context: 10, key=number_of)


@client.train()
def train(message, context):
    if number_of(context) == context.node_config["num-partitions"] - 1:
        time.sleep(context.run_config["nap"])
    theta = message.content["arrays"]["w"].numpy() + 1.0
    told = {
        "arrays": ArrayRecord({"w": Array(theta)}),
        "metrics": MetricRecord({"num-examples": 10}),
    }
    return Message(RecordDict(told), reply_to=message)


server = ServerApp()


@server.main()
def main(grid, context):
    config = context.run_config
    strategy = CohortStrategy(
        config["scheme"],
        clients=config["clients"],
        stragglers=config["stragglers"],
        limits=Limits(population=config["patience"]),
        evaluate="nobody",
        folder=config["folder"],
    )
    start = ArrayRecord({"w": Array(np.zeros(3))})
    result = strategy.start(grid, start, num_rounds=config["rounds"])
    _, records = history.read(Path(config["folder"]))
    told = {
        "model": result.arrays["w"].numpy().tolist(),
        "cohorts": [cohort.clients.tolist() for cohort in strategy.cohorts],
        "seconds": [record.seconds[1] for record in records],
        "latencies": strategy.session.state.latencies["training"].tolist(),
    }
    Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
