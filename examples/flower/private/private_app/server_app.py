"""The server: FedSampling, which needs the number of all samples and no client's own."""

import json
from pathlib import Path

from flwr.app import MetricRecord
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, first_model
from fedcohort.schemes import installed
from private_app.task import task

app = ServerApp()


@app.main()
def main(grid, context) -> None:
    config = context.run_config
    problem = task(config["clients"])
    strategy = CohortStrategy(
        installed(config["scheme"]),
        clients=config["clients"],
        importance="equal",  # nobody is asked for its size
        task=config["task"],  # within one task clients repeat their answer and spend nothing more
        limits=Limits(**dict.fromkeys(("population", "first", "query"), config["patience"])),
    )

    def evaluate(server_round, arrays):
        found = problem.evaluate(arrays["theta"].numpy()[None])
        return MetricRecord({"accuracy": float(found.accuracy[0])})

    result = strategy.start(
        grid, first_model(problem, 0), num_rounds=config["rounds"], evaluate_fn=evaluate
    )
    told = {
        "cohorts": [cohort.clients.tolist() for cohort in strategy.cohorts],
        "weights": [cohort.weights.tolist() for cohort in strategy.cohorts],
        "epsilon": strategy.ledger.epsilons(),
        "rejected": strategy.gate.summary(),
        "accuracy": {r: m["accuracy"] for r, m in result.evaluate_metrics_serverapp.items()},
    }
    if config["out"]:
        Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
    print("what a client spent of its privacy:", told["epsilon"])
