"""The same schemes on Flower: the only package that imports flwr.

Three lines turn an app into one that chooses clients by a scheme::

    from fedcohort.flower import CohortStrategy      # server: instead of FedAvg
    strategy = CohortStrategy("pow-d:m=3,d=6", clients=10, importance="equal")
    from fedcohort.flower import ClientApp           # client: instead of flwr.clientapp's

and a fourth tells sizes, where they are to count: ``ClientApp(size=lambda context: ...)``. Try it
in one process, without Ray or network: ``strategy.start(InProcessGrid(app, nodes=10), arrays)``.
"""

from fedcohort._internal.errors import MissingExtra

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise MissingExtra("fedcohort.flower", "flower") from error

from fedcohort.flower._client import CohortClientApp, client_app
from fedcohort.flower._client_values import Work
from fedcohort.flower._exchange import Limits
from fedcohort.flower._in_process import InProcessGrid, first_model, task_client
from fedcohort.flower._monitoring import accountant
from fedcohort.flower._strategy import CohortStrategy

ClientApp = client_app
"""The same under the name that Flower's has: one changed import, and the rest of a file stays."""

__all__ = [
    "ClientApp",
    "CohortClientApp",
    "CohortStrategy",
    "InProcessGrid",
    "Limits",
    "Work",
    "accountant",
    "client_app",
    "first_model",
    "task_client",
]
