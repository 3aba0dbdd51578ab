"""The server: Best-Loss over clusters of labels, as the thesis has it."""

import json
from pathlib import Path

from flwr.app import MetricRecord
from flwr.serverapp import ServerApp

from fedcohort.flower import CohortStrategy, Limits, first_model
from fedcohort.schemes import installed
from thesis_app.task import task

app = ServerApp()


@app.main()
def main(grid, context) -> None:
    config = context.run_config
    problem = task(config["clients"])
    strategy = CohortStrategy(
        installed(config["scheme"]),
        clients=config["clients"],
        seed=config["seed"],
        folder=config["folder"] or None,
        limits=Limits(**dict.fromkeys(("population", "first", "query"), config["patience"])),
        evaluate="cohort",  # those who trained have the model's attention already
    )

    def evaluate(server_round, arrays):
        found = problem.evaluate(arrays["theta"].numpy()[None])
        told = {"accuracy": float(found.accuracy[0]), "loss": float(found.test_loss[0])}
        return MetricRecord(told)

    result = strategy.start(
        grid,
        first_model(problem, config["seed"]),
        num_rounds=config["rounds"],
        evaluate_fn=evaluate,
    )
    told = {
        "cohorts": [cohort.clients.tolist() for cohort in strategy.cohorts],
        "weights": [cohort.weights.tolist() for cohort in strategy.cohorts],
        "model": result.arrays["theta"].numpy().tolist(),
        "rejected": strategy.gate.summary(),
        "void": strategy.void,
        "accuracy": {r: m["accuracy"] for r, m in result.evaluate_metrics_serverapp.items()},
    }
    if config["out"]:
        Path(config["out"]).write_text(json.dumps(told), encoding="utf-8")
