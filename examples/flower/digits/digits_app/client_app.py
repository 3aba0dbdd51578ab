"""A client: one part of the data, as the simulator has it."""

from digits_app.task import WORK, task
from fedcohort.flower import client_app, task_client


def local(context):
    return task_client(task(context.node_config["num-partitions"]), WORK)(context)


# The data are public, so the server may toss the clients' coins: with its seed the run equals
# that of the simulator. Where data are private, leave it out.
app = client_app(local, simulated=True)
