"""A client: its part of Fashion-MNIST; it tells label histogram and loss, and trains."""

from flwr.app import Message, MetricRecord, RecordDict

from fedcohort.flower import client_app, task_client
from thesis_app.task import WORK, task


def local(context):
    return task_client(task(context.node_config["num-partitions"]), WORK)(context)


# The data are public, so the server may toss the clients' coins: with its seed the run equals
# that of the simulator. Where data are private, leave it out.
app = client_app(local, simulated=True)


@app.evaluate()
def evaluate(message: Message, context) -> Message:
    """The loss of the new model on this client's data."""
    loss = local(context).loss({"theta": message.content["arrays"]["theta"].numpy()})
    return Message(RecordDict({"metrics": MetricRecord({"loss": loss})}), reply_to=message)
