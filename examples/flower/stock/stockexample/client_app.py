"""stockexample: a Flower / NumPy app."""

from flwr.app import Array, ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from stockexample.task import load_data
from stockexample.task import test as test_fn
from stockexample.task import train as train_fn

# Flower ClientApp
app = ClientApp()


@app.train()
def train(msg: Message, context: Context):
    """Train the model on local data."""
    weights = msg.content["arrays"]["weights"].numpy()
    config = context.node_config
    data, _ = load_data(config["partition-id"], config["num-partitions"])
    epochs = context.run_config["local-epochs"]
    weights, loss = train_fn(weights, data, epochs, msg.content["config"]["lr"])

    arrays = ArrayRecord({"weights": Array(weights)})
    metrics = MetricRecord({"train_loss": loss, "num-examples": len(data[1])})
    return Message(RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=msg)


@app.evaluate()
def evaluate(msg: Message, context: Context):
    """Evaluate the model on local data."""
    weights = msg.content["arrays"]["weights"].numpy()
    config = context.node_config
    _, data = load_data(config["partition-id"], config["num-partitions"])
    loss, accuracy = test_fn(weights, data)
    metrics = {"eval_loss": loss, "eval_acc": accuracy, "num-examples": len(data[1])}
    return Message(RecordDict({"metrics": MetricRecord(metrics)}), reply_to=msg)
