"""An old name: local work is in `fedcohort.learning`."""

from fedcohort.simulation.tasks import __getattr__ as __getattr__
