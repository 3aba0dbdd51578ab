"""The server: chooses, weighs, steps, and writes down what happened."""

import json
from pathlib import Path

from flwr.app import MetricRecord
from flwr.serverapp import ServerApp

from digits_app.task import task
from fedcohort.flower import CohortStrategy, Limits, first_model
from fedcohort.schemes import installed

app = ServerApp()


@app.main()
def main(grid, context) -> None:
    config = context.run_config
    problem = task(config["clients"])
    private = {}
    if config["aggregator"]:  # noise on the sums needs weights as they were drawn
        private = {"aggregator": config["aggregator"], "dropouts": "none", "quorum": 0.0}
    strategy = CohortStrategy(
        installed(config["scheme"]),  # a word of the run config is never a file
        clients=config["clients"],
        seed=config["seed"],
        folder=config["folder"] or None,
        limits=Limits(
            population=config["patience"],
            first=config["first-limit"],
            train=config["train-limit"],
        ),
        **private,
    )

    def evaluate(server_round, arrays):
        theta = arrays["theta"].numpy()
        found = problem.evaluate(theta[None])
        return MetricRecord({"accuracy": float(found.accuracy[0])})

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
    for last in list(told["accuracy"].values())[-1:]:  # none where nothing was evaluated
        print(f"accuracy after {config['rounds']} rounds: {last:.3f}")
