"""A client that decides itself what it tells, and remembers what it has told."""

import os
from pathlib import Path

from fedcohort.flower import client_app, task_client
from fedcohort.privacy import ClientPolicy
from private_app.task import WORK, task


def local(context):
    return task_client(task(context.node_config["num-partitions"]), WORK)(context)


def folder(context) -> Path:
    """Where this client remembers its answers: never the server's to say, never shared.

    It must outlive the process and the run: whoever forgets what it answered answers again, and
    two answers cost twice.
    """
    place = Path(os.environ.get("FEDCOHORT_PRIVATE", Path.home() / ".fedcohort-private"))
    return place / str(context.node_config["partition-id"])


POLICY = ClientPolicy(
    answers={"private_size"},  # nothing else is answered, whatever the server asks
    largest_epsilon=3.0,  # of one answer
    ceiling=3.0,  # of all answers of this client, over all runs
    folder=folder,
    updates_in_plain=True,  # consent: single updates tell the size in the end, see docs/privacy.md
)

# Not simulated: the client tosses its own coins, and no seed of the server's repeats them.
app = client_app(local, policy=POLICY)
