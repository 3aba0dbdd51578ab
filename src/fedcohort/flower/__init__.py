"""The same schemes on Flower: the only package that imports flwr.

Three lines turn an app into one that chooses clients by a scheme::

    from fedcohort.flower import CohortStrategy, client_app

    strategy = CohortStrategy("clustered-size:m=10", clients=100)   # instead of FedAvg(...)
    app = client_app(size=lambda context: len(load(context)))       # instead of ClientApp()
"""

from fedcohort.core.errors import MissingExtra

try:
    import flwr  # noqa: F401
except ImportError as error:
    raise MissingExtra("fedcohort.flower", "flower") from error

from fedcohort.flower.client import CohortClientApp, Discretion, client_app
from fedcohort.flower.inprocess import InProcessGrid
from fedcohort.flower.limits import Limits
from fedcohort.flower.strategy import CohortStrategy
from fedcohort.flower.tasks import first_model, task_client
from fedcohort.flower.work import Work

__all__ = [
    "CohortClientApp",
    "CohortStrategy",
    "Discretion",
    "InProcessGrid",
    "Limits",
    "Work",
    "client_app",
    "first_model",
    "task_client",
]
