"""stockexample: a Flower / NumPy app."""

from flwr.app import Array, ArrayRecord, ConfigRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg

from stockexample.task import initial_weights, load_data
from stockexample.task import test as test_fn

# Create ServerApp
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Main entry point for the ServerApp."""
    arrays = ArrayRecord({"weights": Array(initial_weights())})

    strategy = FedAvg(fraction_train=0.3)

    # Start strategy
    result = strategy.start(
        grid=grid,
        initial_arrays=arrays,
        train_config=ConfigRecord({"lr": context.run_config["learning-rate"]}),
        num_rounds=context.run_config["num-server-rounds"],
        evaluate_fn=global_evaluate,
    )
    print("accuracy:", result.evaluate_metrics_serverapp[context.run_config["num-server-rounds"]])


def global_evaluate(server_round: int, arrays: ArrayRecord) -> MetricRecord:
    """Evaluate the model on the server."""
    _, data = load_data(0, 1)
    loss, accuracy = test_fn(arrays["weights"].numpy(), data)
    return MetricRecord({"loss": loss, "accuracy": accuracy})
