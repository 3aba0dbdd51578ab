"""Clients of two samples; a model of two parameters, one for draws and one for coins.

The first moves by the mean over the drawn samples, of which the second weighs twice the first: so a
sum over a draw is a whole number. The second moves by 1 when a client first trains in a round, and
later in that round by 2 if its coins are still the same, by 1000 if they are not.
"""

import json
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, client_app

KEPT = "coins-of-the-round"


class Local:
    size = 2

    def __init__(self, context):
        self.context = context

    def update(self, model, work):
        coins = float(work.rng("train").random())
        kept = self.context.state.get(KEPT, {})
        again = 0.0
        if kept.get("round") == work.round:
            again = 1.0 if kept["coins"] == coins else 999.0
        self.context.state[KEPT] = ConfigRecord({"round": work.round, "coins": coins})
        drawn = work.participants(self.size)
        return {"w": np.array([np.mean([2.0**i for i in drawn]), 1.0 + again])}


client = client_app(Local)
server = ServerApp()


@server.main()
def main(grid, context):
    config = context.run_config
    strategy = CohortStrategy(
        config["scheme"], clients=config["clients"], limits=Limits(population=120.0)
    )
    start = ArrayRecord({"w": Array(np.zeros(2))})
    result = strategy.start(grid, start, num_rounds=config["rounds"])
    told = {"model": result.arrays["w"].numpy().tolist(), "rejected": strategy.gate.summary()}
    Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
