"""An old name, for whoever is still being moved: see `fedcohort.simulation.clients`."""

from fedcohort.simulation.clients import SimulatedClients as Fleet

__all__ = ["Fleet"]
