"""A subclass that reads replies before they are aggregated, and a run that stops early."""

import json
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, client_app

client = client_app(size=lambda context: 10)


@client.train()
def train(message, context):
    theta = message.content["arrays"]["w"].numpy() + 1.0
    content = {
        "arrays": ArrayRecord({"w": Array(theta)}),
        "metrics": MetricRecord({"partition": context.node_config["partition-id"]}),
    }
    return Message(RecordDict(content), reply_to=message)


class Reader(CohortStrategy):
    def aggregate_train(self, server_round, replies):
        self.kind = type(replies).__name__
        self.read = sorted(reply.content["metrics"]["partition"] for reply in replies)
        return super().aggregate_train(server_round, replies)


server = ServerApp()


@server.main()
def main(grid, context):
    config, records, read = context.run_config, [], []
    strategy = Reader(
        "full",
        clients=config["clients"],
        stragglers=config["stragglers"],
        limits=Limits(population=config["patience"]),
        evaluate="nobody",
    )

    def on_round(record):
        records.append({"round": record.round, "clients": record.cohort.clients.tolist()})
        read.append(strategy.read)

    result = strategy.start(
        grid,
        ArrayRecord({"w": Array(np.zeros(3))}),
        num_rounds=config["rounds"],
        on_round=on_round,
        should_stop=lambda server_round, result: result.arrays["w"].numpy()[0] >= 2.0,
    )
    told = {
        "kind": strategy.kind,
        "read": read,
        "records": records,
        "void": strategy.void,
        "model": result.arrays["w"].numpy().tolist(),
    }
    Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
