"""pytorchexample: A Flower / PyTorch app."""

import torch
from flwr.app import ArrayRecord, ConfigRecord, Context
from flwr.serverapp import Grid, ServerApp

from fedcohort.flower import CohortStrategy  # instead of: ... strategy import FedAvg
from pytorchexample.task import Net

# Create ServerApp
app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Main entry point for the ServerApp."""
    # Load global model
    global_model = Net()
    arrays = ArrayRecord(global_model.state_dict())

    # Instead of: FedAvg(fraction_train=0.3)
    strategy = CohortStrategy("clustered-size:m=3", clients=context.run_config["clients"])

    # Start strategy
    result = strategy.start(
        grid=grid,
        initial_arrays=arrays,
        train_config=ConfigRecord({"lr": context.run_config["learning-rate"]}),
        num_rounds=context.run_config["num-server-rounds"],
    )
    print(result)

    # Save final model to disk
    state_dict = result.arrays.to_torch_state_dict()
    torch.save(state_dict, context.run_config["out"])
