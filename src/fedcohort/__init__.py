"""Which clients train in each round of federated learning, and how much each answer counts."""

__version__ = "0.1.0"
